/* test_reply.c - what the store answers, and what an error says of the operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <hiredis/hiredis.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/reply.h"

/* Where a script's error came from, as Redis 7.0 appends it. */
#define SUFFIX " script: 5b0e6e1a5e0d4e3b8f0b2f2e1d9a7c6b5a493827, on @user_script:12."

struct row {
	const char *error;
	bool is_script;
	enum error_class class;
};

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum error_class class = reply_classify(rows[i].error, rows[i].is_script);

		if (class != rows[i].class)
			fail_msg("'%s' is %d, not %d", rows[i].error, class, rows[i].class);
	}
}

static void test_what_passes_by_itself_is_sent_again(void **state)
{
	static const struct row rows[] = {
	    {"NOSCRIPT No matching script. Please use EVAL.", true, ERROR_NOSCRIPT},
	    {"LOADING Redis is loading the dataset in memory", true, ERROR_TRANSIENT},
	    {"LOADING Redis is loading the dataset in memory", false, ERROR_TRANSIENT},
	    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
	     "NOSAVE.",
	     true, ERROR_TRANSIENT},
	    {"READONLY You can't write against a read only replica.", true, ERROR_TRANSIENT},
	    {"READONLY You can't write against a read only replica." SUFFIX, true, ERROR_TRANSIENT},
	    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	     true, ERROR_TRANSIENT},
	    {"TRYAGAIN Multiple keys request during rehashing of slot", true, ERROR_TRANSIENT},
	    {"CLUSTERDOWN Hash slot not served", true, ERROR_TRANSIENT},
	    {"CLUSTERDOWN The cluster is down", false, ERROR_TRANSIENT},
	    {"CLUSTERDOWN The cluster is down and only accepts read commands", true,
	     ERROR_TRANSIENT},
	    {"ERR Script killed by user with SCRIPT KILL." SUFFIX, true, ERROR_TRANSIENT},
	    {"ERR max number of clients reached", false, ERROR_TRANSIENT},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

