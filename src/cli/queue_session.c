/* queue_session.c - a session about a queue. */
#include "cli/queue_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/queues.h"

int queue_session_judge(const struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	char error[256];
	int r;

	if (conf_level(conf, CONF_LEVELS) == FROM_FLAG && conf_level(conf, CONF_LISTS) == FROM_FLAG)
		return cli_usage(cli, "--levels and --lists exclude each other");
	r = queues_check(conf, error, sizeof error);
	if (r == -EINVAL)
		return cli_usage(cli, "%s", error);
	if (r)
		cli_error(cli, "%s", error);
	return r ? EXIT_FAILED : EXIT_FINE;
}

int queue_session_add(struct session *session)
{
	char error[256];

	if (!queues_open(&session->queue, session->loop, session->store, &session->cli->conf, error,
			 sizeof error))
		return EXIT_FINE;
	cli_error(session->cli, "%s", error);
	return EXIT_FAILED;
}

static void on_checked(int result, const char *error, void *arg)
{
	session_answered(arg, result, error);
}

int queue_session_open(struct session *session, struct cli *cli, int64_t extra_ms)
{
	int r;

	*session = (struct session){.cli = cli};
	r = queue_session_judge(cli);
	if (!r)
		r = session_connect(session, cli, extra_ms);
	if (!r)
		r = queue_session_add(session);
	if (r)
		return r;
	r = queue_check_types(session->queue, on_checked, session);
	session->result = r;
	if (!r)
		r = session_wait(session);
	/* A Redis user that may not look at all keys may still do what was asked for. */
	if (!r || !strncmp(session->error, "NOPERM", 6))
		return EXIT_FINE;
	return session_failed(session);
}

int queue_session_level(const struct session *session, const char *name, size_t *ret)
{
	const struct queue_keys *keys = queue_keys(session->queue);
	int level = queue_level_find(keys, name, strlen(name));
	char order[QUEUE_ORDER_SIZE];

	if (level >= 0) {
		*ret = (size_t)level;
		return EXIT_FINE;
	}
	queue_order(session->queue, order);
	return cli_usage(session->cli, "queue '%s' has no level '%s', but %s", keys->name, name,
			 order);
}

int queue_session_chosen(const struct session *session, const char **ret)
{
	const char *name = conf_text(&session->cli->conf, CONF_LEVEL);
	size_t ignored;

	*ret = *name ? name : NULL;
	return *name ? queue_session_level(session, name, &ignored) : EXIT_FINE;
}

void queue_order(const struct queue *queue, char ret[static QUEUE_ORDER_SIZE])
{
	const struct queue_keys *keys = queue_keys(queue);
	int64_t aging = queue_config(queue)->aging;
	size_t used = 0;

	for (size_t i = 0; i < keys->level_count; i++)
		used += (size_t)snprintf(ret + used, QUEUE_ORDER_SIZE - used, "%s%s", i ? ", " : "",
					 keys->levels[i].name);
	if (aging)
		snprintf(ret + used, QUEUE_ORDER_SIZE - used, " (1 in %lld from the bottom)",
			 (long long)aging);
	else
		snprintf(ret + used, QUEUE_ORDER_SIZE - used, " (strict)");
}

void queue_session_note_order(const struct session *session)
{
	char order[QUEUE_ORDER_SIZE];

	if (!conf_bool(&session->cli->conf, CONF_VERBOSE))
		return;
	queue_order(session->queue, order);
	cli_note(session->cli, "queue '%s': order %s", queue_keys(session->queue)->name, order);
}

int queue_session_finish(struct session *session, int r)
{
	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}
