/* test_http_response.c - response heads: RFC 9112 4 to 6 and 9.3, each whole and cut at every byte. */
#include "http_split.h"

#include <stdio.h>

static const struct text get = BYTES("GET");
static const struct text head_method = BYTES("HEAD");
static const struct text connect_method = BYTES("CONNECT");

static char *head;
static struct http_response response;

static int forget_head(void **state)
{
	(void)state;
	free(head);
	head = NULL;
	return 0;
}

/* As a connection does: a scan that refuses is a syntax error of the response, or its size. */
static int scan_result(long len)
{
	if (len == 0)
		return MORE;
	return len == -REASON_REQUEST_SYNTAX ? REASON_RESPONSE_SYNTAX : REASON_RESPONSE_HEAD_SIZE;
}

static int read_response(struct text t, struct text method)
{
	long len = scan_everywhere(t);
	struct http_response prefix;
	size_t cut;

	if (len <= 0)
		return scan_result(len);
	assert_int_equal(len, t.len);
	for (cut = 0; cut < t.len; cut++) {
		char *copy = exact_copy(t.at, cut);

		assert_int_not_equal(http_parse_response(&prefix, copy, cut, method), 0);
		free(copy);
	}
	forget_head(NULL);
	head = exact_copy(t.at, t.len);
	return http_parse_response(&response, head, t.len, method);
}

/* `line` as a whole message without fields. */
static int read_status_line(const char *line)
{
	char message[256];
	int len = snprintf(message, sizeof(message), "%s\r\n\r\n", line);

	return read_response((struct text){message, (size_t)len}, get);
}

/* `fields`, each with its CRLF, in an answer to `method`. */
static int read_with_fields(const char *status, const char *fields, struct text method)
{
	char message[512];
	int len = snprintf(message, sizeof(message), "HTTP/1.1 %s\r\n%s\r\n", status, fields);

	return read_response((struct text){message, (size_t)len}, method);
}

static const struct {
	const char *line, *reason;
	int minor, status;
} status_lines[] = {
    {"HTTP/1.1 200 OK", "OK", 1, 200},
    {"HTTP/1.0 200 Connection established", "Connection established", 0, 200},
    {"HTTP/1.1 200 ", "", 1, 200},
    {"HTTP/1.1 200", "", 1, 200},
    {"HTTP/1.1 502 not 200\t\xc3\xa9", "not 200\t\xc3\xa9", 1, 502},
    {"HTTP/1.1 100 Continue", "Continue", 1, 100},
    {"HTTP/1.1 599 ", "", 1, 599},
    {"HTTP/1.1 299  two spaces", " two spaces", 1, 299},
};

static void test_a_status_line_is_read(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(status_lines); i++) {
		assert_int_equal(read_status_line(status_lines[i].line), 0);
		assert_int_equal(response.minor, status_lines[i].minor);
		assert_int_equal(response.status, status_lines[i].status);
		assert_text(response.reason, status_lines[i].reason);
	}
}

/* RFC 9112 4, 2.3; T16. */
static const char *const bad_status_lines[] = {
    "HTTP/1.1 2000 OK",   "HTTP/1.1 20 OK",   "HTTP/1.1 2 OK",    "HTTP/1.1  200 OK",
    "HTTP/1.1\t200 OK",   "HTTP/1.1 200\tOK", "HTTP/1.1 200OK",   "HTTP/1.1 20x OK",
    "HTTP/1.1 +20 OK",    "HTTP/1.1 099 OK",  "HTTP/1.1 000 OK",  "HTTP/1.1 600 OK",
    "HTTP/1.1 999 OK",    "HTTP/1.1 -200 OK", "HTTP/1.1 0200 OK", "HTTP/1.1",
    "HTTP/1.1 ",          "HTTP/1.2 200 OK",  "HTTP/2.0 200 OK",  "HTTP/2 200",
    "HTTP/0.9 200 OK",    "HTTP/1.10 200 OK", "HTTP/11 200 OK",   "http/1.1 200 OK",
    "HTTP/1.1 200 a\x01", "ICY 200 OK",       "GET / HTTP/1.1",   " HTTP/1.1 200 OK",
    "HTTP/1.1 200 \x7f",  "HTTPS/1.1 200 OK", "HTTP 200 OK"};

static void test_bad_status_lines_are_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(bad_status_lines); i++) {
		if (read_status_line(bad_status_lines[i]) != REASON_RESPONSE_SYNTAX)
			fail_msg("not refused: %s", bad_status_lines[i]);
	}
}

