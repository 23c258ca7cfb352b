/* file.c - has a file changed? */
#include "source/file.h"

#include <sys/stat.h>

bool file_look(const char *path, struct file_state *ret)
{
	struct stat st;

	*ret = (struct file_state){0};
	if (stat(path, &st))
		return false;
	*ret = (struct file_state){.device = st.st_dev,
				   .inode = st.st_ino,
				   .size = st.st_size,
				   .modified = st.st_mtim,
				   .changed = st.st_ctim};
	return true;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_is_same(const struct file_state *a, const struct file_state *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       is_same_time(&a->modified, &b->modified) && is_same_time(&a->changed, &b->changed);
}
