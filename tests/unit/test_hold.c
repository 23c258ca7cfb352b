/* test_hold.c - entries that wait come out as they went in. */
#include "list_check.h"

#include <errno.h>

static const struct list_entry rejected = {.line = 7,
					   .verdict = VERDICT_UNSUPPORTED_SCHEME,
					   .text = "vmess://***",
					   .scheme = "vmess",
					   .country = "",
					   .anonymity = ""};

static void everything_collect(const struct list_entry *e, void *arg)
{
	char text[400], canonical[ENDPOINT_ID_MAX] = "";

	if (e->endpoint)
		endpoint_print(e->endpoint, SHOW_SECRET, canonical, sizeof(canonical));
	snprintf(text, sizeof(text), "%s|%s|%s|%s|%s", e->text, e->scheme, e->country, e->anonymity,
		 canonical);
	got_add(arg, (unsigned long)e->line, verdict_word((int)e->verdict), text);
}

static void test_entries_come_out_as_they_went_in(void **state)
{
	char secret[] = "u:p";
	struct endpoint e = {.scheme = SCHEME_SOCKS5, .host = "2001:db8::1", .port = 1080};
	struct list_entry entry = {.line = 8,
				   .verdict = VERDICT_DUPLICATE,
				   .endpoint = &e,
				   .text = "x",
				   .scheme = "",
				   .country = "DE",
				   .anonymity = "elite"};
	struct list_hold h;
	struct got g = {0};

	(void)state;
	list_hold_init(&h, 3);
	assert_int_equal(list_hold_add(&h, &rejected), 0);
	assert_int_equal(list_hold_add(&h, &entry), 0);
	e.secret = secret;
	assert_int_equal(list_hold_add(&h, &entry), 0);
	assert_int_equal(list_hold_add(&h, &entry), -ENOBUFS);
	list_hold_release(&h, everything_collect, &g);
	assert_string_equal(g.text, "7 unsupported-scheme vmess://***|vmess|||\n"
				    "8 duplicate socks5://[2001:db8::1]:1080||DE|elite|"
				    "socks5://[2001:db8::1]:1080\n"
				    "8 duplicate socks5://***@[2001:db8::1]:1080||DE|elite|"
				    "socks5://u:p@[2001:db8::1]:1080\n");
	list_hold_fini(&h);
	free(g.text);
}

static void test_what_was_released_or_dropped_is_gone(void **state)
{
	struct list_hold h;
	struct got g = {0};

	(void)state;
	list_hold_init(&h, 2);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(list_hold_add(&h, &rejected), 0);
		assert_int_equal(list_hold_add(&h, &rejected), 0);
		list_hold_drop(&h);
		list_hold_release(&h, everything_collect, &g);
		assert_int_equal(g.entries, 0);
	}
	list_hold_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_entries_come_out_as_they_went_in),
	    cmocka_unit_test(test_what_was_released_or_dropped_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
