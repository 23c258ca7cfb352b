/* command_queue_claim.c - fairlead queue claim */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "cli/payload.h"
#include "cli/queue_session.h"
#include "queue/wait.h"

struct claiming {
	struct session session;
	struct wait wait;
	size_t found;
	int signal; /* that ended the waiting */
};

/* --- results ------------------------------------------------------------------------------------------------------ */

/* Which time it is that the task is tried; a claim that was given back was none. */
static int64_t attempts(const struct claim *claim)
{
	return claim->failures + claim->lost + 1;
}

static void print_json(const struct claim *claim, const char *level, const char *handle)
{
	char expires[32];
	json_t *object;

	clock_format(claim->expires_ms, expires, sizeof expires);
	object = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s}", "claim", handle, "id",
			   claim->id, "token", claim->token, "level", level, "attempts",
			   (json_int_t)attempts(claim), "failures", (json_int_t)claim->failures,
			   "lost", (json_int_t)claim->lost, "released", (json_int_t)claim->released,
			   "expires_at", expires);
	if (object && payload_json(object, (struct word){claim->payload, claim->len})) {
		json_decref(object);
		object = NULL;
	}
	payload_print_json(stdout, object);
}

static void print(const struct claiming *claiming, const struct claim *claim)
{
	const struct cli *cli = claiming->session.cli;
	const char *level = queue_keys(claiming->session.queue)->levels[claim->level].name;
	char handle[CLAIM_NAME_MAX + 1];

	snprintf(handle, sizeof handle, "%s:%s", claim->id, claim->token);
	if (conf_bool(&cli->conf, CONF_JSON)) {
		print_json(claim, level, handle);
	} else if (conf_bool(&cli->conf, CONF_RAW)) {
		fwrite(claim->payload, 1, claim->len, stdout);
		cli_note(cli, "claimed %s", handle);
	} else {
		printf("%s\t", handle);
		payload_print(stdout, WORD(level));
		printf("\t%" PRId64 "\t", attempts(claim));
		payload_print(stdout, (struct word){claim->payload, claim->len});
		putchar('\n');
	}
}

static void on_claimed(int result, const char *error, struct claim **claims, size_t count,
		       int64_t next_due_ms, void *arg)
{
	struct claiming *claiming = arg;

	(void)next_due_ms;
	for (size_t i = 0; i < count; i++) {
		print(claiming, claims[i]);
		free(claims[i]);
	}
	claiming->found = count;
	session_answered(&claiming->session, result, error);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static void on_deadline(void *arg)
{
	struct claiming *claiming = arg;

	wait_cancel(&claiming->wait);
	session_answered(&claiming->session, 0, "");
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct claiming *claiming = arg;

	(void)what;
	claiming->signal = (int)number;
	on_deadline(claiming);
}

static int wait_for_tasks(struct claiming *claiming, struct waits *waits, size_t count,
			  int64_t block_ms)
{
	struct session *session = &claiming->session;
	struct event_base *base = loop_base(session->loop);
	struct event interrupt, terminate;
	struct alarm alarm;
	int r;

	evsignal_assign(&interrupt, base, SIGINT, on_signal, claiming);
	evsignal_assign(&terminate, base, SIGTERM, on_signal, claiming);
	evsignal_add(&interrupt, NULL);
	evsignal_add(&terminate, NULL);
	alarm_init(&alarm, session->loop, on_deadline, claiming);
	alarm_set(&alarm, clock_ms() + block_ms);
	wait_begin(waits, &claiming->wait, count, on_claimed, claiming);
	r = queue_session_finish(session, 0);
	alarm_fini(&alarm);
	/* What was being claimed when the time was over is given back, each within its own deadline. */
	while (store_is_busy(session->store))
		loop_turn(session->loop);
	/* A signal that comes from here on ends the process: what was claimed must have been printed by then. */
	fflush(stdout);
	evsignal_del(&interrupt);
	evsignal_del(&terminate);
	return r;
}

static int claim_waiting(struct claiming *claiming, size_t count, int64_t block_ms)
{
	struct session *session = &claiming->session;
	struct store_config config;
	struct waits *waits = NULL;
	int r = session_store_config(session, &config);

	if (r)
		return r;
	r = waits_new(&waits, session->loop, session->queue, &config);
	store_url_wipe(&config.url);
	if (r) {
		cli_error(session->cli, "%s", strerror(-r));
		return EXIT_FAILED;
	}
	r = wait_for_tasks(claiming, waits, count, block_ms);
	waits_free(waits);
	return r;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int judge_options(const struct cli *cli)
{
	const struct conf *conf = &cli->conf;

	if (conf_bool(conf, CONF_RAW) && conf_int(conf, CONF_TASKS) > 1)
		return cli_usage(cli, "--raw prints one task: without --tasks");
	if (conf_bool(conf, CONF_RAW) && conf_bool(conf, CONF_JSON))
		return cli_usage(cli, "--raw and --json exclude each other");
	return EXIT_FINE;
}

int command_queue_claim(struct cli *cli)
{
	size_t count = (size_t)conf_int(&cli->conf, CONF_TASKS);
	int64_t block_ms = conf_ms(&cli->conf, CONF_BLOCK);
	struct claiming claiming = {0};
	int r = judge_options(cli);

	if (r)
		return r;
	r = queue_session_open(&claiming.session, cli, 0);
	if (!r) {
		queue_session_note_order(&claiming.session);
		r = block_ms ? claim_waiting(&claiming, count, block_ms)
			     : queue_session_finish(&claiming.session,
						    queue_claim(claiming.session.queue, count,
								on_claimed, &claiming));
	}
	session_close(&claiming.session);
	/* A shell must see that it was the signal, or Ctrl-C would not end its loop. */
	if (claiming.signal && !claiming.found) {
		signal(claiming.signal, SIG_DFL);
		raise(claiming.signal);
	}
	return r || claiming.found ? r : EXIT_NOTHING;
}
