/* command_queue_peek.c - fairlead queue peek */
#include "cli/entries.h"
#include "cli/queue_session.h"

int command_queue_peek(struct cli *cli)
{
	/* In the order of --where. */
	static const enum queue_place places[] = {QUEUE_READY, QUEUE_IN_LATER, QUEUE_IN_FLIGHT};
	const char *level;
	struct session session;
	int r = queue_session_open(&session, cli, 0);

	if (!r)
		r = queue_session_chosen(&session, &level);
	if (!r)
		r = entries_show(&session, places[conf_enum(&cli->conf, CONF_WHERE)], level);
	session_close(&session);
	return r;
}
