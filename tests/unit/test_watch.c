/* test_watch.c - to be woken when keys change, on a real server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "real_redis.h"
#include "stage.h"
#include "store/watch.h"

#define LONG_MS 3600000
#define ROUNDS 1000

struct watch_stage {
	struct stage stage;
	struct real_redis redis;
	struct store_config config;
	struct watch *watch;
	struct watch_state state;
	int woken, armed, result;
};

static void on_woken(void *arg)
{
	struct watch_stage *f = arg;

	f->woken++;
}

static void on_armed(int result, const struct watch_state *state, void *arg)
{
	struct watch_stage *f = arg;

	f->armed++;
	f->result = result;
	f->state = *state;
}

static void watch_begin(struct watch_stage *f, const char *userinfo, int64_t beat_ms)
{
	struct watch_callbacks callbacks = {.woken = on_woken, .armed = on_armed, .arg = f};
	char url[160], error[200];

	snprintf(url, sizeof(url), "unix://%s%s", userinfo, f->redis.socket);
	assert_int_equal(store_url_parse(&f->config.url, url, error, sizeof(error)), 0);
	assert_int_equal(watch_new(&f->watch, f->stage.loop, &f->config, beat_ms, &callbacks), 0);
	assert_int_equal(watch_mode(f->watch), WATCH_CONNECTING);
}

static void begin(struct watch_stage *f)
{
	memset(f, 0, sizeof(*f));
	f->config = (struct store_config){.timeout_ms = 5000, .wait_ms = 5000};
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	stage_init(&f->stage);
	redis_start(&f->redis, NULL, NULL);
}

static void end(struct watch_stage *f)
{
	watch_free(f->watch);
	stage_fini(&f->stage);
	redis_stop(&f->redis);
}

static void begin_tracking(struct watch_stage *f, int64_t beat_ms)
{
	begin(f);
	watch_begin(f, "", beat_ms);
	STAGE_UNTIL(&f->stage, watch_mode(f->watch) == WATCH_TRACKING);
	assert_true(f->woken >= 1);
	f->woken = 0;
}

static void arm(struct watch_stage *f)
{
	const struct word keys[] = {WORD("later"), WORD("high"), WORD("low"), WORD("paused")};
	int before = f->armed;

	assert_int_equal(watch_arm(f->watch, keys, 4), 0);
	assert_int_equal(f->armed, before);
	STAGE_UNTIL(&f->stage, f->armed > before);
	assert_int_equal(f->armed, before + 1);
	assert_int_equal(f->result, 0);
	f->woken = 0;
}

static void turn_some(struct watch_stage *f)
{
	for (int i = 0; i < 20; i++)
		stage_turn(&f->stage);
}

/* --- what wakes ---------------------------------------------------------------------------------------------------- */

static void test_whatever_makes_a_key_wakes_once(void **state)
{
	static const char *const commands[] = {
	    "LPUSH high x",
	    "RPUSH low x",
	    "EVAL \"redis.call('LPUSH', KEYS[1], 'x')\" 1 low",
	    "LMOVE other high LEFT RIGHT",
	    "RENAME other low",
	    "COPY other high",
	    "SADD paused low",
	    "ZADD later 5 id",
	    "FLUSHALL",
	};
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		redis_ask(&f.redis, "DEL high low later paused");
		redis_ask(&f.redis, "RPUSH other x");
		turn_some(&f);
		arm(&f);
		turn_some(&f);
		assert_int_equal(f.woken, 0);
		redis_ask(&f.redis, commands[i]);
		STAGE_UNTIL(&f.stage, f.woken);
		redis_ask(&f.redis, "LPUSH high y");
		turn_some(&f);
		assert_int_equal(f.woken, 1);
	}
	end(&f);
}

static void test_a_transaction_wakes(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	arm(&f);
	assert_string_equal(redis_ask(&f.redis, "MULTI\r\nLPUSH high a\r\nLPUSH low b\r\nEXEC"),
			    "OK");
	STAGE_UNTIL(&f.stage, f.woken);
	end(&f);
}

