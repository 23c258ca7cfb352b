/* json.c - proxy lists as JSON: documents, or one document a line. */
#include "list/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "list/fields.h"
#include "list/lines.h"
#include "list/text.h"

#define NUMBERS_MAX 16
#define EXACT_MAX 9007199254740992.0 /* 2^53 */

/* An object on its way to fields; numbers need a place for their text. */
struct members {
	struct fields fields;
	char numbers[NUMBERS_MAX][24];
	size_t number_count;
};

static int verdict_tell(struct list_json *j, uint64_t line, enum verdict verdict)
{
	return list_output_verdict(j->output, line, verdict, "", 0);
}

/* --- members ---------------------------------------------------------------------------------- */

static struct span string_span(const json_t *value)
{
	return (struct span){json_string_value(value), json_string_length(value)};
}

/* Whether a number is one that its text can be made of again. */
static bool is_exact(double value)
{
	return value >= -EXACT_MAX && value <= EXACT_MAX && value == (double)(int64_t)value;
}

/* All numbers come as real ones, so that one with many digits does not cost its element. A port
 * with a fraction gets a text that is no number, a large one a text that is out of range. */
static const char *number_print(double value, char *buffer, size_t size)
{
	if (is_exact(value)) {
		snprintf(buffer, size, "%" PRId64, (int64_t)value);
		return buffer;
	}
	return value > EXACT_MAX ? "65536" : "?";
}

static void number_take(struct members *m, int name, double value)
{
	const char *text;

	if (m->number_count == NUMBERS_MAX ||
	    (!is_exact(value) && field_name_field(name) != FIELD_PORT)) {
		m->fields.is_misshapen = true;
		return;
	}
	text = number_print(value, m->numbers[m->number_count++], sizeof(m->numbers[0]));
	fields_set(&m->fields, name, (struct span){text, strlen(text)});
}

static void schemes_take(struct members *m, int name, const json_t *array)
{
	struct span schemes[FIELD_SCHEMES_MAX + 1];
	size_t count = 0, i;
	json_t *value;

	json_array_foreach(array, i, value)
	{
		if (!json_is_string(value) || count > FIELD_SCHEMES_MAX)
			m->fields.is_misshapen = true;
		else
			schemes[count++] = string_span(value);
	}
	fields_set_schemes(&m->fields, name, schemes, count);
}

static void string_take(struct members *m, int name, struct span text)
{
	if (field_name_field(name) != FIELD_SCHEME)
		fields_set(&m->fields, name, text);
	else if (text.len > 0)
		fields_set_schemes(&m->fields, name, &text, 1);
}

/* Where an object has its country one level down. */
static bool is_place(const char *key)
{
	return strcasecmp(key, "geolocation") == 0 || strcasecmp(key, "ip_data") == 0 ||
	       strcasecmp(key, "location") == 0;
}

static void place_take(struct members *m, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		int name = field_name_find((struct span){key, strlen(key)});

		if (name >= 0 && field_name_field(name) == FIELD_COUNTRY && json_is_string(value))
			fields_set(&m->fields, name, string_span(value));
	}
}

/* A value that is neither string nor number. */
static void other_take(struct members *m, int name, json_t *value)
{
	static const struct span no_port = {"?", 1};

	switch (field_name_field(name)) {
	case FIELD_COUNTRY:
		if (json_is_object(value))
			place_take(m, value);
		break;
	case FIELD_ANONYMITY:
	case FIELD_PROXY: /* often a mere flag */
		break;
	case FIELD_PORT:
		fields_set(&m->fields, name, no_port);
		break;
	case FIELD_SCHEME:
		if (json_is_array(value)) {
			schemes_take(m, name, value);
			break;
		}
		m->fields.is_misshapen = true;
		break;
	case FIELD_HOST:
	case FIELD_USER:
	case FIELD_PASSWORD:
	case FIELD_COUNT:
		m->fields.is_misshapen = true;
	}
}

static bool takes_numbers(enum field field)
{
	return field == FIELD_HOST || field == FIELD_PORT || field == FIELD_USER ||
	       field == FIELD_PASSWORD;
}

/* null is as good as absent. */
static void member_take(struct members *m, const char *key, json_t *value)
{
	int name = field_name_find((struct span){key, strlen(key)});

	if (name < 0) {
		if (is_place(key) && json_is_object(value))
			place_take(m, value);
		return;
	}
	if (json_is_string(value))
		string_take(m, name, string_span(value));
	else if (json_is_number(value) && takes_numbers(field_name_field(name)))
		number_take(m, name, json_number_value(value));
	else if (!json_is_null(value))
		other_take(m, name, value);
}

/* --- elements --------------------------------------------------------------------------------- */

/* A text to be read. */
struct element {
	struct span text;
	uint64_t line;
	int scheme;
	bool is_document;
};

/* Nothing was found in it. */
static int element_reject(struct list_json *j, const struct element *e, enum verdict verdict)
{
	if (e->is_document)
		j->document_verdict = verdict;
	return verdict_tell(j, e->line, verdict);
}

