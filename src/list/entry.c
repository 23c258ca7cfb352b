/* entry.c - the end of every entry: merge equals, count, call back. */
#include "list/entry.h"

#include <string.h>

#include "list/item.h"
#include "list/mask.h"
#include "list/plain.h"

static const struct list_tags no_tags;

int list_output_init(struct list_output *o, const struct endpoint_rules *rules, size_t max_entries,
		     list_entry_cb *cb, void *arg)
{
	memset(o, 0, sizeof(*o));
	o->rules = *rules;
	o->cb = cb;
	o->arg = arg;
	list_hold_init(&o->hold, max_entries);
	return dedupe_init(&o->seen, max_entries);
}

void list_output_fini(struct list_output *o)
{
	dedupe_fini(&o->seen);
	list_hold_fini(&o->hold);
	explicit_bzero(o->text, sizeof(o->text));
}

static void output_call(const struct list_entry *e, void *arg)
{
	struct list_output *o = arg;

	o->counts[e->verdict]++;
	o->cb(e, o->arg);
}

static int output_tell(struct list_output *o, const struct list_entry *e)
{
	if (o->is_holding)
		return list_hold_add(&o->hold, e);
	output_call(e, o);
	return 0;
}

int list_output_endpoint(struct list_output *o, uint64_t line, const struct endpoint *e,
			 const struct list_tags *tags)
{
	const struct list_tags *t = tags ? tags : &no_tags;
	struct list_entry entry = {.line = line,
				   .endpoint = e,
				   .text = o->text,
				   .scheme = "",
				   .country = t->country,
				   .anonymity = t->anonymity};
	struct dedupe_item item = {
	    .text = o->text, .country = t->country, .anonymity = t->anonymity};
	int r;

	item.len = endpoint_print(e, SHOW_SECRET, o->text, sizeof(o->text));
	r = dedupe_add(&o->seen, &item);
	if (r < 0)
		return r;
	entry.verdict = r ? VERDICT_DUPLICATE : VERDICT_ACCEPTED;
	if (e->secret)
		endpoint_print(e, HIDE_SECRET, o->text, sizeof(o->text));
	return output_tell(o, &entry);
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

int list_output_verdict(struct list_output *o, uint64_t line, enum verdict verdict,
			const char *text, size_t len)
{
	char scheme[LIST_SCHEME_MAX] = "";
	struct list_entry entry = {.line = line,
				   .verdict = verdict,
				   .text = o->text,
				   .scheme = scheme,
				   .country = "",
				   .anonymity = ""};

	list_mask(text, len, verdict, o->text, sizeof(o->text));
	if (verdict == VERDICT_UNSUPPORTED_SCHEME)
		scheme_copy(scheme, text, len);
	return output_tell(o, &entry);
}

/* Returns 0 and fills `ret`, an `enum verdict` or -ENOMEM. */
static int item_read(struct endpoint *ret, const char *text, size_t len,
		     const struct endpoint_rules *rules)
{
	struct endpoint_parts parts;
	int r;

	if (list_plain_read(ret, text, len, rules))
		return 0;
	r = list_item_split(&parts, text, len, rules);
	return r ? r : parts_build(ret, &parts, rules);
}

int list_output_item(struct list_output *o, uint64_t line, const char *text, size_t len)
{
	struct endpoint e;
	int r = item_read(&e, text, len, &o->rules);

	if (r < 0)
		return r;
	if (r > 0)
		return list_output_verdict(o, line, (enum verdict)r, text, len);
	r = list_output_endpoint(o, line, &e, NULL);
	endpoint_fini(&e);
	return r;
}

void list_output_hold(struct list_output *o)
{
	o->is_holding = true;
}

void list_output_release(struct list_output *o)
{
	o->is_holding = false;
	list_hold_release(&o->hold, output_call, o);
}

int list_output_drop(struct list_output *o)
{
	size_t max = o->seen.max;

	o->is_holding = false;
	list_hold_drop(&o->hold);
	dedupe_fini(&o->seen);
	return dedupe_init(&o->seen, max);
}