static void test_a_restored_list_wakes(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	arm(&f);
	redis_ask(
	    &f.redis,
	    "EVAL \"redis.call('RPUSH', KEYS[1], 'x') local d = redis.call('DUMP', KEYS[1]) "
	    "redis.call('DEL', KEYS[1]) return redis.call('RESTORE', KEYS[2], 0, d)\" 2 t low");
	STAGE_UNTIL(&f.stage, f.woken);
	end(&f);
}

static void test_other_keys_do_not_wake(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	arm(&f);
	redis_ask(&f.redis, "LPUSH claims x");
	redis_ask(&f.redis, "GET high2");
	turn_some(&f);
	assert_int_equal(f.woken, 0);
	end(&f);
}

/* --- what the reading says ------------------------------------------------------------------------------------------ */

static void test_the_reading_tells_what_is_there(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	arm(&f);
	assert_int_equal(f.state.existing, 0);
	assert_int_equal(f.state.first_score, -1);
	assert_in_range(f.state.now_ms, 1500000000000, 9999999999999);
	redis_ask(&f.redis, "LPUSH high x");
	redis_ask(&f.redis, "SADD paused low");
	redis_ask(&f.redis, "ZADD later 1999999999999 a 1999999999998 b");
	arm(&f);
	assert_int_equal(f.state.existing, 2);
	assert_int_equal(f.state.first_score, 1999999999998);
	end(&f);
}

static void test_one_arming_at_a_time(void **state)
{
	const struct word keys[] = {WORD("later"), WORD("high")};
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	assert_int_equal(watch_arm(f.watch, keys, 2), 0);
	assert_int_equal(watch_arm(f.watch, keys, 2), -EBUSY);
	STAGE_UNTIL(&f.stage, f.armed);
	assert_int_equal(watch_arm(f.watch, keys, 1), -EINVAL);
	end(&f);
}

static void test_a_watch_that_ends_while_arming_says_nothing(void **state)
{
	const struct word keys[] = {WORD("later"), WORD("high")};
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	assert_int_equal(watch_arm(f.watch, keys, 2), 0);
	watch_free(f.watch);
	f.watch = NULL;
	turn_some(&f);
	assert_int_equal(f.armed, 0);
	assert_int_equal(f.woken, 0);
	end(&f);
}

/* Pushes fall before, into and behind the arming; each must be seen by the reading or by a message. */
static void test_no_push_is_slept_over(void **state)
{
	const struct word keys[] = {WORD("later"), WORD("high"), WORD("low")};
	struct watch_stage f;

	(void)state;
	srand(1);
	begin_tracking(&f, LONG_MS);
	for (int i = 0; i < ROUNDS; i++) {
		int before = f.armed;

		redis_ask(&f.redis, "DEL high low");
		for (int turns = rand() % 3; turns > 0; turns--)
			stage_turn(&f.stage);
		f.woken = 0;
		f.state = (struct watch_state){0};
		assert_int_equal(watch_arm(f.watch, keys, 3), 0);
		for (int turns = rand() % 4; turns > 0; turns--)
			stage_turn(&f.stage);
		redis_ask(&f.redis, rand() % 2 ? "LPUSH high x" : "RPUSH low x");
		STAGE_UNTIL(&f.stage, f.armed > before);
		STAGE_UNTIL(&f.stage, f.woken || f.state.existing);
	}
	end(&f);
}

/* --- connections that end ------------------------------------------------------------------------------------------- */

static void kill_and_expect_a_new_pair(struct watch_stage *f, const char *command)
{
	arm(f);
	redis_ask(&f->redis, command);
	STAGE_UNTIL(&f->stage, f->woken >= 2 && watch_mode(f->watch) == WATCH_TRACKING);
	arm(f);
	redis_ask(&f->redis, "LPUSH high x");
	STAGE_UNTIL(&f->stage, f->woken);
}

