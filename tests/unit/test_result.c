/* test_result.c - lines of results, and that each is written and pushed before it is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "real_redis.h"
#include "stage.h"
#include "worker/result.h"
#include "worker/result_line.h"

static const struct visit_header headers[] = {{"Content-Type", "text/plain"},
					      {"X-Price", "\xA3 5"}};

static const struct visit_answer answer = {
    .status = 200,
    .final_url = "http://a.example/end",
    .headers = headers,
    .header_count = 2,
    .http_version = "1.1",
    .body = "page\n",
    .len = 5,
    .name_us = 0,
    .connect_us = 1500,
    .tls_us = 0,
    .first_byte_us = 20001,
    .total_us = 1020001,
};

static const struct carried carried = {
    .answer = &answer,
    .member = "http://p.example:8080",
    .tries = 2,
    .began_ms = 1767225600000, /* 2026-01-01 */
    .took_ms = 1021,
};

static struct claim *make_claim(const char *payload, size_t len)
{
	struct claim *claim = calloc(1, sizeof *claim + len + 1);

	assert_non_null(claim);
	strcpy(claim->id, "17");
	claim->failures = 2;
	claim->lost = 1;
	claim->len = len;
	memcpy(claim->payload, payload, len);
	return claim;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* The line of `facts`, which is one, read by another's parser. */
static json_t *line_of(const struct result_facts *facts)
{
	struct buffer to;
	json_t *json;

	buffer_init(&to, 65536);
	assert_int_equal(result_line_add(&to, facts), 0);
	assert_ptr_equal(memchr(buffer_at(&to), '\n', buffer_len(&to)),
			 buffer_at(&to) + buffer_len(&to) - 1);
	json = json_loadb(buffer_at(&to), buffer_len(&to), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
			  NULL);
	assert_non_null(json);
	buffer_fini(&to);
	return json;
}

/* `wanted`: JSON as well; names in any order. */
static void expect_line(const struct result_facts *facts, const char *wanted)
{
	json_t *line = line_of(facts), *other = json_loads(wanted, 0, NULL);
	char *text = json_dumps(line, 0);

	assert_non_null(other);
	if (!json_equal(line, other))
		fail_msg("%s", text);
	free(text);
	json_decref(line);
	json_decref(other);
}

static void test_a_result_tells_all(void **state)
{
	struct claim *claim = make_claim("x", 1);
	struct task task = {.shown = "http://***@a.example/", .id = "mine", .meta = "{\"job\":1}"};
	struct result_facts facts = {claim, "hi", &task, &carried, OUTCOME_DONE, NULL};

	(void)state;
	expect_line(
	    &facts,
	    "{\"task\":\"17\",\"id\":\"mine\",\"level\":\"hi\",\"outcome\":\"done\",\"attempts\":4,"
	    "\"url\":\"http://***@a.example/\",\"meta\":{\"job\":1},\"member\":\"http://"
	    "p.example:8080\","
	    "\"tries\":2,\"final_url\":\"http://a.example/"
	    "end\",\"status\":200,\"http_version\":\"1.1\","
	    "\"headers\":[[\"Content-Type\",\"text/plain\"],[\"X-Price\",\"\xC2\xA3 "
	    "5\"]],\"bytes\":5,"
	    "\"body\":\"page\\n\",\"timings_ms\":{\"name\":0.0,\"connect\":1.5,\"tls\":0.0,"
	    "\"first_byte\":20.001,\"total\":1020.001},\"began\":\"2026-01-01T00:00:00.000Z\","
	    "\"took_ms\":1021}");
	free(claim);
}

static void test_a_body_that_is_no_text_is_base_64(void **state)
{
	struct claim *claim = make_claim("x", 1);
	struct visit_answer other = answer;
	struct carried what = carried;
	struct task task = {.shown = "http://a.example/"};
	struct result_facts facts = {claim, "hi", &task, &what, OUTCOME_DONE, NULL};
	json_t *line;

	(void)state;
	what.answer = &other;
	other.body = "\xff\x00";
	other.len = 2;
	line = line_of(&facts);
	assert_string_equal(json_string_value(json_object_get(line, "body_base64")), "/wA=");
	assert_null(json_object_get(line, "body"));
	json_decref(line);
	facts.body_file = "ab12";
	line = line_of(&facts);
	assert_string_equal(json_string_value(json_object_get(line, "body_file")), "ab12");
	assert_null(json_object_get(line, "body_base64"));
	json_decref(line);
	free(claim);
}

static void test_a_failure_has_its_reason(void **state)
{
	struct claim *claim = make_claim("x", 1);
	struct task task = {.shown = "http://a.example/"};
	struct carried what = {.reason = REASON_PROXY_REFUSED,
			       .detail = "port \"8080\"",
			       .member = "http://p.example:8080",
			       .tries = 3,
			       .took_ms = 7};
	struct result_facts facts = {claim, "lo", &task, &what, OUTCOME_RETRY, NULL};

	(void)state;
	expect_line(
	    &facts,
	    "{\"task\":\"17\",\"level\":\"lo\",\"outcome\":\"retry\",\"attempts\":4,"
	    "\"url\":\"http://a.example/\",\"member\":\"http://p.example:8080\",\"tries\":3,"
	    "\"began\":\"1970-01-01T00:00:00.000Z\",\"took_ms\":7,"
	    "\"error\":{\"reason\":\"proxy-refused\",\"detail\":\"port \\\"8080\\\"\"}}");
	free(claim);
}

static void test_a_payload_that_could_not_be_read_is_repeated(void **state)
{
	struct claim *claim = make_claim("ftp:\n", 5), *binary = make_claim("\0\xff", 2);
	struct carried what = {.reason = REASON_TASK_INVALID, .detail = "no"};
	struct result_facts facts = {claim, "lo", NULL, &what, OUTCOME_DEAD, NULL};
	json_t *line = line_of(&facts);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(line, "payload")), "ftp:\n");
	assert_null(json_object_get(line, "url"));
	json_decref(line);
	facts.claim = binary;
	line = line_of(&facts);
	assert_string_equal(json_string_value(json_object_get(line, "payload_base64")), "AP8=");
	json_decref(line);
	free(claim);
	free(binary);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct stand {
	struct stage stage;
	struct real_redis redis;
	struct store *store;
	struct results *results;
	struct claim *claim;
	char folder[40], path[64];
	int answers, last;
};

