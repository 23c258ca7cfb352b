/* http_fields.c - header fields: reading them, what they say about the message, finding them again. */
#include <string.h>

#include "base/http_parts.h"

bool text_is(struct text t, const char *word)
{
	size_t i;

	for (i = 0; i < t.len && word[i] != '\0'; i++) {
		if (byte_lower(t.at[i]) != byte_lower(word[i]))
			return false;
	}
	return i == t.len && word[i] == '\0';
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Without SP and HTAB at both ends. */
static struct text text_trim(struct text t)
{
	while (t.len > 0 && is_blank(t.at[0]))
		t = text_skip(t, 1);
	while (t.len > 0 && is_blank(t.at[t.len - 1]))
		t.len--;
	return t;
}

/* Takes the next element of a comma-separated list off `rest`, trimmed, perhaps empty; false at the end. {NULL, 0} is
 * a finished list, {at, 0} one with an empty element. */
static bool text_next(struct text *rest, struct text *ret)
{
	const char *comma;

	if (!rest->at)
		return false;
	comma = memchr(rest->at, ',', rest->len);
	if (comma) {
		*ret = text_trim((struct text){rest->at, (size_t)(comma - rest->at)});
		*rest = text_skip(*rest, (size_t)(comma - rest->at) + 1);
	} else {
		*ret = text_trim(*rest);
		*rest = (struct text){NULL, 0};
	}
	return true;
}

static const struct known_name {
	const char *word;
	enum known_field known;
} known_names[] = {
    [4] = {"host", KNOWN_HOST},
    [6] = {"expect", KNOWN_EXPECT},
    [7] = {"upgrade", KNOWN_UPGRADE},
    [10] = {"connection", KNOWN_CONNECTION},
    [12] = {"max-forwards", KNOWN_MAX_FORWARDS},
    [14] = {"content-length", KNOWN_CONTENT_LENGTH},
    [16] = {"proxy-connection", KNOWN_PROXY_CONNECTION},
    [17] = {"transfer-encoding", KNOWN_TRANSFER_ENCODING},
};

static const struct known_name *known_find(struct text name)
{
	const struct known_name *k = NULL;

	if (name.len < sizeof(known_names) / sizeof(known_names[0]))
		k = &known_names[name.len];
	return k && k->word && text_is(name, k->word) ? k : NULL;
}

/* "Transfer_Encoding" and "Content_Length" are other names to us, but the framing itself to readers that fold '_'
 * into '-': a message must not mean two things. */
static bool is_framing_in_disguise(struct text name)
{
	if (name.len == 17)
		return name.at[8] == '_' && text_is((struct text){name.at, 8}, "transfer") &&
		       text_is(text_skip(name, 9), "encoding");
	if (name.len == 14)
		return name.at[7] == '_' && text_is((struct text){name.at, 7}, "content") &&
		       text_is(text_skip(name, 8), "length");
	return false;
}

/* `hop_only`: of Proxy-Connection, which is no standard, only "close" is believed. Every element counts, empty ones
 * too: http_is_hop_by_hop() walks them for each field. */
static void note_options(struct http_known *known, struct text value, bool hop_only)
{
	struct text option;

	while (text_next(&value, &option)) {
		known->options++;
		if (text_is(option, "close"))
			known->close = true;
		else if (!hop_only && text_is(option, "keep-alive"))
			known->keep_alive = true;
		else if (!hop_only && text_is(option, "upgrade"))
			known->upgrade = true;
	}
}

static void note_known(struct http_known *known, const struct http_field *field)
{
	const struct known_name *k = known_find(field->name);

	if (!k)
		return;
	known->count[k->known]++;
	known->value[k->known] = field->value;
	if (k->known == KNOWN_CONNECTION)
		note_options(known, field->value, false);
	else if (k->known == KNOWN_PROXY_CONNECTION)
		note_options(known, field->value, true);
	else if (k->known == KNOWN_EXPECT && text_is(field->value, "100-continue"))
		known->expect_continue = true;
}

/* RFC 9112 5: field-name ":" OWS field-value OWS. A line that begins with white space (obs-fold, or before the first
 * field) has an empty name and fails here. */
static bool read_field(struct text line, bool space_before_colon, struct http_field *ret)
{
	struct http_field field = {.name = {line.at, text_span(line, BYTE_TOKEN)}};

	line = text_skip(line, field.name.len);
	while (space_before_colon && line.len > 0 && is_blank(line.at[0]))
		line = text_skip(line, 1);
	if (field.name.len == 0 || line.len == 0 || line.at[0] != ':')
		return false;
	field.value = text_trim(text_skip(line, 1));
	if (text_span(field.value, BYTE_VALUE) != field.value.len)
		return false;
	*ret = field;
	return true;
}

int http_read_fields(struct text rest, bool space_before_colon, struct http_field *fields,
		     size_t *field_count, struct http_known *known)
{
	struct text line;
	size_t n = 0;

	*known = (struct http_known){0};
	while (http_take_line(&rest, &line)) {
		if (line.len == 0) {
			*field_count = n;
			return rest.len == 0 ? 0 : REASON_REQUEST_SYNTAX;
		}
		if (n == HTTP_FIELDS_MAX)
			return REASON_REQUEST_HEAD_SIZE;
		if (!read_field(line, space_before_colon, &fields[n]) ||
		    is_framing_in_disguise(fields[n].name))
			return REASON_REQUEST_SYNTAX;
		note_known(known, &fields[n++]);
		if (known->options > HTTP_FIELDS_MAX)
			return REASON_REQUEST_HEAD_SIZE;
	}
	return REASON_REQUEST_SYNTAX;
}

/* RFC 9110 8.6: 1*DIGIT, nothing else. What does not fit into 63 bits is no length that we could count. */
static bool read_length(struct text value, uint64_t *ret)
{
	uint64_t length = 0;
	size_t i;

	/* 19 digits cannot overflow 64 bits. */
	if (value.len == 0 || value.len > 19 || text_span(value, BYTE_DIGIT) != value.len)
		return false;
	for (i = 0; i < value.len; i++)
		length = length * 10 + (uint64_t)(value.at[i] - '0');
	if (length > INT64_MAX)
		return false;
	*ret = length;
	return true;
}

int http_read_framing(const struct http_known *known, int minor, enum http_framing *ret,
		      uint64_t *ret_length)
{
	unsigned codings = known->count[KNOWN_TRANSFER_ENCODING];
	unsigned lengths = known->count[KNOWN_CONTENT_LENGTH];
	struct text coding = known->value[KNOWN_TRANSFER_ENCODING];

	if (codings + lengths > 1)
		return REASON_REQUEST_SYNTAX;
	if (codings == 1) {
		/* RFC 9112 6.1: a transfer coding in HTTP/1.0 is faulty framing. */
		if (minor == 0 || coding.len == 0 || text_span(coding, BYTE_TOKEN) != coding.len)
			return REASON_REQUEST_SYNTAX;
		if (!text_is(coding, "chunked"))
			return REASON_REQUEST_CODING;
		*ret = HTTP_CHUNKED;
		return 0;
	}
	*ret = lengths == 1 ? HTTP_LENGTH : HTTP_NO_BODY;
	if (lengths == 1 && !read_length(known->value[KNOWN_CONTENT_LENGTH], ret_length))
		return REASON_REQUEST_SYNTAX;
	return 0;
}

const struct http_field *http_find(const struct http_field *fields, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (text_is(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

size_t http_field_count(const struct http_field *fields, size_t count, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		n += text_is(fields[i].name, name);
	return n;
}

/* Two names as fields and options carry them. */
static bool text_same(struct text a, struct text b)
{
	size_t i;

	if (a.len != b.len)
		return false;
	for (i = 0; i < a.len; i++) {
		if (byte_lower(a.at[i]) != byte_lower(b.at[i]))
			return false;
	}
	return true;
}

/* RFC 9110 7.6.1: a Connection field names further fields that end here. */
static bool is_named_by_connection(const struct http_field *fields, size_t count, struct text name)
{
	struct text rest, option;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!text_is(fields[i].name, "connection"))
			continue;
		rest = fields[i].value;
		while (text_next(&rest, &option)) {
			if (text_same(option, name))
				return true;
		}
	}
	return false;
}

bool http_is_hop_by_hop(const struct http_field *fields, size_t count,
			const struct http_field *field)
{
	static const struct text names[] = {
	    {"connection", 10},
	    {"keep-alive", 10},
	    {"proxy-connection", 16},
	    {"te", 2},
	    {"trailer", 7},
	    {"transfer-encoding", 17},
	    {"upgrade", 7},
	    {"content-length", 14},
	    {"proxy-authenticate", 18},
	    {"proxy-authorization", 19},
	    {"proxy-authentication-info", 25},
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (text_same(field->name, names[i]))
			return true;
	}
	return is_named_by_connection(fields, count, field->name);
}
