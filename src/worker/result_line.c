/* result_line.c - a result as a line of JSON. */
#include "worker/result_line.h"

#include <string.h>

#include "base/clock.h"
#include "worker/json_text.h"

/* A name and what goes before it; behind it stands its value. */
static int add_name(struct buffer *to, const char *name)
{
	return buffer_printf(to, ",\"%s\":", name);
}

static int add_text(struct buffer *to, const char *name, const char *text)
{
	int r = text ? add_name(to, name) : 0;

	return r || !text ? r : json_add_text(to, text, strlen(text));
}

static int add_number(struct buffer *to, const char *name, int64_t number)
{
	return buffer_printf(to, ",\"%s\":%lld", name, (long long)number);
}

/* Text if it is UTF-8, else base 64 under another name. */
static int add_bytes(struct buffer *to, const char *name, const char *bytes, size_t len)
{
	bool is_text = text_is_utf8(bytes, len);
	int r = buffer_printf(to, ",\"%s%s\":", name, is_text ? "" : "_base64");

	if (r)
		return r;
	return is_text ? json_add_text(to, bytes, len) : json_add_base64(to, bytes, len);
}

/* --- the parts ---------------------------------------------------------------------------------------------------- */

static int add_task(struct buffer *to, const struct result_facts *facts)
{
	const struct claim *claim = facts->claim;
	const struct task *task = facts->task;
	int r = buffer_add_text(to, "{\"task\":");

	if (!r)
		r = json_add_text(to, claim->id, strlen(claim->id));
	if (!r && task)
		r = add_text(to, "id", task->id);
	if (!r)
		r = add_text(to, "level", facts->level);
	if (!r)
		r = add_text(to, "outcome", outcome_word(facts->outcome));
	if (!r)
		r = add_number(to, "attempts", claim->failures + claim->lost + 1);
	if (!r)
		r = task ? add_text(to, "url", task->shown)
			 : add_bytes(to, "payload", claim->payload, claim->len);
	if (r || !task || !task->meta)
		return r;
	r = add_name(to, "meta");
	return r ? r : buffer_add_text(to, task->meta);
}

static int add_headers(struct buffer *to, const struct visit_answer *answer)
{
	int r = add_name(to, "headers");

	for (size_t i = 0; i < answer->header_count && !r; i++) {
		const struct visit_header *header = &answer->headers[i];

		r = buffer_add_text(to, i ? ",[" : "[[");
		if (!r)
			r = json_add_text(to, header->name, strlen(header->name));
		if (!r)
			r = buffer_add(to, ",", 1);
		if (!r)
			r = json_add_text(to, header->value, strlen(header->value));
		if (!r)
			r = buffer_add(to, "]", 1);
	}
	return r ? r : buffer_add_text(to, answer->header_count ? "]" : "[]");
}

static int add_timings(struct buffer *to, const struct visit_answer *answer)
{
	const struct {
		const char *name;
		int64_t us;
	} times[] = {{"name", answer->name_us},
		     {"connect", answer->connect_us},
		     {"tls", answer->tls_us},
		     {"first_byte", answer->first_byte_us},
		     {"total", answer->total_us}};
	int r = add_name(to, "timings_ms");

	for (size_t i = 0; i < sizeof times / sizeof *times && !r; i++)
		r = buffer_printf(to, "%c\"%s\":%lld.%03lld", i ? ',' : '{', times[i].name,
				  (long long)times[i].us / 1000, (long long)times[i].us % 1000);
	return r ? r : buffer_add(to, "}", 1);
}

static int add_body(struct buffer *to, const struct result_facts *facts)
{
	const struct visit_answer *answer = facts->carried->answer;
	int r = add_number(to, "bytes", (int64_t)answer->len);

	if (r)
		return r;
	if (facts->body_file)
		return add_text(to, "body_file", facts->body_file);
	return add_bytes(to, "body", answer->body, answer->len);
}

static int add_answer(struct buffer *to, const struct result_facts *facts)
{
	const struct visit_answer *answer = facts->carried->answer;
	int r = add_text(to, "final_url", answer->final_url);

	if (!r)
		r = add_number(to, "status", answer->status);
	if (!r)
		r = add_text(to, "http_version", answer->http_version);
	if (!r)
		r = add_headers(to, answer);
	if (!r)
		r = add_body(to, facts);
	return r ? r : add_timings(to, answer);
}

/* An attempt that was not answered has timings all the same. */
static int add_attempt(struct buffer *to, const struct result_facts *facts)
{
	const struct carried *carried = facts->carried;
	int r = add_text(to, "member", carried->member);

	if (!r)
		r = add_number(to, "tries", carried->tries);
	if (r || !carried->answer)
		return r;
	return carried->answer->status ? add_answer(to, facts) : add_timings(to, carried->answer);
}

static int add_times(struct buffer *to, const struct carried *carried)
{
	char began[32];
	int r;

	clock_format(carried->began_ms, began, sizeof began);
	r = add_text(to, "began", began);
	return r ? r : add_number(to, "took_ms", carried->took_ms);
}

static int add_error(struct buffer *to, const struct carried *carried)
{
	const char *word = result_word(carried->reason);
	int r = buffer_add_text(to, ",\"error\":{\"reason\":");

	if (!r)
		r = json_add_text(to, word, strlen(word));
	if (!r && carried->detail && *carried->detail)
		r = add_text(to, "detail", carried->detail);
	return r ? r : buffer_add(to, "}", 1);
}

int result_line_add(struct buffer *to, const struct result_facts *facts)
{
	const struct carried *carried = facts->carried;
	size_t before = to->end - to->start;
	int r = add_task(to, facts);

	if (!r && carried)
		r = add_attempt(to, facts);
	if (!r && carried)
		r = add_times(to, carried);
	if (!r && carried && carried->reason)
		r = add_error(to, carried);
	if (!r)
		r = buffer_add_text(to, "}\n");
	if (r)
		to->end = to->start + before;
	return r;
}