static void test_what_would_be_refused_again_is_told_upward(void **state)
{
	static const struct row rows[] = {
	    {"NOREPLICAS Not enough good replicas to write.", true, ERROR_REFUSED},
	    {"NOREPLICAS Not enough good replicas to write." SUFFIX, true, ERROR_REFUSED},
	    {"MISCONF Errors writing to the AOF file: No space left on device", true,
	     ERROR_REFUSED},
	    {"OOM command not allowed when used memory > 'maxmemory'.", false, ERROR_REFUSED},
	    {"OOM command not allowed when used memory > 'maxmemory'." SUFFIX, true, ERROR_REFUSED},
	    {"NOAUTH Authentication required.", true, ERROR_REFUSED},
	    {"WRONGPASS invalid username-password pair or user is disabled.", false, ERROR_REFUSED},
	    {"NOPERM this user has no permissions to run the 'evalsha' command", true,
	     ERROR_REFUSED},
	    {"MOVED 3999 127.0.0.1:6381", true, ERROR_REFUSED},
	    {"ASK 3999 127.0.0.1:6381", true, ERROR_REFUSED},
	    {"CROSSSLOT Keys in request don't hash to the same slot", true, ERROR_REFUSED},
	    {"ERR fairlead: n must be 1 to 256", true, ERROR_REFUSED},
	    {"DENIED Redis is running in protected mode", false, ERROR_REFUSED},
	    {"NOPROTO unsupported protocol version", false, ERROR_REFUSED},
	    {"REDIRECT 127.0.0.1:6381", false, ERROR_REFUSED},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

static void test_a_command_that_was_refused_changed_nothing(void **state)
{
	static const char *const errors[] = {
	    "WRONGTYPE Operation against a key holding the wrong kind of value",
	    "UNKILLABLE Sorry the script already executed write commands",
	    "NOTBUSY No scripts in execution right now.",
	    "EXECABORT Transaction discarded because of previous errors.",
	    "ERR Protocol error: invalid bulk length",
	    "UNBLOCKED client unblocked via CLIENT UNBLOCK",
	    "BUSYKEY Target key name already exists.",
	    "BUSYGROUP Consumer Group name already exists",
	    "NOGROUP No such key",
	    "IOERR error or timeout reading to target instance",
	    "INPROG Failover already in progress",
	    "NOGOODSLAVE No suitable replica to promote",
	    "NOQUORUM 1 usable Sentinels",
	    "NOMASTERLINK Can't SYNC while not connected with my master",
	    "ERR unknown command 'HMGET', with args beginning with: 'x'",
	    "ERR wrong number of arguments for 'hset' command",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		check(&(struct row){errors[i], false, ERROR_REFUSED}, 1);
}

static void test_a_script_that_stopped_may_have_written(void **state)
{
	static const char *const errors[] = {
	    "WRONGTYPE Operation against a key holding the wrong kind of value" SUFFIX,
	    "ERR The user executing the script can't run this command or subcommand" SUFFIX,
	    "ERR Script attempted to access a non local key in a cluster node" SUFFIX,
	    "ERR user_script:12: attempt to index a nil value" SUFFIX,
	    "ERR Unknown Redis command called from script" SUFFIX,
	    "ERR Wrong number of args calling Redis command from script" SUFFIX,
	    "ERR anything else",
	    "SOMETHING new",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		check(&(struct row){errors[i], true, ERROR_PARTIAL}, 1);
}

/* EVALSHA itself is renamed or forbidden, or the text is no Lua: nothing of the script ran. */
static void test_a_script_that_never_began_changed_nothing(void **state)
{
	static const struct row rows[] = {
	    {"ERR unknown command 'EVALSHA', with args beginning with: 'x'", true, ERROR_REFUSED},
	    {"ERR unknown command `EVALSHA`, with args beginning with: `x`", true, ERROR_REFUSED},
	    {"ERR wrong number of arguments for 'evalsha' command", true, ERROR_REFUSED},
	    {"ERR Error compiling script (new function): user_script:1: '=' expected", true,
	     ERROR_REFUSED},
	    {"ERR Number of keys can't be greater than number of args", true, ERROR_REFUSED},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

/* The first word decides, not a prefix of it. */
static void test_words_that_only_begin_alike_are_others(void **state)
{
	(void)state;
	check(&(struct row){"BUSYKEY Target key name already exists.", true, ERROR_PARTIAL}, 1);
	check(&(struct row){"ASKING", true, ERROR_PARTIAL}, 1);
	check(&(struct row){"OOMPH", true, ERROR_PARTIAL}, 1);
	check(&(struct row){"LOADINGS", true, ERROR_PARTIAL}, 1);
}

static redisReply *read_reply(const char *bytes)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;

	assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
	assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
	redisReaderFree(reader);
	assert_non_null(reply);
	return reply;
}

static void test_a_reply_is_read_by_its_kind(void **state)
{
	redisReply *native =
	    read_reply("*6\r\n$3\r\na\r\n\r\n+OK\r\n:42\r\n$-1\r\n-ERR x\r\n*0\r\n");
	const struct reply *reply = (const struct reply *)native;
	static const enum reply_kind kinds[] = {REPLY_TEXT, REPLY_STATUS, REPLY_INTEGER,
						REPLY_NIL,  REPLY_ERROR,  REPLY_ARRAY};
	size_t len;

	(void)state;
	assert_int_equal(reply_count(reply), 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(reply_kind(reply_at(reply, i)), kinds[i]);
	assert_memory_equal(reply_text(reply_at(reply, 0), &len), "a\r\n", 4);
	assert_int_equal(len, 3);
	assert_string_equal(reply_text(reply_at(reply, 1), NULL), "OK");
	assert_string_equal(reply_text(reply_at(reply, 2), &len), "");
	assert_int_equal(len, 0);
	assert_int_equal(reply_integer(reply_at(reply, 2), -1), 42);
	assert_string_equal(reply_text(reply_at(reply, 4), NULL), "ERR x");
	assert_null(reply_at(reply, 6));
	assert_null(reply_at(reply_at(reply, 0), 0));
	freeReplyObject(native);
}

static void test_no_reply_is_nil_everywhere(void **state)
{
	double number = 7;

	(void)state;
	assert_int_equal(reply_kind(NULL), REPLY_NIL);
	assert_string_equal(reply_text(NULL, NULL), "");
	assert_int_equal(reply_integer(NULL, -5), -5);
	assert_int_equal(reply_double(NULL, &number), -EINVAL);
	assert_int_equal(reply_count(NULL), 0);
	assert_null(reply_at(NULL, 0));
	assert_true(number == 7);
}

static void test_numbers_are_read_from_texts(void **state)
{
	static const struct {
		const char *bytes;
		int64_t integer;
		int result;
		double number;
	} rows[] = {
	    {"$2\r\n17\r\n", 17, 0, 17},
	    {"$2\r\n-5\r\n", -5, 0, -5},
	    {"$0\r\n\r\n", -1, -EINVAL, 0},
	    {"$3\r\n12x\r\n", -1, -EINVAL, 0},
	    {"$19\r\n9223372036854775808\r\n", -1, 0, 9223372036854775808.0},
	    {"$3\r\ninf\r\n", -1, 0, INFINITY},
	    {"$4\r\n-inf\r\n", -1, 0, -INFINITY},
	    {"$3\r\nnan\r\n", -1, -EINVAL, 0},
	    {"$18\r\n9007199254740992.5\r\n", -1, 0, 9007199254740992.0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		redisReply *native = read_reply(rows[i].bytes);
		const struct reply *reply = (const struct reply *)native;
		double number = 0;

		assert_true(reply_integer(reply, -1) == rows[i].integer);
		assert_int_equal(reply_double(reply, &number), rows[i].result);
		assert_true(number == rows[i].number);
		freeReplyObject(native);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_passes_by_itself_is_sent_again),
	    cmocka_unit_test(test_what_would_be_refused_again_is_told_upward),
	    cmocka_unit_test(test_a_command_that_was_refused_changed_nothing),
	    cmocka_unit_test(test_a_script_that_stopped_may_have_written),
	    cmocka_unit_test(test_a_script_that_never_began_changed_nothing),
	    cmocka_unit_test(test_words_that_only_begin_alike_are_others),
	    cmocka_unit_test(test_a_reply_is_read_by_its_kind),
	    cmocka_unit_test(test_no_reply_is_nil_everywhere),
	    cmocka_unit_test(test_numbers_are_read_from_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
