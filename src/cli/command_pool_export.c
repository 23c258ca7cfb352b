/* command_pool_export.c - fairlead pool export */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "cli/session.h"
#include "pool/view.h"

#define PAGE ((size_t)256)

struct name {
	char *text;
	size_t len;
};

struct export
{
	struct session *session;
	struct name *names;
	size_t count, next; /* names[next..] are still to be printed */
	size_t unusable;
};

/* A line that import reads back, or a comment that tells why it would not. */
static void print_member(struct export *export, const struct name *name, const struct reply *secret)
{
	struct endpoint endpoint;
	char url[ENDPOINT_TEXT_MAX], shown[256];
	bool needs_secret;

	if (endpoint_parse_id(&endpoint, &needs_secret, name->text, name->len)) {
		/* Any program may have put it there: it must not end the comment, nor steer a terminal. */
		secret_print(name->text, shown, sizeof shown);
		printf("# no proxy: %s\n", shown);
		export->unusable++;
		return;
	}
	if (needs_secret && reply_kind(secret) == REPLY_TEXT)
		endpoint.secret = strdup(reply_text(secret, NULL));
	endpoint_print(&endpoint, SHOW_SECRET, url, sizeof url);
	if (needs_secret && !endpoint.secret)
		printf("# its credentials are missing: %s\n", name->text);
	else if (endpoint.scheme == SCHEME_DIRECT)
		printf("# by 'fairlead pool add' only: %s\n", url);
	else
		printf("%s\n", url);
	export->unusable += (needs_secret && !endpoint.secret) || endpoint.scheme == SCHEME_DIRECT;
	endpoint_fini(&endpoint);
}

static size_t page_size(const struct export *export)
{
	size_t left = export->count - export->next;

	return left < PAGE ? left : PAGE;
}

static void on_secrets(int result, const struct reply *reply, void *arg)
{
	struct export *export = arg;
	size_t count = page_size(export);

	for (size_t i = 0; i < count && !result; i++)
		print_member(export, &export->names[export->next + i], reply_at(reply, i));
	export->next += count;
	session_answered(export->session, result, result ? reply_text(reply, NULL) : "");
}

/* The credentials of one page of members are asked for together. */
static int print_page(struct export *export)
{
	struct session *session = export->session;
	struct word words[2 + PAGE];
	size_t count = page_size(export);
	int r;

	words[0] = WORD("HMGET");
	words[1] = pool_key(pool_keys(session->pool), KEY_SECRETS);
	for (size_t i = 0; i < count; i++) {
		const struct name *name = &export->names[export->next + i];

		words[2 + i] = (struct word){name->text, name->len};
	}
	r = store_command(session->store, STORE_IDEMPOTENT, words, 2 + count, on_secrets, export);
	session->result = r;
	return r || session_wait(session) ? session_failed(session) : EXIT_FINE;
}

static int by_bytes(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* Takes the names along, in an order that does not change with the counts. */
static void on_view(int result, const char *error, struct member_view *views, size_t count,
		    void *arg)
{
	struct export *export = arg;

	export->names = calloc(count ? count : 1, sizeof *export->names);
	for (size_t i = 0; export->names && i < count; i++) {
		export->names[i] = (struct name){views[i].id, views[i].id_len};
		views[i].id = NULL;
	}
	export->count = export->names ? count : 0;
	if (export->count)
		qsort(export->names, export->count, sizeof *export->names, by_bytes);
	session_answered(export->session, result, error);
}

static int run(struct session *session)
{
	struct export export = {.session = session};
	int r = pool_view(session->pool, on_view, &export);

	session->result = r;
	r = r || session_wait(session) ? session_failed(session) : EXIT_FINE;
	while (r == EXIT_FINE && export.next < export.count)
		r = print_page(&export);
	if (r == EXIT_FINE)
		cli_note(session->cli, "%zu members of pool '%s'%s", export.count,
			 pool_name(session->pool),
			 export.unusable ? "; those that cannot be imported stand as comments"
					 : "");
	for (size_t i = 0; i < export.count; i++)
		free(export.names[i].text);
	free(export.names);
	return r;
}

int command_pool_export(struct cli *cli)
{
	struct session session;
	int r = session_open(&session, cli);

	if (r == EXIT_FINE)
		r = run(&session);
	session_close(&session);
	return r;
}
