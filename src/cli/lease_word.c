/* lease_word.c - a lease as commands name it: ID:TOKEN. */
#include "cli/lease_word.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHARACTERS "0123456789abcdef-"

int lease_word_parse(struct lease_word *ret, const char *text)
{
	size_t id_len = strspn(text, CHARACTERS);
	const char *token = text + id_len + 1;
	size_t token_len = text[id_len] == ':' ? strspn(token, CHARACTERS) : 0;

	if (!id_len || id_len > LEASE_ID_MAX || !token_len || token_len > LEASE_TOKEN_MAX ||
	    token[token_len])
		return -EINVAL;
	snprintf(ret->id, sizeof ret->id, "%.*s", (int)id_len, text);
	snprintf(ret->token, sizeof ret->token, "%s", token);
	return 0;
}

void lease_word_print(const struct lease *lease, char ret[static LEASE_WORD_SIZE])
{
	snprintf(ret, LEASE_WORD_SIZE, "%s:%s", lease->id, lease->token);
}

static void on_answer(int result, const char *error, void *arg)
{
	session_answered(arg, result, error);
}

/* EXIT_FINE, or an exit status after a message; `*ret_stale` counts. */
static int ask_one(struct session *session, const struct lease_word *word, lease_word_ask *ask,
		   const char *done, int *stale)
{
	int r = ask(session, word, on_answer, session);

	session->result = r;
	if (!r)
		r = session_wait(session);
	if (r == REASON_LEASE_STALE) {
		++*stale;
		cli_error(session->cli,
			  "pool '%s' has no such lease %s: it has run out, was released, or has "
			  "another token; nothing was changed",
			  pool_name(session->pool), word->id);
		return EXIT_FINE;
	}
	if (r)
		return session_failed(session);
	cli_note(session->cli, "lease %s %s", word->id, done);
	return EXIT_FINE;
}

static int parse_all(struct cli *cli, struct lease_word *words)
{
	for (int i = 0; i < cli->arg_count; i++)
		if (lease_word_parse(&words[i], cli->args[i]))
			return cli_usage(
			    cli,
			    "'%.140s' is no lease: expected ID:TOKEN, as 'pool acquire' prints it",
			    cli->args[i]);
	return EXIT_FINE;
}

static int ask_all(struct session *session, const struct lease_word *words, lease_word_ask *ask,
		   const char *done)
{
	int r = session_read_rules(session), stale = 0;

	for (int i = 0; i < session->cli->arg_count && r == EXIT_FINE; i++)
		r = ask_one(session, &words[i], ask, done, &stale);
	return r == EXIT_FINE && stale ? EXIT_FAILED : r;
}

int lease_words_ask(struct cli *cli, lease_word_ask *ask, const char *done)
{
	struct lease_word *words = calloc((size_t)cli->arg_count, sizeof *words);
	struct session session;
	int r = words ? parse_all(cli, words) : EXIT_FAILED;

	if (r == EXIT_FINE) {
		r = session_open(&session, cli);
		if (r == EXIT_FINE)
			r = ask_all(&session, words, ask, done);
		session_close(&session);
	}
	free(words);
	return r;
}