static int object_read(struct list_json *j, const struct element *e, json_t *object)
{
	struct members m = {.number_count = 0};
	const char *key;
	json_t *value;

	fields_init(&m.fields);
	json_object_foreach(object, key, value) member_take(&m, key, value);
	if (!fields_have_endpoint(&m.fields))
		return element_reject(j, e, VERDICT_JSON_SHAPE);
	return fields_report(&m.fields, j->output, e->line);
}

static int string_read(struct list_json *j, const struct element *e, struct span text)
{
	text = span_trim(text);
	if (text.len > LIST_LINE_MAX)
		return verdict_tell(j, e->line, VERDICT_LINE_TOO_LONG);
	return list_output_item(j->output, e->line, text.at, text.len);
}

static int value_read(struct list_json *j, const struct element *e, json_t *value)
{
	if (json_is_object(value))
		return object_read(j, e, value);
	if (json_is_string(value))
		return string_read(j, e, string_span(value));
	return element_reject(j, e, VERDICT_JSON_SHAPE);
}

static int element_read(struct list_json *j, const struct element *e)
{
	enum scheme default_scheme = j->output->rules.default_scheme;
	const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
	json_error_t error;
	json_t *value = json_loadb(e->text.at, e->text.len, flags, &error);
	int r;

	if (!value && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!value)
		return element_reject(j, e, VERDICT_JSON_SYNTAX);
	if (e->scheme >= 0)
		j->output->rules.default_scheme = (enum scheme)e->scheme;
	r = value_read(j, e, value);
	j->output->rules.default_scheme = default_scheme;
	json_decref(value);
	return r;
}

static int document_read(struct list_json *j, const struct element *e)
{
	return e->text.at ? element_read(j, e) : element_reject(j, e, VERDICT_JSON_SHAPE);
}

static int piece_read(enum json_piece piece, uint64_t line, const char *text, size_t len,
		      int scheme, void *arg)
{
	struct list_json *j = arg;
	struct element e = {{text, len}, line, scheme, piece == JSON_DOCUMENT};

	if (j->is_dry)
		return 0;
	switch (piece) {
	case JSON_ELEMENT:
		return element_read(j, &e);
	case JSON_DOCUMENT:
		return document_read(j, &e);
	case JSON_TOO_LONG:
		return verdict_tell(j, line, VERDICT_LINE_TOO_LONG);
	case JSON_TOO_DEEP:
		break;
	}
	return verdict_tell(j, line, VERDICT_JSON_SYNTAX);
}

/* --- files ------------------------------------------------------------------------------------ */

/* A line is read twice, so that one that does not close tells nothing else. */
static int line_scan(struct list_json *j, uint64_t line, struct span s)
{
	int r = 0;

	for (int pass = 0; pass < 2 && !r; pass++) {
		j->is_dry = pass == 0;
		json_scan_restart(&j->scan, line);
		r = json_scan_feed(&j->scan, s.at, s.len);
		if (!r && (!json_scan_is_closed(&j->scan) || j->scan.document_count == 0))
			return verdict_tell(j, line, VERDICT_JSON_SYNTAX);
	}
	return r;
}

static int json_line(uint64_t line, const char *text, size_t len, void *arg)
{
	struct list_json *j = arg;
	struct span s = span_trim(span_drop_mark((struct span){text, len}));

	if (!text)
		return verdict_tell(j, line, VERDICT_LINE_TOO_LONG);
	if (s.len == 0)
		return verdict_tell(j, line, VERDICT_BLANK);
	if (span_is_comment(s))
		return verdict_tell(j, line, VERDICT_COMMENT);
	if (s.at[0] == '"')
		return element_read(j, &(struct element){s, line, -1, false});
	return line_scan(j, line, s);
}

void list_json_init(struct list_json *j, struct list_output *output, bool is_lines)
{
	j->output = output;
	j->is_lines = is_lines;
	j->is_dry = false;
	j->document_verdict = VERDICT_ACCEPTED;
	json_scan_init(&j->scan, 1, piece_read, j);
	list_split_init(&j->split, JSON_ELEMENT_MAX, json_line, j);
	if (!is_lines)
		list_output_hold(output);
}

void list_json_fini(struct list_json *j)
{
	json_scan_fini(&j->scan);
	list_split_fini(&j->split);
}

int list_json_feed(struct list_json *j, const char *bytes, size_t len)
{
	return j->is_lines ? list_split_feed(&j->split, bytes, len)
			   : json_scan_feed(&j->scan, bytes, len);
}

/* The verdict on the file, or VERDICT_ACCEPTED: it does not close, or it is a single object (an
 * error's text, an unknown shape) in which nothing was found. */
static enum verdict file_verdict(const struct list_json *j)
{
	if (!json_scan_is_closed(&j->scan))
		return VERDICT_JSON_SYNTAX;
	return j->scan.document_count == 1 ? j->document_verdict : VERDICT_ACCEPTED;
}

int list_json_end(struct list_json *j)
{
	enum verdict verdict = file_verdict(j);
	int r;

	if (j->is_lines)
		return list_split_end(&j->split);
	if (verdict == VERDICT_ACCEPTED) {
		list_output_release(j->output);
		return 0;
	}
	r = list_output_drop(j->output);
	return r ? r : verdict_tell(j, 0, verdict);
}
