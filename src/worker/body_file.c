/* body_file.c - bodies as files of a folder. */
#include "worker/body_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const char *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			return n == 0 ? -ENOSPC : -errno;
	}
	return 0;
}

static int write_new(int folder, const char *name, const char *bytes, size_t len)
{
	char part[BODY_NAME_SIZE + 32];
	int fd, r;

	/* One process has one thread: no other writes under this name. */
	snprintf(part, sizeof part, ".%s.%ld", name, (long)getpid());
	fd = openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes, len);
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(folder, part, folder, name))
		r = -errno;
	if (r)
		unlinkat(folder, part, 0);
	return r;
}

int body_file_write(int folder, const void *bytes, size_t len, char ret_name[static BODY_NAME_SIZE])
{
	uint8_t digest[DIGEST_BYTES];
	struct stat status;
	int r = digest_sha256(digest, bytes, len);

	if (r)
		return r;
	hex_print(digest, sizeof digest, ret_name);
	if (!fstatat(folder, ret_name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode) &&
	    (size_t)status.st_size == len)
		return 0;
	return write_new(folder, ret_name, bytes, len);
}
