/* command_pool_acquire.c - fairlead pool acquire: a lease to hold by hand, or for as long as a command runs. */
#include <string.h>

#include "base/clock.h"
#include "cli/lease_run.h"
#include "cli/lease_word.h"
#include "cli/output.h"
#include "pool/allocate.h"

struct acquisition {
	struct session *session;
	struct lease lease;
	struct member *avoided[AVOID_MAX]; /* with a reference each */
	size_t avoided_count;
	bool is_ending; /* nobody needs the lease any more */
};

static bool has_command(const struct session *session)
{
	return conf_bool(&session->cli->conf, CONF_EXEC);
}

static void on_lease(int result, struct lease *lease, void *arg)
{
	const struct acquisition *acquisition = arg;

	(void)lease;
	session_answered(acquisition->session, result, pool_last_error(acquisition->session->pool));
}

static void on_lost(struct lease *lease, void *arg)
{
	const struct acquisition *acquisition = arg;

	if (!acquisition->is_ending)
		cli_error(
		    acquisition->session->cli,
		    "the lease %s is lost: its time ran out unrenewed, and others may use the "
		    "member beyond its cap; the command goes on",
		    lease->id);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static int ask(struct acquisition *acquisition)
{
	struct session *session = acquisition->session;
	const struct conf *conf = &session->cli->conf;
	const char *id = conf_text(conf, CONF_OPERATION);
	struct lease_request request = {.ttl_ms = conf_ms(conf, CONF_TTL),
					.wait_ms = conf_ms(conf, CONF_WAIT),
					.id = *id ? id : NULL,
					.avoid = acquisition->avoided,
					.avoid_count = acquisition->avoided_count,
					.cb = on_lease,
					.lost = on_lost,
					.arg = acquisition};
	int r = pool_acquire(session->pool, &acquisition->lease, &request);

	session->result = r;
	return r ? r : session_wait(session);
}

/* A direct member has no URL that another program understands. */
static bool is_usable(const struct acquisition *acquisition, int result)
{
	return !result && !(has_command(acquisition->session) &&
			    acquisition->lease.member->endpoint.scheme == SCHEME_DIRECT);
}

/* Until the lease is one of a member that can be used. 0, a reason, or -errno. */
static int acquire(struct acquisition *acquisition)
{
	int r;

	for (;;) {
		r = ask(acquisition);
		if (is_usable(acquisition, r) || (r && r != REASON_MEMBER_UNREADABLE))
			break;
		r = REASON_MEMBER_UNREADABLE;
		if (acquisition->avoided_count == AVOID_MAX)
			break;
		acquisition->avoided[acquisition->avoided_count++] =
		    member_ref(acquisition->lease.member);
		lease_release(&acquisition->lease);
	}
	/* Nobody is left but those that were passed over. */
	return r == REASON_POOL_EMPTY && acquisition->avoided_count ? REASON_MEMBER_UNREADABLE : r;
}

/* The exit status, after a message. */
static int tell_failure(const struct acquisition *acquisition, int result)
{
	struct session *session = acquisition->session;
	const char *name = pool_name(session->pool);

	if (result == REASON_POOL_EMPTY)
		cli_error(
		    session->cli,
		    "pool '%s' has no eligible proxy; 'fairlead pool list' shows who is parked",
		    name);
	else if (result == REASON_POOL_FULL)
		cli_error(session->cli,
			  "all eligible proxies of pool '%s' are at their cap of leases "
			  "(max_concurrent); --wait waits for one",
			  name);
	else if (result == REASON_MEMBER_UNREADABLE)
		cli_error(session->cli,
			  "pool '%s' has no eligible proxy that can be used%s; 'fairlead doctor' "
			  "names members that are no proxies",
			  name, has_command(session) ? " by a command" : "");
	else if (result == REASON_LEASE_STALE) {
		cli_error(session->cli, "the lease of operation %s has been released already",
			  conf_text(&session->cli->conf, CONF_OPERATION));
		return EXIT_FAILED;
	} else
		return session_failed(session);
	return EXIT_NOTHING;
}

/* --- the lease ---------------------------------------------------------------------------------------------------- */

/* Proxy URL, lease word and expiry by this host's clock, for people and shells; with --json the identifier, too. */
static void print(const struct acquisition *acquisition)
{
	static const struct column names[] = {{"proxy"}, {"member"}, {"lease"}, {"expires_at"}};
	static const struct column plain[] = {{"proxy"}, {"lease"}, {"expires_at"}};
	const struct lease *lease = &acquisition->lease;
	const bool json = conf_bool(&acquisition->session->cli->conf, CONF_JSON);
	char url[ENDPOINT_TEXT_MAX], word[LEASE_WORD_SIZE], expires[32];
	struct output output;

	endpoint_print(&lease->member->endpoint, SHOW_SECRET, url, sizeof url);
	lease_word_print(lease, word);
	clock_format(clock_wall_ms() + lease->deadline_ms - clock_ms(), expires, sizeof expires);
	output_begin(&output, stdout, json ? OUTPUT_JSON : OUTPUT_PLAIN, json ? names : plain,
		     json ? 4 : 3);
	if (json)
		output_row(&output,
			   (struct cell[]){CELL_TEXT(url),
					   CELL_BYTES(lease->member->id, lease->member->id_len),
					   CELL_TEXT(word), CELL_TEXT(expires)});
	else
		output_row(&output,
			   (struct cell[]){CELL_TEXT(url), CELL_TEXT(word), CELL_TEXT(expires)});
	output_finish(&output);
	explicit_bzero(url, sizeof url);
}

static void on_released(int result, const char *error, void *arg)
{
	session_answered(arg, result, error);
}

/* Said and heard, unlike lease_release(), whose word may be lost with this process. */
static void release(struct acquisition *acquisition)
{
	struct session *session = acquisition->session;
	int r;

	acquisition->is_ending = true;
	r = pool_lease_release(session->pool, acquisition->lease.id, acquisition->lease.token,
			       on_released, session);
	if (!r)
		r = session_wait(session);
	if (r && r != REASON_LEASE_STALE)
		cli_note(session->cli,
			 "the lease %s could not be released (%s); it runs out by itself",
			 acquisition->lease.id, result_word(r));
}

static int run(struct acquisition *acquisition)
{
	int r = acquire(acquisition);

	if (r) {
		r = tell_failure(acquisition, r);
		lease_release(&acquisition->lease);
		return r;
	}
	if (has_command(acquisition->session)) {
		r = lease_run(acquisition->session, &acquisition->lease);
		release(acquisition);
	} else {
		print(acquisition);
		/* Nobody has got it. */
		if (output_error())
			release(acquisition);
	}
	lease_keep(&acquisition->lease);
	return r;
}

/* 0, or EXIT_USAGE after a message. */
static int judge_arguments(const struct cli *cli)
{
	const char *id = conf_text(&cli->conf, CONF_OPERATION);
	const bool has_exec = conf_bool(&cli->conf, CONF_EXEC);

	if (has_exec && cli->arg_count == 0)
		return cli_usage(cli, "--exec needs a command behind it");
	if (!has_exec && cli->arg_count > 0)
		return cli_usage(cli, "unexpected argument '%.80s'; a command stands behind --exec",
				 cli->args[0]);
	if (strspn(id, "0123456789abcdef-") != strlen(id))
		return cli_usage(cli, "--operation %s: must be 1 to 64 of 0-9, a-f and -", id);
	return EXIT_FINE;
}

int command_pool_acquire(struct cli *cli)
{
	struct session session;
	struct acquisition acquisition = {.session = &session};
	int r = judge_arguments(cli);

	if (r)
		return r;
	r = session_open(&session, cli);
	if (r == EXIT_FINE)
		r = session_read_rules(&session);
	if (r == EXIT_FINE)
		r = run(&acquisition);
	for (size_t i = 0; i < acquisition.avoided_count; i++)
		member_unref(acquisition.avoided[i]);
	session_close(&session);
	return r;
}
