/* test_options.c - the command line: words, options, arguments, suggestions, hiding of credentials. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/hide.h"
#include "cli/options.h"
#include "cli/suggest.h"

/* The table names the functions; nothing here runs one. */
#define COMMAND(words, function, groups, synopsis, min, max, summary, examples)                    \
	int function(struct cli *c)                                                                \
	{                                                                                          \
		(void)c;                                                                           \
		return EXIT_FAILED;                                                                \
	}
#include "tables/command.def"
#undef COMMAND

static struct cli cli;
static struct conf_error error;

static int tear_down(void **state)
{
	(void)state;
	options_fini(&cli);
	conf_fini(&cli.conf);
	return 0;
}

#define ARGS_MAX 16

/* Parses a line of words that are separated by one space. */
static int parse(const char *line)
{
	static char text[512];
	char *argv[ARGS_MAX + 1] = {0};
	int argc = 0;

	tear_down(NULL);
	memset(&cli, 0, sizeof cli);
	memset(&error, 0, sizeof error);
	assert_int_equal(conf_init(&cli.conf), 0);
	snprintf(text, sizeof text, "%s", line);
	for (char *word = strtok(text, " "); word && argc < ARGS_MAX; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(&cli, argc, argv, &error);
}

static void accept(const char *line, const char *words)
{
	if (parse(line))
		fail_msg("%s: %s", line, error.text);
	assert_non_null(cli.command);
	assert_string_equal(cli.command->words, words);
}

static void refuse(const char *line, const char *text)
{
	assert_int_equal(parse(line), -EINVAL);
	assert_string_equal(error.text, text);
}

static void test_a_command_has_one_or_two_words(void **state)
{
	(void)state;
	accept("fairlead up", "up");
	accept("fairlead pool list", "pool list");
	assert_int_equal(cli.arg_count, 0);
}

static void test_options_stand_before_between_and_behind_the_words(void **state)
{
	(void)state;
	accept("fairlead --pool a pool --count 3 allocate --id", "pool allocate");
	assert_string_equal(conf_text(&cli.conf, CONF_POOL), "a");
	assert_int_equal(conf_int(&cli.conf, CONF_COUNT), 3);
	assert_true(conf_bool(&cli.conf, CONF_ID));
	assert_int_equal(cli.arg_count, 0);
}

static void test_a_value_may_follow_an_equals_sign(void **state)
{
	(void)state;
	accept("fairlead pool rules --pool=a=b x=y", "pool rules");
	assert_string_equal(conf_text(&cli.conf, CONF_POOL), "a=b");
	assert_int_equal(cli.arg_count, 1);
	assert_string_equal(cli.args[0], "x=y");
}

static void test_a_switch_takes_no_argument_of_its_own(void **state)
{
	(void)state;
	accept("fairlead pool add --eligible http://h:1", "pool add");
	assert_true(conf_bool(&cli.conf, CONF_ELIGIBLE));
	assert_string_equal(cli.args[0], "http://h:1");
}

static void test_a_switch_is_turned_off_by_no(void **state)
{
	(void)state;
	accept("fairlead gateway --no-access-log", "gateway");
	assert_false(conf_bool(&cli.conf, CONF_ACCESS_LOG));
	accept("fairlead gateway --access-log=off", "gateway");
	assert_false(conf_bool(&cli.conf, CONF_ACCESS_LOG));
	refuse("fairlead gateway --no-tries", "unknown option '--no-tries' (did you mean "
					      "'--tries'?); see 'fairlead gateway --help'");
}

static void test_letters_can_be_joined(void **state)
{
	(void)state;
	accept("fairlead -vq pool list", "pool list");
	assert_true(conf_bool(&cli.conf, CONF_VERBOSE));
	assert_true(conf_bool(&cli.conf, CONF_QUIET));
	refuse("fairlead pool list -x", "unknown option '-x'; see 'fairlead pool list --help'");
}

static void test_two_dashes_end_the_options(void **state)
{
	(void)state;
	accept("fairlead pool add -- --eligible -- -q", "pool add");
	assert_int_equal(cli.arg_count, 3);
	assert_string_equal(cli.args[0], "--eligible");
	assert_string_equal(cli.args[1], "--");
	assert_false(conf_bool(&cli.conf, CONF_ELIGIBLE));
}

static void test_what_stands_behind_exec_is_another_programs_line(void **state)
{
	(void)state;
	accept("fairlead pool acquire --ttl 5s --exec curl --ttl -q -- x", "pool acquire");
	assert_int_equal(conf_ms(&cli.conf, CONF_TTL), 5000);
	assert_int_equal(cli.arg_count, 5);
	assert_string_equal(cli.args[0], "curl");
	assert_string_equal(cli.args[3], "--");
	accept("fairlead pool acquire --exec -- -q", "pool acquire");
	assert_int_equal(cli.arg_count, 1);
	assert_false(conf_bool(&cli.conf, CONF_QUIET));
	assert_int_equal(parse("fairlead pool list --exec x"), -EINVAL);
}

static void test_one_dash_is_an_argument_and_a_value(void **state)
{
	(void)state;
	accept("fairlead pool add -", "pool add");
	assert_string_equal(cli.args[0], "-");
	accept("fairlead up --list -", "up");
	assert_string_equal(conf_at(&cli.conf, CONF_LIST, 0), "-");
}

static void test_a_repeated_list_option_adds_up(void **state)
{
	(void)state;
	accept("fairlead up --list a --list=b,c", "up");
	assert_int_equal(conf_count(&cli.conf, CONF_LIST), 2);
	assert_string_equal(conf_at(&cli.conf, CONF_LIST, 1), "b,c");
}

static void test_an_unknown_option_gets_a_suggestion(void **state)
{
	(void)state;
	refuse("fairlead pool allocate --cuont 3",
	       "unknown option '--cuont' (did you mean '--count'?); "
	       "see 'fairlead pool allocate --help'");
	refuse("fairlead pool allocate --cuont=3",
	       "unknown option '--cuont' (did you mean '--count'?); "
	       "see 'fairlead pool allocate --help'");
	refuse("fairlead up --frobnicate",
	       "unknown option '--frobnicate'; see 'fairlead up --help'");
	refuse("fairlead up --connect_timeout 1s",
	       "unknown option '--connect_timeout' (did you mean '--connect-timeout'?); "
	       "see 'fairlead up --help'");
}

static void test_a_suggestion_is_an_option_of_this_command(void **state)
{
	(void)state;
	refuse("fairlead pool list --trie 3",
	       "unknown option '--trie'; see 'fairlead pool list --help'");
}

static void test_an_unknown_option_is_told_before_what_follows_from_it(void **state)
{
	(void)state;
	refuse("fairlead --cuont 3 pool allocate",
	       "unknown option '--cuont' (did you mean '--count'?); see 'fairlead help'");
}

static void test_an_option_of_another_command_is_refused(void **state)
{
	(void)state;
	refuse("fairlead pool list --tries 3",
	       "--tries is no option of this command, but of 'up', 'gateway'; "
	       "see 'fairlead pool list --help'");
	refuse("fairlead --tries 3", "--tries needs a command; see 'fairlead help'");
}

static void test_an_option_of_another_command_may_stand_for_ones_own(void **state)
{
	(void)state;
	accept("fairlead judge --listen 192.0.2.1:80 --judge-listen 192.0.2.2:80", "judge");
	assert_int_equal(conf_count(&cli.conf, CONF_JUDGE_LISTEN), 2);
	assert_string_equal(conf_at(&cli.conf, CONF_JUDGE_LISTEN, 0), "192.0.2.1:80");
	assert_false(conf_is_set(&cli.conf, CONF_LISTEN));
	accept("fairlead gateway --listen 192.0.2.1:80", "gateway");
	assert_false(conf_is_set(&cli.conf, CONF_JUDGE_LISTEN));
}

static void test_an_own_option_takes_a_value_where_anothers_takes_none(void **state)
{
	(void)state;
	accept("fairlead queue push --id key payload", "queue push");
	assert_string_equal(conf_text(&cli.conf, CONF_PUSH_ID), "key");
	assert_int_equal(cli.arg_count, 1);
	accept("fairlead --id=key queue push payload", "queue push");
	assert_string_equal(conf_text(&cli.conf, CONF_PUSH_ID), "key");
	accept("fairlead pool allocate --id", "pool allocate");
	assert_true(conf_bool(&cli.conf, CONF_ID));
	assert_false(conf_is_set(&cli.conf, CONF_PUSH_ID));
	refuse("fairlead queue push payload --id",
	       "--id needs a value: KEY; see 'fairlead queue push --help'");
}

static void test_help_names_an_option_as_its_command_does(void **state)
{
	char name[64];

	(void)state;
	assert_string_equal(
	    options_flag_name(command_find("queue push"), CONF_PUSH_ID, name, sizeof name), "--id");
	assert_string_equal(
	    options_flag_name(command_find("judge"), CONF_JUDGE_LISTEN, name, sizeof name),
	    "--listen");
	assert_string_equal(
	    options_flag_name(command_find("queue push"), CONF_DELAY, name, sizeof name),
	    "--delay");
}

static void test_a_missing_value_is_asked_for(void **state)
{
	const char *text = "--count needs a value: N; see 'fairlead pool allocate --help'";

	(void)state;
	refuse("fairlead pool allocate --count", text);
	refuse("fairlead pool allocate --count --json", text);
	refuse("fairlead pool allocate --count -- 3", text);
}

static void test_a_negative_number_is_a_value(void **state)
{
	(void)state;
	refuse("fairlead pool allocate --count -5", "--count -5: must be 1 to 1000000");
}

static void test_a_wrong_value_leads_to_its_message(void **state)
{
	(void)state;
	refuse("fairlead gateway --tries 0", "--tries 0: must be 1 to 10");
}

static void test_arguments_are_counted(void **state)
{
	(void)state;
	refuse("fairlead pool show",
	       "an argument is missing: MEMBER; see 'fairlead pool show --help'");
	refuse("fairlead pool show a b",
	       "unexpected argument 'b'; see 'fairlead pool show --help'");
	refuse("fairlead up pool", "unexpected argument 'pool'; see 'fairlead up --help'");
	accept("fairlead pool remove a b c d", "pool remove");
	assert_int_equal(cli.arg_count, 4);
}

static void test_an_unknown_command_gets_a_suggestion(void **state)
{
	(void)state;
	refuse("fairlead gatewy --tries 3",
	       "unknown command 'gatewy' (did you mean 'gateway'?); see 'fairlead help'");
	refuse("fairlead pool alocate", "unknown command 'pool alocate' (did you mean "
					"'pool allocate'?); see 'fairlead pool --help'");
	refuse("fairlead pol list",
	       "unknown command 'pol list' (did you mean 'pool list'?); see 'fairlead help'");
	refuse("fairlead allocate",
	       "unknown command 'allocate' (did you mean 'pool allocate'?); see 'fairlead help'");
	refuse("fairlead frob x", "unknown command 'frob'; see 'fairlead help'");
}

static void test_a_group_alone_is_no_error_of_the_line(void **state)
{
	(void)state;
	assert_int_equal(parse("fairlead pool"), 0);
	assert_null(cli.command);
	assert_string_equal(cli.group, "pool");
	assert_int_equal(parse("fairlead"), 0);
	assert_null(cli.command);
	assert_string_equal(cli.group, "");
}

static void test_help_wins_over_whatever_is_wrong(void **state)
{
	(void)state;
	accept("fairlead pool show --tries 0 --frob --help", "pool show");
	assert_true(conf_bool(&cli.conf, CONF_HELP));
	accept("fairlead pool show -h", "pool show");
	assert_true(conf_bool(&cli.conf, CONF_HELP));
	assert_int_equal(parse("fairlead -V"), 0);
	assert_true(conf_bool(&cli.conf, CONF_VERSION));
}

static void test_messages_hide_credentials(void **state)
{
	(void)state;
	refuse("fairlead pool show a http://user:hunter2@h:1",
	       "unexpected argument 'http://***@h:1'; see 'fairlead pool show --help'");
	refuse("fairlead http://user:hunter2@h:1",
	       "unknown command 'http://***@h:1'; see 'fairlead help'");
}

static void test_arguments_outlive_argv(void **state)
{
	char words[][32] = {"fairlead", "pool", "add", "http://u:p@h:1"};
	char *argv[] = {words[0], words[1], words[2], words[3], NULL};

	(void)state;
	memset(&cli, 0, sizeof cli);
	assert_int_equal(conf_init(&cli.conf), 0);
	assert_int_equal(options_parse(&cli, 4, argv, &error), 0);
	assert_int_equal(hide_secrets(4, argv), HIDDEN_IN_ARGUMENT);
	assert_string_equal(argv[3], "http://***@h:1");
	assert_string_equal(cli.args[0], "http://u:p@h:1");
}

static void test_credentials_in_options_are_overwritten_in_place(void **state)
{
	char words[][40] = {"fairlead", "--redis", "redis://:pass@h", "--redis=redis://:pass@h",
			    "up"};
	char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};

	(void)state;
	memset(&cli, 0, sizeof cli);
	assert_int_equal(conf_init(&cli.conf), 0);
	assert_int_equal(options_parse(&cli, 5, argv, &error), 0);
	assert_int_equal(hide_secrets(5, argv), HIDDEN_IN_OPTION);
	assert_string_equal(words[2], "redis://*****@h");
	assert_string_equal(words[3], "--redis=redis://*****@h");
	assert_string_equal(conf_text(&cli.conf, CONF_REDIS), "redis://:pass@h");
}

