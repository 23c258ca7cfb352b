/* command_pool_list.c - fairlead pool list */
#include "cli/output.h"
#include "cli/session.h"
#include "pool/view.h"

static struct cell health_cell(enum view_health health)
{
	if (health == VIEW_UNJUDGED)
		return CELL_NONE;
	return health == VIEW_UP ? CELL_TEXT("up") : CELL_TEXT("down");
}

static void print_list(int result, const char *error, struct member_view *views, size_t count,
		       void *arg)
{
	static const struct column columns[] = {{"state"}, {"health"},      {"reason"},
						{"score"}, {"allocations"}, {"member"}};
	struct session *session = arg;
	bool json = conf_bool(&session->cli->conf, CONF_JSON);
	struct output output;

	if (!result && count == 0)
		cli_note(session->cli, "pool '%s' has no members", pool_name(session->pool));
	if (!result && (count || json)) {
		output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_TABLE, columns, 6);
		for (size_t i = 0; i < count && !output_failed(&output); i++)
			output_row(&output,
				   (struct cell[]){
				       CELL_TEXT(views[i].is_eligible ? "eligible" : "parked"),
				       health_cell(views[i].health),
				       views[i].reason < 0
					   ? CELL_NONE
					   : CELL_TEXT(reason_row(views[i].reason)->word),
				       CELL_REAL(views[i].score), CELL_REAL(views[i].allocations),
				       CELL_BYTES(views[i].id, views[i].id_len)});
		output_finish(&output);
	}
	session_answered(session, result, error);
}

int command_pool_list(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE) {
		r = pool_view(session.pool, print_list, &session);
		session.result = r;
		r = r || session_wait(&session) ? session_failed(&session) : EXIT_FINE;
	}
	session_close(&session);
	return r;
}
