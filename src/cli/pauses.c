/* pauses.c - pausing and resuming levels of a queue. */
#include "cli/pauses.h"

#include "cli/queue_session.h"
#include "queue/view.h"

static void on_paused(int result, const char *error, void *arg)
{
	session_answered(arg, result, error);
}

static int change(struct session *session, const char *level, bool is_paused)
{
	int r = queue_session_finish(
	    session, queue_pause(session->queue, level, is_paused, on_paused, session));

	if (!r)
		cli_note(session->cli, "queue '%s': %s%s %s", queue_keys(session->queue)->name,
			 level ? "level " : "all levels", level ? level : "",
			 is_paused ? "paused" : "resumed");
	return r;
}

static int run(struct session *session, bool is_paused)
{
	const struct cli *cli = session->cli;
	int r = EXIT_FINE;
	size_t ignored;

	/* A wrong name changes nothing. */
	for (int i = 0; i < cli->arg_count && !r; i++)
		r = queue_session_level(session, cli->args[i], &ignored);
	if (!r && cli->arg_count == 0)
		return change(session, NULL, is_paused);
	for (int i = 0; i < cli->arg_count && !r; i++)
		r = change(session, cli->args[i], is_paused);
	return r;
}

int pauses_change(struct cli *cli, bool is_paused)
{
	struct session session;
	int r = queue_session_open(&session, cli, 0);

	if (!r)
		r = run(&session, is_paused);
	session_close(&session);
	return r;
}
