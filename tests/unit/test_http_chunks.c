/* test_http_chunks.c - chunked bodies: RFC 9112 7.1, each whole, cut at every place and byte by byte. */
#include "http_split.h"

#include <errno.h>
#include <stdio.h>

/* What a reader made of a body. */
struct outcome {
	int result;     /* of the last call */
	size_t used;    /* bytes consumed, unless it failed */
	char data[256]; /* the content */
	size_t len;
};

/* Feeds `len` bytes as a connection does: again, while something is used. */
static void feed(struct http_chunks *c, struct outcome *o, const char *bytes, size_t len)
{
	char *copy = exact_copy(bytes, len);
	size_t at = 0, used = 1, data_len;
	const char *data;

	while (used > 0 && o->result == 0) {
		o->result = http_chunks_read(c, copy + at, len - at, &used, &data, &data_len);
		if (o->result < 0)
			break;
		assert_true(used <= len - at && data >= copy + at);
		assert_true(data + data_len <= copy + at + used);
		assert_true(o->len + data_len <= sizeof(o->data));
		memcpy(o->data + o->len, data, data_len);
		o->len += data_len;
		o->used += used;
		at += used;
	}
	assert_true(o->result != 0 || at == len);
	free(copy);
}

/* Feeds `first` bytes, then pieces of `step`. */
static struct outcome read_in_steps(struct text t, size_t first, size_t step)
{
	struct http_chunks c = {0};
	struct outcome o = {0};
	size_t at = 0, len = first;

	do {
		len = t.len - at < len ? t.len - at : len;
		feed(&c, &o, t.at + at, len);
		at += len;
		len = step;
	} while (at < t.len && o.result == 0);
	return o;
}

static void assert_same(const struct outcome *a, const struct outcome *b, struct text t)
{
	if (a->result != b->result || a->len != b->len || memcmp(a->data, b->data, a->len) != 0 ||
	    (a->result >= 0 && a->used != b->used))
		fail_msg("not the same in pieces: %s", t.at);
}

static struct outcome read_everywhere(struct text t)
{
	struct outcome whole = read_in_steps(t, t.len, t.len), pieces;
	size_t cut;

	pieces = read_in_steps(t, 0, 1);
	assert_same(&whole, &pieces, t);
	for (cut = 0; cut <= t.len; cut++) {
		pieces = read_in_steps(t, cut, t.len + 1);
		assert_same(&whole, &pieces, t);
	}
	return whole;
}

static void check_complete(struct text t, const char *content, size_t behind)
{
	struct outcome o = read_everywhere(t);

	if (o.result != 1 || o.used != t.len - behind || o.len != strlen(content) ||
	    memcmp(o.data, content, o.len) != 0)
		fail_msg("not read as \"%s\": %s", content, t.at);
}

static void check_results(const struct text *bodies, size_t count, int want)
{
	size_t i;

	for (i = 0; i < count; i++) {
		int got = read_everywhere(bodies[i]).result;

		if (got != want)
			fail_msg("got %d, want %d: %s", got, want, bodies[i].at);
	}
}