static void test_a_killed_connection_wakes_and_the_pair_is_made_anew(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	kill_and_expect_a_new_pair(&f, "CLIENT KILL TYPE pubsub");
	kill_and_expect_a_new_pair(&f, "CLIENT KILL TYPE normal");
	kill_and_expect_a_new_pair(&f, "CLIENT KILL TYPE pubsub");
	assert_int_equal(
	    strtol(redis_ask(&f.redis, "PUBSUB NUMSUB __redis__:invalidate") + 21, NULL, 10), 1);
	end(&f);
}

static void test_an_arming_that_is_cut_off_ends(void **state)
{
	const struct word keys[] = {WORD("later"), WORD("high")};
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	kill(f.redis.pid, SIGSTOP);
	assert_int_equal(watch_arm(f.watch, keys, 2), 0);
	turn_some(&f);
	kill(f.redis.pid, SIGKILL);
	STAGE_UNTIL(&f.stage, f.armed);
	assert_int_equal(f.result, REASON_STORE_UNKNOWN);
	assert_int_equal(watch_mode(f.watch), WATCH_CONNECTING);
	assert_int_equal(watch_arm(f.watch, keys, 2), -EAGAIN);
	assert_int_equal(f.armed, 1);
	end(&f);
}

static void test_a_server_that_restarts_is_watched_again(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, LONG_MS);
	arm(&f);
	redis_restart(&f.redis);
	STAGE_UNTIL(&f.stage, f.woken >= 2 && watch_mode(f.watch) == WATCH_TRACKING);
	arm(&f);
	redis_ask(&f.redis, "LPUSH high x");
	STAGE_UNTIL(&f.stage, f.woken);
	end(&f);
}

/* --- signs of life -------------------------------------------------------------------------------------------------- */

static void test_a_server_that_is_silent_is_found_by_the_beat(void **state)
{
	struct watch_stage f;

	(void)state;
	begin(&f);
	f.config.timeout_ms = 200;
	watch_begin(&f, "", 20);
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) == WATCH_TRACKING);
	kill(f.redis.pid, SIGSTOP);
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) == WATCH_CONNECTING);
	kill(f.redis.pid, SIGCONT);
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) == WATCH_TRACKING);
	end(&f);
}

/* SWAPDB changes keys and tells nobody, as if a message were lost. */
static void test_a_lost_message_is_made_good_by_looking_again(void **state)
{
	struct watch_stage f;

	(void)state;
	begin_tracking(&f, 20);
	redis_ask(&f.redis,
		  "EVAL \"redis.call('SELECT', 1) redis.call('LPUSH', KEYS[1], 'x')\" 1 high");
	arm(&f);
	turn_some(&f);
	turn_some(&f);
	assert_int_equal(f.woken, 0);
	redis_ask(&f.redis, "SWAPDB 0 1");
	STAGE_UNTIL(&f.stage, f.woken);
	end(&f);
}

/* --- servers without it --------------------------------------------------------------------------------------------- */

static void expect_polling(const char *rules)
{
	const struct word keys[] = {WORD("later"), WORD("high")};
	struct watch_stage f;

	begin(&f);
	redis_askf(&f.redis, "ACL SETUSER bob on >pw ~* &* +@all %s", rules);
	watch_begin(&f, "bob:pw@", LONG_MS);
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) != WATCH_CONNECTING);
	if (watch_mode(f.watch) == WATCH_TRACKING) {
		assert_int_equal(watch_arm(f.watch, keys, 2), 0);
		STAGE_UNTIL(&f.stage, f.armed);
		assert_true(f.result != 0);
	}
	assert_int_equal(watch_mode(f.watch), WATCH_POLLING);
	assert_int_equal(metric_own(METRIC_WAIT_MODE), WATCH_POLLING);
	assert_int_equal(watch_arm(f.watch, keys, 2), -EAGAIN);
	assert_true(f.woken >= 1);
	end(&f);
}

