/* test_plain.c - the quick reader says what the careful one says. */
#include "list_check.h"

#include "list/item.h"
#include "list/plain.h"

/* Whether the quick reader took it. */
static bool both_agree(const char *text, size_t len, const struct endpoint_rules *rules)
{
	char quick_text[ENDPOINT_ID_MAX], slow_text[ENDPOINT_ID_MAX];
	struct endpoint quick, slow;
	struct endpoint_parts parts;
	int r;

	if (!list_plain_read(&quick, text, len, rules))
		return false;
	r = list_item_split(&parts, text, len, rules);
	assert_int_equal(r ? r : parts_build(&slow, &parts, rules), 0);
	endpoint_print(&quick, SHOW_SECRET, quick_text, sizeof(quick_text));
	endpoint_print(&slow, SHOW_SECRET, slow_text, sizeof(slow_text));
	assert_string_equal(quick_text, slow_text);
	assert_null(slow.secret);
	return true;
}

static void test_plain_entries_are_read_quickly(void **state)
{
	static const char *const texts[] = {
	    "192.0.2.1:80",          "0.0.0.0:1",         "255.255.255.255:65535",
	    "socks5://192.0.2.1:80", "HTTPS://1.2.3.4:1", "socks4a://10.20.30.40:50000",
	};
	struct endpoint_rules rules = {.default_scheme = SCHEME_SOCKS4, .allow_private = true};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_true(both_agree(texts[i], strlen(texts[i]), &rules));
	rules.https_means_connect = true;
	assert_true(both_agree("https://192.0.2.1:80", 20, &rules));
	rules.default_scheme = SCHEME_HTTPS;
	assert_true(both_agree("192.0.2.1:80", 12, &rules));
}

static void test_all_else_is_left_to_the_careful_reader(void **state)
{
	static const char *const texts[] = {
	    "192.0.2.1",        "192.0.2.1:",        "192.0.2.1:0",     "192.0.2.1:65536",
	    "192.0.2.1:080",    "192.0.2.256:80",    "192.0.02.1:80",   "192.0.2:80",
	    "192.0.2.1.5:80",   "192.0.2.1:80 ",     "192.0.2.1:80/",   "10.0.0.1:80",
	    "direct://1.2.3.4", "socks://1.2.3.4:1", "x://1.2.3.4:1",   "://1.2.3.4:1",
	    "http:1.2.3.4:80",  "a@1.2.3.4:80",      "[2001:db8::1]:1", "",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_false(both_agree(texts[i], strlen(texts[i]), &defaults));
}

static void test_both_readers_agree_on_changed_bytes(void **state)
{
	static const char base[] = "http://192.0.2.10:8080";
	static const char changes[] = "0159.:/@[] aA#\x01\xff";
	char text[sizeof(base)];
	size_t taken = 0;

	(void)state;
	for (size_t start = 0; start <= 7; start += 7)
		for (size_t i = start; i + 1 < sizeof(base); i++)
			for (size_t k = 0; k < sizeof(changes); k++) {
				memcpy(text, base, sizeof(base));
				text[i] = changes[k];
				taken +=
				    both_agree(text + start, sizeof(base) - 1 - start, &defaults);
			}
	assert_true(taken > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain_entries_are_read_quickly),
	    cmocka_unit_test(test_all_else_is_left_to_the_careful_reader),
	    cmocka_unit_test(test_both_readers_agree_on_changed_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
