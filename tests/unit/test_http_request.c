/* test_http_request.c - request lines, targets, field lines and Host: RFC 9112 2, 3 and 5. */
#include "http_request_case.h"

static void test_a_plain_request_is_read(void **state)
{
	(void)state;
	assert_int_equal(
	    read_request((struct text)BYTES("GET http://Example.com:8080/a?b=c HTTP/1.1\r\n"
					    "Host: example.com:8080\r\n"
					    "X-Empty:\r\n"
					    "Accept:\t text/html , */* \t\r\n\r\n")),
	    0);
	assert_text(request.method, "GET");
	assert_text(request.target, "http://Example.com:8080/a?b=c");
	assert_int_equal(request.minor, 1);
	assert_int_equal(request.form, HTTP_ABSOLUTE_FORM);
	assert_text(request.host, "Example.com");
	assert_int_equal(request.port, 8080);
	assert_text(request.path, "/a?b=c");
	assert_int_equal(request.framing, HTTP_NO_BODY);
	assert_true(request.keep_alive);
	assert_int_equal(request.field_count, 3);
	assert_text(request.fields[1].value, "");
	assert_text(request.fields[2].name, "Accept");
	assert_text(request.fields[2].value, "text/html , */*");
}

/* RFC 9112 3.2.3. */
static void test_connect_names_host_and_port(void **state)
{
	static const struct {
		const char *line, *host;
		uint16_t port;
	} rows[] = {
	    {"CONNECT example.com:443 HTTP/1.1", "example.com", 443},
	    {"CONNECT 192.0.2.1:1 HTTP/1.1", "192.0.2.1", 1},
	    {"CONNECT [2001:db8::1]:65535 HTTP/1.0", "2001:db8::1", 65535},
	    {"CONNECT under_score.example:80 HTTP/1.1", "under_score.example", 80},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(rows); i++) {
		assert_int_equal(read_with_line(rows[i].line), 0);
		assert_int_equal(request.form, HTTP_AUTHORITY_FORM);
		assert_text(request.host, rows[i].host);
		assert_int_equal(request.port, rows[i].port);
		assert_int_equal(request.path.len, 0);
	}
}

/* H4, H6: RFC 9110 9.3.6, 4.2.4. */
static const char *const bad_authorities[] = {
    "host",        "host:",         "host:0",        "host:65536",    "host:99999",  "host:+80",
    "host:-1",     "host:080",      "host:8o",       "host:80 ",      "/",           "*",
    "http://h:80", "https://h:443", "user@h:443",    "u:p@h:443",     "a,b:443",     ":443",
    "h:443/",      "h:443?q",       "[::1%25x]:1",   "[::1%x]:1",     "[::1]",       "[::1]:",
    "[::1",        "[]:443",        "::1:443",       "[v1.x]:443",    "[1.2.3.4]:1", "[h]:443",
    "127.1:80",    "0x7f.1:80",     "2130706433:80", "0177.0.0.1:80", "1.2.3.4.:80", "h%2e:443",
    "a..b:443",    ".a:443",        "h:443,h:443",   "h\\:443",       "[::1]]:443"};

static void test_connect_to_anything_else_is_refused(void **state)
{
	char line[128];
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(bad_authorities); i++) {
		snprintf(line, sizeof(line), "CONNECT %s HTTP/1.1", bad_authorities[i]);
		check_lines(&(const char *){line}, 1, REASON_REQUEST_SYNTAX);
	}
}

/* RFC 9112 3.2.2, RFC 9110 4.2.1. */
static const struct {
	const char *line, *host, *path;
	uint16_t port;
} absolute_forms[] = {
    {"GET http://h HTTP/1.1", "h", "/", 80},
    {"GET HTTP://h/ HTTP/1.1", "h", "/", 80},
    {"GET http://h:8080/a//b?c HTTP/1.0", "h", "/a//b?c", 8080},
    {"GET http://h?q=1 HTTP/1.1", "h", "?q=1", 80},
    {"GET http://[::1]/x HTTP/1.1", "::1", "/x", 80},
    {"GET http://[::1]:81/x@y:z HTTP/1.1", "::1", "/x@y:z", 81},
    {"OPTIONS http://h HTTP/1.1", "h", "*", 80},
    {"OPTIONS http://h/ HTTP/1.1", "h", "/", 80},
    {"X-ODD!METHOD http://h/ HTTP/1.1", "h", "/", 80},
};

