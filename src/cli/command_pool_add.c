/* command_pool_add.c - fairlead pool add */
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli/intake.h"

#define SOURCE "operator"

/* Reads all arguments; "-" is standard input. EXIT_FINE, or an exit status after messages: then nothing is added. */
static int read_arguments(struct session *session, struct load *load)
{
	struct cli *cli = session->cli;
	int status = EXIT_FINE;
	char masked[256];

	for (int i = 0; i < cli->arg_count; i++) {
		bool is_stdin = !strcmp(cli->args[i], "-");
		int r = is_stdin ? load_read(load, STDIN_FILENO, INTAKE_BYTES_MAX)
				 : load_add(load, cli->args[i]);

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
	intake_report(cli, "standard input", load);
	if (load_rejected(load) && conf_enum(&cli->conf, CONF_ON_REJECT) == 1)
		return EXIT_FAILED;
	if (load_count(load))
		return EXIT_FINE;
	cli_error(cli, "there is no usable proxy in what was given");
	return EXIT_FAILED;
}

static int apply(struct session *session, const struct load *load)
{
	enum change change =
	    conf_bool(&session->cli->conf, CONF_PARKED) ? CHANGE_CANDIDATE : CHANGE_ADD;
	struct apply_result total = {0};
	int r = session_found_pool(session);

	if (r == EXIT_FINE)
		r = intake_apply(session, load, change, SOURCE, &total);
	if (r == EXIT_FINE)
		intake_note(session, &total);
	return r;
}

/* Everything is read before anything is written: bad input changes nothing. */
static int run(struct session *session)
{
	const struct conf *conf = &session->cli->conf;
	struct endpoint_rules rules;
	struct load *load = NULL;
	int r = session_read_rules(session);

	if (r)
		return r;
	rules = intake_rules(conf, session->pool);
	if (load_new(&load, &rules, intake_format(conf)))
		return EXIT_FAILED;
	r = read_arguments(session, load);
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
