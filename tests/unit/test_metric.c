/* test_metric.c - counters in shared memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "base/metric.h"

static void test_counters_and_their_labels_do_not_share_a_value(void **state)
{
	int64_t n = 0;

	(void)state;
	assert_int_equal(metric_map(1), 0);
	metric_use(0);
	for (int m = 0; m < METRIC_COUNT; m++)
		for (int label = 0; label < metric_row((enum metric)m)->labels; label++)
			metric_add((enum metric)m, label, ++n);
	n = 0;
	for (int m = 0; m < METRIC_COUNT; m++)
		for (int label = 0; label < metric_row((enum metric)m)->labels; label++)
			assert_true(metric_get(0, (enum metric)m, label) == ++n);
}

static void test_what_a_child_counts_outlives_it(void **state)
{
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(metric_map(3), 0);
	child = fork();
	if (child == 0) {
		metric_use(2);
		metric_add(METRIC_REQUESTS, REASON_POOL_EMPTY, 7);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(metric_get(2, METRIC_REQUESTS, REASON_POOL_EMPTY) == 7);
	assert_true(metric_get(2, METRIC_REQUESTS, REASON_OK) == 0);
	assert_true(metric_get(1, METRIC_REQUESTS, REASON_POOL_EMPTY) == 0);
}

static void test_a_successor_counts_on_but_its_gauges_begin_at_zero(void **state)
{
	(void)state;
	assert_int_equal(metric_map(2), 0);
	metric_use(1);
	metric_add(METRIC_ALLOCATED, 0, 5);
	metric_add(METRIC_CLIENTS, 0, 3);
	metric_use(1);
	assert_true(metric_get(1, METRIC_ALLOCATED, 0) == 5);
	assert_true(metric_get(1, METRIC_CLIENTS, 0) == 0);
}

static void test_the_own_value_is_the_sum_over_all_labels(void **state)
{
	(void)state;
	assert_int_equal(metric_map(2), 0);
	metric_use(0);
	metric_add(METRIC_REQUESTS, REASON_OK, 1000);
	metric_use(1);
	metric_add(METRIC_REQUESTS, REASON_OK, 2);
	metric_add(METRIC_REQUESTS, REASON_COUNT - 1, 3);
	assert_true(metric_own(METRIC_REQUESTS) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_counters_and_their_labels_do_not_share_a_value),
	    cmocka_unit_test(test_what_a_child_counts_outlives_it),
	    cmocka_unit_test(test_a_successor_counts_on_but_its_gauges_begin_at_zero),
	    cmocka_unit_test(test_the_own_value_is_the_sum_over_all_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