static void begin(struct stand *stand, const struct results_config *config)
{
	char error[256] = "";

	assert_int_equal(results_new(&stand->results, stand->stage.loop, stand->store, config,
				     error, sizeof error),
			 0);
}

static void stand_up(struct stand *stand)
{
	*stand = (struct stand){.claim = make_claim("x", 1)};
	stage_init(&stand->stage);
	strcpy(stand->folder, "/tmp/fairlead-result-XXXXXX");
	assert_non_null(mkdtemp(stand->folder));
	snprintf(stand->path, sizeof stand->path, "%s/results", stand->folder);
}

static void stand_down(struct stand *stand)
{
	store_free(stand->store);
	results_free(stand->results);
	redis_stop(&stand->redis);
	stage_fini(&stand->stage);
	free(stand->claim);
	unlink(stand->path);
	assert_int_equal(rmdir(stand->folder), 0);
}

static void with_redis(struct stand *stand)
{
	struct store_config config = {.timeout_ms = 5000, .wait_ms = 5000};
	char error[256];

	redis_start(&stand->redis, NULL, NULL);
	assert_int_equal(store_url_parse(&config.url, stand->redis.url, error, sizeof error), 0);
	assert_int_equal(store_new(&stand->store, stand->stage.loop, &config), 0);
	assert_int_equal(store_wait_ready(stand->store, 5000), 0);
}

/* Lines that are in the file by now. */
static int lines(const struct stand *stand)
{
	FILE *file = fopen(stand->path, "rb");
	int count = 0;

	assert_non_null(file);
	for (int c = getc(file); c != EOF; c = getc(file))
		count += c == '\n';
	fclose(file);
	return count;
}

static void on_added(int result, void *arg)
{
	struct stand *stand = arg;

	stand->answers++;
	stand->last = result;
}

static void add(struct stand *stand)
{
	struct task task = {.shown = "http://a.example/"};

	assert_int_equal(results_add(stand->results, stand->claim, "hi", &task, &carried,
				     OUTCOME_DONE, on_added, stand),
			 0);
}

static void test_results_of_a_turn_are_written_before_they_are_answered(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	begin(&stand, &(struct results_config){.path = stand.path});
	add(&stand);
	add(&stand);
	assert_int_equal(stand.answers, 0);
	assert_int_equal(lines(&stand), 0);
	STAGE_UNTIL(&stand.stage, stand.answers == 2);
	assert_int_equal(stand.last, 0);
	assert_int_equal(lines(&stand), 2);
	stand_down(&stand);
}

static void test_what_cannot_be_written_is_told_and_not_there(void **state)
{
	struct rlimit limit;
	struct stand stand;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	stand_up(&stand);
	begin(&stand, &(struct results_config){.path = stand.path});
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, limit.rlim_max}), 0);
	add(&stand);
	STAGE_UNTIL(&stand.stage, stand.answers == 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(stand.last, -EFBIG);
	assert_int_equal(lines(&stand), 0);
	add(&stand);
	STAGE_UNTIL(&stand.stage, stand.answers == 2);
	assert_int_equal(stand.last, 0);
	assert_int_equal(lines(&stand), 1);
	stand_down(&stand);
}

