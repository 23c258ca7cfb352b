/* test_http_fields.c - finding fields, those that end at this hop, and host names. */
#include "http_split.h"

#include <errno.h>

static struct http_request request;

/* Reads `fields`, each with its CRLF, as those of a request. */
static void read_fields(const char *fields)
{
	static char message[2048];
	static const char start[] = "GET / HTTP/1.1\r\nHost: h\r\n";
	size_t len = strlen(start);

	memcpy(message, start, len);
	memcpy(message + len, fields, strlen(fields));
	len += strlen(fields);
	memcpy(message + len, "\r\n", 2);
	assert_int_equal(http_parse_request(&request, message, len + 2), 0);
}

static bool ends_here(const char *name)
{
	const struct http_field *field = http_find(request.fields, request.field_count, name);

	assert_non_null(field);
	return http_is_hop_by_hop(request.fields, request.field_count, field);
}

static void test_a_field_is_found_in_any_case(void **state)
{
	const struct http_field *field;

	(void)state;
	read_fields("X-One: 1\r\nx-two: 2\r\nX-TWO: 3\r\n");
	field = http_find(request.fields, request.field_count, "X-Two");
	assert_non_null(field);
	assert_text(field->value, "2");
	assert_int_equal(http_field_count(request.fields, request.field_count, "x-Two"), 2);
	assert_int_equal(http_field_count(request.fields, request.field_count, "x-one"), 1);
}

static void test_a_part_of_a_name_is_not_the_name(void **state)
{
	(void)state;
	read_fields("X-One: 1\r\n");
	assert_null(http_find(request.fields, request.field_count, "X-On"));
	assert_null(http_find(request.fields, request.field_count, "X-One-"));
	assert_null(http_find(request.fields, request.field_count, ""));
	assert_null(http_find(request.fields, 0, "X-One"));
	assert_int_equal(http_field_count(request.fields, request.field_count, "One"), 0);
}

static void test_a_text_is_compared_in_any_case(void **state)
{
	(void)state;
	assert_true(text_is((struct text)BYTES("ChunKed"), "cHUNkED"));
	assert_true(text_is((struct text)BYTES(""), ""));
	assert_false(text_is((struct text)BYTES("chunked\0"), "chunked"));
	assert_false(text_is((struct text)BYTES("chunke"), "chunked"));
	/* '[' and '{', '@' and '`' differ in the bit that tells upper from lower case. */
	assert_false(text_is((struct text)BYTES("["), "{"));
	assert_false(text_is((struct text)BYTES("@"), "`"));
}

/* H24: RFC 9110 7.6.1, 11.7; the framing is always generated anew. */
static void test_the_fields_of_this_hop_end_here(void **state)
{
	static const char *const names[] = {"Connection",
					    "Keep-Alive",
					    "Proxy-Connection",
					    "TE",
					    "Trailer",
					    "Upgrade",
					    "Content-Length",
					    "Proxy-Authenticate",
					    "Proxy-Authorization",
					    "Proxy-Authentication-Info"};
	size_t i;

	(void)state;
	read_fields("Connection: x\r\nKEEP-ALIVE: x\r\nproxy-connection: x\r\nTe: x\r\n"
		    "Trailer: x\r\nUpgrade: x\r\nContent-Length: 1\r\nProxy-Authenticate: x\r\n"
		    "proxy-authorization: x\r\nProxy-Authentication-Info: x\r\n");
	for (i = 0; i < ROWS(names); i++)
		assert_true(ends_here(names[i]));
	read_fields("Transfer-Encoding: chunked\r\n");
	assert_true(ends_here("Transfer-Encoding"));
}

static void test_other_fields_go_on(void **state)
{
	static const char *const names[] = {"Host", "Cookie",   "Authorization", "TEA",
					    "X-TE", "Upgrades", "Proxy-Status",  "Content-Lengt"};
	size_t i;

	(void)state;
	read_fields("Cookie: a\r\nAuthorization: b\r\nTEA: c\r\nX-TE: d\r\nUpgrades: e\r\n"
		    "Proxy-Status: f\r\nContent-Lengt: 1\r\nConnection: close, keep-alive\r\n");
	for (i = 0; i < ROWS(names); i++)
		assert_false(ends_here(names[i]));
}

/* H23 and CVE-2023-49606: options name fields, in any case, in several lines, with empty elements and twice. */
static void test_fields_that_connection_names_end_here(void **state)
{
	(void)state;
	read_fields("X-One: 1\r\nConnection: ,x-ONE ,,\tX-Two, Connection\r\nX-Two: 2\r\n"
		    "X-Three: 3\r\nConnection: x-three,x-three\r\nX-Four: 4\r\nx-one: 5\r\n"
		    "X-On: 6\r\n");
	assert_true(ends_here("X-One"));
	assert_true(ends_here("X-Two"));
	assert_true(ends_here("X-Three"));
	assert_false(ends_here("X-Four"));
	assert_false(ends_here("X-On"));
	assert_true(http_is_hop_by_hop(request.fields, request.field_count, &request.fields[7]));
}

static void test_proxy_connection_names_no_fields(void **state)
{
	(void)state;
	read_fields("X-One: 1\r\nProxy-Connection: x-one\r\n");
	assert_false(ends_here("X-One"));
}

