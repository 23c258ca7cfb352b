/* http.c - heads of HTTP/1.1 messages: where they end, start lines, what they mean together. */
#include "base/http.h"

#include <string.h>

#include "base/http_parts.h"

#define VISIBLE (BYTE_VALUE | BYTE_TARGET)
#define TOKEN (BYTE_TOKEN | VISIBLE)

const uint8_t http_bytes[256] = {
    ['\t'] = BYTE_VALUE,
    [' '] = BYTE_VALUE,
    ['!'] = TOKEN,
    ['"'] = VISIBLE,
    ['#'] = BYTE_TOKEN | BYTE_VALUE,
    ['$' ... '\''] = TOKEN,
    ['(' ... ')'] = VISIBLE,
    ['*' ... '+'] = TOKEN,
    [','] = VISIBLE,
    ['-' ... '.'] = TOKEN | BYTE_HOST,
    ['/'] = VISIBLE,
    ['0' ... '9'] = TOKEN | BYTE_HOST | BYTE_DIGIT | BYTE_HEX,
    [':' ... '@'] = VISIBLE,
    ['A' ... 'F'] = TOKEN | BYTE_HOST | BYTE_HEX,
    ['G' ... 'Z'] = TOKEN | BYTE_HOST,
    ['[' ... ']'] = VISIBLE,
    ['^'] = TOKEN,
    ['_'] = TOKEN | BYTE_HOST,
    ['`'] = TOKEN,
    ['a' ... 'f'] = TOKEN | BYTE_HOST | BYTE_HEX,
    ['g' ... 'z'] = TOKEN | BYTE_HOST,
    ['{'] = VISIBLE,
    ['|'] = TOKEN,
    ['}'] = VISIBLE,
    ['~'] = TOKEN,
    [0x80 ... 0xff] = BYTE_VALUE,
};

static bool is_version(const char *at)
{
	return !memcmp(at, "HTTP/", 5) && byte_is(at[5], BYTE_DIGIT) && at[6] == '.' &&
	       byte_is(at[7], BYTE_DIGIT);
}

/* Neither a status line nor a request line can be anything else, so that HTTP/0.9 and the greetings of other
 * protocols are refused at their first line, not when a deadline passes. */
static bool is_start_line(const char *bytes, size_t len)
{
	return len >= 8 && (!memcmp(bytes, "HTTP/", 5) || is_version(bytes + len - 8));
}

/* Checks [from, to), a piece of one line without its LF. A CR may only come last, and then LF must follow it. */
static bool line_piece_is_clean(const char *bytes, size_t from, size_t to)
{
	if (from == to)
		return true;
	if (from > 0 && bytes[from - 1] == '\r')
		return false;
	if (bytes[to - 1] == '\r')
		to--;
	return text_span((struct text){bytes + from, to - from}, BYTE_VALUE) == to - from;
}

/* The line that ends with the LF at `lf` is complete: is it right, was it the last? */
static long scan_line_end(struct http_scan *scan, const char *bytes, size_t lf)
{
	scan->seen = lf + 1;
	if (lf == 0 || bytes[lf - 1] != '\r')
		return -REASON_REQUEST_SYNTAX;
	if (scan->start_line > 0)
		return lf >= 2 && bytes[lf - 2] == '\n' ? (long)scan->seen : 0;
	scan->start_line = scan->seen;
	return is_start_line(bytes, lf - 1) ? 0 : -REASON_REQUEST_SYNTAX;
}

long http_scan_head(struct http_scan *scan, const char *bytes, size_t len)
{
	long result = 0;

	if (len > 0 && scan->seen == 0 && !byte_is(bytes[0], BYTE_TOKEN))
		return -REASON_REQUEST_SYNTAX;
	while (result == 0) {
		size_t max = scan->start_line ? HTTP_HEAD_MAX : HTTP_LINE_MAX;
		size_t from = scan->seen, to = len < max ? len : max;
		const char *lf;

		if (from >= max)
			return scan->start_line ? -REASON_REQUEST_HEAD_SIZE
						: -REASON_REQUEST_URI_SIZE;
		if (from >= to)
			return 0;
		lf = memchr(bytes + from, '\n', to - from);
		scan->seen = lf ? (size_t)(lf - bytes) : to;
		if (!line_piece_is_clean(bytes, from, scan->seen))
			return -REASON_REQUEST_SYNTAX;
		if (lf)
			result = scan_line_end(scan, bytes, scan->seen);
	}
	return result;
}

