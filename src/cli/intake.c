/* intake.c - lists on their way into a pool, for commands. */
#include "cli/intake.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A bar for what takes a moment; less than this is done before it could be read. */
#define BAR_FROM ((size_t)5000)
#define BAR_WIDTH 30

struct intake {
	struct session *session;
	struct apply_result *total;
	size_t count;
	int percent; /* shown last */
};

struct endpoint_rules intake_rules(const struct conf *conf, const struct pool *pool)
{
	return (struct endpoint_rules){
	    .default_scheme = (enum scheme)conf_enum(conf, CONF_DEFAULT_SCHEME),
	    .colon_order = (enum colon_order)conf_enum(conf, CONF_COLON_ORDER),
	    .https_means_connect = conf_enum(conf, CONF_HTTPS_MEANS) == 1,
	    .allow_private = conf_bool(conf, CONF_ALLOW_PRIVATE) ||
			     (pool && rules_flag(pool_rules(pool), RULE_ALLOW_PRIVATE)),
	    .allow_single_label = conf_bool(conf, CONF_ALLOW_SINGLE_LABEL),
	};
}

enum list_format intake_format(const struct conf *conf)
{
	return (enum list_format)conf_enum(conf, CONF_FORMAT);
}

void intake_report(const struct cli *cli, const char *name, const struct load *load)
{
	const struct load_summary *summary = load_summary(load);

	for (int verdict = VERDICT_HEADER + 1; verdict < VERDICT_COUNT; verdict++) {
		const char *text = summary->first[verdict].text;
		unsigned long long count = summary->counts[verdict],
				   line = summary->first[verdict].line;

		if (!count)
			continue;
		if (line)
			cli_error(cli, "%s:%llu: %s (%llu in all): %s: %s", name, line,
				  verdict_word(verdict), count, text ? text : "",
				  verdict_hint(verdict));
		else
			cli_error(cli, "%s: %s: %s", name, verdict_word(verdict),
				  verdict_hint(verdict));
	}
}

static bool has_bar(const struct intake *intake)
{
	return intake->count >= BAR_FROM && isatty(STDERR_FILENO) &&
	       !conf_bool(&intake->session->cli->conf, CONF_QUIET);
}

static void show_progress(size_t done, void *arg)
{
	struct intake *intake = arg;
	int percent = intake->count ? (int)(done * 100 / intake->count) : 100;
	char bar[BAR_WIDTH + 1] = "";

	if (percent == intake->percent)
		return;
	intake->percent = percent;
	memset(bar, '#', (size_t)(percent > 100 ? 100 : percent) * BAR_WIDTH / 100);
	fprintf(stderr, "\r[%-*s] %3d%% %zu of %zu", BAR_WIDTH, bar, percent, done, intake->count);
}

static void on_applied(int result, const char *error, const struct apply_result *done, void *arg)
{
	struct intake *intake = arg;

	for (size_t i = 0; i < sizeof done->placed / sizeof *done->placed; i++)
		intake->total->placed[i] += done->placed[i];
	if (has_bar(intake))
		fprintf(stderr, "\r\033[K");
	session_answered(intake->session, result, error);
}

int intake_apply(struct session *session, const struct load *load, enum change change,
		 const char *source, struct apply_result *total)
{
	struct intake intake = {
	    .session = session, .total = total, .count = load_count(load), .percent = -1};
	struct apply_request request = {
	    .load = load,
	    .pool = session->pool,
	    .change = change,
	    .source = source,
	    .progress = has_bar(&intake) ? show_progress : NULL,
	};
	int r = apply_start(session->loop, &request, on_applied, &intake);

	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}

void intake_note(const struct session *session, const struct apply_result *total)
{
	const uint64_t *placed = total->placed;
	uint64_t parked = placed[PLACED_PARKED] + placed[PLACED_CANDIDATE] + placed[PLACED_LEFT];

	cli_note(session->cli, "pool '%s': %llu joined, %llu were eligible, %llu parked",
		 pool_name(session->pool), (unsigned long long)placed[PLACED_JOINED],
		 (unsigned long long)placed[PLACED_ELIGIBLE], (unsigned long long)parked);
	if (placed[PLACED_CANDIDATE])
		cli_note(session->cli,
			 "%llu are candidates: a keeper checks and admits them (fairlead up); "
			 "--eligible admits at once",
			 (unsigned long long)placed[PLACED_CANDIDATE]);
}
