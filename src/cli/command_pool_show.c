/* command_pool_show.c - fairlead pool show: the whole story of one member. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/members.h"
#include "cli/output.h"
#include "pool/packed.h"
#include "pool/view.h"

#define TIME_SIZE 32

static struct cell text_or_none(const char *text)
{
	return *text ? CELL_TEXT(text) : CELL_NONE;
}

/* As people and programs read it; "" for none. `buffer` is returned. */
static const char *time_text(int64_t ms, char *buffer)
{
	*buffer = '\0';
	if (ms > 0)
		clock_format(ms, buffer, TIME_SIZE);
	return buffer;
}

static const char *time_of(const char *packed, const char *key, char *buffer)
{
	return time_text(packed_number(packed, key, -1), buffer);
}

/* --- why it stands where it stands ------------------------------------------------------------------------------- */

struct text {
	size_t len;
	char at[1024];
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
	size_t room = sizeof text->at - text->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->at + text->len, room, format, args);
	va_end(args);
	text->len += (size_t)len < room ? (size_t)len : room - 1;
}

static const char *separator(const struct text *text, const char *between)
{
	return text->len ? between : "";
}

static bool has_no_source(const char *proxies)
{
	size_t len = 0;

	return *proxies && (!packed_find(proxies, "sources", &len) || !len);
}

/* The causes that place.lua knows, all that hold. */
static void say_causes(const struct member_story *story, struct text *text)
{
	char state[16], expires[TIME_SIZE];
	int64_t expires_ms = packed_number(story->admin, "expires_at", INT64_MAX);

	packed_copy(story->admin, "state", state, sizeof state);
	if (*state && strcmp(state, "enabled") != 0)
		say(text, "%s by the operator", state);
	if (expires_ms <= story->now_ms)
		say(text, "%sexpired at %s", separator(text, "; "), time_text(expires_ms, expires));
	if (has_no_source(story->proxies))
		say(text, "%sno source names it any more", separator(text, "; "));
	if (story->view.health == VIEW_DOWN)
		say(text, "%sdown: %s", separator(text, "; "),
		    story->view.reason < 0 ? "not judged" : reason_row(story->view.reason)->word);
	if (story->view.health == VIEW_UNJUDGED && !story->view.is_eligible)
		say(text, "%sa candidate: no check has passed yet", separator(text, "; "));
}

static void say_why(const struct member_story *story, struct text *text)
{
	say_causes(story, text);
	/* Who wrote a cause is about to move it, or died before: the next check does it. */
	if (text->len && story->view.is_eligible)
		say(text, "; about to be parked");
	else if (!text->len && story->view.is_eligible)
		say(text, story->view.health == VIEW_UP ? "up" : "not judged yet");
	else if (!text->len)
		say(text, "about to join");
}

