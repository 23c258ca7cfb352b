/* command_pool_list.c - fairlead pool list */
#include "cli/output.h"
#include "cli/session.h"
#include "pool/view.h"

#define CELLS 7

static struct cell health_cell(enum view_health health)
{
	if (health == VIEW_UNJUDGED)
		return CELL_NONE;
	return health == VIEW_UP ? CELL_TEXT("up") : CELL_TEXT("down");
}

struct list {
	struct session *session;
	bool is_concurrent;
};

/* Leases are told where there are some, or may be. */
static bool has_leases(const struct list *list, const struct member_view *views, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (views[i].leases)
			return true;
	return list->is_concurrent;
}

static void print_member(struct output *output, const struct member_view *view, bool with_leases)
{
	struct cell cells[CELLS] = {
	    CELL_TEXT(view->is_eligible ? "eligible" : "parked"), health_cell(view->health),
	    view->reason < 0 ? CELL_NONE : CELL_TEXT(reason_row(view->reason)->word),
	    CELL_REAL(view->score), CELL_REAL(view->allocations)};
	size_t count = 5;

	if (with_leases)
		cells[count++] = CELL_NUMBER(view->leases);
	cells[count++] = CELL_BYTES(view->id, view->id_len);
	output_row(output, cells);
}

static void print_list(int result, const char *error, struct member_view *views, size_t count,
		       void *arg)
{
	static const struct column plain[] = {{"state"}, {"health"},      {"reason"},
					      {"score"}, {"allocations"}, {"member"}};
	static const struct column leased[] = {{"state"},       {"health"}, {"reason"}, {"score"},
					       {"allocations"}, {"leases"}, {"member"}};
	const struct list *list = arg;
	struct session *session = list->session;
	bool json = conf_bool(&session->cli->conf, CONF_JSON);
	bool with_leases = !result && has_leases(list, views, count);
	struct output output;

	if (!result && count == 0)
		cli_note(session->cli, "pool '%s' has no members", pool_name(session->pool));
	if (!result && (count || json)) {
		output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_TABLE,
			     with_leases ? leased : plain, with_leases ? CELLS : CELLS - 1);
		for (size_t i = 0; i < count && !output_failed(&output); i++)
			print_member(&output, &views[i], with_leases);
		output_finish(&output);
	}
	session_answered(session, result, error);
}

static int run(struct session *session)
{
	struct list list = {.session = session, .is_concurrent = session_is_concurrent(session)};
	int r = pool_view(session->pool, print_list, &list);

	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}

int command_pool_list(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
