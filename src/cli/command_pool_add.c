/* command_pool_add.c - fairlead pool add */
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli/session.h"
#include "source/load.h"

#define SOURCE "operator"

static struct endpoint_rules rules_of(const struct session *session)
{
	const struct conf *conf = &session->cli->conf;

	return (struct endpoint_rules){
	    .default_scheme = (enum scheme)conf_enum(conf, CONF_DEFAULT_SCHEME),
	    .colon_order = (enum colon_order)conf_enum(conf, CONF_COLON_ORDER),
	    .allow_private = conf_bool(conf, CONF_ALLOW_PRIVATE) ||
			     rules_flag(pool_rules(session->pool), RULE_ALLOW_PRIVATE),
	    .allow_single_label = conf_bool(conf, CONF_ALLOW_SINGLE_LABEL),
	};
}

/* One line for each reason; the first entry of each shows where to look. */
static void report(struct cli *cli, const struct load_summary *summary)
{
	for (int verdict = VERDICT_HEADER + 1; verdict < VERDICT_COUNT; verdict++) {
		if (!summary->counts[verdict])
			continue;
		cli_error(cli, "standard input:%llu: %s (%llu in all): %s: %s",
			  (unsigned long long)summary->first[verdict].line, verdict_word(verdict),
			  (unsigned long long)summary->counts[verdict],
			  summary->first[verdict].text ? summary->first[verdict].text : "",
			  verdict_hint(verdict));
	}
}

/* Reads all arguments; "-" is standard input. EXIT_FINE, or an exit status after messages: then nothing is added. */
static int read_arguments(struct session *session, struct load *load)
{
	struct cli *cli = session->cli;
	char masked[256];
	int status = EXIT_FINE;

	for (int i = 0; i < cli->arg_count; i++) {
		bool is_stdin = !strcmp(cli->args[i], "-");
		int r = is_stdin ? load_read(load, STDIN_FILENO) : load_add(load, cli->args[i]);

		secret_print(cli->args[i], masked, sizeof masked);
		if (r < 0) {
			cli_error(cli, "%s: %s", is_stdin ? "standard input" : masked,
				  strerror(-r));
			return EXIT_FAILED;
		}
		if (r > 0) {
			cli_error(cli, "%s: %s: %s", masked, verdict_word(r), verdict_hint(r));
			status = EXIT_USAGE;
		}
	}
	if (status)
		return status;
	report(cli, load_summary(load));
	if (load_count(load))
		return EXIT_FINE;
	cli_error(cli, "there is no usable proxy in what was given");
	return EXIT_FAILED;
}

static void on_loaded(int result, const char *error, const struct load_result *done, void *arg)
{
	struct session *session = arg;
	const uint64_t *placed = done->placed;
	uint64_t parked = placed[PLACED_PARKED] + placed[PLACED_CANDIDATE] + placed[PLACED_LEFT];

	session_answered(session, result, error);
	if (!result)
		cli_note(session->cli, "pool '%s': %llu joined, %llu were eligible, %llu parked",
			 pool_name(session->pool), (unsigned long long)placed[PLACED_JOINED],
			 (unsigned long long)placed[PLACED_ELIGIBLE], (unsigned long long)parked);
}

static int apply(struct session *session, struct load *load)
{
	enum change change =
	    conf_bool(&session->cli->conf, CONF_PARKED) ? CHANGE_CANDIDATE : CHANGE_ADD;
	int r;

	r = load_apply(load, session->pool, change, SOURCE, on_loaded, session);
	if (!r)
		r = session_wait(session);
	else
		session_answered(session, r, "");
	return r ? session_failed(session) : EXIT_FINE;
}

/* Salt and wire version, without which there are no identifiers. --allow-private is the pool's rule from now on: every node must
 * dial these members. */
static int found_pool(struct session *session)
{
	struct word words[] = {WORD("allow_private"), WORD("1")};
	bool allow = conf_bool(&session->cli->conf, CONF_ALLOW_PRIVATE);

	return session_write_rules(session, words, allow ? 2 : 0);
}

/* Everything is read before anything is written: bad input changes nothing. */
static int run(struct session *session)
{
	struct endpoint_rules rules;
	struct load *load = NULL;
	int r = session_read_rules(session);

	if (r)
		return r;
	rules = rules_of(session);
	if (load_new(&load, &rules))
		return EXIT_FAILED;
	r = read_arguments(session, load);
	if (r == EXIT_FINE)
		r = found_pool(session);
	if (r == EXIT_FINE)
		r = apply(session, load);
	load_free(load);
	return r;
}

int command_pool_add(struct cli *cli)
{
	struct session session;
	int r;

	if (conf_bool(&cli->conf, CONF_PARKED) && conf_bool(&cli->conf, CONF_ELIGIBLE))
		return cli_usage(cli, "--eligible and --parked exclude each other");
	r = session_open(&session, cli);
	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
