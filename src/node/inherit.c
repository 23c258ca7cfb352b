/* inherit.c - listening sockets that this process was started with. */
#include "node/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACE_SIZE 160

static long number_of(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long number = text ? strtol(text, &end, 10) : 0;

	return text && *text && !*end ? number : 0;
}

static bool is_listening(int fd)
{
	int on = 0;
	socklen_t len = sizeof on;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) && on;
}

/* As our own are: systemd's come blocking, and all come without close-on-exec. */
static int adopt(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (!is_listening(fd) || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -EINVAL;
	return 0;
}

void inherit_take(struct inherited *ret)
{
	long count = number_of("LISTEN_PID") == getpid() ? number_of("LISTEN_FDS") : 0;

	*ret = (struct inherited){0};
	for (int fd = INHERIT_FIRST; fd < INHERIT_FIRST + count && ret->count < INHERIT_MAX; fd++) {
		if (adopt(fd))
			close(fd);
		else
			ret->fds[ret->count++] = fd;
	}
	ret->is_activated = ret->count > 0;
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
}

/* With port 0 the text up to it is compared. */
static bool is_at(int fd, const char *wanted, bool is_any_port)
{
	struct net_place place;
	char text[PLACE_SIZE];

	if (net_local_place(fd, &place))
		return false;
	net_place_print(&place, text, sizeof text);
	if (is_any_port && place.sa.ss_family != AF_UNIX)
		strrchr(text, ':')[1] = '\0';
	return !strcmp(text, wanted);
}

int inherit_find(struct inherited *inherited, const struct net_place *place)
{
	char wanted[PLACE_SIZE];
	size_t len;
	bool is_any_port;

	net_place_print(place, wanted, sizeof wanted);
	len = strlen(wanted);
	is_any_port = place->sa.ss_family != AF_UNIX && !strcmp(wanted + len - 2, ":0");
	if (is_any_port)
		wanted[len - 1] = '\0';
	for (size_t i = 0; i < inherited->count; i++) {
		int fd = inherited->fds[i];

		if (!is_at(fd, wanted, is_any_port))
			continue;
		inherited->count--;
		memmove(&inherited->fds[i], &inherited->fds[i + 1],
			(inherited->count - i) * sizeof inherited->fds[0]);
		return fd;
	}
	return -1;
}

void inherit_close(struct inherited *inherited)
{
	for (size_t i = 0; i < inherited->count; i++)
		close(inherited->fds[i]);
	inherited->count = 0;
}

int inherit_arrange(int *const *fds, size_t count)
{
	/* Out of the way first: each may stand where another belongs. */
	for (size_t i = 0; i < count; i++) {
		int fd = fcntl(*fds[i], F_DUPFD_CLOEXEC, INHERIT_FIRST + INHERIT_MAX);

		if (fd < 0)
			return -errno;
		close(*fds[i]);
		*fds[i] = fd;
	}
	for (size_t i = 0; i < count; i++) {
		int place = INHERIT_FIRST + (int)i;

		if (dup3(*fds[i], place, O_CLOEXEC) < 0)
			return -errno;
		close(*fds[i]);
		*fds[i] = place;
	}
	return 0;
}