static void test_absolute_form_gives_host_port_and_path(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(absolute_forms); i++) {
		assert_int_equal(read_with_line(absolute_forms[i].line), 0);
		assert_int_equal(request.form, HTTP_ABSOLUTE_FORM);
		assert_text(request.host, absolute_forms[i].host);
		assert_text(request.path, absolute_forms[i].path);
		assert_int_equal(request.port, absolute_forms[i].port);
	}
}

static const char *const bad_absolute_forms[] = {"GET http:// HTTP/1.1",
						 "GET http:///path HTTP/1.1",
						 "GET http://?q HTTP/1.1",
						 "GET http:/h/ HTTP/1.1",
						 "GET http:h HTTP/1.1",
						 "GET http://:80/ HTTP/1.1",
						 "GET http://h:/ HTTP/1.1",
						 "GET http://h:0/ HTTP/1.1",
						 "GET http://h:65536/ HTTP/1.1",
						 "GET http://h:+80/ HTTP/1.1",
						 "GET http://u@h/ HTTP/1.1",
						 "GET http://u:p@h/ HTTP/1.1",
						 "GET http://@h/ HTTP/1.1",
						 "GET http://a,b/ HTTP/1.1",
						 "GET http://h\\@e/ HTTP/1.1",
						 "GET http://h%00/ HTTP/1.1",
						 "GET http://127.1/ HTTP/1.1",
						 "GET http://[::1%25eth0]/ HTTP/1.1",
						 "GET http://h/#part HTTP/1.1",
						 "GET http://h#part HTTP/1.1",
						 "GET http://h/\xc3\xa9 HTTP/1.1",
						 "GET http://\xc3\xa9/ HTTP/1.1",
						 "GET h:80 HTTP/1.1",
						 "GET h HTTP/1.1",
						 "GET 1http://h/ HTTP/1.1",
						 "GET ://h/ HTTP/1.1",
						 "connect h:443 HTTP/1.1"};

static void test_bad_absolute_forms_are_refused(void **state)
{
	(void)state;
	check_lines(bad_absolute_forms, ROWS(bad_absolute_forms), REASON_REQUEST_SYNTAX);
}

static void test_other_schemes_are_named_as_such(void **state)
{
	static const char *const lines[] = {"GET https://h/ HTTP/1.1", "GET ftp://h/file HTTP/1.1",
					    "GET ws://h/ HTTP/1.1", "GET svn+ssh://h/ HTTP/1.1",
					    "POST HTTPS://h HTTP/1.0"};

	(void)state;
	check_lines(lines, ROWS(lines), REASON_REQUEST_SCHEME);
}

/* H3: the gateway decides about origin form; H5: RFC 9112 3.2.4. */
static void test_origin_and_asterisk_forms_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(read_with_line("GET /a?b HTTP/1.1"), 0);
	assert_int_equal(request.form, HTTP_ORIGIN_FORM);
	assert_text(request.path, "/a?b");
	assert_int_equal(request.host.len, 0);
	assert_int_equal(read_with_line("GET //h/a HTTP/1.1"), 0);
	assert_int_equal(request.form, HTTP_ORIGIN_FORM);
	assert_int_equal(read_with_line("OPTIONS * HTTP/1.1"), 0);
	assert_int_equal(request.form, HTTP_ASTERISK_FORM);
	assert_text(request.path, "*");
	assert_int_equal(read_with_line("GET * HTTP/1.1"), REASON_REQUEST_SYNTAX);
	assert_int_equal(read_with_line("options * HTTP/1.1"), REASON_REQUEST_SYNTAX);
	assert_int_equal(read_with_line("OPTIONS ** HTTP/1.1"), REASON_REQUEST_SYNTAX);
}

