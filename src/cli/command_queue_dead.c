/* command_queue_dead.c - fairlead queue dead: list, retry, purge. */
#include <stdio.h>
#include <string.h>

#include "cli/entries.h"
#include "cli/moved.h"
#include "cli/queue_session.h"

static int list(struct session *session)
{
	return entries_show(session, QUEUE_DEAD_LETTERS, NULL);
}

static int retry(struct session *session)
{
	struct moved moved = {.session = session};

	return moved_finish(&moved, queue_dead_retry(session->queue, moved_answer, &moved),
			    "dead letters were pushed to their levels again");
}

static int purge(struct session *session)
{
	struct moved moved = {.session = session};
	char what[KEY_NAME_MAX + 40];
	int r;

	snprintf(what, sizeof what, "all dead letters of queue '%s'",
		 queue_keys(session->queue)->name);
	r = moved_may_delete(session, what);
	return r ? r
		 : moved_finish(&moved, queue_dead_purge(session->queue, moved_answer, &moved),
				"dead letters were deleted");
}

int command_queue_dead(struct cli *cli)
{
	static const struct {
		const char *word;
		int (*run)(struct session *session);
	} actions[] = {{"list", list}, {"retry", retry}, {"purge", purge}};
	int (*run)(struct session * session) = NULL;
	struct session session;
	int r;

	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(cli->args[0], actions[i].word) == 0)
			run = actions[i].run;
	if (!run)
		return cli_usage(cli, "'%s': expected list, retry or purge", cli->args[0]);
	r = queue_session_open(&session, cli, 0);
	if (!r)
		r = run(&session);
	session_close(&session);
	return r;
}
