/* session.c - a command's way to the store. */
#include "cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/service.h"
#include "pool/types.h"

/* A store that is just starting gets a little time, a command's user a lot less patience than a daemon. */
#define CONNECT_MS 2000
#define COMMAND_TIMEOUT_MS 10000

static int attach(struct session *session)
{
	const struct conf *conf = &session->cli->conf;
	char error[512] = "out of memory";

	if (*conf_text(conf, CONF_REDIS))
		return EXIT_FINE;
	if (!private_attach(&session->private, conf_text(conf, CONF_STATE_DIR), error,
			    sizeof error))
		return EXIT_FINE;
	cli_error(session->cli, "%s", error);
	return EXIT_FAILED;
}

int session_store_config(const struct session *session, struct store_config *ret)
{
	const struct conf *conf = &session->cli->conf;
	int r = service_store_config(conf, session->private, ret);

	if (r)
		return r;
	/* Nobody waits behind a command: it may take longer than a daemon's operation, unless that was set. */
	if (!conf_is_set(conf, CONF_STORE_TIMEOUT))
		ret->timeout_ms = COMMAND_TIMEOUT_MS;
	if (!conf_is_set(conf, CONF_STORE_WAIT))
		ret->wait_ms = CONNECT_MS;
	return EXIT_FINE;
}

static int connect_store(struct session *session, int64_t extra_ms)
{
	struct store_config config;
	bool is_final;
	int r = session_store_config(session, &config);

	if (r)
		return r;
	config.timeout_ms += extra_ms;
	r = loop_new(&session->loop);
	if (!r)
		r = store_new(&session->store, session->loop, &config);
	store_url_wipe(&config.url);
	if (r) {
		cli_error(session->cli, "%s", result_word(r));
		return EXIT_FAILED;
	}
	if (!store_wait_ready(session->store, config.wait_ms))
		return EXIT_FINE;
	cli_error(
	    session->cli,
	    "the store cannot be used: %s; check --redis, or leave it out for a private server",
	    store_trouble(session->store, &is_final));
	return EXIT_FAILED;
}

int session_connect(struct session *session, struct cli *cli, int64_t extra_ms)
{
	int r;

	*session = (struct session){.cli = cli};
	r = attach(session);
	return r ? r : connect_store(session, extra_ms);
}

int session_open_any(struct session *session, struct cli *cli)
{
	const char *name = conf_text(&cli->conf, CONF_POOL);
	char error[256] = "out of memory";
	struct pool_keys keys;
	int r;

	*session = (struct session){.cli = cli};
	/* A wrong name is the user's, whatever the store is like. */
	if (pool_keys_init(&keys, name, error, sizeof error))
		return cli_usage(cli, "--pool: %s", error);
	r = session_connect(session, cli, 0);
	if (r == EXIT_FINE &&
	    pool_new(&session->pool, session->loop, session->store, name, error, sizeof error)) {
		cli_error(cli, "%s", error);
		r = EXIT_FAILED;
	}
	return r;
}

static void on_checked(int result, const char *error, void *arg)
{
	session_answered(arg, result, error);
}

int session_open(struct session *session, struct cli *cli)
{
	int r = session_open_any(session, cli);

	if (r)
		return r;
	r = pool_check_types(session->pool, on_checked, session);
	session->result = r;
	if (!r)
		r = session_wait(session);
	/* A Redis user that may not look at all keys may still do what was asked for. */
	if (!r || !strncmp(session->error, "NOPERM", 6))
		return EXIT_FINE;
	return session_failed(session);
}

void session_close(struct session *session)
{
	store_free(session->store);
	pool_free(session->pool);
	queue_free(session->queue);
	loop_free(session->loop);
	private_detach(session->private);
}

int session_wait(struct session *session)
{
	session->is_waiting = true;
	while (session->is_waiting)
		loop_turn(session->loop);
	return session->result;
}

void session_answered(struct session *session, int result, const char *error)
{
	session->is_waiting = false;
	session->result = result;
	snprintf(session->error, sizeof session->error, "%s", error ? error : "");
}

/* Redis appends where in a script of ours an error arose: nothing that a user can act upon. */
static void cut_place(char *error)
{
	char *place = strstr(error, " script: ");

	if (place)
		*place = '\0';
}

int session_failed(struct session *session)
{
	const char *error = *session->error ? session->error : result_word(session->result);
	const char *hint = "";

	cut_place(session->error);
	if (!strncmp(error, "WRONGTYPE", 9))
		hint = session->pool ? "; rename that key, or choose another --pool"
				     : "; rename that key, or choose another --queue";
	else if (!strncmp(error, "OOM", 3))
		hint = "; Redis is at its maxmemory: give it more, or remove something";
	else if (!strncmp(error, "NOPERM", 6))
		hint = "; the Redis user may not do this: 'fairlead doctor' names what is missing";
	else if (session->result == REASON_STORE_UNKNOWN)
		hint = "; it may or may not have been done";
	else if (session->result == REASON_STORE_NEWER || session->result == -EPERM)
		error = "this pool was written by a newer fairlead", hint = "; update this one";
	cli_error(session->cli, "%s%s", error, hint);
	return EXIT_FAILED;
}

static void on_rules(int result, const char *error, void *arg)
{
	session_answered(arg, result, error);
}

int session_read_rules(struct session *session)
{
	int r = pool_read_rules(session->pool, on_rules, session);

	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}

bool session_is_concurrent(struct session *session)
{
	return !pool_read_rules(session->pool, on_rules, session) && !session_wait(session) &&
	       rules_want_leases(pool_rules(session->pool));
}

int session_write_rules(struct session *session, const struct word *words, size_t count)
{
	int r = pool_write_rules(session->pool, words, count, on_rules, session);

	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}

int session_found_pool(struct session *session)
{
	struct word words[] = {WORD("allow_private"), WORD("1")};

	return session_write_rules(session, words,
				   conf_bool(&session->cli->conf, CONF_ALLOW_PRIVATE) ? 2 : 0);
}
