/* command_pool_export.c - fairlead pool export */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "cli/output.h"
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
	struct output *json; /* NULL: lines */
};

/* A line that import reads back. */
static void print_proxy(struct export *export, const char *url)
{
	if (export->json)
		output_row(export->json, (struct cell[]){CELL_TEXT(url)});
	else
		printf("%s\n", url);
}

/* What import would not take: a comment that tells why. Any program may have put a name into the pool: it must not
 * end the comment, nor steer a terminal. */
static void print_comment(struct export *export, const char *why, const char *text)
{
	char shown[256];

	export->unusable++;
	secret_print(text, shown, sizeof shown);
	if (!export->json)
		printf("# %s: %s\n", why, shown);
}

static void print_member(struct export *export, const struct name *name, const struct reply *secret)
{
	struct endpoint endpoint;
	char url[ENDPOINT_TEXT_MAX];
	bool needs_secret;

	if (endpoint_parse_id(&endpoint, &needs_secret, name->text, name->len)) {
		print_comment(export, "no proxy", name->text);
		return;
	}
	if (needs_secret && reply_kind(secret) == REPLY_TEXT)
		endpoint.secret = strdup(reply_text(secret, NULL));
	endpoint_print(&endpoint, SHOW_SECRET, url, sizeof url);
	if (needs_secret && !endpoint.secret)
		print_comment(export, "its credentials are missing", name->text);
	else if (endpoint.scheme == SCHEME_DIRECT)
		print_comment(export, "by 'fairlead pool add' only", url);
	else
		print_proxy(export, url);
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
	static const struct column columns[] = {{"proxy"}};
	bool is_json = conf_bool(&session->cli->conf, CONF_JSON);
	struct output json;
	struct export export = {.session = session, .json = is_json ? &json : NULL};
	int r = pool_view(session->pool, on_view, &export);

	session->result = r;
	r = r || session_wait(session) ? session_failed(session) : EXIT_FINE;
	if (is_json)
		output_begin(&json, stdout, OUTPUT_JSON, columns, 1);
	while (r == EXIT_FINE && export.next < export.count)
		r = print_page(&export);
	if (is_json)
		output_finish(&json);
	if (r == EXIT_FINE)
		cli_note(session->cli, "%zu members of pool '%s'%s", export.count,
			 pool_name(session->pool),
			 export.unusable
			     ? "; those that cannot be imported are left out, or stand as comments"
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
