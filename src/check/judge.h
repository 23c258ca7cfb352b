/* judge.h - the page that a team's own probes ask: echoes the caller's address and headers; and the reading of its answer.
 *
 * The answer is JSON with a field Fairlead-Judge in its head, so that a probe knows it without being told. */
#ifndef FAIRLEAD_CHECK_JUDGE_H
#define FAIRLEAD_CHECK_JUDGE_H

#include "base/http.h"
#include "base/loop.h"
#include "check/probe.h"

#define JUDGE_VERSION 1
#define JUDGE_ANSWER_MAX ((size_t)65536) /* the longest body that it gives, and that is read */

struct judge;

/* Serves the listening descriptor, which stays the caller's. Clients beyond `max_clients` wait. 0 or -ENOMEM. */
MUST_USE int judge_new(struct judge **ret, struct loop *loop, int fd, size_t max_clients);

/* Ends; connections that are open are closed. Accepts NULL. */
void judge_free(struct judge *judge);

/* Reads the body of a judge's answer: the address that the judge saw, and how much the proxy told about its client. 0
 * or -EPROTO (not a judge's answer). Transparent: a field names another address than the exit's; anonymous: a field
 * tells that there is a proxy; elite: none does (RFC 9110 7.6.3, RFC 7239, and the names in use). Pure. */
MUST_USE int judge_read(const char *body, size_t len, char exit_address[46],
			enum anonymity *ret_anonymity);

#endif
