/* members.c - members named on the command line, and a change of all of them. */
#include "cli/members.h"

#include <string.h>

#include "base/secret.h"
#include "pool/view.h"

static void on_story(int result, const char *error, const struct member_story *story, void *arg)
{
	struct session *session = arg;

	session_answered(session, !result && !story->is_known ? REASON_MEMBER_UNKNOWN : result,
			 error);
}

/* Foreign members are named as they stand: "host:port" is one, and not the same as "http://host:port". */
static bool is_member(struct session *session, const char *text)
{
	return strlen(text) < ENDPOINT_ID_MAX &&
	       !pool_story(session->pool, text, on_story, session) && !session_wait(session);
}

int member_id_of(struct session *session, const char *text, char *ret, size_t size)
{
	const struct endpoint_rules rules = {.default_scheme = SCHEME_HTTP,
					     .allow_private = true,
					     .allow_single_label = true,
					     .allow_direct = true};
	struct endpoint endpoint;
	char masked[256];
	int r;

	/* An identifier with its digest is known or not; it is no URL in either case. */
	if (strlen(text) < size && (is_member(session, text) || strchr(text, '#'))) {
		memcpy(ret, text, strlen(text) + 1);
		return EXIT_FINE;
	}
	r = endpoint_parse(&endpoint, text, strlen(text), &rules);
	if (r == 0) {
		r = endpoint_id(&endpoint, pool_rules(session->pool)->salt, ret, size);
		endpoint_fini(&endpoint);
	}
	if (r == 0)
		return EXIT_FINE;
	secret_print(text, masked, sizeof masked);
	return cli_usage(session->cli, "'%s' is no member of pool '%s', and no proxy: %s", masked,
			 pool_name(session->pool), r > 0 ? verdict_word(r) : result_word(r));
}

struct outcome {
	struct session *session;
	const char *done;
	const struct change_item *items;
	size_t unknown;
};

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	struct outcome *outcome = arg;

	for (size_t i = 0; i < count && !result; i++) {
		if (placed[i] == PLACED_UNKNOWN) {
			outcome->unknown++;
			cli_error(outcome->session->cli, "pool '%s' has no member %s",
				  pool_name(outcome->session->pool), outcome->items[i].id);
		} else {
			cli_note(outcome->session->cli, "%s %s", outcome->items[i].id,
				 outcome->done);
		}
	}
	session_answered(outcome->session, result, error);
}

static int change_batch(struct session *session, enum change change, const char *const *args,
			size_t count, struct outcome *outcome)
{
	struct change_item items[CHANGE_MAX];
	char ids[CHANGE_MAX][ENDPOINT_ID_MAX];
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		r = member_id_of(session, args[i], ids[i], sizeof ids[i]);
		items[i] = (struct change_item){.id = ids[i]};
	}
	if (r)
		return r;
	outcome->items = items;
	r = pool_change(session->pool, change, NULL, items, count, on_changed, outcome);
	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}

static int change_all(struct session *session, enum change change, const char *done)
{
	struct outcome outcome = {.session = session, .done = done};
	size_t count = (size_t)session->cli->arg_count;
	int r = session_read_rules(session);

	for (size_t at = 0; at < count && !r; at += CHANGE_MAX)
		r = change_batch(session, change, session->cli->args + at,
				 count - at < CHANGE_MAX ? count - at : CHANGE_MAX, &outcome);
	return r == EXIT_FINE && outcome.unknown ? EXIT_FAILED : r;
}

int members_change(struct cli *cli, enum change change, const char *done)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = change_all(&session, change, done);
	session_close(&session);
	return r;
}
