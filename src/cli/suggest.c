/* suggest.c - what somebody may have meant by a word that we do not know. */
#include "cli/suggest.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 63

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Damerau-Levenshtein in its restricted form: rows of the matrix for the two prefixes before and
 * the current one. */
unsigned suggest_distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1];
	unsigned *before = rows[0], *above = rows[1], *current = rows[2];
	size_t len_a = strlen(a), len_b = strlen(b);

	if (len_a > WORD_MAX || len_b > WORD_MAX)
		return UINT_MAX;
	for (size_t j = 0; j <= len_b; j++)
		above[j] = (unsigned)j;
	for (size_t i = 1; i <= len_a; i++) {
		unsigned *recycled = before;

		current[0] = (unsigned)i;
		for (size_t j = 1; j <= len_b; j++) {
			current[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
			current[j] = least(current[j], least(above[j], current[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				current[j] = least(current[j], before[j - 2] + 1);
		}
		before = above;
		above = current;
		current = recycled;
	}
	return above[len_b];
}

/* A third of the word may be wrong. */
void suggest_begin(struct suggestion *s, const char *typed)
{
	s->typed = typed;
	s->best[0] = '\0';
	s->distance = (unsigned)strlen(typed) / 3 + 1;
}

void suggest_try(struct suggestion *s, const char *candidate)
{
	size_t len = strlen(s->typed);
	unsigned distance = suggest_distance(s->typed, candidate);

	/* The beginning of a word is as good as one slip. */
	if (len >= 3 && strncmp(s->typed, candidate, len) == 0)
		distance = least(distance, 1);
	if (distance >= s->distance)
		return;
	s->distance = distance;
	snprintf(s->best, sizeof s->best, "%s", candidate);
}

void suggest_take(struct suggestion *s, const char *candidate)
{
	s->distance = 0;
	snprintf(s->best, sizeof s->best, "%s", candidate);
}
