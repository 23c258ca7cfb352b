/* command_check.c - fairlead check */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/tls.h"
#include "check/country.h"
#include "cli/check_run.h"
#include "cli/intake.h"
#include "cli/output.h"
#include "cli/place.h"

#define BAR_WIDTH 30
#define ERROR_SIZE 512

struct check {
	struct cli *cli;
	struct load *load;
	struct target targets[TARGETS_MAX];
	size_t target_count;
	struct expectation expectation;
	struct tls *tls;
	struct countries *countries;
	struct output output;
	uint64_t reasons[REASON_COUNT];
	bool has_bar, is_bar_shown;
};

/* --- results ------------------------------------------------------------------------------------------------------ */

static const struct column columns[] = {
    {"host"},       {"port"},         {"scheme"},    {"proxy"},   {"ok"},     {"reason"},
    {"latency_ms"}, {"exit_address"}, {"anonymity"}, {"country"}, {"status"},
};

static bool is_text(const struct check *check)
{
	return check->output.shape == OUTPUT_PLAIN;
}

static void begin_output(struct check *check)
{
	static const struct column url[] = {{"proxy"}};
	const struct conf *conf = &check->cli->conf;

	/* Each result is out when it is known: whoever reads may stop when there are enough. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (conf_bool(conf, CONF_JSON))
		output_begin(&check->output, stdout, OUTPUT_JSON, columns,
			     sizeof columns / sizeof *columns);
	else if (conf_bool(conf, CONF_CSV))
		output_begin(&check->output, stdout, OUTPUT_CSV, columns,
			     sizeof columns / sizeof *columns);
	else
		output_begin(&check->output, stdout, OUTPUT_PLAIN, url, 1);
}

static struct cell text_or_none(const char *text)
{
	return *text ? CELL_TEXT(text) : CELL_NONE;
}

static void add_row(struct check *check, const struct check_result *result)
{
	static const struct endpoint_rules rules = {.allow_private = true,
						    .allow_single_label = true};
	const struct probe_outcome *outcome = result->outcome;
	bool is_good = result->blame == BLAME_PASS;
	char proxy[ENDPOINT_TEXT_MAX], country[3];
	struct endpoint endpoint;

	if (endpoint_parse(&endpoint, result->text, result->len, &rules))
		return;
	endpoint_print(&endpoint, HIDE_SECRET, proxy, sizeof proxy);
	countries_find(check->countries, outcome->exit_address, country);
	const struct cell cells[] = {
	    CELL_TEXT(endpoint.host),
	    CELL_NUMBER(endpoint.port),
	    CELL_TEXT(scheme_word(endpoint.scheme)),
	    CELL_TEXT(proxy),
	    result->blame == BLAME_NOBODY ? CELL_NONE : CELL_BOOL(is_good),
	    CELL_TEXT(result_word(outcome->reason)),
	    is_good ? CELL_NUMBER(outcome->latency_ms) : CELL_NONE,
	    text_or_none(outcome->exit_address),
	    text_or_none(anonymity_word(outcome->anonymity)),
	    text_or_none(country),
	    outcome->status ? CELL_NUMBER(outcome->status) : CELL_NONE,
	};
	output_row(&check->output, cells);
	endpoint_fini(&endpoint);
}

static void clear_bar(struct check *check)
{
	if (check->is_bar_shown)
		fprintf(stderr, "\r\033[K");
	check->is_bar_shown = false;
}

static bool show(const struct check_result *result, void *arg)
{
	struct check *check = arg;

	check->reasons[result->outcome->reason]++;
	if (is_text(check) && result->blame != BLAME_PASS)
		return true;
	clear_bar(check);
	if (is_text(check))
		output_row(&check->output, &CELL_BYTES(result->text, result->len));
	else
		add_row(check, result);
	return !output_failed(&check->output);
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

static void show_progress(const struct check_progress *now, void *arg)
{
	struct check *check = arg;
	size_t percent = now->total ? now->done * 100 / now->total : 100;
	double rate = now->elapsed_ms ? (double)now->done * 1000 / (double)now->elapsed_ms : 0;
	char bar[BAR_WIDTH + 1] = "", left[32] = "";

	if (!check->has_bar)
		return;
	clear_bar(check);
	if (now->done == now->total)
		return;
	memset(bar, '#', percent * BAR_WIDTH / 100);
	if (now->done)
		snprintf(left, sizeof left, ", %.0f s left",
			 (double)(now->total - now->done) / rate);
	fprintf(stderr, "[%-*s] %zu of %zu, %zu good, %.0f/s%s", BAR_WIDTH, bar, now->done,
		now->total, now->passed, rate, left);
	check->is_bar_shown = true;
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

static void note_summary(struct check *check, const struct check_progress *now)
{
	char reasons[1024] = "";
	size_t len = 0;

	for (int reason = 1; reason < REASON_COUNT && len < sizeof reasons; reason++)
		if (check->reasons[reason])
			len += (size_t)snprintf(
			    reasons + len, sizeof reasons - len, "%s %llu %s", len ? "," : ":",
			    (unsigned long long)check->reasons[reason], result_word(reason));
	cli_note(check->cli, "%zu of %zu work, %zu checked in %.1f s%s", now->passed, now->total,
		 now->done, (double)now->elapsed_ms / 1000, reasons);
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* Results as targets_parse(), or -ENOMEM. */
static int read_targets(struct check *check, char *error)
{
	const struct conf *conf = &check->cli->conf;
	struct buffer texts;
	int r = 0;

	buffer_init(&texts, TARGETS_MAX * 1024);
	for (size_t i = 0; i < conf_count(conf, CONF_CHECK_TARGET) && !r; i++)
		r = buffer_printf(&texts, "%s ", conf_at(conf, CONF_CHECK_TARGET, i));
	if (!r)
		r = buffer_add(&texts, "", 1);
	if (!r)
		r = targets_parse(check->targets, &check->target_count, buffer_at(&texts), error,
				  ERROR_SIZE);
	else
		snprintf(error, ERROR_SIZE, "the check targets are too long");
	buffer_fini(&texts);
	return r;
}

/* EXIT_FINE, or an exit status after a message. */
static int read_settings(struct check *check)
{
	struct cli *cli = check->cli;
	const struct conf *conf = &cli->conf;
	const char *database = conf_text(conf, CONF_COUNTRY_DATABASE);
	char error[ERROR_SIZE] = "";

	if (conf_bool(conf, CONF_JSON) && conf_bool(conf, CONF_CSV))
		return cli_usage(cli, "--json and --csv exclude each other");
	if (read_targets(check, error) ||
	    expectation_parse(&check->expectation, conf_text(conf, CONF_CHECK_STATUS),
			      conf_text(conf, CONF_CHECK_TEXT), error, sizeof error))
		return cli_usage(cli, "%s", error);
	if (tls_new(&check->tls, conf_text(conf, CONF_UPSTREAM_CA), error, sizeof error) ||
	    (*database && countries_open(&check->countries, database, error, sizeof error))) {
		cli_error(cli, "%s", *error ? error : strerror(ENOMEM));
		return EXIT_FAILED;
	}
	return EXIT_FINE;
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

/* EXIT_FINE, or EXIT_FAILED after a message. */
static int read_list(struct check *check)
{
	struct cli *cli = check->cli;
	struct endpoint_rules rules = intake_rules(&cli->conf, NULL);
	struct place place;
	char error[ERROR_SIZE];

	place_name(&place, cli->args[0]);
	if (load_new(&check->load, &rules, intake_format(&cli->conf)))
		return EXIT_FAILED;
	if (place_read(check->load, cli->args[0], error, sizeof error)) {
		cli_error(cli, "%s: %s", place.name, error);
		return EXIT_FAILED;
	}
	intake_report(cli, place.name, check->load);
	if (load_rejected(check->load) && !load_count(check->load))
		return EXIT_FAILED;
	if (load_rejected(check->load) && conf_enum(&cli->conf, CONF_ON_REJECT) == 1) {
		cli_error(cli, "nothing was checked (--on-reject fail)");
		return EXIT_FAILED;
	}
	return EXIT_FINE;
}

static int probe_all(struct check *check)
{
	const struct conf *conf = &check->cli->conf;
	struct check_progress done = {0};
	struct check_request request = {
	    .load = check->load,
	    .targets = check->targets,
	    .target_count = check->target_count,
	    .expectation = &check->expectation,
	    .tls = check->tls,
	    .timeout_ms = conf_ms(conf, CONF_CHECK_TIMEOUT),
	    .concurrency = (size_t)conf_int(conf, CONF_CHECK_CONCURRENCY),
	    .allow_private = conf_bool(conf, CONF_ALLOW_PRIVATE),
	    .show = show,
	    .progress = show_progress,
	    .arg = check,
	};
	int r;

	if (!check->target_count)
		cli_note(check->cli, "without --check-target only the connection and the proxy's "
				     "greeting are checked");
	check->has_bar = isatty(STDERR_FILENO) && !conf_bool(conf, CONF_QUIET);
	begin_output(check);
	r = check_run(&request, &done);
	clear_bar(check);
	output_finish(&check->output);
	if (r && r != -EINTR) {
		cli_error(check->cli, "%s", strerror(-r));
		return EXIT_FAILED;
	}
	note_summary(check, &done);
	if (r)
		return EXIT_FAILED;
	return done.passed ? EXIT_FINE : EXIT_NOTHING;
}

int command_check(struct cli *cli)
{
	struct check check = {.cli = cli};
	int r = read_settings(&check);

	if (r == EXIT_FINE)
		r = read_list(&check);
	if (r == EXIT_FINE)
		r = probe_all(&check);
	load_free(check.load);
	countries_close(check.countries);
	tls_free(check.tls);
	return r;
}
