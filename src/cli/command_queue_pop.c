/* command_queue_pop.c - fairlead queue pop: what any Redis client can do, for those who want just that. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/payload.h"
#include "cli/queue_session.h"

struct popping {
	struct session session;
	size_t level; /* that is asked without blocking */
	bool is_found;
};

static void print(const struct cli *cli, const char *level, struct word payload)
{
	json_t *object;

	if (conf_bool(&cli->conf, CONF_RAW)) {
		fwrite(payload.at, 1, payload.len, stdout);
	} else if (conf_bool(&cli->conf, CONF_JSON)) {
		object = json_pack("{s:s}", "level", level);
		if (object && payload_json(object, payload)) {
			json_decref(object);
			object = NULL;
		}
		payload_print_json(stdout, object);
	} else {
		payload_print(stdout, payload);
		putchar('\n');
	}
}

/* The name of the level whose list was popped. */
static const char *level_name(const struct queue_keys *keys, const struct reply *list)
{
	for (size_t i = 0; i < keys->level_count; i++)
		if (strcmp(keys->levels[i].list, reply_text(list, NULL)) == 0)
			return keys->levels[i].name;
	return "";
}

/* BRPOP answers with the list and the payload, RPOP with the payload alone; both with nil for none. */
static void on_popped(int result, const struct reply *reply, void *arg)
{
	struct popping *popping = arg;
	const struct queue_keys *keys = queue_keys(popping->session.queue);
	bool has_list = reply_kind(reply) == REPLY_ARRAY;
	const struct reply *text = has_list ? reply_at(reply, 1) : reply;
	struct word payload = {.at = reply_text(text, &payload.len)};

	popping->is_found = !result && reply_kind(text) == REPLY_TEXT;
	if (popping->is_found)
		print(popping->session.cli,
		      has_list ? level_name(keys, reply_at(reply, 0))
			       : keys->levels[popping->level].name,
		      payload);
	session_answered(&popping->session, result,
			 reply_kind(reply) == REPLY_ERROR ? reply_text(reply, NULL) : "");
}

/* Never repeated: a task whose answer was lost is gone. */
static int ask(struct popping *popping, const struct word *words, size_t count)
{
	return queue_session_finish(
	    &popping->session,
	    store_command(popping->session.store, 0, words, count, on_popped, popping));
}

static int pop_blocking(struct popping *popping, int64_t block_ms)
{
	const struct queue_keys *keys = queue_keys(popping->session.queue);
	struct word words[2 + QUEUE_LEVELS_MAX] = {WORD("BRPOP")};
	char seconds[32];

	for (size_t i = 0; i < keys->level_count; i++)
		words[1 + i] = WORD(keys->levels[i].list);
	snprintf(seconds, sizeof seconds, "%" PRId64 ".%03" PRId64, block_ms / 1000,
		 block_ms % 1000);
	words[1 + keys->level_count] = WORD(seconds);
	return ask(popping, words, 2 + keys->level_count);
}

static int pop_at_once(struct popping *popping)
{
	const struct queue_keys *keys = queue_keys(popping->session.queue);
	int r = EXIT_FINE;

	for (size_t i = 0; i < keys->level_count && !r && !popping->is_found; i++) {
		popping->level = i;
		r = ask(popping, (struct word[]){WORD("RPOP"), WORD(keys->levels[i].list)}, 2);
	}
	return r;
}

int command_queue_pop(struct cli *cli)
{
	int64_t block_ms = conf_ms(&cli->conf, CONF_BLOCK);
	struct popping popping = {0};
	int r;

	if (conf_bool(&cli->conf, CONF_RAW) && conf_bool(&cli->conf, CONF_JSON))
		return cli_usage(cli, "--raw and --json exclude each other");
	r = queue_session_open(&popping.session, cli, block_ms);
	if (!r) {
		queue_session_note_order(&popping.session);
		r = block_ms ? pop_blocking(&popping, block_ms) : pop_at_once(&popping);
	}
	session_close(&popping.session);
	return r || popping.is_found ? r : EXIT_NOTHING;
}
