/* entry.c - the end of every entry: merge equals, count, call back. */
#include "list/entry.h"

#include <string.h>

#include "list/item.h"
#include "list/mask.h"

int list_output_init(struct list_output *o, const struct endpoint_rules *rules, size_t max_entries,
		     list_entry_cb *cb, void *arg)
{
	memset(o, 0, sizeof(*o));
	o->rules = *rules;
	o->cb = cb;
	o->arg = arg;
	return dedupe_init(&o->seen, max_entries);
}

void list_output_fini(struct list_output *o)
{
	dedupe_fini(&o->seen);
	explicit_bzero(o->text, sizeof(o->text));
}

static void output_call(struct list_output *o, const struct list_entry *e)
{
	o->counts[e->verdict]++;
	o->cb(e, o->arg);
}

int list_output_endpoint(struct list_output *o, uint64_t line, const struct endpoint *e)
{
	struct list_entry entry = {.line = line, .endpoint = e, .text = o->text, .scheme = ""};
	size_t len = endpoint_print(e, SHOW_SECRET, o->text, sizeof(o->text));
	int r = dedupe_add(&o->seen, o->text, len);

	if (r < 0)
		return r;
	entry.verdict = r ? VERDICT_DUPLICATE : VERDICT_ACCEPTED;
	if (e->secret)
		endpoint_print(e, HIDE_SECRET, o->text, sizeof(o->text));
	output_call(o, &entry);
	return 0;
}

/* The word in front of "://". */
static void scheme_copy(char scheme[LIST_SCHEME_MAX], const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && n < LIST_SCHEME_MAX - 1 && text[n] != ':') {
		scheme[n] = (char)(text[n] >= 'A' && text[n] <= 'Z' ? text[n] | 0x20 : text[n]);
		n++;
	}
	scheme[n] = '\0';
}

void list_output_verdict(struct list_output *o, uint64_t line, enum verdict verdict,
			 const char *text, size_t len)
{
	char scheme[LIST_SCHEME_MAX] = "";
	struct list_entry entry = {
	    .line = line, .verdict = verdict, .text = o->text, .scheme = scheme};

	list_mask(text, len, verdict, o->text, sizeof(o->text));
	if (verdict == VERDICT_UNSUPPORTED_SCHEME)
		scheme_copy(scheme, text, len);
	output_call(o, &entry);
}

int list_output_item(struct list_output *o, uint64_t line, const char *text, size_t len)
{
	struct endpoint e;
	int r = list_item_read(&e, text, len, &o->rules);

	if (r < 0)
		return r;
	if (r > 0) {
		list_output_verdict(o, line, (enum verdict)r, text, len);
		return 0;
	}
	r = list_output_endpoint(o, line, &e);
	endpoint_fini(&e);
	return r;
}
