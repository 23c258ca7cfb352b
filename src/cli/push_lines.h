/* push_lines.h - cuts what comes on standard input into lines of bounded length. Pure. */
#ifndef FAIRLEAD_CLI_PUSH_LINES_H
#define FAIRLEAD_CLI_PUSH_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* Only the delimiter is cut off: a CR in front of it stays, it may belong to the task. */
struct push_lines {
	struct buffer bytes;
	size_t max;      /* bytes of a line */
	size_t scanned;  /* of `bytes`, without a delimiter */
	size_t taken;    /* of `bytes`, given out last */
	uint64_t number; /* of the line that was given out last, from 1 */
	char delimiter;
	bool is_skipping; /* behind the start of a line that is too long */
	bool is_ended;    /* nothing follows: what is there is the last line */
};

void push_lines_init(struct push_lines *lines, char delimiter, size_t max);
void push_lines_fini(struct push_lines *lines);

/* Where the next bytes go, `*ret_size` of them at most, for push_lines_commit(); NULL: no memory. Only when
 * push_lines_next() has nothing more. */
char *push_lines_reserve(struct push_lines *lines, size_t *ret_size);
void push_lines_commit(struct push_lines *lines, size_t len);

enum push_line { PUSH_LINE, PUSH_LINE_TOO_LONG, PUSH_LINE_NONE };

/* The next line, valid until the next call; one that is too long is left out. NONE: more bytes are needed, or it is
 * the end. */
enum push_line push_lines_next(struct push_lines *lines, const char **ret, size_t *ret_len);

#endif
