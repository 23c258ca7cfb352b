/* gateway_script.c - what the far ends said, read without the gateway. */
#include "gateway_script.h"

#include <string.h>

#include "gateway/socks.h"

static struct text all_of(const struct buffer *b)
{
	return (struct text){buffer_len(b) ? buffer_at(b) : "", buffer_len(b)};
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

static void read_chunked(struct content *c, struct text t)
{
	struct http_chunks chunks = {0};
	size_t used = 1, len;
	const char *data;
	int r = 0;

	while (!r && used) {
		r = http_chunks_read(&chunks, t.at + c->used, t.len - c->used, &used, &data, &len);
		if (r < 0)
			break;
		CHECK(!buffer_add(&c->bytes, data, len));
		c->used += used;
	}
	c->is_whole = r > 0;
	c->is_broken = r < 0;
}

struct content content_read(struct text t, enum http_framing framing, uint64_t length)
{
	struct content c = {.is_whole = framing == HTTP_NO_BODY};

	buffer_init(&c.bytes, WORLD_BYTES_MAX);
	if (framing == HTTP_CHUNKED)
		read_chunked(&c, t);
	if (framing == HTTP_LENGTH) {
		c.used = t.len < length ? t.len : (size_t)length;
		c.is_whole = c.used == length;
	}
	if (framing == HTTP_UNTIL_CLOSE)
		c.used = t.len;
	if (framing == HTTP_LENGTH || framing == HTTP_UNTIL_CLOSE)
		CHECK(!buffer_add(&c.bytes, t.at, c.used));
	return c;
}

void content_fini(struct content *c)
{
	buffer_fini(&c->bytes);
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

/* Reads one request of HTTP; false when none can follow it. */
static bool read_wish(struct wishes *s, struct text *rest)
{
	struct wish *w = &s->wish[s->count];
	struct http_scan scan = {0};
	long head = http_scan_head(&scan, rest->at, rest->len);

	s->is_broken = head < 0;
	if (head <= 0)
		return false;
	*w = (struct wish){0};
	s->is_broken = http_parse_request(&w->request, rest->at, (size_t)head);
	if (s->is_broken)
		return false;
	s->count++;
	if (w->request.host.len)
		CHECK(!http_canonical_host(w->request.host, w->host, sizeof w->host));
	w->port = w->request.port;
	w->is_tunnel = w->request.form == HTTP_AUTHORITY_FORM;
	*rest = text_behind(*rest, (size_t)head);
	w->content = content_read(*rest, w->request.framing, w->request.length);
	s->is_broken = w->content.is_broken;
	if (!w->content.is_whole)
		return false;
	*rest = text_behind(*rest, w->content.used);
	w->rest = *rest;
	return w->request.keep_alive && w->request.minor == 1 && !w->is_tunnel;
}

static void read_http(struct wishes *s)
{
	struct text rest = s->said;
	bool goes_on = rest.len > 0;

	while (goes_on && s->count < WISHES_MAX)
		goes_on = read_wish(s, &rest);
	s->is_cut = goes_on;
}

/* How much of what a SOCKS5 client said comes before its request; -1: it gets no further. */
static long read_greeting(struct wishes *s)
{
	struct socks_greeting greeting;
	struct socks_login login;
	long n = socks5_read_greeting(&greeting, s->said.at, s->said.len), m = 0;

	s->is_broken = n < 0 || (n > 0 && !greeting.offers_none && !greeting.offers_password);
	if (n <= 0 || s->is_broken)
		return -1;
	s->answers = 1;
	if (!greeting.offers_password)
		return n;
	m = socks5_read_login(&login, s->said.at + n, s->said.len - (size_t)n);
	s->is_broken = m < 0;
	s->answers = 2;
	return m > 0 ? n + m : -1;
}

static void read_socks(struct wishes *s)
{
	bool is_v4 = s->said.at[0] == 4;
	struct wish *w = s->wish;
	struct socks_request request;
	long before = is_v4 ? 0 : read_greeting(s), n;
	struct text rest;

	if (before < 0)
		return;
	rest = text_behind(s->said, (size_t)before);
	n = is_v4 ? socks4_read_request(&request, rest.at, rest.len)
		  : socks5_read_request(&request, rest.at, rest.len);
	s->is_broken = n < 0;
	if (n <= 0)
		return;
	*w = (struct wish){.is_tunnel = true, .port = request.port, .content.is_whole = true};
	memcpy(w->host, request.host, sizeof w->host);
	w->rest = text_behind(rest, (size_t)n);
	s->count = 1;
}

void wishes_read(struct wishes *s, const struct peer *client, enum listen_protocol protocol)
{
	s->said = all_of(&client->said);
	s->is_socks =
	    s->said.len && (s->said.at[0] == 4 || s->said.at[0] == 5) && protocol != LISTEN_HTTP;
	s->is_broken = s->is_cut = false;
	s->count = s->answers = 0;
	if (s->is_socks)
		read_socks(s);
	else if (protocol == LISTEN_SOCKS)
		s->is_broken = s->said.len > 0;
	else
		read_http(s);
}

void wishes_fini(struct wishes *s)
{
	for (size_t i = 0; i < s->count; i++)
		content_fini(&s->wish[i].content);
}

/* --- upstreams ---------------------------------------------------------------------------------------------------- */

static void open_connect(struct opening *o, struct text heard, struct text said, bool has_secret)
{
	struct http_request request;
	struct http_scan scan = {0};
	struct answer answer;
	long head = http_scan_head(&scan, heard.at, heard.len);

	o->is_connect = true;
	o->is_whole = head > 0;
	CHECK(head >= 0);
	if (!head)
		return;
	o->len = (size_t)head;
	CHECK(!http_parse_request(&request, heard.at, o->len));
	CHECK(request.form == HTTP_AUTHORITY_FORM);
	CHECK(!http_canonical_host(request.host, o->host, sizeof o->host));
	o->port = request.port;
	CHECK(has_secret ==
	      (http_field_count(request.fields, request.field_count, "proxy-authorization") == 1));
	answer = answer_read(said, request.method);
	o->stands = answer.state == ANSWER_HEAD && answer.response.status / 100 == 2;
	o->said_len = said.len - answer.rest.len;
	content_fini(&answer.content);
}

static void take_target(struct opening *o, const struct socks_request *request, size_t len)
{
	o->is_whole = true;
	o->len = len;
	o->port = request->port;
	memcpy(o->host, request->host, sizeof o->host);
}

static void open_socks4(struct opening *o, struct text heard, struct text said)
{
	struct socks_request request;
	long n = socks4_read_request(&request, heard.at, heard.len);

	CHECK(n >= 0);
	if (!n)
		return;
	take_target(o, &request, (size_t)n);
	o->stands = said.len >= 8 && said.at[0] == 0 && said.at[1] == 90;
	o->said_len = 8;
}

/* Length of an affirmative reply that is whole, else 0. */
static size_t granted(struct text said)
{
	size_t size;

	if (said.len < 5 || memcmp(said.at, "\5\0\0", 3) != 0)
		return 0;
	switch (said.at[3]) {
	case 1:
		size = 10;
		break;
	case 3:
		size = 7 + (uint8_t)said.at[4];
		break;
	case 4:
		size = 22;
		break;
	default:
		return 0;
	}
	return said.len >= size ? size : 0;
}

static void open_socks5(struct opening *o, struct text heard, struct text said, bool has_secret)
{
	size_t greeting = has_secret ? 4 : 3, before = greeting, asked = 2;
	struct socks_request request;
	struct socks_login login;
	long n;

	CHECK(heard.len < 4 || !memcmp(heard.at, has_secret ? "\5\2\0\2" : "\5\1\0", greeting));
	if (heard.len <= greeting)
		return;
	CHECK(said.len >= 2 && said.at[0] == 5);
	if (has_secret && said.at[1] == 2) {
		n = socks5_read_login(&login, heard.at + greeting, heard.len - greeting);
		CHECK(n >= 0);
		before += (size_t)n;
		asked += 2;
		if (!n || heard.len == before)
			return;
		CHECK(said.len >= 4 && said.at[2] == 1 && said.at[3] == 0);
	} else {
		CHECK(said.at[1] == 0);
	}
	n = socks5_read_request(&request, heard.at + before, heard.len - before);
	CHECK(n >= 0);
	if (!n)
		return;
	take_target(o, &request, before + (size_t)n);
	o->said_len = granted(text_behind(said, asked));
	o->stands = o->said_len;
	o->said_len += asked;
}

struct opening opening_read(const struct peer *upstream, const struct endpoint *proxy)
{
	struct text heard = all_of(&upstream->heard), said = all_of(&upstream->said);
	struct opening o = {0};

	switch (proxy->scheme) {
	case SCHEME_HTTP:
		if (heard.len < 8)
			break;
		if (!memcmp(heard.at, "CONNECT ", 8))
			open_connect(&o, heard, said, proxy->secret);
		else
			o.is_whole = o.stands = true;
		break;
	case SCHEME_SOCKS4:
		open_socks4(&o, heard, said);
		break;
	case SCHEME_SOCKS5:
		open_socks5(&o, heard, said, proxy->secret);
		break;
	case SCHEME_DIRECT:
		o.is_whole = o.stands = true;
		break;
	case SCHEME_HTTPS:
	case SCHEME_SOCKS4A:
	case SCHEME_SOCKS5H:
	case SCHEME_COUNT:
		abort();
	}
	return o;
}

/* --- responses ---------------------------------------------------------------------------------------------------- */

struct answer answer_read(struct text said, struct text method)
{
	struct answer a = {.state = ANSWER_PARTIAL, .rest = said};
	long head;

	do {
		struct http_scan scan = {0};

		head = http_scan_head(&scan, a.rest.at, a.rest.len);
		if (head == 0)
			return a;
		a.state = ANSWER_BROKEN;
		if (head < 0 || http_parse_response(&a.response, a.rest.at, (size_t)head, method))
			return a;
		a.state = ANSWER_PARTIAL;
		a.rest = text_behind(a.rest, (size_t)head);
	} while (a.response.status < 200 && a.response.status != 101);
	a.state = ANSWER_HEAD;
	if (a.response.status != 101)
		a.content = content_read(a.rest, a.response.framing, a.response.length);
	a.rest = text_behind(a.rest, a.content.used);
	return a;
}
