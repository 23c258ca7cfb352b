/* lease_word.h - a lease as commands name it: ID:TOKEN. */
#ifndef FAIRLEAD_CLI_LEASE_WORD_H
#define FAIRLEAD_CLI_LEASE_WORD_H

#include "cli/session.h"
#include "pool/lease.h"

#define LEASE_WORD_SIZE (LEASE_ID_MAX + LEASE_TOKEN_MAX + 2)

struct lease_word {
	char id[LEASE_ID_MAX + 1];
	char token[LEASE_TOKEN_MAX + 1];
};

/* 0, or -EINVAL: not of that form. */
MUST_USE int lease_word_parse(struct lease_word *ret, const char *text);

void lease_word_print(const struct lease *lease, char ret[static LEASE_WORD_SIZE]);

/* Asks for one lease; results and callback as those of pool_lease_renew(). */
typedef int lease_word_ask(struct session *session, const struct lease_word *word, pool_cb *cb,
			   void *arg);

/* Opens, asks for each lease that is named as an argument, closes. `done`: what a lease is then, for the note. Stale
 * ones are named, the others are done; the exit status is EXIT_FAILED then. A wrong argument changes nothing. */
MUST_USE int lease_words_ask(struct cli *cli, lease_word_ask *ask, const char *done);

#endif