/* RFC 9112 3: single spaces, a token, and no leniency. */
static const char *const bad_request_lines[] = {"GET  / HTTP/1.1",
						"GET /  HTTP/1.1",
						"GET / HTTP/1.1 ",
						" GET / HTTP/1.1",
						"GET\t/ HTTP/1.1",
						"GET /\tHTTP/1.1",
						"GET / x HTTP/1.1",
						"GET HTTP/1.1",
						"GET / http/1.1",
						"GET / HTTP/1.",
						"GET / HTTP/11",
						"GET / HTTP/1,1",
						"GET / HTTP/01.1",
						"GET / HTTP/1.32",
						"GET / HTTP/10.1",
						"GET / HTP/1.1",
						"GET / HTTP/1.1x",
						"GET /HTTP/1.1",
						"G(T / HTTP/1.1",
						"G\xc3T / HTTP/1.1",
						"/ HTTP/1.1",
						"HTTP/1.1",
						"GET",
						"GET / HTTP/-1.1",
						"GET / \x0bHTTP/1.1",
						"GET /\x7f HTTP/1.1",
						"GET: / HTTP/1.1",
						"HTTP/1.1 200 OK"};

static void test_bad_request_lines_are_refused(void **state)
{
	(void)state;
	check_lines(bad_request_lines, ROWS(bad_request_lines), REASON_REQUEST_SYNTAX);
}

/* H30. */
static void test_other_versions_are_named_as_such(void **state)
{
	static const struct bytes_case rows[] = {
	    {BYTES("PRI * HTTP/2.0\r\n\r\n"), REASON_REQUEST_VERSION},
	    {BYTES("GET / HTTP/0.9\r\n\r\n"), REASON_REQUEST_VERSION},
	    {BYTES("GET / HTTP/1.2\r\n\r\n"), REASON_REQUEST_VERSION},
	    {BYTES("GET / HTTP/1.9\r\nHost: h\r\n\r\n"), REASON_REQUEST_VERSION},
	    {BYTES("GET / HTTP/3.0\r\n\r\n"), REASON_REQUEST_VERSION},
	    {BYTES("CONNECT h:443 HTTP/9.9\r\n\r\n"), REASON_REQUEST_VERSION},
	};

	(void)state;
	check_rows(rows, ROWS(rows));
}

/* H7, H9, obs-fold: RFC 9112 5.1, 5.2, RFC 9110 5.5. */
static const struct text bad_field_lines[] = {
    BYTES("GET / HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\n\tA: b\r\nHost: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\n \r\nHost: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n \r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost : h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost\t: h\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\n\"A\": c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA\x80: c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\n\xff: c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA\0: c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\x0b\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: \x1b[2J\r\n\r\n"),
    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: \x7f\r\n\r\n"),
};

static void test_bad_field_lines_are_refused(void **state)
{
	(void)state;
	check_all(bad_field_lines, ROWS(bad_field_lines), REASON_REQUEST_SYNTAX);
}

/* RFC 9110 5.5: obs-text is opaque data, HTAB and SP may stand inside. */
static void test_odd_but_valid_field_lines_are_read(void **state)
{
	(void)state;
	assert_int_equal(
	    read_with_fields("!#$%&'*+-.^_`|~09aZ: \xc3\xa9\ta: b\"(),/;<=>?@[]{}\\ \r\n"
			     "No-Space:x\r\nBlank:  \t \r\n"),
	    0);
	assert_int_equal(request.field_count, 4);
	assert_text(request.fields[1].name, "!#$%&'*+-.^_`|~09aZ");
	assert_text(request.fields[1].value, "\xc3\xa9\ta: b\"(),/;<=>?@[]{}\\");
	assert_text(request.fields[2].value, "x");
	assert_text(request.fields[3].value, "");
}