static void test_a_file_that_is_locked_is_waited_for(void **state)
{
	struct stand stand;
	int other;

	(void)state;
	stand_up(&stand);
	begin(&stand, &(struct results_config){.path = stand.path});
	other = open(stand.path, O_WRONLY);
	assert_int_equal(flock(other, LOCK_EX), 0);
	add(&stand);
	for (int i = 0; i < 20; i++)
		stage_turn(&stand.stage);
	add(&stand); /* of a later turn */
	assert_int_equal(stand.answers, 0);
	close(other);
	STAGE_UNTIL(&stand.stage, stand.answers == 2);
	assert_int_equal(lines(&stand), 2);
	stand_down(&stand);
}

static void test_bodies_go_to_their_folder(void **state)
{
	/* printf 'page\n' | sha256sum */
	static const char name[] =
	    "362a07bbb5c74b982bed644b9f7e298837d7a3a232c964d039bb7e49ebea825f";
	struct stand stand;
	char path[160];

	(void)state;
	stand_up(&stand);
	begin(&stand, &(struct results_config){.path = stand.path, .body_dir = stand.folder});
	add(&stand);
	STAGE_UNTIL(&stand.stage, stand.answers == 1);
	snprintf(path, sizeof path, "%s/%s", stand.folder, name);
	assert_int_equal(unlink(path), 0);
	stand_down(&stand);
}

static void test_a_list_has_them_in_their_order_before_they_are_answered(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	with_redis(&stand);
	begin(&stand, &(struct results_config){.list = "out"});
	for (int i = 0; i < 2500; i++) {
		snprintf(stand.claim->id, sizeof stand.claim->id, "%d", i);
		add(&stand);
	}
	STAGE_UNTIL(&stand.stage, stand.answers == 2500);
	assert_int_equal(stand.last, 0);
	assert_string_equal(redis_ask(&stand.redis, "LLEN out"), "2500");
	assert_non_null(strstr(redis_ask(&stand.redis, "RPOP out"), "{\"task\":\"0\","));
	assert_non_null(strstr(redis_ask(&stand.redis, "LINDEX out 0"), "{\"task\":\"2499\","));
	stand_down(&stand);
}

static void test_a_list_that_is_none_is_told(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	with_redis(&stand);
	redis_ask(&stand.redis, "SET out x");
	begin(&stand, &(struct results_config){.path = stand.path, .list = "out"});
	add(&stand);
	STAGE_UNTIL(&stand.stage, stand.answers == 1);
	assert_int_equal(stand.last, REASON_STORE_REFUSED);
	stand_down(&stand);
}

static void test_results_that_end_forget_what_the_store_has_not_answered(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	with_redis(&stand);
	begin(&stand, &(struct results_config){.list = "out"});
	add(&stand);
	assert_int_equal(kill(stand.redis.pid, SIGSTOP), 0);
	stage_turn(&stand.stage);
	stage_turn(&stand.stage);
	assert_true(store_is_busy(stand.store));
	results_free(stand.results);
	stand.results = NULL;
	assert_int_equal(kill(stand.redis.pid, SIGCONT), 0);
	STAGE_UNTIL(&stand.stage, !store_is_busy(stand.store));
	assert_int_equal(stand.answers, 0);
	stand_down(&stand);
}

static void test_a_place_that_cannot_be_written_to_is_named(void **state)
{
	static const struct results_config configs[] = {
	    {.path = "/nonexistent/r"}, {.body_dir = "/nonexistent/b"}, {.warc = "/nonexistent/w"}};
	struct results *results;
	struct stand stand;
	char error[256];

	(void)state;
	stand_up(&stand);
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
		assert_int_equal(
		    results_new(&results, stand.stage.loop, NULL, &configs[i], error, sizeof error),
		    -ENOENT);
		assert_non_null(strstr(error, "/nonexistent/"));
	}
	begin(&stand, &(struct results_config){.path = stand.path});
	stand_down(&stand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_result_tells_all),
	    cmocka_unit_test(test_a_body_that_is_no_text_is_base_64),
	    cmocka_unit_test(test_a_failure_has_its_reason),
	    cmocka_unit_test(test_a_payload_that_could_not_be_read_is_repeated),
	    cmocka_unit_test(test_results_of_a_turn_are_written_before_they_are_answered),
	    cmocka_unit_test(test_what_cannot_be_written_is_told_and_not_there),
	    cmocka_unit_test(test_a_file_that_is_locked_is_waited_for),
	    cmocka_unit_test(test_bodies_go_to_their_folder),
	    cmocka_unit_test(test_a_list_has_them_in_their_order_before_they_are_answered),
	    cmocka_unit_test(test_a_list_that_is_none_is_told),
	    cmocka_unit_test(test_results_that_end_forget_what_the_store_has_not_answered),
	    cmocka_unit_test(test_a_place_that_cannot_be_written_to_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
