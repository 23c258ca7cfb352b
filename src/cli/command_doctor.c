/* command_doctor.c - fairlead doctor: what is wrong with this Redis, this pool and this queue, and what to do. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/endpoint.h"
#include "cli/doctor.h"
#include "cli/queue_session.h"
#include "pool/types.h"
#include "pool/view.h"

#define SKEW_MS 1000

void doctor_say(struct doctor *d, enum finding finding, const char *check, const char *format, ...)
{
	static const char *const words[] = {
	    [FINDING_OK] = "ok", [FINDING_WARNING] = "warning", [FINDING_ERROR] = "error"};
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	d->has_errors = d->has_errors || finding == FINDING_ERROR;
	output_row(&d->output,
		   (struct cell[]){CELL_TEXT(words[finding]), CELL_TEXT(check), CELL_TEXT(text)});
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static void on_answer(int result, const struct reply *reply, void *arg)
{
	struct doctor *d = arg;
	bool is_time = reply_kind(reply) == REPLY_ARRAY;
	const struct reply *first = is_time ? reply_at(reply, 0) : reply;

	d->number = reply_integer(first, 0);
	if (is_time)
		d->number = d->number * 1000 + reply_integer(reply_at(reply, 1), 0) / 1000;
	snprintf(d->text, sizeof d->text, "%s", reply_text(first, NULL));
	if (strlen(reply_text(first, NULL)) >= sizeof d->text)
		snprintf(d->info, sizeof d->info, "%s", reply_text(first, NULL));
	session_answered(&d->session, result,
			 reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "");
}

/* 0, or a reason after a finding. */
static int ask(struct doctor *d, const char *check, const struct word *words, size_t count)
{
	int r = store_command(d->session.store, STORE_IDEMPOTENT, words, count, on_answer, d);

	if (!r)
		r = session_wait(&d->session);
	if (r)
		doctor_say(d, FINDING_ERROR, check, "%.*s is refused: %s", (int)words[0].len,
			   (const char *)words[0].at,
			   *d->session.error ? d->session.error : result_word(r));
	return r;
}

static void check_server(struct doctor *d)
{
	struct info_finding findings[INFO_FINDINGS];
	struct word words[] = {WORD("INFO")};

	if (ask(d, "info", words, 1))
		return;
	info_judge(d->info, findings);
	for (int i = 0; i < INFO_FINDINGS; i++)
		doctor_say(d, findings[i].finding, findings[i].check, "%s", findings[i].detail);
}

static void check_clock(struct doctor *d)
{
	struct word words[] = {WORD("TIME")};
	int64_t before = clock_wall_ms(), skew;

	if (ask(d, "clock", words, 1))
		return;
	skew = d->number - (before + clock_wall_ms()) / 2;
	if (skew > SKEW_MS || skew < -SKEW_MS)
		doctor_say(d, FINDING_WARNING, "clock",
			   "the clock of Redis is %" PRId64
			   " ms from this host's; leases follow that of Redis, log lines this one",
			   skew);
	else
		doctor_say(d, FINDING_OK, "clock", "within %d ms", SKEW_MS);
}

/* --- the pool ----------------------------------------------------------------------------------------------------- */

static void on_types(int result, const char *error, void *arg)
{
	struct doctor *d = arg;

	session_answered(&d->session, result, error);
}

static bool check_types(struct doctor *d)
{
	int r = pool_check_types(d->session.pool, on_types, d);

	if (!r)
		r = session_wait(&d->session);
	if (!r)
		doctor_say(d, FINDING_OK, "keys", "types are right");
	else
		doctor_say(d, FINDING_ERROR, "keys",
			   "%s: rename it (RENAME) or choose another --pool",
			   *d->session.error ? d->session.error : result_word(r));
	return !r;
}

static void on_view(int result, const char *error, struct member_view *views, size_t count,
		    void *arg)
{
	struct doctor *d = arg;

	for (size_t i = 0; i < count; i++) {
		struct endpoint endpoint;
		bool has_secret;

		if (!endpoint_parse_id(&endpoint, &has_secret, views[i].id, views[i].id_len))
			continue;
		if (d->foreign++ < 5)
			doctor_say(
			    d, FINDING_WARNING, "members",
			    "'%.100s' is no proxy that fairlead can use; it is skipped, and stays "
			    "(ZREM takes it out)",
			    views[i].id);
	}
	session_answered(&d->session, result, error);
}

static void check_members(struct doctor *d)
{
	int r = pool_view(d->session.pool, on_view, d);

	if (!r)
		r = session_wait(&d->session);
	if (r)
		doctor_say(d, FINDING_ERROR, "members", "cannot be read: %s", d->session.error);
	else if (d->foreign == 0)
		doctor_say(d, FINDING_OK, "members", "all are proxies");
	else if (d->foreign > 5)
		doctor_say(d, FINDING_WARNING, "members", "and %zu more that are no proxies",
			   d->foreign - 5);
}

static void on_rules(int result, const char *error, void *arg)
{
	struct doctor *d = arg;

	session_answered(&d->session, result, error);
}

static void check_rules(struct doctor *d)
{
	int r = pool_read_rules(d->session.pool, on_rules, d);

	if (!r)
		r = session_wait(&d->session);
	if (r == REASON_STORE_NEWER)
		doctor_say(d, FINDING_ERROR, "rules",
			   "written by a newer fairlead (wire %" PRId64 "): update this one",
			   pool_rules(d->session.pool)->wire);
	else if (r)
		doctor_say(d, FINDING_ERROR, "rules", "cannot be read: %s", d->session.error);
	else
		doctor_say(d, FINDING_OK, "rules", "wire version %" PRId64,
			   pool_rules(d->session.pool)->wire);
}

int command_doctor(struct cli *cli)
{
	static const struct column columns[] = {{"finding"}, {"check"}, {"detail"}};
	static struct doctor d;
	int r = queue_session_judge(cli);

	if (r)
		return r;
	r = session_open_any(&d.session, cli);
	if (r == EXIT_FINE)
		r = queue_session_add(&d.session);
	if (r == EXIT_FINE) {
		output_begin(&d.output, stdout,
			     conf_bool(&cli->conf, CONF_JSON) ? OUTPUT_JSON : OUTPUT_TABLE, columns,
			     3);
		check_server(&d);
		check_clock(&d);
		if (check_types(&d)) {
			check_rules(&d);
			check_members(&d);
			doctor_leases(&d);
		}
		doctor_queue(&d);
		output_finish(&d.output);
		r = d.has_errors ? EXIT_FAILED : EXIT_FINE;
	}
	session_close(&d.session);
	return r;
}
