/* place.h - a proxy list that was named on the command line: a file, a URL, or standard input. */
#ifndef FAIRLEAD_CLI_PLACE_H
#define FAIRLEAD_CLI_PLACE_H

#include "source/load.h"

struct place {
	const char *name; /* as messages show it, without credentials */
	char shown[256];
	char base[256]; /* the last part of it, in the table of verdicts */
};

/* `text` as it was typed. `ret` points into itself and stays where it is. */
void place_name(struct place *ret, const char *text);

/* Reads the whole list into `load`. 0, or -errno with what is wrong in `error`. */
MUST_USE int place_read(struct load *load, const char *text, char *error, size_t size);

#endif