static void test_an_argument_behind_a_switch_is_not_its_value(void **state)
{
	char words[][32] = {"fairlead", "pool", "add", "--eligible", "http://u:p@h:1"};
	char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};

	(void)state;
	assert_int_equal(hide_secrets(5, argv), HIDDEN_IN_ARGUMENT);
}

static void test_distance_counts_edits(void **state)
{
	(void)state;
	assert_int_equal(suggest_distance("count", "count"), 0);
	assert_int_equal(suggest_distance("cuont", "count"), 1);
	assert_int_equal(suggest_distance("cont", "count"), 1);
	assert_int_equal(suggest_distance("counnt", "count"), 1);
	assert_int_equal(suggest_distance("kitten", "sitting"), 3);
	assert_int_equal(suggest_distance("", "abc"), 3);
}

static void test_every_command_is_found_and_explained(void **state)
{
	const struct command *command;

	(void)state;
	for (size_t i = 0; (command = command_at(i)); i++) {
		assert_ptr_equal(command_find(command->words), command);
		assert_true(command->groups & IN_ALL);
		assert_true(command->max_args < 0 || command->min_args <= command->max_args);
		assert_int_equal(strncmp(command->examples, "", 1) != 0, 1);
		assert_int_equal(command->examples[strlen(command->examples) - 1], '\n');
		assert_true(strlen(command->summary) > 10);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_a_command_has_one_or_two_words),
	    TEST(test_options_stand_before_between_and_behind_the_words),
	    TEST(test_a_value_may_follow_an_equals_sign),
	    TEST(test_a_switch_takes_no_argument_of_its_own),
	    TEST(test_a_switch_is_turned_off_by_no),
	    TEST(test_letters_can_be_joined),
	    TEST(test_two_dashes_end_the_options),
	    TEST(test_what_stands_behind_exec_is_another_programs_line),
	    TEST(test_one_dash_is_an_argument_and_a_value),
	    TEST(test_a_repeated_list_option_adds_up),
	    TEST(test_an_unknown_option_gets_a_suggestion),
	    TEST(test_a_suggestion_is_an_option_of_this_command),
	    TEST(test_an_unknown_option_is_told_before_what_follows_from_it),
	    TEST(test_an_option_of_another_command_is_refused),
	    TEST(test_an_option_of_another_command_may_stand_for_ones_own),
	    TEST(test_an_own_option_takes_a_value_where_anothers_takes_none),
	    TEST(test_help_names_an_option_as_its_command_does),
	    TEST(test_a_missing_value_is_asked_for),
	    TEST(test_a_negative_number_is_a_value),
	    TEST(test_a_wrong_value_leads_to_its_message),
	    TEST(test_arguments_are_counted),
	    TEST(test_an_unknown_command_gets_a_suggestion),
	    TEST(test_a_group_alone_is_no_error_of_the_line),
	    TEST(test_help_wins_over_whatever_is_wrong),
	    TEST(test_messages_hide_credentials),
	    TEST(test_arguments_outlive_argv),
	    TEST(test_credentials_in_options_are_overwritten_in_place),
	    TEST(test_an_argument_behind_a_switch_is_not_its_value),
	    TEST(test_distance_counts_edits),
	    TEST(test_every_command_is_found_and_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