bool http_take_line(struct text *rest, struct text *ret)
{
	const char *lf = rest->len > 0 ? memchr(rest->at, '\n', rest->len) : NULL;

	if (!lf || lf == rest->at || lf[-1] != '\r')
		return false;
	*ret = (struct text){rest->at, (size_t)(lf - rest->at) - 1};
	*rest = text_skip(*rest, ret->len + 2);
	return true;
}

/* RFC 9112 3: method SP request-target SP HTTP-version, nothing between but one SP. */
static int read_request_line(struct http_request *r, struct text line)
{
	r->method = (struct text){line.at, text_span(line, BYTE_TOKEN)};
	line = text_skip(line, r->method.len);
	if (r->method.len == 0 || line.len == 0 || line.at[0] != ' ')
		return REASON_REQUEST_SYNTAX;
	line = text_skip(line, 1);
	r->target = (struct text){line.at, text_span(line, BYTE_TARGET)};
	line = text_skip(line, r->target.len);
	if (r->target.len == 0 || line.len != 9 || line.at[0] != ' ' || !is_version(line.at + 1))
		return REASON_REQUEST_SYNTAX;
	if (line.at[6] != '1' || line.at[8] > '1')
		return REASON_REQUEST_VERSION;
	r->minor = line.at[8] - '0';
	return 0;
}

/* RFC 9112 3.2: HTTP/1.1 wants exactly one Host field, HTTP/1.0 may have it. */
static int check_host(const struct http_known *known, int minor)
{
	unsigned count = known->count[KNOWN_HOST];

	if (count > 1 || (count == 0 && minor > 0))
		return REASON_REQUEST_SYNTAX;
	if (count == 1 && !http_host_is_valid(known->value[KNOWN_HOST]))
		return REASON_REQUEST_SYNTAX;
	return 0;
}

static void set_request_options(struct http_request *r, const struct http_known *known)
{
	/* RFC 9112 9.3: a proxy keeps no connection with an HTTP/1.0 client. Expect and Upgrade are ignored in HTTP/1.0
	 * (RFC 9110 10.1.1, 7.8). An upgrade to another HTTP would let requests pass that nobody here has seen. */
	r->keep_alive = r->minor > 0 && !known->close;
	r->expect_continue = r->minor > 0 && known->expect_continue;
	r->upgrade = r->minor > 0 && known->upgrade && known->count[KNOWN_UPGRADE] == 1 &&
		     text_is(known->value[KNOWN_UPGRADE], "websocket");
}

/* RFC 9110 7.6.2: 1*DIGIT, heeded in OPTIONS and TRACE. What is more than we can count becomes the most that we can. */
static int set_max_forwards(struct http_request *r, const struct http_known *known)
{
	struct text value = known->value[KNOWN_MAX_FORWARDS];
	int64_t max = 0;
	size_t i;

	r->max_forwards = -1;
	if (known->count[KNOWN_MAX_FORWARDS] == 0 ||
	    !(http_method_is(r->method, "OPTIONS") || http_method_is(r->method, "TRACE")))
		return 0;
	if (known->count[KNOWN_MAX_FORWARDS] > 1 || value.len == 0 ||
	    text_span(value, BYTE_DIGIT) != value.len)
		return REASON_REQUEST_SYNTAX;
	for (i = 0; i < value.len && max < INT32_MAX; i++)
		max = max * 10 + (value.at[i] - '0');
	r->max_forwards = max < INT32_MAX ? max : INT32_MAX;
	return 0;
}

