/* command_pool_show.c - fairlead pool show */
#include "cli/members.h"
#include "cli/output.h"
#include "pool/view.h"

static struct cell text_or_none(const char *text)
{
	return *text ? CELL_TEXT(text) : CELL_NONE;
}

static void print_story(int result, const char *error, const struct member_story *story, void *arg)
{
	static const struct column columns[] = {
	    {"member"},    {"state"},       {"score"},   {"allocations"}, {"bytes_in"},
	    {"bytes_out"}, {"credentials"}, {"proxies"}, {"admin"},       {"health"}};
	struct session *session = arg;
	bool json = conf_bool(&session->cli->conf, CONF_JSON);
	struct output output;

	if (!result && !story->is_known)
		result = REASON_MEMBER_UNKNOWN;
	if (!result) {
		const struct member_view *view = &story->view;

		output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_RECORD, columns, 10);
		output_row(&output, (struct cell[]){
					CELL_BYTES(view->id, view->id_len),
					CELL_TEXT(view->is_eligible ? "eligible" : "parked"),
					story->has_score ? CELL_REAL(view->score) : CELL_NONE,
					story->has_score ? CELL_REAL(view->allocations) : CELL_NONE,
					CELL_NUMBER(story->bytes_in), CELL_NUMBER(story->bytes_out),
					CELL_TEXT(story->has_secret ? "stored" : "none"),
					text_or_none(story->proxies), text_or_none(story->admin),
					text_or_none(story->health)});
		output_finish(&output);
	}
	session_answered(session, result, error);
}

static int run(struct session *session)
{
	char id[ENDPOINT_ID_MAX];
	int r = session_read_rules(session);

	if (r == EXIT_FINE)
		r = member_id_of(session, session->cli->args[0], id, sizeof id);
	if (r)
		return r;
	r = pool_story(session->pool, id, print_story, session);
	session->result = r;
	if (!r && session_wait(session) == 0) {
		cli_note(
		    session->cli,
		    "score: the count that decides whose turn it is; allocations: how often it was "
		    "handed out, whatever became of the request");
		return EXIT_FINE;
	}
	if (session->result != REASON_MEMBER_UNKNOWN)
		return session_failed(session);
	cli_error(session->cli, "pool '%s' has no member %s", pool_name(session->pool), id);
	return EXIT_FAILED;
}

int command_pool_show(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
