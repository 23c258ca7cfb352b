/* command_pool_rules.c - fairlead pool rules */
#include <string.h>

#include "check/target.h"
#include "cli/output.h"
#include "cli/session.h"

/* Rules whose text has a grammar of its own. 0, or -EINVAL with a line in `error`. */
static int check_text(enum rule rule, const char *value, char *error, size_t size)
{
	struct target targets[TARGETS_MAX];
	struct expectation expectation;
	size_t count;

	if (rule == RULE_CHECK_TARGET)
		return targets_parse(targets, &count, value, error, size);
	if (rule == RULE_CHECK_STATUS)
		return expectation_parse(&expectation, value, "", error, size);
	if (rule == RULE_CHECK_TEXT)
		return expectation_parse(&expectation, rule_row(RULE_CHECK_STATUS)->otherwise,
					 value, error, size);
	return 0;
}

/* Takes RULE=VALUE apart into names_and_values. EXIT_FINE, or EXIT_USAGE after a message: then nothing is changed. */
static int read_arguments(struct cli *cli, struct word *names_and_values)
{
	char error[200], name[32];
	const char *equals;
	int rule;

	for (int i = 0; i < cli->arg_count; i++) {
		equals = strchr(cli->args[i], '=');
		if (!equals || (size_t)(equals - cli->args[i]) >= sizeof name)
			return cli_usage(cli, "'%s': expected RULE=VALUE", cli->args[i]);
		snprintf(name, sizeof name, "%.*s", (int)(equals - cli->args[i]), cli->args[i]);
		rule = rule_find(name);
		if (rule < 0)
			return cli_usage(
			    cli, "there is no rule '%s'; 'fairlead pool rules' lists them", name);
		if (rule_check((enum rule)rule, equals + 1, error, sizeof error))
			return cli_usage(cli, "%s", error);
		if (check_text((enum rule)rule, equals + 1, error, sizeof error))
			return cli_usage(cli, "rule %s: %s", name, error);
		names_and_values[2 * i] = WORD(rule_row((enum rule)rule)->word);
		names_and_values[2 * i + 1] = WORD(equals + 1);
	}
	return EXIT_FINE;
}

static int print(struct session *session)
{
	static const struct column columns[] = {{"rule"}, {"value"}, {"set"}, {"meaning"}};
	const struct pool_rules *rules = pool_rules(session->pool);
	bool json = conf_bool(&session->cli->conf, CONF_JSON);
	struct output output;

	output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_TABLE, columns, 4);
	for (int rule = 0; rule < RULE_COUNT; rule++)
		output_row(&output,
			   (struct cell[]){CELL_TEXT(rule_row((enum rule)rule)->word),
					   CELL_TEXT(rules->value[rule]),
					   CELL_TEXT(rules->is_set[rule] ? "here" : "default"),
					   CELL_TEXT(rule_row((enum rule)rule)->help)});
	output_finish(&output);
	return EXIT_FINE;
}

int command_pool_rules(struct cli *cli)
{
	struct word words[2 * RULE_COUNT];
	struct session session;
	int r;

	if (cli->arg_count > RULE_COUNT)
		return cli_usage(cli, "there are only %d rules", RULE_COUNT);
	r = read_arguments(cli, words);
	if (r)
		return r;
	r = session_open(&session, cli);
	if (r == EXIT_FINE && cli->arg_count)
		r = session_write_rules(&session, words, 2 * (size_t)cli->arg_count);
	else if (r == EXIT_FINE)
		r = session_read_rules(&session);
	if (r == EXIT_FINE)
		r = print(&session);
	session_close(&session);
	return r;
}
