/* command_pool_allocate.c - fairlead pool allocate */
#include <stdlib.h>

#include "cli/output.h"
#include "cli/session.h"
#include "pool/allocate.h"

/* Asked for together, these are one call of the store each. */
#define ROUND ((size_t)ALLOCATE_MAX * 4)

struct asking {
	struct session *session;
	size_t open; /* answers that are still to come */
	int failure; /* the first */
	struct ask {
		struct allocation allocation;
		struct asking *asking;
		struct member *member;
	} asks[ROUND];
};

static void on_allocated(int result, struct member *member, struct allocation *allocation)
{
	struct ask *ask = (struct ask *)allocation;
	struct asking *asking = ask->asking;

	ask->member = member;
	if (result && !asking->failure && result != REASON_MEMBER_UNREADABLE)
		asking->failure = result;
	if (--asking->open == 0)
		session_answered(asking->session, asking->failure,
				 pool_last_error(asking->session->pool));
}

/* The proxy URL with its credentials, or the identifier. */
static void print_member(struct output *output, const struct member *member, bool wants_id)
{
	char url[ENDPOINT_TEXT_MAX];

	if (wants_id) {
		output_row(output, (struct cell[]){CELL_BYTES(member->id, member->id_len)});
		return;
	}
	endpoint_print(&member->endpoint, SHOW_SECRET, url, sizeof url);
	output_row(output, (struct cell[]){CELL_TEXT(url)});
}

/* Allocates `count` and prints what is a proxy; who is none is skipped, which costs it an allocation. The result of
 * the round. */
static int allocate_round(struct asking *asking, size_t count, struct output *output,
			  size_t *printed)
{
	const struct conf *conf = &asking->session->cli->conf;
	size_t before = *printed;

	asking->open = count;
	asking->failure = 0;
	for (size_t i = 0; i < count; i++) {
		asking->asks[i] = (struct ask){.asking = asking};
		pool_allocate(asking->session->pool, &asking->asks[i].allocation, on_allocated);
	}
	session_wait(asking->session);
	for (size_t i = 0; i < count; i++) {
		struct member *member = asking->asks[i].member;

		if (member && member->is_readable) {
			print_member(output, member, conf_bool(conf, CONF_ID));
			++*printed;
		}
		member_unref(member);
	}
	return !asking->failure && *printed == before ? REASON_MEMBER_UNREADABLE : asking->failure;
}

static int run(struct session *session)
{
	static const struct column columns[] = {{"proxy"}};
	const struct conf *conf = &session->cli->conf;
	size_t wanted = (size_t)conf_int(conf, CONF_COUNT), printed = 0;
	struct asking *asking = calloc(1, sizeof *asking);
	struct output output;
	int r = 0;

	if (!asking)
		return EXIT_FAILED;
	asking->session = session;
	output_begin(&output, stdout, conf_bool(conf, CONF_JSON) ? OUTPUT_JSON : OUTPUT_PLAIN,
		     columns, 1);
	while (!r && printed < wanted && !output_failed(&output))
		r = allocate_round(asking, wanted - printed < ROUND ? wanted - printed : ROUND,
				   &output, &printed);
	free(asking);
	output_finish(&output);
	if (r == REASON_POOL_EMPTY) {
		cli_error(
		    session->cli,
		    "pool '%s' has no eligible proxy%s; 'fairlead pool list' shows who is parked",
		    pool_name(session->pool), printed ? " any more" : "");
		return EXIT_NOTHING;
	}
	if (r == REASON_MEMBER_UNREADABLE) {
		cli_error(session->cli,
			  "pool '%s' hands out nothing but members that are no proxies; 'fairlead "
			  "doctor' names them",
			  pool_name(session->pool));
		return EXIT_NOTHING;
	}
	return r ? session_failed(session) : EXIT_FINE;
}

int command_pool_allocate(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = session_read_rules(&session);
	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
