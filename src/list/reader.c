/* reader.c - a proxy list of any kind, from its bytes to its entries. */
#include "list/reader.h"

int list_reader_init(struct list_reader *r, const struct endpoint_rules *rules, size_t max_entries,
		     list_entry_cb *cb, void *arg)
{
	r->format = LIST_AUTO;
	r->is_decided = false;
	buffer_init(&r->head, LIST_HEAD_MAX);
	return list_output_init(&r->output, rules, max_entries, cb, arg);
}

static void format_fini(struct list_reader *r)
{
	switch (r->format) {
	case LIST_LINES:
		list_lines_fini(&r->as.lines);
		break;
	case LIST_CSV:
		list_csv_fini(&r->as.csv);
		break;
	case LIST_JSON:
	case LIST_JSONL:
		list_json_fini(&r->as.json);
		break;
	case LIST_AUTO:
	case LIST_FORMAT_COUNT:
		break;
	}
}

void list_reader_fini(struct list_reader *r)
{
	if (r->is_decided)
		format_fini(r);
	r->is_decided = false;
	buffer_fini(&r->head);
	list_output_fini(&r->output);
}

void list_reader_force(struct list_reader *r, enum list_format format)
{
	r->format = format;
}

static void format_init(struct list_reader *r)
{
	switch (r->format) {
	case LIST_LINES:
		list_lines_init(&r->as.lines, &r->output);
		break;
	case LIST_CSV:
		list_csv_init(&r->as.csv, &r->output);
		break;
	case LIST_JSON:
	case LIST_JSONL:
		list_json_init(&r->as.json, &r->output, r->format == LIST_JSONL);
		break;
	case LIST_AUTO:
	case LIST_FORMAT_COUNT:
		break;
	}
}

static int reader_pass(struct list_reader *r, const char *bytes, size_t len)
{
	switch (r->format) {
	case LIST_LINES:
		return list_lines_feed(&r->as.lines, bytes, len);
	case LIST_CSV:
		return list_csv_feed(&r->as.csv, bytes, len);
	case LIST_JSON:
	case LIST_JSONL:
		return list_json_feed(&r->as.json, bytes, len);
	case LIST_AUTO: /* refused */
	case LIST_FORMAT_COUNT:
		break;
	}
	return 0;
}

static int reader_decide(struct list_reader *r)
{
	size_t len = buffer_len(&r->head);
	const char *head = len ? buffer_at(&r->head) : "";
	enum verdict verdict = list_detect(head, len);
	int result;

	r->is_decided = true;
	if (verdict != VERDICT_ACCEPTED) {
		r->format = LIST_AUTO;
		result = list_output_verdict(&r->output, 0, verdict, "", 0);
	} else {
		if (r->format == LIST_AUTO)
			r->format = list_format_detect(head, len);
		format_init(r);
		result = reader_pass(r, head, len);
	}
	buffer_fini(&r->head);
	return result;
}

int list_reader_feed(struct list_reader *r, const char *bytes, size_t len)
{
	size_t part = buffer_room(&r->head);
	int result;

	if (r->is_decided)
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

	if (!r->is_decided)
		result = reader_decide(r);
	if (result)
		return result;
	switch (r->format) {
	case LIST_LINES:
		return list_lines_end(&r->as.lines);
	case LIST_CSV:
		return list_csv_end(&r->as.csv);
	case LIST_JSON:
	case LIST_JSONL:
		return list_json_end(&r->as.json);
	case LIST_AUTO: /* refused */
	case LIST_FORMAT_COUNT:
		break;
	}
	return 0;
}

bool list_reader_next(const struct list_reader *r, size_t *at, struct dedupe_item *ret)
{
	return dedupe_next(&r->output.seen, at, ret);
}
