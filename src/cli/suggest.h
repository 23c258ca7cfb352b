/* suggest.h - what somebody may have meant by a word that we do not know. */
#ifndef FAIRLEAD_CLI_SUGGEST_H
#define FAIRLEAD_CLI_SUGGEST_H

struct suggestion {
	const char *typed;
	char best[64]; /* "" = nothing is near enough */
	unsigned distance;
};

void suggest_begin(struct suggestion *s, const char *typed);

/* Keeps `candidate` if it is nearer than all before it. */
void suggest_try(struct suggestion *s, const char *candidate);

/* Keeps `candidate` as the best there can be. */
void suggest_take(struct suggestion *s, const char *candidate);

/* Edits (insert, delete, replace, swap of neighbours) from `a` to `b`; texts over 63 bytes are
 * infinitely far. */
unsigned suggest_distance(const char *a, const char *b);

#endif