static void test_chunks_become_one_content(void **state)
{
	(void)state;
	check_complete((struct text)BYTES("0\r\n\r\n"), "", 0);
	check_complete((struct text)BYTES("5\r\nhello\r\n0\r\n\r\n"), "hello", 0);
	check_complete((struct text)BYTES("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde", 0);
	check_complete((struct text)BYTES("A\r\n0123456789\r\n00\r\n\r\n"), "0123456789", 0);
	check_complete((struct text)BYTES("9\r\n0\r\n\r\n5678\r\n0\r\n\r\n"), "0\r\n\r\n5678", 0);
	check_complete(
	    (struct text)BYTES("1\r\n0\r\n000000000000000e\r\n123456789abcde\r\n0\r\n\r\n"),
	    "0123456789abcde", 0);
}

/* H28: the next message is not touched. */
static void test_bytes_behind_the_body_are_left(void **state)
{
	(void)state;
	check_complete((struct text)BYTES("1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), "a", 16);
	check_complete((struct text)BYTES("0\r\n\r\n\r\n"), "", 2);
	check_complete((struct text)BYTES("0\r\n\r\n\n"), "", 1);
}

static void test_a_finished_body_stays_finished(void **state)
{
	struct http_chunks c = {0};
	const char *data;
	size_t used, len;

	(void)state;
	assert_int_equal(http_chunks_read(&c, "0\r\n\r\nx", 6, &used, &data, &len), 1);
	assert_int_equal(used, 5);
	assert_int_equal(http_chunks_read(&c, "x", 1, &used, &data, &len), 1);
	assert_int_equal(used, 0);
	assert_int_equal(len, 0);
}

static void test_a_broken_body_stays_broken(void **state)
{
	struct http_chunks c = {0};
	const char *data;
	size_t used, len;

	(void)state;
	assert_int_equal(http_chunks_read(&c, "x", 1, &used, &data, &len), -EPROTO);
	assert_int_equal(http_chunks_read(&c, "0\r\n\r\n", 5, &used, &data, &len), -EPROTO);
}

/* RFC 9112 7.1.1: extensions mean nothing to us; white space is allowed before their ';'. */
static void test_extensions_are_skipped(void **state)
{
	(void)state;
	check_complete((struct text)BYTES("1;a\r\nx\r\n0\r\n\r\n"), "x", 0);
	check_complete((struct text)BYTES("1;a=b;c=\"d;\\\"e\"\r\nx\r\n0;last\r\n\r\n"), "x", 0);
	check_complete((struct text)BYTES("1 \t; a = b\r\nx\r\n0\r\n\r\n"), "x", 0);
	check_complete((struct text)BYTES("1;\xc3\xa9\r\nx\r\n0\r\n\r\n"), "x", 0);
}

/* H15. */
static const struct text bad_sizes[] = {
    BYTES("\r\n\r\n"),
    BYTES(";a\r\n\r\n"),
    BYTES("1\r\na\r\n\r\n\r\n"),
    BYTES("1\r\na\r\n;x\r\n\r\n"),
    BYTES("+1\r\na\r\n0\r\n\r\n"),
    BYTES("-1\r\na\r\n0\r\n\r\n"),
    BYTES("0x1\r\na\r\n0\r\n\r\n"),
    BYTES("1_\r\na\r\n0\r\n\r\n"),
    BYTES(" 1\r\na\r\n0\r\n\r\n"),
    BYTES("1 \r\na\r\n0\r\n\r\n"),
    BYTES("1\t\r\na\r\n0\r\n\r\n"),
    BYTES("1 1\r\na\r\n0\r\n\r\n"),
    BYTES("\r\na\r\n0\r\n\r\n"),
    BYTES(";a\r\na\r\n0\r\n\r\n"),
    BYTES("g\r\na\r\n0\r\n\r\n"),
    BYTES("1h\r\na\r\n0\r\n\r\n"),
    BYTES("1,1\r\na\r\n0\r\n\r\n"),
    BYTES("\xff\r\n"),
    BYTES("1\0\r\na\r\n0\r\n\r\n"),
    BYTES("00000000000000001\r\na\r\n0\r\n\r\n"),
    BYTES("11111111111111111\r\n"),
    BYTES("7fffffffffffffff\r\n"),
    BYTES("ffffffffffffffff\r\n"),
    BYTES("8000000000000000\r\n"),
    BYTES("10000000000000001\r\na\r\n"),
    BYTES("1000000000000000\r\n"),
};

static void test_bad_sizes_are_refused(void **state)
{
	(void)state;
	check_results(bad_sizes, ROWS(bad_sizes), -EPROTO);
}

/* H10, H17: RFC 9112 7.1. */
static const struct text bad_line_ends[] = {
    BYTES("1\na\r\n0\r\n\r\n"),
    BYTES("1\r\r\na\r\n0\r\n\r\n"),
    BYTES("1\ra\r\n0\r\n\r\n"),
    BYTES("1\r\na\n0\r\n\r\n"),
    BYTES("1\r\na0\r\n\r\n"),
    BYTES("1\r\nab\r\n0\r\n\r\n"),
    BYTES("2\r\na\r\n0\r\n\r\n"),
    BYTES("1\r\na\r0\r\n\r\n"),
    BYTES("1\r\na\r\n0\n\r\n"),
    BYTES("0\n\r\n"),
    BYTES("0\r\n\n"),
    BYTES("0\r\n\r\r\n"),
    BYTES("1;a\nx\r\n0\r\n\r\n"),
    BYTES("1;a\rb\r\nx\r\n0\r\n\r\n"),
    BYTES("1;a\0b\r\nx\r\n0\r\n\r\n"),
    BYTES("1;\"\n\"\r\nx\r\n0\r\n\r\n"),
};

static void test_wrong_line_ends_are_refused(void **state)
{
	(void)state;
	check_results(bad_line_ends, ROWS(bad_line_ends), -EPROTO);
}

/* H18: nothing in a trailer section is ever merged; it is dropped, whatever it names. */
static void test_trailers_are_dropped(void **state)
{
	(void)state;
	check_complete((struct text)BYTES("1\r\na\r\n0\r\nContent-Length: 9\r\nHost: h\r\n"
					  "Authorization: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
		       "a", 0);
	check_complete((struct text)BYTES("0\r\nA:\r\nB:\t\xff \r\n\r\nA: b\r\n"), "", 6);
}

static const struct text bad_trailers[] = {
    BYTES("0\r\n A: b\r\n\r\n"),    BYTES("0\r\nA: b\r\n c\r\n\r\n"),
    BYTES("0\r\nA : b\r\n\r\n"),    BYTES("0\r\nA\r\n\r\n"),
    BYTES("0\r\n: b\r\n\r\n"),      BYTES("0\r\nA: b\n\r\n"),
    BYTES("0\r\nA: b\rc\r\n\r\n"),  BYTES("0\r\nA: b\0\r\n\r\n"),
    BYTES("0\r\nA\x80: b\r\n\r\n"), BYTES("0\r\nGET / HTTP/1.1\r\n\r\n"),
    BYTES("0\r\nA: b\r\n\n"),       BYTES("0\r\nA: b\r\r\n\r\n"),
};

static void test_bad_trailers_are_refused(void **state)
{
	(void)state;
	check_results(bad_trailers, ROWS(bad_trailers), -EPROTO);
}

/* H17: whoever sees the end of the stream now knows that the body is incomplete. */
static void test_an_unfinished_body_is_not_complete(void **state)
{
	static const struct text body = BYTES("3;x\r\nabc\r\n0\r\nA: b\r\n\r\n");
	size_t len;

	(void)state;
	for (len = 0; len < body.len; len++)
		assert_int_equal(read_everywhere((struct text){body.at, len}).result, 0);
	assert_int_equal(read_everywhere(body).result, 1);
}

/* Content before a fault has been handed out; the fault is still found. */
static void test_content_ahead_of_a_fault_is_seen_before_it(void **state)
{
	struct outcome o = read_everywhere((struct text)BYTES("3\r\nabcX"));

	(void)state;
	assert_int_equal(o.result, -EPROTO);
	assert_int_equal(o.len, 3);
	assert_memory_equal(o.data, "abc", 3);
}

/* `count` times `fill` between `start` and `end`, read in one piece. */
static int read_filled(const char *start, char fill, size_t count, const char *end)
{
	size_t len = strlen(start) + count + strlen(end);
	char *bytes = malloc(len);
	int result;

	memcpy(bytes, start, strlen(start));
	memset(bytes + strlen(start), fill, count);
	memcpy(bytes + strlen(start) + count, end, strlen(end));
	result = read_in_steps((struct text){bytes, len}, len, len).result;
	assert_int_equal(read_in_steps((struct text){bytes, len}, 0, 1).result, result);
	free(bytes);
	return result;
}

static void test_extensions_and_trailers_are_capped(void **state)
{
	(void)state;
	assert_int_equal(read_filled("0;", 'x', 1000, "\r\n\r\n"), 1);
	assert_int_equal(read_filled("0;", 'x', 1100, "\r\n\r\n"), -EPROTO);
	assert_int_equal(read_filled("0", ' ', 1100, ";\r\n\r\n"), -EPROTO);
	assert_int_equal(read_filled("0\r\nA:", 'x', 16000, "\r\n\r\n"), 1);
	assert_int_equal(read_filled("0\r\nA:", 'x', 17000, "\r\n\r\n"), -EPROTO);
	assert_int_equal(read_filled("0\r\n", 'x', 17000, ":\r\n\r\n"), -EPROTO);
}

/* The cap is one of the whole trailer section, not of a line. */
static void test_many_short_trailers_are_capped(void **state)
{
	struct http_chunks c = {0};
	const char *data;
	size_t used, len, i;
	int result;

	(void)state;
	result = http_chunks_read(&c, "0\r\n", 3, &used, &data, &len);
	for (i = 0; i < 5000 && result == 0; i++)
		result = http_chunks_read(&c, "A: b\r\n", 6, &used, &data, &len);
	assert_int_equal(result, -EPROTO);
	assert_in_range(i * 6, 16000, 17000);
}

/* Feeds `count` chunks of `content` bytes, each with `extension` bytes of extension. Returns the last result. */
static int read_extended(size_t count, size_t extension, size_t content)
{
	struct http_chunks c = {0};
	char chunk[4096];
	int len = snprintf(chunk, sizeof(chunk), "%zx;%0*d\r\n%0*d\r\n", content,
			   (int)extension - 1, 0, (int)content, 0);
	const char *data;
	size_t used, data_len, at, i;
	int result = 0;

	for (i = 0; i < count && result == 0; i++)
		for (at = 0; at < (size_t)len && result == 0; at += used)
			result = http_chunks_read(&c, chunk + at, (size_t)len - at, &used, &data,
						  &data_len);
	return result;
}

/* RFC 9112 7.1.1: the total length of extensions is limited, and nobody is hindered who has something to say. */
static void test_extensions_are_capped_over_the_whole_body(void **state)
{
	(void)state;
	assert_int_equal(read_extended(70, 900, 1), 0);
	assert_int_equal(read_extended(80, 900, 1), -EPROTO);
	assert_int_equal(read_extended(100000, 12, 1), 0);
	assert_int_equal(read_extended(2000, 900, 1000), 0);
}

/* The cap of a size line starts anew with each chunk. */
static void test_many_chunks_are_not_capped(void **state)
{
	struct http_chunks c = {0};
	size_t used, len, i, total = 0;
	const char *data;

	(void)state;
	for (i = 0; i < 5000; i++) {
		assert_int_equal(http_chunks_read(&c, "1;x\r\na", 6, &used, &data, &len), 0);
		assert_int_equal(used, 6);
		total += len;
		assert_int_equal(http_chunks_read(&c, "\r\n", 2, &used, &data, &len), 0);
	}
	assert_int_equal(total, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chunks_become_one_content),      /* H15 H29 */
	    cmocka_unit_test(test_bytes_behind_the_body_are_left), /* H17 H28 */
	    cmocka_unit_test(test_a_finished_body_stays_finished),
	    cmocka_unit_test(test_a_broken_body_stays_broken),
	    cmocka_unit_test(test_extensions_are_skipped),             /* H16 */
	    cmocka_unit_test(test_bad_sizes_are_refused),              /* H15 */
	    cmocka_unit_test(test_wrong_line_ends_are_refused),        /* H10 H17 */
	    cmocka_unit_test(test_trailers_are_dropped),               /* H18 */
	    cmocka_unit_test(test_bad_trailers_are_refused),           /* H18 */
	    cmocka_unit_test(test_an_unfinished_body_is_not_complete), /* H17 */
	    cmocka_unit_test(test_content_ahead_of_a_fault_is_seen_before_it),
	    cmocka_unit_test(test_extensions_and_trailers_are_capped),        /* H16 H18 */
	    cmocka_unit_test(test_many_short_trailers_are_capped),            /* H18 */
	    cmocka_unit_test(test_extensions_are_capped_over_the_whole_body), /* H16 */
	    cmocka_unit_test(test_many_chunks_are_not_capped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
