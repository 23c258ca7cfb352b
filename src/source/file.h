/* file.h - has a file changed? */
#ifndef FAIRLEAD_SOURCE_FILE_H
#define FAIRLEAD_SOURCE_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* What tells that a file is another one, or was written to; zeros: there is none. */
struct file_state {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
};

/* Follows symbolic links. False: it cannot be looked at; reading it will tell why. */
bool file_look(const char *path, struct file_state *ret);

bool file_is_same(const struct file_state *a, const struct file_state *b);

#endif
