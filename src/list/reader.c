/* reader.c - a proxy list of any kind, from its bytes to its entries. */
#include "list/reader.h"

#include "list/detect.h"

int list_reader_init(struct list_reader *r, const struct endpoint_rules *rules, size_t max_entries,
		     list_entry_cb *cb, void *arg)
{
	r->kind = LIST_UNDECIDED;
	buffer_init(&r->head, LIST_HEAD_MAX);
	list_lines_init(&r->lines, &r->output);
	return list_output_init(&r->output, rules, max_entries, cb, arg);
}

void list_reader_fini(struct list_reader *r)
{
	buffer_fini(&r->head);
	list_output_fini(&r->output);
}

static int reader_decide(struct list_reader *r)
{
	size_t len = buffer_len(&r->head);
	const char *head = len ? buffer_at(&r->head) : "";
	enum verdict verdict = list_detect(head, len);
	int result = 0;

	if (verdict != VERDICT_ACCEPTED) {
		r->kind = LIST_REFUSED;
		list_output_verdict(&r->output, 0, verdict, "", 0);
	} else {
		r->kind = LIST_LINES;
		result = list_lines_feed(&r->lines, head, len);
	}
	buffer_fini(&r->head);
	return result;
}

static int reader_pass(struct list_reader *r, const char *bytes, size_t len)
{
	return r->kind == LIST_LINES ? list_lines_feed(&r->lines, bytes, len) : 0;
}

int list_reader_feed(struct list_reader *r, const char *bytes, size_t len)
{
	size_t part = buffer_room(&r->head);
	int result;

	if (r->kind != LIST_UNDECIDED)
		return reader_pass(r, bytes, len);
	if (part > len)
		part = len;
	result = buffer_add(&r->head, bytes, part);
	if (result || buffer_room(&r->head) > 0)
		return result;
	result = reader_decide(r);
	return result ? result : reader_pass(r, bytes + part, len - part);
}

int list_reader_end(struct list_reader *r)
{
	int result = 0;

	if (r->kind == LIST_UNDECIDED)
		result = reader_decide(r);
	if (result || r->kind != LIST_LINES)
		return result;
	return list_lines_end(&r->lines);
}
