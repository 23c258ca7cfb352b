/* command_pool_add.c - fairlead pool add */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "cli/expiry.h"
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

static void on_expiry(int result, const char *error, const enum placed *placed, size_t count,
		      void *arg)
{
	(void)placed;
	(void)count;
	session_answered(arg, result, error);
}

/* Of the next CHANGE_MAX proxies behind the cursor. EXIT_FINE with `*ret_done` at the end, or an exit status after a message. */
static int set_expiry_of_some(struct session *session, const struct load *load,
			      struct load_cursor *cursor, const char *at, bool *ret_done)
{
	static const struct endpoint_rules all = {
	    .allow_private = true, .allow_single_label = true, .allow_direct = true};
	struct change_item items[CHANGE_MAX];
	char ids[CHANGE_MAX][ENDPOINT_ID_MAX];
	struct dedupe_item item;
	struct endpoint endpoint;
	size_t count = 0;
	int r = 0;

	while (!r && count < CHANGE_MAX && load_next(load, cursor, &item)) {
		r = endpoint_parse(&endpoint, item.text, item.len, &all);
		if (r)
			break;
		r = endpoint_id(&endpoint, pool_rules(session->pool)->salt, ids[count],
				sizeof ids[count]);
		endpoint_fini(&endpoint);
		items[count] = (struct change_item){.id = ids[count]};
		count++;
	}
	*ret_done = count < CHANGE_MAX;
	if (!r && count)
		r = pool_change(session->pool, CHANGE_EXPIRE, at, items, count, on_expiry, session);
	session->result = r;
	return r || (count && session_wait(session)) ? session_failed(session) : EXIT_FINE;
}

static int set_expiry(struct session *session, const struct load *load, int64_t expires_ms)
{
	struct load_cursor cursor = {0};
	bool is_done = false;
	int r = EXIT_FINE;
	char at[24];

	snprintf(at, sizeof at, "%" PRId64, expires_ms);
	while (!r && !is_done)
		r = set_expiry_of_some(session, load, &cursor, at, &is_done);
	return r;
}

static int apply(struct session *session, const struct load *load, int64_t expires_ms)
{
	const struct conf *conf = &session->cli->conf;
	enum change change = conf_bool(conf, CONF_PARKED)     ? CHANGE_SHELVE
			     : conf_bool(conf, CONF_ELIGIBLE) ? CHANGE_ADD
							      : CHANGE_CANDIDATE;
	struct apply_result total = {0};
	int r = session_found_pool(session);

	if (r == EXIT_FINE)
		r = intake_apply(session, load, change, SOURCE, &total);
	if (r == EXIT_FINE && expires_ms)
		r = set_expiry(session, load, expires_ms);
	if (r == EXIT_FINE)
		intake_note(session, &total);
	return r;
}

/* Everything is read before anything is written: bad input changes nothing. */
static int run(struct session *session, int64_t expires_ms)
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
		r = apply(session, load, expires_ms);
	load_free(load);
	return r;
}

int command_pool_add(struct cli *cli)
{
	const char *expires = conf_text(&cli->conf, CONF_EXPIRES);
	struct session session;
	int64_t expires_ms = 0;
	char why[160];
	int r;

	if (*expires && expiry_parse(expires, clock_wall_ms(), &expires_ms, why, sizeof why))
		return cli_usage(cli, "--expires: %s", why);
	if (conf_bool(&cli->conf, CONF_PARKED) && conf_bool(&cli->conf, CONF_ELIGIBLE))
		return cli_usage(cli, "--eligible and --parked exclude each other");
	r = session_open(&session, cli);
	if (r == EXIT_FINE)
		r = run(&session, expires_ms);
	session_close(&session);
	return r;
}
