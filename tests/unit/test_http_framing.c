/* test_http_framing.c - what the fields of a request say about it: RFC 9112 6 and 9, RFC 9110 7.8 and 10.1.1. */
#include "http_request_case.h"

/* H14: RFC 9110 8.6, RFC 9112 6.3. */
static const char *const bad_lengths[] = {
    "Content-Length: +1\r\n",
    "Content-Length: -0\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 0x10\r\n",
    "Content-Length: 1_0\r\n",
    "Content-Length: 1 0\r\n",
    "Content-Length: 1.0\r\n",
    "Content-Length: 1e1\r\n",
    "Content-Length: \r\n",
    "Content-Length:\r\n",
    "Content-Length: \"5\"\r\n",
    "Content-Length: 5,5\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: 5,6\r\n",
    "Content-Length: 5,\r\n",
    "Content-Length: 5;\r\n",
    "Content-Length: 5\r\nContent-Length: 5\r\n",
    "Content-Length: 5\r\ncontent-length: 6\r\n",
    "Content-Length: 9223372036854775808\r\n",
    "Content-Length: 18446744073709551616\r\n",
    "Content-Length: 18446744073709551621\r\n",
    "Content-Length: 9999999999999999999999999999999999999999\r\n",
    "Content_Length: 5\r\n"};

static void test_a_length_is_digits_only(void **state)
{
	(void)state;
	check_fields(bad_lengths, ROWS(bad_lengths), REASON_REQUEST_SYNTAX);
}

static void test_a_valid_length_is_read_as_decimal(void **state)
{
	static const struct {
		const char *field;
		uint64_t want;
	} rows[] = {
	    {"Content-Length: 0\r\n", 0},
	    {"content-length:  17 \r\n", 17},
	    {"CONTENT-LENGTH:010\r\n", 10},
	    {"Content-Length: 9223372036854775807\r\n", UINT64_C(9223372036854775807)},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(rows); i++) {
		assert_int_equal(read_with_fields(rows[i].field), 0);
		assert_int_equal(request.framing, HTTP_LENGTH);
		assert_true(request.length == rows[i].want);
	}
}

/* H11, H12: RFC 9112 6.1. */
static const char *const bad_codings[] = {
    "Transfer-Encoding: ,chunked\r\n",
    "Transfer-Encoding: chunked,\r\n",
    "Transfer-Encoding: chunked,chunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: gzip,chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\ntransfer-encoding: chunked\r\n",
    "Transfer-Encoding: chunked;a=b\r\n",
    "Transfer-Encoding: chunked ;a\r\n",
    "Transfer-Encoding: \"chunked\"\r\n",
    "Transfer-Encoding: chun ked\r\n",
    "Transfer-Encoding: chunked\x0b\r\n",
    "Transfer-Encoding: \vchunked\r\n",
    "Transfer-Encoding:\r\n",
    "Transfer-Encoding: \t\r\n",
    "Transfer-Encoding:\r\n chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Transfer_Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
    "Content-Length: 0\r\nTransfer-Encoding:\r\n"};

static void test_only_one_chunked_is_a_transfer_coding(void **state)
{
	(void)state;
	check_fields(bad_codings, ROWS(bad_codings), REASON_REQUEST_SYNTAX);
}

static void test_an_unknown_coding_is_named_as_such(void **state)
{
	static const char *const fields[] = {
	    "Transfer-Encoding: identity\r\n", "Transfer-Encoding: xchunked\r\n",
	    "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunke\r\n",
	    "Transfer-Encoding: chunkedx\r\n"};

	(void)state;
	check_fields(fields, ROWS(fields), REASON_REQUEST_CODING);
}

static void test_chunked_in_any_case_is_chunked(void **state)
{
	static const char *const fields[] = {
	    "Transfer-Encoding: chunked\r\n", "Transfer-Encoding:Chunked\r\n",
	    "TRANSFER-ENCODING: CHUNKED\r\n", "transfer-encoding: chunked \t\r\n",
	    "Transfer-Encoding:\tchunked\r\n"};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(fields); i++) {
		check_fields(&fields[i], 1, 0);
		assert_int_equal(request.framing, HTTP_CHUNKED);
	}
}

