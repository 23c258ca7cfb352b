/* verdict.h - what an entry of a proxy list can be; the rows of tables/verdict.def. */
#ifndef FAIRLEAD_BASE_VERDICT_H
#define FAIRLEAD_BASE_VERDICT_H

enum verdict {
#define VERDICT(name, word, hint) VERDICT_##name,
#include "tables/verdict.def"
#undef VERDICT
	VERDICT_COUNT
};

/* The word of the closed list, and what to do about it ("" = nothing). Static storage. */
const char *verdict_word(int verdict);
const char *verdict_hint(int verdict);

#endif
