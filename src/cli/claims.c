/* claims.c - claims named on the command line, and one settlement of all of them. */
#include "cli/claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/queue_session.h"
#include "queue/entry.h"

/* One argument. */
struct handle {
	struct claims *claims;
	const char *text;
	char id[CLAIM_ID_MAX + 1];
	char token[CLAIM_TOKEN_MAX + 1];
	int64_t failures; /* so far, where the settlement wants to know */
};

struct claims {
	struct session session;
	const char *done;
	size_t asked; /* and not answered */
	int status, result;
	char error[256];
};

static bool take_part(char *ret, size_t size, const char *text, size_t len, const char *bytes)
{
	if (len == 0 || len >= size || strspn(text, bytes) < len)
		return false;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return true;
}

static bool handle_read(struct handle *handle, const char *text)
{
	const char *colon = strchr(text, ':');

	handle->text = text;
	return colon &&
	       take_part(handle->id, sizeof handle->id, text, (size_t)(colon - text),
			 "0123456789") &&
	       take_part(handle->token, sizeof handle->token, colon + 1, strlen(colon + 1),
			 "0123456789abcdef-");
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* The last of them ends the waiting, whichever it is. */
static void answered(struct claims *claims, int result, const char *error)
{
	if (result && !claims->result) {
		claims->result = result;
		snprintf(claims->error, sizeof claims->error, "%s", error ? error : "");
	}
	if (--claims->asked == 0)
		session_answered(&claims->session, claims->result, claims->error);
}

static void on_settled(int result, const char *error, void *arg)
{
	const struct handle *handle = arg;
	struct claims *claims = handle->claims;
	const struct cli *cli = claims->session.cli;

	if (result == REASON_CLAIM_STALE) {
		claims->status = EXIT_FAILED;
		cli_error(cli,
			  "%s is stale: its lease ended, or it was settled before; the task is "
			  "another's or gone",
			  handle->text);
		result = 0;
	} else if (result == REASON_CLAIM_DEAD) {
		cli_note(cli, "%s is a dead letter now", handle->text);
		result = 0;
	} else if (result == 0) {
		cli_note(cli, "%s %s", handle->text, claims->done);
	}
	answered(claims, result, error);
}

static void on_claim(int result, const struct reply *reply, void *arg)
{
	struct handle *handle = arg;
	struct queue_entry entry;
	struct entry_texts texts;
	size_t len;
	const char *packed = reply_text(reply, &len);

	/* One that is not there is stale, as its settlement will tell. */
	if (!result && reply_kind(reply) == REPLY_TEXT) {
		entry_read(&entry, &texts, packed, len);
		handle->failures = entry.failures;
	}
	answered(handle->claims, result, packed);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static int finish(struct claims *claims, int r)
{
	/* Nothing was asked that would end the waiting. */
	if (claims->asked == 0) {
		claims->session.result = r;
		return r ? session_failed(&claims->session) : EXIT_FINE;
	}
	if (r && !claims->result)
		claims->result = r;
	return queue_session_finish(&claims->session, 0);
}

/* The backoff grows with the failures, which the handle does not tell. */
static int read_failures(struct claims *claims, struct handle *handles, size_t count)
{
	const struct queue_keys *keys = queue_keys(claims->session.queue);
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		const struct word words[] = {WORD("HGET"), queue_key(keys, QUEUE_CLAIMS),
					     WORD(handles[i].text)};

		r = store_command(claims->session.store, STORE_IDEMPOTENT, words, 3, on_claim,
				  &handles[i]);
		claims->asked += !r;
	}
	return finish(claims, r);
}

static int settle_all(struct claims *claims, struct handle *handles, size_t count,
		      const struct settlement *how)
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		struct settlement settlement = *how;

		settlement.id = handles[i].id;
		settlement.token = handles[i].token;
		settlement.failures = handles[i].failures;
		r = queue_settle(claims->session.queue, &settlement, on_settled, &handles[i]);
		claims->asked += !r;
	}
	return finish(claims, r);
}

static int run(struct claims *claims, struct handle *handles, size_t count,
	       const struct settlement *how)
{
	int r = EXIT_FINE;

	if (how->verb == SETTLE_NACK && how->ms < 0)
		r = read_failures(claims, handles, count);
	if (!r)
		r = settle_all(claims, handles, count, how);
	return r ? r : claims->status;
}

int claims_settle(struct cli *cli, const struct settlement *how, const char *done)
{
	size_t count = (size_t)cli->arg_count;
	struct handle *handles = calloc(count, sizeof *handles);
	struct claims claims = {.done = done};
	int r = EXIT_FINE;

	if (!handles) {
		cli_error(cli, "%s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < count && !r; i++) {
		handles[i].claims = &claims;
		if (!handle_read(&handles[i], cli->args[i]))
			r = cli_usage(cli,
				      "'%s' is no claim: expected ID:TOKEN, as 'fairlead queue "
				      "claim' prints it",
				      cli->args[i]);
	}
	if (!r) {
		r = queue_session_open(&claims.session, cli, 0);
		if (!r)
			r = run(&claims, handles, count, how);
		session_close(&claims.session);
	}
	free(handles);
	return r;
}