/* H1, H2: RFC 9112 3.2. */
static void test_http_1_1_needs_exactly_one_valid_host(void **state)
{
	static const struct bytes_case rows[] = {
	    {BYTES("GET http://h/ HTTP/1.1\r\n\r\n"), REASON_REQUEST_SYNTAX},
	    {BYTES("CONNECT h:1 HTTP/1.1\r\n\r\n"), REASON_REQUEST_SYNTAX},
	    {BYTES("GET http://h/ HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"), REASON_REQUEST_SYNTAX},
	    {BYTES("GET http://h/ HTTP/1.1\r\nHost: h\r\nhOST: g\r\n\r\n"), REASON_REQUEST_SYNTAX},
	    {BYTES("GET http://h/ HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n"), REASON_REQUEST_SYNTAX},
	    {BYTES("GET http://h/ HTTP/1.0\r\n\r\n"), 0},
	    {BYTES("GET http://h/ HTTP/1.0\r\nHost: h\r\n\r\n"), 0},
	    {BYTES("GET http://h/ HTTP/1.1\r\nHost:\r\n\r\n"), 0},
	    {BYTES("GET http://h/ HTTP/1.1\r\nHOST: other:81\r\n\r\n"), 0},
	    {BYTES("GET http://h/ HTTP/1.1\r\nHost: [::1]:81\r\n\r\n"), 0},
	};

	(void)state;
	check_rows(rows, ROWS(rows));
}

static const char *const bad_hosts[] = {"a b", "a,b",  "a/b",    "u@h",      "h:80:80", "h:x",
					"h:",  ":80",  "h:080",  "h:0",      "h:65536", "http://h",
					"::1", "[::1", "[::1]x", "[]",       "a..b",    "a%20",
					"h?",  "h#",   "\"h\"",  "\xc3\xa9", "127.1",   "h h"};

static void test_an_invalid_host_is_refused(void **state)
{
	char message[128];
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(bad_hosts); i++) {
		int len = snprintf(message, sizeof(message),
				   "GET http://h/ HTTP/1.1\r\nHost: %s\r\n\r\n", bad_hosts[i]);

		check_all(&(struct text){message, (size_t)len}, 1, REASON_REQUEST_SYNTAX);
	}
}

/* The parser relies on no scan: a caller that has the whole head may skip it. */
static void test_a_head_that_was_not_scanned_is_checked_all_the_same(void **state)
{
	static const struct text heads[] = {BYTES(""),
					    BYTES("\r\n\r\n"),
					    BYTES("GET / HTTP/1.1x\r\nHost: h\r\n\r\n"),
					    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\0\r\n\r\n"),
					    BYTES("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n"),
					    BYTES("GET / HTTP/1.1\nHost: h\r\n\r\n"),
					    BYTES("GET / HTTP/1.1\r\nHost: h\n\r\n"),
					    BYTES("GET / HTTP/1.1\r\nHost: h\r\n\n"),
					    BYTES("GET / HTTP/1.1\r\nHost: h\r\n")};
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(heads); i++)
		assert_int_equal(http_parse_request(&request, heads[i].at, heads[i].len),
				 REASON_REQUEST_SYNTAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_plain_request_is_read),                  /* H29 */
	    cmocka_unit_test(test_connect_names_host_and_port),              /* H4 */
	    cmocka_unit_test(test_connect_to_anything_else_is_refused),      /* H4 H6 */
	    cmocka_unit_test(test_absolute_form_gives_host_port_and_path),   /* H1 H5 */
	    cmocka_unit_test(test_bad_absolute_forms_are_refused),           /* H6 */
	    cmocka_unit_test(test_other_schemes_are_named_as_such),          /* H33 */
	    cmocka_unit_test(test_origin_and_asterisk_forms_are_told_apart), /* H3 H5 */
	    cmocka_unit_test(test_bad_request_lines_are_refused),            /* H9 H30 */
	    cmocka_unit_test(test_other_versions_are_named_as_such),         /* H30 */
	    cmocka_unit_test(test_bad_field_lines_are_refused),              /* H7 H8 H9 */
	    cmocka_unit_test(test_odd_but_valid_field_lines_are_read),       /* H29 */
	    cmocka_unit_test(test_http_1_1_needs_exactly_one_valid_host),    /* H1 H2 */
	    cmocka_unit_test(test_an_invalid_host_is_refused),               /* H2 */
	    cmocka_unit_test(test_a_head_that_was_not_scanned_is_checked_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, forget_head);
}
