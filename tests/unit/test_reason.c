/* test_reason.c - the table of reasons keeps what its readers rely on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/result.h"

static void test_ok_is_zero_and_words_are_unique(void **state)
{
	(void)state;
	assert_int_equal(REASON_OK, 0);
	for (int a = 0; a < REASON_COUNT; a++) {
		const char *word = reason_row(a)->word;

		assert_true(*word);
		for (const char *c = word; *c; c++)
			assert_true(islower((unsigned char)*c) || *c == '-');
		for (int b = 0; b < a; b++)
			assert_string_not_equal(reason_row(b)->word, word);
	}
}

/* RFC 9209 2.3; each has an HTTP status that the RFC recommends, which ours need not follow. */
static void test_error_types_are_those_of_rfc_9209(void **state)
{
	static const char types[] =
	    "|dns_timeout|dns_error|destination_not_found|destination_unavailable"
	    "|destination_ip_prohibited|destination_ip_unroutable|connection_refused"
	    "|connection_terminated|connection_timeout|connection_read_timeout"
	    "|connection_write_timeout|connection_limit_reached|tls_protocol_error"
	    "|tls_certificate_error|tls_alert_received|http_request_error|http_request_denied"
	    "|http_response_incomplete|http_response_header_section_size"
	    "|http_response_header_size|http_response_body_size"
	    "|http_response_trailer_section_size|http_response_trailer_size"
	    "|http_response_transfer_coding|http_response_content_coding|http_response_timeout"
	    "|http_upgrade_failed|http_protocol_error|proxy_internal_response"
	    "|proxy_internal_error|proxy_configuration_error|proxy_loop_detected|";

	(void)state;
	for (int reason = 1; reason < REASON_COUNT; reason++) {
		const struct reason_row *row = reason_row(reason);
		const char *at = *row->error ? strstr(types, row->error) : NULL;

		if (*row->error && !(at && at[-1] == '|' && at[strlen(row->error)] == '|'))
			fail_msg("%s: '%s' is no error type", row->name, row->error);
		assert_true(row->status == 0 || (row->status >= 400 && row->status <= 505));
		assert_true(row->socks >= 1 && row->socks <= 8); /* RFC 1928 6 */
	}
}

/* DESIGN 6: health is what a proxy did; nobody else's fault may park a member. */
static void test_only_a_fault_of_the_proxy_tells_against_its_health(void **state)
{
	(void)state;
	for (int reason = 1; reason < REASON_COUNT; reason++) {
		const struct reason_row *row = reason_row(reason);

		assert_true(row->health != HEALTH_PASS);
		if ((row->health != HEALTH_NONE) != (row->fault == FAULT_PROXY))
			fail_msg("%s: fault %s, health %s", row->name, fault_word(row->fault),
				 health_word(row->health));
	}
}

static void test_what_must_be_waited_for_is_a_503(void **state)
{
	static const int reasons[] = {REASON_POOL_EMPTY,     REASON_STORE_NOT_DONE,
				      REASON_STORE_UNKNOWN,  REASON_STORE_REFUSED,
				      REASON_NO_DESCRIPTORS, REASON_SHUTDOWN};

	(void)state;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		assert_int_equal(reason_row(reasons[i])->status, 503);
	/* An upstream's 407 never reaches the client. */
	assert_int_equal(reason_row(REASON_PROXY_AUTH)->status, 502);
	assert_int_equal(reason_row(REASON_PROXY_AUTH)->health, HEALTH_AUTH);
}

static void test_any_result_has_a_word(void **state)
{
	(void)state;
	assert_string_equal(result_word(0), "ok");
	assert_string_equal(result_word(REASON_POOL_EMPTY), "pool-empty");
	assert_string_equal(result_word(-ENOENT), strerror(ENOENT));
	assert_ptr_equal(reason_row(REASON_COUNT), reason_row(REASON_INTERNAL));
	assert_ptr_equal(reason_row(-1), reason_row(REASON_INTERNAL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ok_is_zero_and_words_are_unique),
	    cmocka_unit_test(test_error_types_are_those_of_rfc_9209),
	    cmocka_unit_test(test_only_a_fault_of_the_proxy_tells_against_its_health),
	    cmocka_unit_test(test_what_must_be_waited_for_is_a_503),
	    cmocka_unit_test(test_any_result_has_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