static void test_what_is_no_http_is_refused_at_once(void **state)
{
	static const struct text starts[] = {
	    BYTES("\x15\x03\x01"),
	    BYTES("\x05\xff"),
	    BYTES("\0\x5b"),
	    BYTES("SSH-2.0-OpenSSH\r\n"),
	    BYTES("220 ready\r\n"),
	    BYTES("<html>\r\n"),
	    BYTES("HTTP/1.1 200 OK\n"),
	    BYTES("HTTP/1.1 200 OK\r\r"),
	    BYTES("\r\nHTTP/1.1 200 OK"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(starts); i++)
		assert_int_equal(read_response(starts[i], get), REASON_RESPONSE_SYNTAX);
}

/* H7: RFC 9112 5.1 wants it removed from a response; the framing must see through it. */
static void test_white_space_before_a_colon_is_removed(void **state)
{
	(void)state;
	assert_int_equal(read_with_fields("200 OK", "A \t: b\r\nContent-Length : 5\r\n", get), 0);
	assert_text(response.fields[0].name, "A");
	assert_text(response.fields[0].value, "b");
	assert_text(response.fields[1].name, "Content-Length");
	assert_int_equal(response.framing, HTTP_LENGTH);
	assert_true(response.length == 5);
	assert_int_equal(read_with_fields("200 OK", "Transfer-Encoding\t: chunked\r\n", get), 0);
	assert_int_equal(response.framing, HTTP_CHUNKED);
}

/* H9, H10, RFC 9112 5.2. */
static const char *const bad_fields[] = {
    " A: b\r\n",    "A: b\r\n c\r\n", "A: b\r\n\tc: d\r\n", "A\r\n",          ": b\r\n",
    " : b\r\n",     "A b: c\r\n",     "A: b\rc\r\n",        "A: b\nC: d\r\n", "A: \x01\r\n",
    "A\xff: b\r\n", "A : b\x7f\r\n",  "A \x0b: b\r\n",      "A: b\n",         "A \r\n"};

static void test_bad_fields_are_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(bad_fields); i++) {
		if (read_with_fields("200 OK", bad_fields[i], get) != REASON_RESPONSE_SYNTAX)
			fail_msg("not refused: %s", bad_fields[i]);
	}
}

/* RFC 9112 6.3, in its order; H21. */
static const struct {
	const struct text *method;
	const char *status, *fields;
	enum http_framing want;
} framings[] = {
    {&get, "200 OK", "Content-Length: 3\r\n", HTTP_LENGTH},
    {&get, "200 OK", "Content-Length: 0\r\n", HTTP_LENGTH},
    {&get, "200 OK", "Transfer-Encoding: Chunked\r\n", HTTP_CHUNKED},
    {&get, "200 OK", "", HTTP_UNTIL_CLOSE},
    {&get, "404 Not Found", "", HTTP_UNTIL_CLOSE},
    {&get, "100 Continue", "", HTTP_NO_BODY},
    {&get, "103 Early Hints", "Link: x\r\n", HTTP_NO_BODY},
    {&get, "101 Switching Protocols", "Upgrade: x\r\n", HTTP_NO_BODY},
    {&get, "204 No Content", "", HTTP_NO_BODY},
    {&get, "204 No Content", "Content-Length: 3\r\n", HTTP_NO_BODY},
    {&get, "304 Not Modified", "Content-Length: 3\r\n", HTTP_NO_BODY},
    {&get, "304 Not Modified", "Transfer-Encoding: chunked\r\n", HTTP_NO_BODY},
    {&head_method, "200 OK", "Content-Length: 3\r\n", HTTP_NO_BODY},
    {&head_method, "200 OK", "Transfer-Encoding: chunked\r\n", HTTP_NO_BODY},
    {&head_method, "404 Not Found", "", HTTP_NO_BODY},
    {&connect_method, "200 OK", "", HTTP_NO_BODY},
    {&connect_method, "200 OK", "Content-Length: 5\r\n", HTTP_NO_BODY},
    {&connect_method, "299 OK", "Transfer-Encoding: chunked\r\n", HTTP_NO_BODY},
    {&connect_method, "200 OK", "Content-Length: x\r\nTransfer-Encoding: y\r\n", HTTP_NO_BODY},
    {&connect_method, "407 No", "Content-Length: 5\r\n", HTTP_LENGTH},
    {&connect_method, "502 No", "", HTTP_UNTIL_CLOSE},
};

static void test_framing_follows_method_status_and_fields(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(framings); i++) {
		assert_int_equal(
		    read_with_fields(framings[i].status, framings[i].fields, *framings[i].method),
		    0);
		if (response.framing != framings[i].want)
			fail_msg("wrong framing: %s %s", framings[i].status, framings[i].fields);
	}
}

/* Methods are case-sensitive: "head" is another method than HEAD. */
static void test_only_the_method_head_has_no_body(void **state)
{
	static const struct text lower = BYTES("head");

	(void)state;
	assert_int_equal(read_with_fields("200 OK", "Content-Length: 3\r\n", lower), 0);
	assert_int_equal(response.framing, HTTP_LENGTH);
}