/* H13. */
static void test_a_transfer_coding_in_http_1_0_is_refused(void **state)
{
	static const struct text messages[] = {
	    BYTES("POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
	    BYTES("POST http://h/ HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n"),
	};

	(void)state;
	check_all(messages, ROWS(messages), REASON_REQUEST_SYNTAX);
}

/* RFC 9110 9.3.6: what follows CONNECT is the tunnel. */
static void test_connect_has_no_body(void **state)
{
	static const struct bytes_case rows[] = {
	    {BYTES("CONNECT h:1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"),
	     REASON_REQUEST_SYNTAX},
	    {BYTES("CONNECT h:1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"),
	     REASON_REQUEST_SYNTAX},
	    {BYTES("CONNECT h:1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"), 0},
	};

	(void)state;
	check_rows(rows, ROWS(rows));
	assert_int_equal(request.framing, HTTP_NO_BODY);
}

/* RFC 9112 9.3; a proxy keeps no connection with an HTTP/1.0 client. */
static const struct {
	const char *message;
	bool want;
} persistence[] = {
    {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
    {"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", true},
    {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
    {"GET / HTTP/1.1\r\nHost: h\r\nCONNECTION: x , CLOSE\r\n\r\n", false},
    {"GET / HTTP/1.1\r\nHost: h\r\nConnection: x\r\nConnection: close\r\n\r\n", false},
    {"GET / HTTP/1.1\r\nHost: h\r\nConnection: ,,close,keep-alive\r\n\r\n", false},
    {"GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", true},
    {"GET / HTTP/1.1\r\nHost: h\r\nProxy-Connection: close\r\n\r\n", false},
    {"GET / HTTP/1.1\r\nHost: h\r\nProxy-Connection: keep-alive\r\n\r\n", true},
    {"GET / HTTP/1.0\r\n\r\n", false},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false},
};

static void test_connection_options_decide_about_another_request(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(persistence); i++) {
		struct text t = {persistence[i].message, strlen(persistence[i].message)};

		assert_int_equal(read_request(t), 0);
		if (request.keep_alive != persistence[i].want)
			fail_msg("keep-alive is wrong: %s", persistence[i].message);
	}
}

/* RFC 9110 7.8: Upgrade counts only when Connection names it, and never in HTTP/1.0. */
static void test_an_upgrade_needs_both_fields(void **state)
{
	(void)state;
	assert_int_equal(read_with_fields("Connection: Upgrade\r\nUpgrade: websocket\r\n"), 0);
	assert_true(request.upgrade);
	assert_int_equal(read_with_fields("Connection: upgrade\r\n"), 0);
	assert_false(request.upgrade);
	assert_int_equal(read_with_fields("Upgrade: websocket\r\n"), 0);
	assert_false(request.upgrade);
	assert_int_equal(read_request((struct text)BYTES("GET / HTTP/1.0\r\nUpgrade: x\r\n"
							 "Connection: upgrade\r\n\r\n")),
			 0);
	assert_false(request.upgrade);
}

/* An HTTP/2 behind an upgrade would be requests that nobody here reads. */
static void test_only_an_upgrade_to_a_websocket_counts(void **state)
{
	static const char *const others[] = {"h2c", "websocket, h2c", "TLS/1.2",
					     "",    "websockets",     "websocket\r\nUpgrade: h2c"};
	char fields[128];
	size_t i;

	(void)state;
	assert_int_equal(read_with_fields("Connection: upgrade\r\nUPGRADE: WebSocket\r\n"), 0);
	assert_true(request.upgrade);
	for (i = 0; i < ROWS(others); i++) {
		snprintf(fields, sizeof(fields), "Connection: upgrade\r\nUpgrade: %s\r\n",
			 others[i]);
		assert_int_equal(read_with_fields(fields), 0);
		assert_false(request.upgrade);
	}
}

/* RFC 9110 10.1.1. */
static void test_expect_continue_is_seen_in_http_1_1_only(void **state)
{
	(void)state;
	assert_int_equal(read_with_fields("Expect: 100-Continue\r\nContent-Length: 1\r\n"), 0);
	assert_true(request.expect_continue);
	assert_int_equal(read_with_fields("Expect: 100-continued\r\n"), 0);
	assert_false(request.expect_continue);
	assert_int_equal(
	    read_request((struct text)BYTES("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n")), 0);
	assert_false(request.expect_continue);
}

/* `method` with a field Max-Forwards. */
static int read_max_forwards(const char *method, const char *value)
{
	char message[256];
	int len =
	    snprintf(message, sizeof(message),
		     "%s http://h/ HTTP/1.1\r\nHost: h\r\nMAX-forwards:%s\r\n\r\n", method, value);

	return read_request((struct text){message, (size_t)len});
}

/* RFC 9110 7.6.2: for OPTIONS and TRACE; others may ignore it, and do. */
static void test_max_forwards_is_read_where_it_counts(void **state)
{
	static const struct {
		const char *method, *value;
		int64_t want;
	} rows[] = {
	    {"OPTIONS", "0", 0},
	    {"OPTIONS", " 10 ", 10},
	    {"TRACE", "007", 7},
	    {"TRACE", "2147483646", 2147483646},
	    {"OPTIONS", "9999999999999999999999999999999999999999", INT32_MAX},
	    {"GET", "0", -1},
	    {"POST", "x", -1},
	    {"options", "0", -1},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(rows); i++) {
		assert_int_equal(read_max_forwards(rows[i].method, rows[i].value), 0);
		assert_int_equal(request.max_forwards, rows[i].want);
	}
	assert_int_equal(read_with_line("TRACE http://h/ HTTP/1.1"), 0);
	assert_int_equal(request.max_forwards, -1);
}

static void test_a_faulty_max_forwards_is_refused(void **state)
{
	static const char *const values[] = {"",    " ",   "-1",  "+1", "1,2",
					     "1 2", "0x1", "1.0", "x",  "1\r\nMax-Forwards: 1"};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(values); i++) {
		assert_int_equal(read_max_forwards("OPTIONS", values[i]), REASON_REQUEST_SYNTAX);
		assert_int_equal(read_max_forwards("TRACE", values[i]), REASON_REQUEST_SYNTAX);
	}
}

