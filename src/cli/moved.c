/* moved.c - commands that move or delete many tasks. */
#include "cli/moved.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/queue_session.h"

int moved_may_delete(const struct session *session, const char *what)
{
	const struct cli *cli = session->cli;
	char answer[16] = "";

	if (conf_bool(&cli->conf, CONF_YES))
		return EXIT_FINE;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return cli_usage(cli, "%s would be deleted: say --yes", what);
	fprintf(stderr, "Delete %s? [y/N] ", what);
	if (fgets(answer, sizeof answer, stdin) &&
	    (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n")))
		return EXIT_FINE;
	cli_error(cli, "nothing was deleted");
	return EXIT_FAILED;
}

void moved_answer(int result, const char *error, int64_t count, void *arg)
{
	struct moved *moved = arg;

	moved->count = count;
	session_answered(moved->session, result, error);
}

int moved_finish(struct moved *moved, int r, const char *done)
{
	static const struct column columns[] = {{"queue"}, {"tasks"}};
	struct session *session = moved->session;
	const char *name = queue_keys(session->queue)->name;
	struct output output;

	r = queue_session_finish(session, r);
	/* It goes in portions: what failed may have done some. */
	if (!r || moved->count)
		cli_note(session->cli, "queue '%s': %" PRId64 " %s", name, moved->count, done);
	if (conf_bool(&session->cli->conf, CONF_JSON)) {
		output_begin(&output, stdout, OUTPUT_JSON, columns, 2);
		output_row(&output, (struct cell[]){CELL_TEXT(name), CELL_NUMBER(moved->count)});
		output_finish(&output);
	}
	return r;
}
