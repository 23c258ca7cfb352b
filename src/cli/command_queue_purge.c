/* command_queue_purge.c - fairlead queue purge */
#include <stdio.h>

#include "cli/moved.h"
#include "cli/queue_session.h"

static int purge(struct session *session, const char *level)
{
	const char *name = queue_keys(session->queue)->name;
	struct moved moved = {.session = session};
	char what[2 * KEY_NAME_MAX + 80];
	int r;

	if (level)
		snprintf(what, sizeof what, "the tasks of level '%s' of queue '%s'", level, name);
	else
		snprintf(what, sizeof what, "the tasks of all levels of queue '%s'", name);
	r = moved_may_delete(session, what);
	return r ? r
		 : moved_finish(&moved, queue_purge(session->queue, level, moved_answer, &moved),
				"tasks were deleted");
}

int command_queue_purge(struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	const char *level;
	struct session session;
	int r;

	if (conf_bool(conf, CONF_ALL) == (*conf_text(conf, CONF_LEVEL) != '\0'))
		return cli_usage(cli, "say either --level LEVEL or --all");
	r = queue_session_open(&session, cli, 0);
	if (!r)
		r = queue_session_chosen(&session, &level);
	if (!r)
		r = purge(&session, level);
	session_close(&session);
	return r;
}