/* RFC 9110 9.3.8. */
static void test_trace_has_no_body(void **state)
{
	static const struct bytes_case rows[] = {
	    {BYTES("TRACE http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"),
	     REASON_REQUEST_SYNTAX},
	    {BYTES("TRACE http://h/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"),
	     REASON_REQUEST_SYNTAX},
	    {BYTES("TRACE http://h/ HTTP/1.1\r\nHost: h\r\n\r\n"), 0},
	};

	(void)state;
	check_rows(rows, ROWS(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_length_is_digits_only),                  /* H14 */
	    cmocka_unit_test(test_a_valid_length_is_read_as_decimal),        /* H14 */
	    cmocka_unit_test(test_only_one_chunked_is_a_transfer_coding),    /* H8 H11 H12 */
	    cmocka_unit_test(test_an_unknown_coding_is_named_as_such),       /* H12 */
	    cmocka_unit_test(test_chunked_in_any_case_is_chunked),           /* H12 */
	    cmocka_unit_test(test_a_transfer_coding_in_http_1_0_is_refused), /* H13 */
	    cmocka_unit_test(test_connect_has_no_body),                      /* H20 */
	    cmocka_unit_test(test_connection_options_decide_about_another_request),
	    cmocka_unit_test(test_an_upgrade_needs_both_fields),             /* H24 */
	    cmocka_unit_test(test_only_an_upgrade_to_a_websocket_counts),    /* H24 */
	    cmocka_unit_test(test_expect_continue_is_seen_in_http_1_1_only), /* H25 */
	    cmocka_unit_test(test_max_forwards_is_read_where_it_counts),     /* H27 */
	    cmocka_unit_test(test_a_faulty_max_forwards_is_refused),         /* H27 */
	    cmocka_unit_test(test_trace_has_no_body),                        /* H27 */
	};

	return cmocka_run_group_tests(tests, NULL, forget_head);
}