/* H11 to H14 hold for responses as well. */
static const char *const doubtful_framings[] = {
    "Content-Length: 5\r\nContent-Length: 5\r\n",
    "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: +5\r\n",
    "Content-Length:\r\n",
    "Content-Length: 9223372036854775808\r\n",
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding:\r\n",
    "Transfer_Encoding: chunked\r\n"};

static void test_doubtful_framing_is_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(doubtful_framings); i++) {
		if (read_with_fields("200 OK", doubtful_framings[i], get) != REASON_RESPONSE_SYNTAX)
			fail_msg("not refused: %s", doubtful_framings[i]);
		if (read_with_fields("200 OK", doubtful_framings[i], head_method) !=
		    REASON_RESPONSE_SYNTAX)
			fail_msg("not refused for HEAD: %s", doubtful_framings[i]);
	}
}

/* RFC 9112 6.1. */
static void test_a_transfer_coding_in_http_1_0_is_refused(void **state)
{
	static const struct text t = BYTES("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");

	(void)state;
	assert_int_equal(read_response(t, get), REASON_RESPONSE_SYNTAX);
}

/* RFC 9112 9.3. */
static const struct {
	const char *message;
	bool want;
} persistence[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: a, close\r\n\r\n", false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nProxy-Connection: close\r\n\r\n", false},
    {"HTTP/1.1 200 OK\r\n\r\n", false},
    {"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nProxy-Connection: Keep-Alive\r\n\r\n", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: close, keep-alive\r\n\r\n", false},
};

static void test_keep_alive_follows_version_options_and_framing(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(persistence); i++) {
		struct text t = {persistence[i].message, strlen(persistence[i].message)};

		assert_int_equal(read_response(t, get), 0);
		if (response.keep_alive != persistence[i].want)
			fail_msg("keep-alive is wrong: %s", persistence[i].message);
	}
}

static void test_an_unfinished_head_asks_for_more(void **state)
{
	static const struct text messages[] = {
	    BYTES("H"),
	    BYTES("HTTP/1.1 200"),
	    BYTES("HTTP/1.1 200 OK\r\n"),
	    BYTES("HTTP/1.1 200 OK\r\nA: b\r\n\r"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(messages); i++)
		assert_int_equal(read_response(messages[i], get), MORE);
}

/* T16: server-first bytes glued to the head are the tunnel's. */
static void test_a_head_ends_at_its_empty_line(void **state)
{
	static const struct text t = BYTES("HTTP/1.1 200 OK\r\n\r\n\0SSH\n\r");

	(void)state;
	assert_int_equal(scan_everywhere(t), strlen("HTTP/1.1 200 OK\r\n\r\n"));
}

static void test_too_many_fields_are_refused(void **state)
{
	char message[2048] = "HTTP/1.1 200 OK\r\n";
	size_t i, len = strlen(message);

	(void)state;
	for (i = 0; i < HTTP_FIELDS_MAX; i++, len += 6)
		memcpy(message + len, "A: b\r\n", 6);
	memcpy(message + len, "\r\n", 2);
	assert_int_equal(http_parse_response(&response, message, len + 2, get), 0);
	assert_int_equal(response.field_count, HTTP_FIELDS_MAX);
	memcpy(message + len, "A: b\r\n\r\n", 8);
	assert_int_equal(http_parse_response(&response, message, len + 8, get),
			 REASON_RESPONSE_HEAD_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_status_line_is_read),
	    cmocka_unit_test(test_bad_status_lines_are_refused),             /* H30 */
	    cmocka_unit_test(test_what_is_no_http_is_refused_at_once),       /* H30 */
	    cmocka_unit_test(test_white_space_before_a_colon_is_removed),    /* H7 */
	    cmocka_unit_test(test_bad_fields_are_refused),                   /* H8 H9 H10 */
	    cmocka_unit_test(test_framing_follows_method_status_and_fields), /* H19 H21 */
	    cmocka_unit_test(test_only_the_method_head_has_no_body),         /* H19 */
	    cmocka_unit_test(test_doubtful_framing_is_refused),              /* H11 H12 H14 */
	    cmocka_unit_test(test_a_transfer_coding_in_http_1_0_is_refused), /* H13 */
	    cmocka_unit_test(test_keep_alive_follows_version_options_and_framing),
	    cmocka_unit_test(test_an_unfinished_head_asks_for_more), /* H29 */
	    cmocka_unit_test(test_a_head_ends_at_its_empty_line),    /* H29 */
	    cmocka_unit_test(test_too_many_fields_are_refused),      /* H33 */
	};

	return cmocka_run_group_tests(tests, NULL, forget_head);
}
