/* target.h - where probes go, and what they expect there: the rules check_target, check_status, check_text. Pure. */
#ifndef FAIRLEAD_CHECK_TARGET_H
#define FAIRLEAD_CHECK_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endpoint.h"

enum target_kind { TARGET_HTTP, TARGET_HTTPS, TARGET_TUNNEL };

struct target {
	enum target_kind kind;
	char host[ENDPOINT_HOST_MAX + 1]; /* canonical */
	uint16_t port;
	char path[256]; /* with query; "/" if none */
};

#define TARGETS_MAX 16

/* Reads up to TARGETS_MAX targets, separated by blanks. 0 and their number (0: none), or -EINVAL with a line in `error`. */
MUST_USE int targets_parse(struct target ret[TARGETS_MAX], size_t *ret_count, const char *text,
			   char *error, size_t error_size);

struct expectation {
	uint8_t statuses[75]; /* a bit each, 0..599 */
	char text[512];       /* "" = none */
};

MUST_USE int expectation_parse(struct expectation *ret, const char *statuses, const char *text,
			       char *error, size_t error_size);
bool expectation_allows(const struct expectation *expectation, int status);

#endif
