/* notify.c - tells systemd what this process is about. */
#include "node/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define VARIABLE "NOTIFY_SOCKET"

static char address[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": nobody listens */

void notify_open(void)
{
	const char *text = getenv(VARIABLE);

	address[0] = '\0';
	if (text && (*text == '/' || *text == '@') && strlen(text) < sizeof address)
		memcpy(address, text, strlen(text) + 1);
	unsetenv(VARIABLE);
}

void notify_pass_on(void)
{
	if (*address)
		setenv(VARIABLE, address, 1);
}

/* One datagram. Whoever does not take it at once has no claim on our time. */
static void tell(const char *text)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t len = strlen(address);
	int fd;

	if (!*address)
		return;
	memcpy(un.sun_path, address, len);
	if (*address == '@')
		un.sun_path[0] = '\0'; /* an abstract name, which has no end but its length */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&un,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void notify_ready(void)
{
	tell("READY=1");
}

void notify_reloading(void)
{
	struct timespec now;
	char text[64];

	/* The time tells systemd which of several reloads this one is. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		 (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	tell(text);
}

void notify_stopping(void)
{
	tell("STOPPING=1");
}