static int set_request_framing(struct http_request *r, const struct http_known *known)
{
	int result = http_read_framing(known, r->minor, &r->framing, &r->length);

	if (result != 0 || (r->form != HTTP_AUTHORITY_FORM && !http_method_is(r->method, "TRACE")))
		return result;
	/* RFC 9110 9.3.6, 9.3.8: CONNECT and TRACE have no content. What would follow CONNECT is either a body or the
	 * tunnel's first bytes, and another reader may decide otherwise than we. */
	if (r->framing == HTTP_CHUNKED || r->length > 0)
		return REASON_REQUEST_SYNTAX;
	r->framing = HTTP_NO_BODY;
	return 0;
}

int http_parse_request(struct http_request *ret, const char *head, size_t len)
{
	struct text rest = {head, len}, line;
	struct http_request r = {0};
	struct http_known known;
	int result;

	if (!http_take_line(&rest, &line))
		return REASON_REQUEST_SYNTAX;
	result = read_request_line(&r, line);
	if (result == 0)
		result = http_read_fields(rest, false, r.fields, &r.field_count, &known);
	if (result == 0)
		result = check_host(&known, r.minor);
	if (result == 0)
		result = http_read_target(&r);
	if (result == 0)
		result = set_request_framing(&r, &known);
	if (result == 0)
		result = set_max_forwards(&r, &known);
	if (result != 0)
		return result;
	set_request_options(&r, &known);
	*ret = r;
	return 0;
}

/* RFC 9112 4: HTTP-version SP status-code [ SP reason ]; the SP before an absent reason is often forgotten. */
static bool read_status_line(struct http_response *r, struct text line)
{
	const char *digits = line.at + 9;

	if (line.len < 12 || !is_version(line.at) || line.at[5] != '1' || line.at[7] > '1' ||
	    line.at[8] != ' ')
		return false;
	if (text_span((struct text){digits, 3}, BYTE_DIGIT) != 3 || digits[0] < '1' ||
	    digits[0] > '5')
		return false;
	r->minor = line.at[7] - '0';
	r->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
	line = text_skip(line, 12);
	if (line.len > 0 && line.at[0] != ' ')
		return false;
	r->reason = line.len > 0 ? text_skip(line, 1) : line;
	return text_span(r->reason, BYTE_VALUE) == r->reason.len;
}

/* RFC 9112 6.3, in its order. */
static int set_response_framing(struct http_response *r, const struct http_known *known,
				struct text method)
{
	/* RFC 9110 9.3.6: Content-Length and Transfer-Encoding in a 2xx to CONNECT are ignored. */
	if (http_method_is(method, "CONNECT") && r->status / 100 == 2)
		return 0;
	if (http_read_framing(known, r->minor, &r->framing, &r->length) != 0)
		return REASON_RESPONSE_SYNTAX;
	if (http_method_is(method, "HEAD") || r->status / 100 == 1 || r->status == 204 ||
	    r->status == 304) {
		r->framing = HTTP_NO_BODY;
		r->length = 0;
	} else if (r->framing == HTTP_NO_BODY) {
		r->framing = HTTP_UNTIL_CLOSE;
	}
	return 0;
}

int http_parse_response(struct http_response *ret, const char *head, size_t len, struct text method)
{
	struct text rest = {head, len}, line;
	struct http_response r = {.framing = HTTP_NO_BODY};
	struct http_known known;
	int result;

	if (!http_take_line(&rest, &line) || !read_status_line(&r, line))
		return REASON_RESPONSE_SYNTAX;
	result = http_read_fields(rest, true, r.fields, &r.field_count, &known);
	if (result != 0)
		return result == REASON_REQUEST_HEAD_SIZE ? REASON_RESPONSE_HEAD_SIZE
							  : REASON_RESPONSE_SYNTAX;
	result = set_response_framing(&r, &known, method);
	if (result != 0)
		return result;
	r.keep_alive =
	    r.framing != HTTP_UNTIL_CLOSE && !known.close && (r.minor > 0 || known.keep_alive);
	*ret = r;
	return 0;
}
