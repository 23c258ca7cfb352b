/* script.h - the Lua scripts, embedded at build from lua/. */
#ifndef FAIRLEAD_STORE_SCRIPT_H
#define FAIRLEAD_STORE_SCRIPT_H

#include <stddef.h>

#include "script_ids.gen.h" /* enum script_id { SCRIPT_ALLOCATE, ..., SCRIPT_COUNT } */

struct script {
	const char *name;
	const char *source;
	size_t source_len;
	const char *sha1; /* 40 hex digits */
	int keys; /* how many of the arguments are keys; the least, where the caller decides */
};

extern const struct script scripts[SCRIPT_COUNT];

#endif
