/* test_http_scan.c - where a head ends, which bytes it may not have, and its caps: RFC 9112 2.2. */
#include "http_request_case.h"

/* H30: no deadline must pass before other protocols are turned away. */
static const struct text other_protocols[] = {
    BYTES("\x16"), /* TLS ClientHello */
    BYTES("\x04"), /* SOCKS4 */
    BYTES("\x05"), /* SOCKS5 */
    BYTES("\0"),
    BYTES("\x80"),
    BYTES("\r"),
    BYTES("\n"),
    BYTES(" "),
    BYTES("\t"),
    BYTES("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    BYTES("GET /\r\n"), /* HTTP/0.9 */
    BYTES("SSH-2.0-OpenSSH_9.2\r\n"),
    BYTES("220 ready\r\n"),
    BYTES("HELO x\r\n"),
};

static void test_other_protocols_are_refused_at_once(void **state)
{
	(void)state;
	check_all(other_protocols, ROWS(other_protocols), REASON_REQUEST_SYNTAX);
}

/* H9, H10: RFC 9112 2.2. */
static const struct text bad_line_ends[] = {
    BYTES("GET / HTTP/1.1\nHost: h\n\n"),
    BYTES("GET / HTTP/1.1\nHost: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\n\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\n\r\r\n"),
    BYTES("GET / HTTP/1.1\r\r\nHost: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\rHost: h\r\n\r\n"),
    BYTES("GET /\r HTTP/1.1\r\nHost: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc: d\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\nc: d\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: \r\r\n\r\n"),
};

static void test_line_ends_are_crlf_and_nothing_else(void **state)
{
	(void)state;
	check_all(bad_line_ends, ROWS(bad_line_ends), REASON_REQUEST_SYNTAX);
}

static void test_an_unfinished_head_asks_for_more(void **state)
{
	static const struct text messages[] = {
	    BYTES(""),
	    BYTES("G"),
	    BYTES("GET / HTTP/1.1\r"),
	    BYTES("GET / HTTP/1.1\r\n"),
	    BYTES("GET / HTTP/1.1\r\n\r"),
	    BYTES("GET / HTTP/1.1\r\nHost: h\r\n"),
	    BYTES("GET / HTTP/1.1\r\nHost: h\r\n\r"),
	};

	(void)state;
	check_all(messages, ROWS(messages), MORE);
}

/* H28, H29: what is glued to a head belongs to the next message. */
static void test_a_head_ends_at_its_empty_line(void **state)
{
	static const struct text pair =
	    BYTES("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n\r\n\x16not HTTP\n");

	(void)state;
	assert_int_equal(scan_everywhere(pair),
			 strlen("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"));
}

static void test_bytes_behind_the_empty_line_are_no_head(void **state)
{
	static const struct text pair = BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\nA: b\r\n\r\n");

	(void)state;
	assert_int_equal(http_parse_request(&request, pair.at, pair.len), REASON_REQUEST_SYNTAX);
}

static void test_a_refused_request_leaves_the_structure_alone(void **state)
{
	static const struct text bad = BYTES("GET http://h/ HTTP/1.1\r\nA: b\r\n\r\n");

	(void)state;
	memset(&request, 0x5a, sizeof(request));
	assert_int_equal(http_parse_request(&request, bad.at, bad.len), REASON_REQUEST_SYNTAX);
	assert_int_equal(request.minor, 0x5a5a5a5a);
	assert_int_equal(request.fields[0].name.len & 0xff, 0x5a);
}

/* A request line of `len` bytes with its CRLF, then "Host: h" and the empty line. */
static struct text long_line(char *message, size_t len)
{
	static const char end[] = " HTTP/1.1\r\n";

	memset(message, 'a', len);
	memcpy(message, "GET /", 5);
	memcpy(message + len - strlen(end), end, strlen(end));
	memcpy(message + len, "Host: h\r\n\r\n", 11);
	return (struct text){message, len + 11};
}

static void test_a_request_line_over_the_cap_is_refused(void **state)
{
	char *message = malloc(HTTP_LINE_MAX + 64);
	struct text t = long_line(message, HTTP_LINE_MAX);

	(void)state;
	assert_int_equal(scan_in_steps(t, t.len, t.len), t.len);
	assert_int_equal(scan_in_steps(t, HTTP_LINE_MAX - 40, 1), t.len);
	assert_int_equal(http_parse_request(&request, t.at, t.len), 0);
	t = long_line(message, HTTP_LINE_MAX + 1);
	assert_int_equal(scan_in_steps(t, t.len, t.len), -REASON_REQUEST_URI_SIZE);
	assert_int_equal(scan_in_steps(t, HTTP_LINE_MAX - 40, 1), -REASON_REQUEST_URI_SIZE);
	assert_int_equal(scan_in_steps(t, 1, 1000), -REASON_REQUEST_URI_SIZE);
	free(message);
}

/* A head of exactly `len` bytes, one field of it long. */
static struct text long_head(char *message, size_t len)
{
	static const char start[] = "GET / HTTP/1.1\r\nHost: h\r\nA: ";

	memset(message, 'a', len);
	memcpy(message, start, strlen(start));
	memcpy(message + len - 4, "\r\n\r\n", 4);
	return (struct text){message, len};
}

static void test_a_head_over_the_cap_is_refused(void **state)
{
	char *message = malloc(HTTP_HEAD_MAX + 1);
	struct text t = long_head(message, HTTP_HEAD_MAX);

	(void)state;
	assert_int_equal(scan_in_steps(t, t.len, t.len), HTTP_HEAD_MAX);
	assert_int_equal(scan_in_steps(t, HTTP_HEAD_MAX - 20, 1), HTTP_HEAD_MAX);
	assert_int_equal(http_parse_request(&request, t.at, t.len), 0);
	t = long_head(message, HTTP_HEAD_MAX + 1);
	assert_int_equal(scan_in_steps(t, t.len, t.len), -REASON_REQUEST_HEAD_SIZE);
	assert_int_equal(scan_in_steps(t, HTTP_HEAD_MAX - 20, 1), -REASON_REQUEST_HEAD_SIZE);
	assert_int_equal(scan_in_steps(t, 1, 1000), -REASON_REQUEST_HEAD_SIZE);
	free(message);
}

/* `count` fields, the first of them Host. */
static int read_fields_in_number(size_t count)
{
	char message[4096] = "GET / HTTP/1.1\r\nHost: h\r\n";
	size_t i, len = strlen(message);

	for (i = 1; i < count; i++)
		len += (size_t)snprintf(message + len, sizeof(message) - len, "A: %zu\r\n", i);
	len += (size_t)snprintf(message + len, sizeof(message) - len, "\r\n");
	return http_parse_request(&request, message, len);
}

static void test_too_many_fields_are_refused(void **state)
{
	(void)state;
	assert_int_equal(read_fields_in_number(HTTP_FIELDS_MAX), 0);
	assert_int_equal(request.field_count, HTTP_FIELDS_MAX);
	assert_int_equal(read_fields_in_number(HTTP_FIELDS_MAX + 1), REASON_REQUEST_HEAD_SIZE);
}

/* Work is bounded by the input: each field is compared with each option later. */
static void test_too_many_connection_options_are_refused(void **state)
{
	char field[512] = "Connection: ";
	size_t len = strlen(field);

	(void)state;
	memset(field + len, ',', HTTP_FIELDS_MAX);
	memcpy(field + len + HTTP_FIELDS_MAX - 1, "\r\n", 3);
	assert_int_equal(read_with_fields(field), 0);
	memcpy(field + len + HTTP_FIELDS_MAX - 1, ",\r\n", 4);
	assert_int_equal(read_with_fields(field), REASON_REQUEST_HEAD_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_other_protocols_are_refused_at_once),     /* H30 */
	    cmocka_unit_test(test_line_ends_are_crlf_and_nothing_else),     /* H9 H10 */
	    cmocka_unit_test(test_an_unfinished_head_asks_for_more),        /* H29 */
	    cmocka_unit_test(test_a_head_ends_at_its_empty_line),           /* H29 */
	    cmocka_unit_test(test_bytes_behind_the_empty_line_are_no_head), /* H28 */
	    cmocka_unit_test(test_a_refused_request_leaves_the_structure_alone),
	    cmocka_unit_test(test_a_request_line_over_the_cap_is_refused),  /* H33 */
	    cmocka_unit_test(test_a_head_over_the_cap_is_refused),          /* H33 */
	    cmocka_unit_test(test_too_many_fields_are_refused),             /* H33 */
	    cmocka_unit_test(test_too_many_connection_options_are_refused), /* H23 */
	};

	return cmocka_run_group_tests(tests, NULL, forget_head);
}