/* "ok 2026-01-31T12:00:00.000Z, ..." of "ok:1769860800000,...", newest first. */
static void say_verdicts(const char *health, struct text *text)
{
	char last[512], time[TIME_SIZE], *save = NULL;

	packed_copy(health, "last", last, sizeof last);
	for (char *one = strtok_r(last, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		char *colon = strrchr(one, ':');

		if (!colon)
			continue;
		*colon = '\0';
		say(text, "%s%s%s %s", separator(text, ", "), one + (*one == '?'),
		    *one == '?' ? " (inconclusive)" : "",
		    time_text(strtoll(colon + 1, NULL, 10), time));
	}
}

static void say_cooldowns(const struct member_story *story, struct text *text)
{
	char time[TIME_SIZE];

	for (size_t i = 0; i < story->cooldown_count; i++)
		say(text, "%s%s until %s", separator(text, ", "), story->cooldowns[i].host,
		    time_text(story->cooldowns[i].until_ms, time));
}

/* --- the row ------------------------------------------------------------------------------------------------------ */

static const struct column columns[] = {
    {"member"},      {"state"},    {"why"},        {"since"},          {"streak"},
    {"last"},        {"checked"},  {"next_check"}, {"score"},          {"allocations"},
    {"latency_ms"},  {"exit"},     {"anonymity"},  {"country"},        {"cooldowns"},
    {"credentials"}, {"bytes_in"}, {"bytes_out"},  {"expires"},        {"proxies"},
    {"admin"},       {"health"},   {"leases"},     {"max_concurrent"},
};
#define COLUMNS (sizeof columns / sizeof *columns)

static const char *credentials_word(const struct member_story *story)
{
	size_t len;

	if (packed_find(story->health, "auth", &len))
		return "refused by the proxy";
	return story->has_secret ? "stored" : "none";
}

static void print_row(const struct member_story *story, struct output *output)
{
	const struct member_view *view = &story->view;
	const char *health = story->health;
	char since[TIME_SIZE], checked[TIME_SIZE], due[TIME_SIZE], expires[TIME_SIZE];
	char exit_address[64], anonymity[32], country[8];
	struct text why = {0}, verdicts = {0}, cooldowns = {0};
	int64_t latency = packed_number(health, "latency", -1);
	int64_t cap = packed_number(story->admin, "max_concurrent", -1);

	say_why(story, &why);
	say_verdicts(health, &verdicts);
	say_cooldowns(story, &cooldowns);
	output_row(output,
		   (struct cell[]){
		       CELL_BYTES(view->id, view->id_len),
		       CELL_TEXT(view->is_eligible ? "eligible" : "parked"),
		       CELL_TEXT(why.at),
		       text_or_none(time_of(health, "since", since)),
		       CELL_NUMBER(story->streak),
		       text_or_none(verdicts.at),
		       text_or_none(time_of(health, "checked", checked)),
		       text_or_none(time_text(story->due_ms > 0 ? story->due_ms : 0, due)),
		       story->has_score ? CELL_REAL(view->score) : CELL_NONE,
		       story->has_score ? CELL_REAL(view->allocations) : CELL_NONE,
		       latency >= 0 ? CELL_NUMBER(latency) : CELL_NONE,
		       text_or_none(packed_copy(health, "exit", exit_address, sizeof exit_address)),
		       text_or_none(packed_copy(health, "anonymity", anonymity, sizeof anonymity)),
		       text_or_none(packed_copy(health, "country", country, sizeof country)),
		       text_or_none(cooldowns.at),
		       CELL_TEXT(credentials_word(story)),
		       CELL_NUMBER(story->bytes_in),
		       CELL_NUMBER(story->bytes_out),
		       text_or_none(time_of(story->admin, "expires_at", expires)),
		       text_or_none(story->proxies),
		       text_or_none(story->admin),
		       text_or_none(health),
		       CELL_NUMBER(view->leases),
		       cap >= 0 ? CELL_NUMBER(cap) : CELL_NONE});
}

static void print_story(int result, const char *error, const struct member_story *story, void *arg)
{
	struct session *session = arg;
	bool json = conf_bool(&session->cli->conf, CONF_JSON);
	struct output output;

	if (!result && !story->is_known)
		result = REASON_MEMBER_UNKNOWN;
	if (!result) {
		output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_RECORD, columns, COLUMNS);
		print_row(story, &output);
		output_finish(&output);
	}
	session_answered(session, result, error);
}

static int run(struct session *session)
{
	char id[ENDPOINT_ID_MAX];
	int r = session_read_rules(session);

	if (r == EXIT_FINE)
		r = member_id_of(session, session->cli->args[0], id, sizeof id);
	if (r)
		return r;
	r = pool_story(session->pool, id, print_story, session);
	session->result = r;
	if (!r && session_wait(session) == 0) {
		cli_note(
		    session->cli,
		    "score: the count that decides whose turn it is; allocations: how often it was "
		    "handed out, whatever became of the request; streak: passes in a row, or "
		    "failures in a row below 0; max_concurrent: its own, if it has one");
		return EXIT_FINE;
	}
	if (session->result != REASON_MEMBER_UNKNOWN)
		return session_failed(session);
	cli_error(session->cli, "pool '%s' has no member %s", pool_name(session->pool), id);
	return EXIT_FAILED;
}

int command_pool_show(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
