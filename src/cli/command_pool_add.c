/* command_pool_add.c - fairlead pool add */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "cli/expiry.h"
#include "cli/intake.h"

#define SOURCE "operator"
#define CAP_DEFAULT "default"
#define CAP_MAX 1000000

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

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	(void)placed;
	(void)count;
	session_answered(arg, result, error);
}

/* Of the next CHANGE_MAX proxies behind the cursor. EXIT_FINE with `*ret_done` at the end, or an exit status after a
 * message. */
static int change_some(struct session *session, const struct load *load, struct load_cursor *cursor,
		       enum change change, const char *value, bool *ret_done)
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
		r = pool_change(session->pool, change, value, items, count, on_changed, session);
	session->result = r;
	return r || (count && session_wait(session)) ? session_failed(session) : EXIT_FINE;
}

static int change_all(struct session *session, const struct load *load, enum change change,
		      const char *value)
{
	struct load_cursor cursor = {0};
	bool is_done = false;
	int r = EXIT_FINE;

	while (!r && !is_done)
		r = change_some(session, load, &cursor, change, value, &is_done);
	return r;
}

/* The cap that --max-concurrent names; NULL for `default`. */
static const char *cap_value(const struct conf *conf)
{
	const char *cap = conf_text(conf, CONF_MAX_CONCURRENT);

	return strcmp(cap, CAP_DEFAULT) ? cap : NULL;
}

static int apply(struct session *session, const struct load *load, int64_t expires_ms)
{
	const struct conf *conf = &session->cli->conf;
	enum change change = conf_bool(conf, CONF_PARKED)     ? CHANGE_SHELVE
			     : conf_bool(conf, CONF_ELIGIBLE) ? CHANGE_ADD
							      : CHANGE_CANDIDATE;
	struct apply_result total = {0};
	int r = session_found_pool(session);
	char at[24];

	if (r == EXIT_FINE)
		r = intake_apply(session, load, change, SOURCE, &total);
	snprintf(at, sizeof at, "%" PRId64, expires_ms);
	if (r == EXIT_FINE && expires_ms)
		r = change_all(session, load, CHANGE_EXPIRE, at);
	if (r == EXIT_FINE && *conf_text(conf, CONF_MAX_CONCURRENT))
		r = change_all(session, load, CHANGE_CAP, cap_value(conf));
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

static bool is_cap(const char *text)
{
	size_t len = strlen(text);

	return !strcmp(text, CAP_DEFAULT) ||
	       (len && strspn(text, "0123456789") == len && (text[0] != '0' || len == 1) &&
		strtol(text, NULL, 10) <= CAP_MAX);
}

int command_pool_add(struct cli *cli)
{
	const char *expires = conf_text(&cli->conf, CONF_EXPIRES);
	const char *cap = conf_text(&cli->conf, CONF_MAX_CONCURRENT);
	struct session session;
	int64_t expires_ms = 0;
	char why[160];
	int r;

	if (*expires && expiry_parse(expires, clock_wall_ms(), &expires_ms, why, sizeof why))
		return cli_usage(cli, "--expires: %s", why);
	if (conf_is_set(&cli->conf, CONF_MAX_CONCURRENT) && !is_cap(cap))
		return cli_usage(cli, "--max-concurrent %s: must be 0 to %d, or 'default'", cap,
				 CAP_MAX);
	if (conf_bool(&cli->conf, CONF_PARKED) && conf_bool(&cli->conf, CONF_ELIGIBLE))
		return cli_usage(cli, "--eligible and --parked exclude each other");
	r = session_open(&session, cli);
	if (r == EXIT_FINE)
		r = run(&session, expires_ms);
	session_close(&session);
	return r;
}
