/* command_pool_stats.c - fairlead pool stats */
#include "cli/output.h"
#include "cli/session.h"
#include "pool/survey.h"
#include "pool/view.h"

/* Sums over the members, until those of their bytes are known. */
struct stats {
	struct session *session;
	size_t eligible, parked;
	double allocations;
	int64_t leases;
	bool is_concurrent;
	struct cell lowest, highest;
};

static void on_members(int result, const char *error, struct member_view *views, size_t count,
		       void *arg)
{
	struct stats *stats = arg;

	for (size_t i = 0; i < count; i++) {
		stats->allocations += views[i].allocations;
		stats->leases += views[i].leases;
		stats->eligible += views[i].is_eligible;
	}
	stats->parked = count - stats->eligible;
	stats->lowest = stats->eligible ? CELL_REAL(views[0].score) : CELL_NONE;
	stats->highest = stats->eligible ? CELL_REAL(views[stats->eligible - 1].score) : CELL_NONE;
	session_answered(stats->session, result, error);
}

static void print_sums(const struct stats *stats, const struct survey *survey, bool json)
{
	static const struct column columns[] = {
	    {"pool"},          {"eligible"}, {"parked"},    {"allocations"},     {"lowest_score"},
	    {"highest_score"}, {"bytes_in"}, {"bytes_out"}, {"parking_held_ms"}, {"leases"}};
	/* The last is for pools that have some, or may have. */
	const size_t count = stats->leases || stats->is_concurrent ? 10 : 9;
	struct output output;

	output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_RECORD, columns, count);
	output_row(&output,
		   (struct cell[]){CELL_TEXT(pool_name(stats->session->pool)),
				   CELL_NUMBER((int64_t)stats->eligible),
				   CELL_NUMBER((int64_t)stats->parked),
				   CELL_REAL(stats->allocations), stats->lowest, stats->highest,
				   CELL_NUMBER(survey->bytes_in), CELL_NUMBER(survey->bytes_out),
				   survey->held_ms ? CELL_NUMBER(survey->held_ms) : CELL_NONE,
				   CELL_NUMBER(stats->leases)});
	output_finish(&output);
}

static void print_clients(const struct stats *stats, const struct survey *survey, bool json)
{
	static const struct column columns[] = {{"client"}, {"bytes_in"}, {"bytes_out"}};
	struct output output;

	if (survey->busiest_count == 0)
		return;
	if (!json)
		putchar('\n');
	output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_TABLE, columns, 3);
	for (size_t i = 0; i < survey->busiest_count; i++) {
		const struct client_view *client = &survey->busiest[i];

		output_row(&output, (struct cell[]){CELL_BYTES(client->name, client->name_len),
						    CELL_NUMBER(client->bytes_in),
						    CELL_NUMBER(client->bytes_out)});
	}
	output_finish(&output);
	if (survey->client_count > survey->busiest_count)
		cli_note(stats->session->cli, "%zu clients; these are the %zu with the most bytes",
			 survey->client_count, survey->busiest_count);
}

static void on_survey(int result, const char *error, const struct survey *survey, void *arg)
{
	struct stats *stats = arg;
	bool json = conf_bool(&stats->session->cli->conf, CONF_JSON);

	if (!result) {
		print_sums(stats, survey, json);
		print_clients(stats, survey, json);
		if (survey->held_ms)
			cli_note(
			    stats->session->cli,
			    "more members fail than max_parked_percent allows: none is parked");
	}
	session_answered(stats->session, result, error);
}

static int run(struct session *session)
{
	struct stats stats = {.session = session, .is_concurrent = session_is_concurrent(session)};
	int r = pool_view(session->pool, on_members, &stats);

	if (!r)
		r = session_wait(session);
	if (!r)
		r = pool_survey(session->pool, on_survey, &stats);
	if (!r)
		r = session_wait(session);
	if (!r)
		return EXIT_FINE;
	session->result = r;
	return session_failed(session);
}

int command_pool_stats(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
