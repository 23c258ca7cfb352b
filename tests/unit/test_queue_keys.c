/* test_queue_keys.c - the names of a queue's keys, and the Cluster slot of a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/keys.h"

static const char *const levels[] = {"high", "no:rm{al}"};

static struct queue_keys *keys_of(const char *name, const char *const *names, size_t count,
				  bool are_lists)
{
	struct queue_keys *keys = malloc(sizeof(*keys));
	char error[256];

	assert_int_equal(queue_keys_init(keys, name, names, count, are_lists, error, sizeof(error)),
			 0);
	return keys;
}

static void refuse(const char *name, const char *const *names, size_t count, bool are_lists,
		   const char *said)
{
	static struct queue_keys keys;
	char error[256];

	assert_int_equal(
	    queue_keys_init(&keys, name, names, count, are_lists, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, said));
}

static void test_levels_and_siblings_are_named_after_the_queue(void **state)
{
	struct queue_keys *keys = keys_of("jobs", levels, 2, false);

	(void)state;
	assert_string_equal(keys->levels[0].list, "{jobs}:high");
	assert_string_equal(keys->levels[0].retry, "{jobs}:queue:retry:high");
	assert_string_equal(keys->levels[1].list, "{jobs}:no:rm{al}");
	assert_string_equal(keys->levels[1].retry, "{jobs}:queue:retry:no%3Arm%7Bal%7D");
	assert_string_equal(queue_key(keys, QUEUE_LATER).at, "{jobs}:queue:later");
	assert_string_equal(queue_key(keys, QUEUE_PAUSED).at, "{jobs}:queue:paused");
	assert_int_equal(queue_key(keys, QUEUE_PAUSED).len, strlen("{jobs}:queue:paused"));
	free(keys);
}

static void test_a_tag_in_the_name_stays_the_tag(void **state)
{
	struct queue_keys *keys = keys_of("a{b}c", levels, 1, false);

	(void)state;
	assert_string_equal(keys->levels[0].list, "a{b}c:high");
	assert_string_equal(queue_key(keys, QUEUE_DEAD).at, "a{b}c:queue:dead");
	free(keys);
}

static void test_lists_are_levels_by_their_own_names(void **state)
{
	static const char *const lists[] = {"list1", "list2"};
	struct queue_keys *keys = keys_of("jobs", lists, 2, true);

	(void)state;
	assert_string_equal(keys->levels[1].name, "list2");
	assert_string_equal(keys->levels[1].list, "list2");
	assert_string_equal(keys->levels[1].retry, "{jobs}:queue:retry:list2");
	free(keys);
}

static void test_a_level_is_found_by_its_name(void **state)
{
	struct queue_keys *keys = keys_of("jobs", levels, 2, false);

	(void)state;
	assert_int_equal(queue_level_find(keys, "high", 4), 0);
	assert_int_equal(queue_level_find(keys, "no:rm{al}", 9), 1);
	assert_int_equal(queue_level_find(keys, "hig", 3), -1);
	assert_int_equal(queue_level_find(keys, "high", 3), -1);
	free(keys);
}

static void test_names_that_cannot_be_are_refused_with_the_name(void **state)
{
	char long_name[KEY_PART_MAX + 2];

	(void)state;
	memset(long_name, 'l', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	refuse("", levels, 1, false, "empty");
	refuse("{x}", levels, 1, false, "more than a tag");
	refuse("jobs", levels, 0, false, "1 to 16");
	refuse("jobs", (const char *[]){"high", "high"}, 2, false, "'high'");
	refuse("jobs", (const char *[]){""}, 1, false, "empty");
	refuse("jobs", (const char *[]){"a\tb"}, 1, false, "control");
	refuse("jobs", (const char *[]){"a\nb"}, 1, false, "control");
	refuse("jobs", (const char *[]){long_name}, 1, false, "128");
}

static void test_the_queues_own_keys_are_no_levels(void **state)
{
	(void)state;
	refuse("jobs", (const char *[]){"queue:dead"}, 1, false, "own");
	refuse("jobs", (const char *[]){"{jobs}:queue:retry:high"}, 1, true, "own");
}

static void test_there_are_at_most_sixteen_levels(void **state)
{
	static const char *const names[QUEUE_LEVELS_MAX + 1] = {"1",  "2",  "3",  "4",  "5",  "6",
								"7",  "8",  "9",  "10", "11", "12",
								"13", "14", "15", "16", "17"};
	struct queue_keys *keys = keys_of("jobs", names, QUEUE_LEVELS_MAX, false);

	(void)state;
	assert_int_equal(keys->level_count, 16);
	free(keys);
	refuse("jobs", names, QUEUE_LEVELS_MAX + 1, false, "1 to 16");
}

static void test_the_longest_level_fits_whole(void **state)
{
	char name[KEY_NAME_MAX + 1], level[KEY_PART_MAX + 1];
	struct queue_keys *keys;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memset(level, ':', sizeof(level) - 1);
	level[sizeof(level) - 1] = '\0';
	keys = keys_of(name, (const char *[]){level}, 1, false);
	assert_int_equal(strlen(keys->levels[0].list), KEY_NAME_MAX + 3 + KEY_PART_MAX);
	assert_int_equal(strlen(keys->levels[0].retry),
			 KEY_NAME_MAX + 2 + strlen(":queue:retry:") + 3 * KEY_PART_MAX);
	free(keys);
}

/* The first is the test value of the Redis Cluster specification (0x31c3), the others follow from its rule of tags: keys with one
 * tag share its slot, an empty tag is none. */
static void test_slots_are_those_of_the_cluster_specification(void **state)
{
	(void)state;
	assert_int_equal(key_slot("123456789", 9), 12739);
	assert_int_equal(key_slot("{123456789}:high", 16), 12739);
	assert_int_equal(key_slot("x{123456789}y{z}", 16), 12739);
	assert_int_equal(key_slot("", 0), 0);
	assert_int_not_equal(key_slot("{}123456789", 11), 12739);
	assert_int_not_equal(key_slot("{123456789", 10), 12739);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_levels_and_siblings_are_named_after_the_queue),
	    cmocka_unit_test(test_a_tag_in_the_name_stays_the_tag),
	    cmocka_unit_test(test_lists_are_levels_by_their_own_names),
	    cmocka_unit_test(test_a_level_is_found_by_its_name),
	    cmocka_unit_test(test_names_that_cannot_be_are_refused_with_the_name),
	    cmocka_unit_test(test_the_queues_own_keys_are_no_levels),
	    cmocka_unit_test(test_there_are_at_most_sixteen_levels),
	    cmocka_unit_test(test_the_longest_level_fits_whole),
	    cmocka_unit_test(test_slots_are_those_of_the_cluster_specification),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