static void test_a_user_who_may_not_do_it_polls(void **state)
{
	(void)state;
	expect_polling("-client");
	expect_polling("-client|tracking");
	expect_polling("-client|caching");
	expect_polling("-subscribe");
	expect_polling("resetchannels");
	expect_polling("-multi");
	expect_polling("-exists");
}

static void test_a_server_that_knows_no_tracking_polls_until_it_is_another(void **state)
{
	struct watch_stage f;

	(void)state;
	begin(&f);
	redis_ask(&f.redis, "ACL SETUSER bob on >pw ~* &* +@all -client|tracking");
	watch_begin(&f, "bob:pw@", LONG_MS);
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) == WATCH_POLLING);
	redis_ask(&f.redis, "ACL SETUSER bob +client|tracking");
	redis_ask(&f.redis, "CLIENT KILL TYPE pubsub");
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) == WATCH_TRACKING);
	end(&f);
}

/* --- a far side that is no Redis ------------------------------------------------------------------------------------ */

/* One connection: answers the greeting, and hangs up when it is asked for more. */
static void play_proxy(int fd)
{
	static const char greeting[] = "+PONG\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
	char heard[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, heard + len, sizeof(heard) - 1 - len)) > 0) {
		len += (size_t)n;
		heard[len] = '\0';
		if (strstr(heard, "CLIENT"))
			_exit(0);
		if (strstr(heard, "ROLE\r\n") && write(fd, greeting, sizeof(greeting) - 1) < 0)
			_exit(1);
	}
	_exit(0);
}

static pid_t start_proxy(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 16), 0);
	pid = fork();
	if (pid != 0) {
		close(fd);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int peer = accept(fd, NULL, NULL);

		if (fork() == 0)
			play_proxy(peer);
		close(peer);
	}
}

static void test_a_far_side_that_hangs_up_each_time_is_polled(void **state)
{
	struct watch_stage f = {.config = {.timeout_ms = 5000}};
	pid_t pid;

	(void)state;
	stage_init(&f.stage);
	snprintf(f.redis.folder, sizeof(f.redis.folder), "/tmp/fairlead-unit-XXXXXX");
	assert_non_null(mkdtemp(f.redis.folder));
	snprintf(f.redis.socket, sizeof(f.redis.socket), "%s/redis.sock", f.redis.folder);
	pid = start_proxy(f.redis.socket);
	watch_begin(&f, "", LONG_MS);
	STAGE_UNTIL(&f.stage, watch_mode(f.watch) == WATCH_POLLING);
	assert_int_equal(f.woken, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(f.redis.socket);
	rmdir(f.redis.folder);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whatever_makes_a_key_wakes_once),
	    cmocka_unit_test(test_a_transaction_wakes),
	    cmocka_unit_test(test_a_restored_list_wakes),
	    cmocka_unit_test(test_other_keys_do_not_wake),
	    cmocka_unit_test(test_the_reading_tells_what_is_there),
	    cmocka_unit_test(test_one_arming_at_a_time),
	    cmocka_unit_test(test_a_watch_that_ends_while_arming_says_nothing),
	    cmocka_unit_test(test_no_push_is_slept_over),
	    cmocka_unit_test(test_a_killed_connection_wakes_and_the_pair_is_made_anew),
	    cmocka_unit_test(test_an_arming_that_is_cut_off_ends),
	    cmocka_unit_test(test_a_server_that_restarts_is_watched_again),
	    cmocka_unit_test(test_a_server_that_is_silent_is_found_by_the_beat),
	    cmocka_unit_test(test_a_lost_message_is_made_good_by_looking_again),
	    cmocka_unit_test(test_a_user_who_may_not_do_it_polls),
	    cmocka_unit_test(test_a_server_that_knows_no_tracking_polls_until_it_is_another),
	    cmocka_unit_test(test_a_far_side_that_hangs_up_each_time_is_polled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
