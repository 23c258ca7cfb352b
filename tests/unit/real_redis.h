/* real_redis.h - a redis-server of the test's own, on a unix socket in a folder of its own, without persistence. */
#ifndef FAIRLEAD_TESTS_REAL_REDIS_H
#define FAIRLEAD_TESTS_REAL_REDIS_H

#include <sys/types.h>

struct real_redis {
	pid_t pid; /* 0: not running */
	char folder[64];
	char socket[96];
	char url[128];
};

/* Starts a server and waits until it answers. `option`, `value`: one more setting, or NULL. The test fails without
 * redis-server. */
void redis_start(struct real_redis *redis, const char *option, const char *value);

/* Kills it and starts another, empty one in its place. */
void redis_restart(struct real_redis *redis);

/* Ends it by its process id and removes the folder. Accepts one that does not run. */
void redis_stop(struct real_redis *redis);

/* Sends one command, words by spaces (quoted as in redis-cli), over a connection of its own that does not use src/.
 * Returns the answer flattened: elements by spaces, nil as "nil", an error as it is. Valid until the next call. */
const char *redis_ask(struct real_redis *redis, const char *command);

/* As redis_ask(), for commands made by printf. */
const char *redis_askf(struct real_redis *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How many calls of a command the server has counted since CONFIG RESETSTAT. */
long redis_calls(struct real_redis *redis, const char *command);

#endif
