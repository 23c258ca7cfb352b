/* stepping_clock.c - a wall clock that a test steps while a program runs; to be loaded by LD_PRELOAD.
 *
 * The file STEPPING_CLOCK holds an int64_t, the seconds by which the program's wall clock is ahead of the true one. Its monotonic
 * clock goes on as it is. (libfaketime 0.9.10 and jemalloc, which redis-server uses, each wait for the other to be ready.) */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Until the file is mapped, which is after the first question of an allocator. */
static const volatile int64_t none;
static const volatile int64_t *ahead_s = &none;

__attribute__((constructor)) static void map(void)
{
	const char *path = getenv("STEPPING_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		abort();
	close(fd);
	ahead_s = at;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, id, ret);

	if (!r && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ret->tv_sec += *ahead_s;
	return (int)r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec now;
	int r = clock_gettime(CLOCK_REALTIME, &now);

	(void)zone;
	ret->tv_sec = now.tv_sec;
	ret->tv_usec = now.tv_nsec / 1000;
	return r;
}

time_t time(time_t *ret)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
