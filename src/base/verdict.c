/* verdict.c - the rows of tables/verdict.def as data. */
#include "base/verdict.h"

static const struct {
	const char *word, *hint;
} rows[VERDICT_COUNT] = {
#define VERDICT(name, word, hint) [VERDICT_##name] = {word, hint},
#include "tables/verdict.def"
#undef VERDICT
};

const char *verdict_word(int verdict)
{
	return verdict < 0 || verdict >= VERDICT_COUNT ? "unknown" : rows[verdict].word;
}

const char *verdict_hint(int verdict)
{
	return verdict < 0 || verdict >= VERDICT_COUNT ? "" : rows[verdict].hint;
}