static int canonical(struct text host, char *buffer, size_t size)
{
	char *copy = exact_copy(host.at, host.len);
	int result = http_canonical_host((struct text){copy, host.len}, buffer, size);

	free(copy);
	return result;
}

static void test_a_host_gets_its_canonical_form(void **state)
{
	static const char *const rows[][2] = {{"Example.COM", "example.com"},
					      {"example.com.", "example.com"},
					      {"a", "a"},
					      {"_sip._tcp.Example", "_sip._tcp.example"},
					      {"1e100.net", "1e100.net"},
					      {"127.0.0.1", "127.0.0.1"},
					      {"1.2.3.4.example", "1.2.3.4.example"},
					      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
					      {"::", "::"},
					      {"0xg.example", "0xg.example"},
					      {"a.0xg", "a.0xg"},
					      {"xn--bcher-kva.example", "xn--bcher-kva.example"}};
	char buffer[254];
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(rows); i++) {
		struct text host = {rows[i][0], strlen(rows[i][0])};

		assert_int_equal(canonical(host, buffer, sizeof(buffer)), 0);
		assert_string_equal(buffer, rows[i][1]);
	}
}

/* Numbers that a resolver takes for an address, brackets that hide one, and everything that is no name. */
static const struct text bad_hosts[] = {
    BYTES(""),           BYTES("."),          BYTES(".."),          BYTES("a.."),
    BYTES(".a"),         BYTES("a..b"),       BYTES("127.1"),       BYTES("127.0.1"),
    BYTES("2130706433"), BYTES("0x7f.1"),     BYTES("0x7f000001"),  BYTES("0X7F000001"),
    BYTES("0177.0.0.1"), BYTES("127.0.0.01"), BYTES("127.0.0.0x1"), BYTES("1.2.3.4.5"),
    BYTES("256.1.1.1"),  BYTES("1.2.3.4."),   BYTES("a.0x"),        BYTES("a.1"),
    BYTES("a.1."),       BYTES("0"),          BYTES("[::1]"),       BYTES("[1.2.3.4]"),
    BYTES("::1%eth0"),   BYTES("::1%25lo"),   BYTES("::1."),        BYTES(":::"),
    BYTES("12345::"),    BYTES("h:80"),       BYTES("u@h"),         BYTES("a,b"),
    BYTES("a b"),        BYTES(" a"),         BYTES("a "),          BYTES("a%2eb"),
    BYTES("a%00"),       BYTES("a\0"),        BYTES("a\r\n"),       BYTES("b\xc3\xbc"),
    BYTES("a/b"),        BYTES("a\\b"),       BYTES("a?b"),         BYTES("a#b"),
    BYTES("*"),          BYTES("a!b"),        BYTES("a$b"),         BYTES("'a'")};

static void test_a_bad_host_is_refused(void **state)
{
	char buffer[254] = "untouched";
	size_t i;

	(void)state;
	for (i = 0; i < ROWS(bad_hosts); i++) {
		if (canonical(bad_hosts[i], buffer, sizeof(buffer)) != -EINVAL)
			fail_msg("not refused: %s", bad_hosts[i].at);
		assert_string_equal(buffer, "untouched");
	}
}

/* `count` labels of `len` bytes. */
static struct text long_name(char *name, size_t count, size_t len)
{
	size_t i;

	for (i = 0; i < count; i++) {
		memset(name + i * (len + 1), 'A', len);
		name[i * (len + 1) + len] = '.';
	}
	return (struct text){name, count * (len + 1) - 1};
}

/* RFC 1035 2.3.4: 63 bytes a label, 253 a name as text. */
static void test_long_names_are_refused(void **state)
{
	char name[512], buffer[300];
	struct text longest;

	(void)state;
	assert_int_equal(canonical(long_name(name, 1, 63), buffer, sizeof(buffer)), 0);
	assert_int_equal(canonical(long_name(name, 1, 64), buffer, sizeof(buffer)), -EINVAL);
	assert_int_equal(canonical(long_name(name, 2, 64), buffer, sizeof(buffer)), -EINVAL);
	longest = long_name(name, 127, 1);
	assert_int_equal(longest.len, 253);
	assert_int_equal(canonical(longest, buffer, sizeof(buffer)), 0);
	assert_int_equal(strlen(buffer), 253);
	longest.len++; /* the dot at the end */
	assert_int_equal(canonical(longest, buffer, sizeof(buffer)), 0);
	/* 85 * 3 - 1 = 254 */
	assert_int_equal(canonical(long_name(name, 85, 2), buffer, sizeof(buffer)), -EINVAL);
	assert_int_equal(canonical(long_name(name, 4, 63), buffer, sizeof(buffer)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_field_is_found_in_any_case),
	    cmocka_unit_test(test_a_part_of_a_name_is_not_the_name),
	    cmocka_unit_test(test_a_text_is_compared_in_any_case),
	    cmocka_unit_test(test_the_fields_of_this_hop_end_here),       /* H24 */
	    cmocka_unit_test(test_other_fields_go_on),                    /* H24 */
	    cmocka_unit_test(test_fields_that_connection_names_end_here), /* H23 */
	    cmocka_unit_test(test_proxy_connection_names_no_fields),      /* H23 */
	    cmocka_unit_test(test_a_host_gets_its_canonical_form),
	    cmocka_unit_test(test_a_bad_host_is_refused),
	    cmocka_unit_test(test_long_names_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
