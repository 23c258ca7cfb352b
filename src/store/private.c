/* private.c - the server that fairlead brings along: locks, start, stop. */
#include "store/private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/spawn.h"

#define LOCK_WAIT_MS 30000
#define START_WAIT_MS 60000
#define STOP_WAIT_MS 30000
#define ANSWER_WAIT_MS 1000
#define STEP_MS 10

struct private_server {
	char dir[PATH_MAX];
	char socket[sizeof((struct sockaddr_un *)0)->sun_path];
	char url[128];
	int users_fd; /* holds the shared lock */
	int start_fd; /* holds the exclusive lock while this process starts or stops the server; -1 = not held */
	pid_t child; /* the server, if this process started it; 0 = not ours */
};

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* --- where -------------------------------------------------------------------------------------------------------- */

/* mkdir -p, each new directory with mode 0700. */
static int make_dirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		r = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r)
			return r;
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

/* The directory must be ours alone: whoever can open the socket owns the data. */
static int check_dir(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (st.st_mode & 077 && chmod(path, 0700))
		return -errno;
	return access(path, R_OK | W_OK | X_OK) ? -errno : 0;
}

static uint64_t fnv1a(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

static int path_join(char *ret, size_t size, const char *dir, const char *name)
{
	int len = snprintf(ret, size, "%s/%s", dir, name);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

/* A socket path that is too long for sockaddr_un goes into the runtime directory under a name of its own. */
static int choose_socket(struct private_server *server)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	unsigned long long name = fnv1a(server->dir);
	char dir[PATH_MAX];
	int r;

	if (path_join(server->socket, sizeof server->socket, server->dir, "redis.sock") == 0)
		return 0;
	if (runtime && *runtime == '/')
		snprintf(dir, sizeof dir, "%s/fairlead-%016llx", runtime, name);
	else
		snprintf(dir, sizeof dir, "/tmp/fairlead-%u-%016llx", geteuid(), name);
	r = make_dirs(dir);
	if (!r)
		r = check_dir(dir);
	return r ? r : path_join(server->socket, sizeof server->socket, dir, "redis.sock");
}

static int find_place(struct private_server *server, const char *state_dir)
{
	char path[PATH_MAX];
	int r;

	if (!*state_dir)
		return -ENOENT;
	snprintf(path, sizeof path, "%s", state_dir);
	r = make_dirs(path);
	/* The server is named by its real path: two spellings must not become two servers on the same files. */
	if (!r && !realpath(path, server->dir))
		r = -errno;
	if (!r)
		r = check_dir(server->dir);
	if (!r)
		r = choose_socket(server);
	snprintf(server->url, sizeof server->url, "unix://%s", server->socket);
	return r;
}

/* --- locks -------------------------------------------------------------------------------------------------------- */

static int open_lock(const struct private_server *server, const char *name)
{
	int dir = open(server->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd, r;

	if (dir < 0)
		return -errno;
	fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fd;
	close(dir);
	return r;
}

/* A descriptor that holds the lock, or -errno; -EWOULDBLOCK after `wait_ms`. */
static int take_lock(const struct private_server *server, const char *name, int how,
		     int64_t wait_ms)
{
	int64_t deadline = clock_ms() + wait_ms;
	int fd = open_lock(server, name);

	if (fd < 0)
		return fd;
	while (flock(fd, how | LOCK_NB)) {
		int r = -errno;

		if ((r != -EWOULDBLOCK && r != -EINTR) || clock_ms() >= deadline) {
			close(fd);
			return r;
		}
		pause_ms(STEP_MS);
	}
	return fd;
}

static void release(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- talking to it ------------------------------------------------------------------------------------------------ */

/* A connected blocking descriptor, or -errno (-ECONNREFUSED, -ENOENT: nobody is there). */
static int connect_to(const struct private_server *server)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	snprintf(un.sun_path, sizeof un.sun_path, "%s", server->socket);
	if (!connect(fd, (struct sockaddr *)&un, sizeof un))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Sends a line and reads the beginning of what comes back within `wait_ms`. Bytes read (0: closed) or -errno. */
static ssize_t ask(int fd, const char *line, char *answer, size_t size, int wait_ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	ssize_t n;

	if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		return -errno;
	if (poll(&wait, 1, wait_ms) <= 0)
		return -ETIMEDOUT;
	n = recv(fd, answer, size - 1, 0);
	answer[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : n;
}

enum presence { ABSENT, LOADING, PRESENT };

/* A server that is there but hangs counts as present: a second one on the same files would be worse. One that listens and
 * closes without an answer is on its way, up or down. */
static enum presence look(const struct private_server *server)
{
	int fd = connect_to(server);
	char answer[64] = "";
	ssize_t n;

	if (fd < 0)
		return fd == -ECONNREFUSED || fd == -ENOENT ? ABSENT : PRESENT;
	n = ask(fd, "PING\r\n", answer, sizeof answer, ANSWER_WAIT_MS);
	close(fd);
	if (n == 0 || n == -ECONNRESET || n == -EPIPE)
		return LOADING;
	return !strncmp(answer, "-LOADING", 8) ? LOADING : PRESENT;
}

/* The server that this process started has ended, or there never was one. */
static bool has_ended(struct private_server *server)
{
	if (server->child > 0 && waitpid(server->child, NULL, WNOHANG) != 0)
		server->child = 0;
	return server->child == 0;
}

/* --- start and stop, under the lock ------------------------------------------------------------------------------- */

static int start(struct private_server *server, char *error, size_t error_size)
{
	int64_t deadline = clock_ms() + START_WAIT_MS;
	int r;

	unlink(server->socket);
	r = spawn_server(&server->child, server->dir, server->socket, error, error_size);
	if (r)
		return r;
	while (look(server) != PRESENT) {
		if (has_ended(server) || clock_ms() >= deadline) {
			spawn_explain(server->dir, error, error_size);
			return -EIO;
		}
		pause_ms(STEP_MS);
	}
	return 0;
}

static void stop(struct private_server *server)
{
	int64_t deadline = clock_ms() + STOP_WAIT_MS;
	int fd = connect_to(server);
	char answer[256] = "";

	if (fd < 0)
		return;
	/* With AOF on, SHUTDOWN writes and syncs what is pending; the answer is the end of the connection. */
	if (ask(fd, "SHUTDOWN\r\n", answer, sizeof answer, STOP_WAIT_MS) > 0)
		log_warn("the private server does not stop", LOG_TEXT("answer", answer));
	close(fd);
	while (spawn_is_alive(server->dir) && clock_ms() < deadline)
		pause_ms(STEP_MS);
	has_ended(server);
}

/* Nobody on the socket and nobody on the way to it. A server whose starter was killed comes up all the same: a second
 * one would write to the same files. */
static bool is_absent(const struct private_server *server, enum presence presence)
{
	return presence == ABSENT && !spawn_is_alive(server->dir);
}

static int start_if_absent(struct private_server *server, char *error, size_t error_size)
{
	int64_t deadline = clock_ms() + START_WAIT_MS;
	enum presence presence = look(server);

	while (presence != PRESENT && !is_absent(server, presence)) {
		if (clock_ms() >= deadline) {
			snprintf(error, error_size,
				 "the private server of %.200s runs but does not answer; end it",
				 server->dir);
			return -ETIMEDOUT;
		}
		pause_ms(STEP_MS);
		presence = look(server);
	}
	return presence == PRESENT ? 0 : start(server, error, error_size);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int join(struct private_server *server, char *error, size_t error_size)
{
	int r;

	server->start_fd = take_lock(server, "start", LOCK_EX, LOCK_WAIT_MS);
	if (server->start_fd < 0) {
		r = server->start_fd;
		snprintf(error, error_size, "%.200s/start: cannot lock: %s", server->dir,
			 strerror(-r));
		return r;
	}
	/* Only who holds `start` ever takes `users` exclusively, so this does not wait. */
	server->users_fd = take_lock(server, "users", LOCK_SH, LOCK_WAIT_MS);
	if (server->users_fd < 0) {
		r = server->users_fd;
		snprintf(error, error_size, "%.200s/users: cannot lock: %s", server->dir,
			 strerror(-r));
	} else {
		r = start_if_absent(server, error, error_size);
	}
	release(&server->start_fd);
	if (r)
		release(&server->users_fd);
	return r;
}

int private_attach(struct private_server **ret, const char *state_dir, char *error,
		   size_t error_size)
{
	struct private_server *server = calloc(1, sizeof *server);
	int r;

	if (!server)
		return -ENOMEM;
	server->users_fd = server->start_fd = -1;
	r = find_place(server, state_dir);
	if (r)
		snprintf(error, error_size,
			 "state directory %.200s: %s; choose one of your own with --state-dir, or "
			 "a Redis with --redis",
			 *server->dir ? server->dir
			 : *state_dir ? state_dir
				      : "(no HOME)",
			 strerror(-r));
	else
		r = join(server, error, error_size);
	if (r)
		free(server);
	else
		*ret = server;
	return r;
}

int private_adopt(struct private_server *server)
{
	int fd = take_lock(server, "users", LOCK_SH, LOCK_WAIT_MS);

	if (fd < 0)
		return fd;
	/* The inherited descriptor shares its lock with the parent; closing it here leaves that lock alone. */
	release(&server->users_fd);
	server->users_fd = fd;
	server->child = 0;
	return 0;
}

void private_detach(struct private_server *server)
{
	if (!server)
		return;
	if (server->start_fd < 0)
		server->start_fd = take_lock(server, "start", LOCK_EX, LOCK_WAIT_MS);
	/* Converting the lock is no single step, but only who holds `start` converts. */
	if (server->start_fd >= 0 && !flock(server->users_fd, LOCK_EX | LOCK_NB))
		stop(server);
	release(&server->users_fd);
	release(&server->start_fd);
	free(server);
}

const char *private_url(const struct private_server *server)
{
	return server->url;
}

void private_revive(struct private_server *server)
{
	char error[256] = "";
	int fd;

	if (server->start_fd >= 0) {
		if (!has_ended(server))
			return;
		spawn_explain(server->dir, error, sizeof error);
		log_error("the private server does not start", LOG_TEXT("error", error));
		release(&server->start_fd);
		return;
	}
	server->start_fd = take_lock(server, "start", LOCK_EX, 0);
	if (server->start_fd < 0)
		return;
	fd = connect_to(server);
	has_ended(server);
	if ((fd != -ECONNREFUSED && fd != -ENOENT) || spawn_is_alive(server->dir)) {
		release(&fd);
		release(&server->start_fd);
		return;
	}
	unlink(server->socket);
	if (spawn_server(&server->child, server->dir, server->socket, error, sizeof error)) {
		log_error("the private server does not start", LOG_TEXT("error", error));
		release(&server->start_fd);
	} else {
		log_warn("the private server was dead and is started again",
			 LOG_TEXT("dir", server->dir));
	}
}

void private_settled(struct private_server *server)
{
	release(&server->start_fd);
}
