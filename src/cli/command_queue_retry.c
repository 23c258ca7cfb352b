/* command_queue_retry.c - fairlead queue retry --public */
#include "cli/moved.h"
#include "cli/queue_session.h"

int command_queue_retry(struct cli *cli)
{
	struct session session;
	struct moved moved = {.session = &session};
	const char *level;
	int r;

	if (!conf_bool(&cli->conf, CONF_PUBLIC))
		return cli_usage(cli, "returned tasks wait for 'fairlead queue claim'; --public "
				      "moves them to the public lists");
	r = queue_session_open(&session, cli, 0);
	if (!r)
		r = queue_session_chosen(&session, &level);
	if (!r)
		r = moved_finish(&moved,
				 queue_retry_public(session.queue, level, moved_answer, &moved),
				 "returned tasks were moved to the public lists");
	session_close(&session);
	return r;
}
