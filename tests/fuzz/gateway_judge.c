/* gateway_judge.c - what must hold of the bytes that went through the gateway. */
#include "gateway_judge.h"

#include <stdio.h>
#include <string.h>

#include "gateway_script.h"

static struct text all_of(const struct buffer *b)
{
	return (struct text){buffer_len(b) ? buffer_at(b) : "", buffer_len(b)};
}

static bool is_prefix(struct text part, struct text whole)
{
	return part.len <= whole.len && !memcmp(part.at, whole.at, part.len);
}

static bool is_same(struct text a, struct text b)
{
	return a.len == b.len && is_prefix(a, b);
}

void judge_silence(const struct peer *upstream, const struct endpoint *proxy)
{
	struct opening o = opening_read(upstream, proxy);

	CHECK(!o.is_whole || o.stands || buffer_len(&upstream->heard) <= o.len);
}

/* Of a head that must be whole. */
static size_t head_len(struct text t)
{
	struct http_scan scan = {0};
	long head = http_scan_head(&scan, t.at, t.len);

	CHECK(head > 0);
	return (size_t)head;
}

/* --- what an upstream heard --------------------------------------------------------------------------------------- */

static bool is_target(const struct http_request *r, const struct wish *w)
{
	char host[ENDPOINT_HOST_MAX + 1] = "";
	const struct http_field *field = http_find(r->fields, r->field_count, "host");
	char expected[ENDPOINT_HOST_MAX + 16];

	CHECK(field);
	if (r->form == HTTP_ABSOLUTE_FORM && (http_canonical_host(r->host, host, sizeof host) ||
					      strcmp(host, w->host) || r->port != w->port))
		return false;
	snprintf(expected, sizeof expected, strchr(w->host, ':') ? "[%s]" : "%s", w->host);
	if (w->port != 80)
		snprintf(expected + strlen(expected), 8, ":%u", w->port);
	return text_is(field->value, expected);
}

/* One framing, nothing that ends at the hop before, our credentials where they belong. */
static void check_head(const struct http_request *r, const struct endpoint *proxy)
{
	size_t lengths = http_field_count(r->fields, r->field_count, "content-length");
	size_t codings = http_field_count(r->fields, r->field_count, "transfer-encoding");
	bool is_forward = proxy->scheme == SCHEME_HTTP;

	CHECK(lengths + codings <= 1 && r->minor == 1);
	CHECK(http_field_count(r->fields, r->field_count, "host") == 1);
	CHECK(http_field_count(r->fields, r->field_count, "connection") == 1);
	CHECK(http_field_count(r->fields, r->field_count, "keep-alive") == 0);
	CHECK(http_field_count(r->fields, r->field_count, "proxy-connection") == 0);
	CHECK(http_field_count(r->fields, r->field_count, "proxy-authorization") ==
	      (is_forward && proxy->secret));
	CHECK(r->form == HTTP_ASTERISK_FORM ||
	      r->form == (is_forward ? HTTP_ABSOLUTE_FORM : HTTP_ORIGIN_FORM));
	CHECK(!r->keep_alive || r->upgrade);
}

/* The body, and behind it nothing but the tunnel that a 101 made. */
static bool is_body_of(struct text rest, const struct wish *w, const struct peer *upstream,
		       struct text said)
{
	struct content content = content_read(rest, w->request.framing, w->request.length);
	struct answer answer;
	bool is_it;

	CHECK(!content.is_broken);
	is_it = is_prefix(all_of(&content.bytes), all_of(&w->content.bytes)) &&
		(!content.is_whole || w->content.is_whole);
	rest = text_behind(rest, content.used);
	content_fini(&content);
	if (!is_it || !rest.len)
		return is_it;
	CHECK(w->request.upgrade);
	answer = answer_read(said, w->request.method);
	CHECK(answer.state == ANSWER_HEAD && answer.response.status == 101);
	(void)upstream;
	return is_prefix(rest, w->rest);
}

static bool is_request_of(struct text heard, const struct wish *w, const struct peer *upstream,
			  const struct endpoint *proxy, struct text said)
{
	struct http_scan scan = {0};
	struct http_request r;
	long head = http_scan_head(&scan, heard.at, heard.len);

	CHECK(head >= 0);
	if (head == 0)
		return true; /* cut short when the connection ended */
	CHECK(!http_parse_request(&r, heard.at, (size_t)head));
	check_head(&r, proxy);
	return is_same(r.method, w->request.method) && is_target(&r, w) &&
	       r.framing == w->request.framing && r.length == w->request.length &&
	       is_body_of(text_behind(heard, (size_t)head), w, upstream, said);
}

/* Can it be that `upstream` was dialled for `w`? */
static bool is_for(const struct peer *upstream, const struct wish *w, const struct endpoint *proxy)
{
	struct text heard = all_of(&upstream->heard), said = all_of(&upstream->said);
	struct opening o = opening_read(upstream, proxy);

	if (!w->host[0])
		return false;
	if (!o.is_whole)
		return true;
	if (*o.host && (strcmp(o.host, w->host) || o.port != w->port))
		return false;
	heard = text_behind(heard, o.len);
	CHECK(o.stands || !heard.len);
	if (!o.stands)
		return proxy->scheme != SCHEME_HTTP || w->is_tunnel;
	said = text_behind(said, o.said_len);
	if (w->is_tunnel)
		return (proxy->scheme != SCHEME_HTTP || o.is_connect) && is_prefix(heard, w->rest);
	return !o.is_connect && is_request_of(heard, w, upstream, proxy, said);
}

/* Connections come in the order of the requests, one each at most. */
static void match(struct world *world, int owner, struct wishes *s, const struct endpoint *proxy)
{
	size_t next = 0;

	for (size_t i = 0; i < world->upstream_count; i++) {
		struct peer *upstream = &world->upstreams[i];

		if (upstream->owner != owner)
			continue;
		while (next < s->count && !is_for(upstream, &s->wish[next], proxy))
			next++;
		CHECK(next < s->count || s->is_cut);
		if (next == s->count)
			return;
		s->wish[next++].upstream = upstream;
	}
}

/* --- what a client heard ------------------------------------------------------------------------------------------ */

struct hearing {
	struct world *world;
	const struct endpoint *proxy;
	const struct peer *client;
	const struct wishes *wishes;
	struct text rest; /* of what was heard */
};

static bool is_own(const struct http_response *r)
{
	const struct http_field *status = http_find(r->fields, r->field_count, "proxy-status");

	return status && status->value.len > sizeof WORLD_NAME &&
	       !memcmp(status->value.at, WORLD_NAME ";", sizeof WORLD_NAME);
}

/* Nobody went away, no deadline passed: whatever can arrive has arrived. `upstream`: NULL, if there is none. */
static bool is_calm(const struct hearing *h, const struct peer *upstream)
{
	return !h->world->slept_ms && !h->world->is_drained && !h->client->has_reset &&
	       !h->client->is_broken && !(upstream && (upstream->has_reset || upstream->is_broken));
}

/* A tunnel from `w` on: both directions are what the other side said. */
static void check_tunnel(const struct hearing *h, const struct wish *w, size_t opening_len,
			 struct text said)
{
	size_t arrived;

	CHECK(is_prefix(h->rest, said));
	if (!is_calm(h, w->upstream))
		return;
	CHECK(h->rest.len == said.len);
	arrived = buffer_len(&w->upstream->heard) - opening_len;
	CHECK(arrived == w->rest.len);
}

/* False when the upstream did not stay to hear what it had answered already. */
static bool is_opened(const struct hearing *h, const struct wish *w, struct opening *ret)
{
	CHECK(w->upstream);
	*ret = opening_read(w->upstream, h->proxy);
	CHECK(ret->is_whole || w->upstream->has_reset);
	CHECK(!ret->is_whole || ret->stands);
	return ret->is_whole;
}

static void check_connect_tunnel(const struct hearing *h, const struct wish *w)
{
	struct opening o;

	if (!is_opened(h, w, &o))
		return;
	check_tunnel(h, w, o.len, text_behind(all_of(&w->upstream->said), o.said_len));
}

/* What the upstream of a plain request said behind its opening. */
static struct answer upstream_answer(const struct wish *w, const struct opening *o)
{
	return answer_read(text_behind(all_of(&w->upstream->said), o->said_len), w->request.method);
}

static void check_switched(const struct hearing *h, const struct wish *w)
{
	struct opening o;
	struct answer said;

	CHECK(w->request.upgrade && w->content.is_whole);
	if (!is_opened(h, w, &o))
		return;
	said = upstream_answer(w, &o);
	CHECK(said.state == ANSWER_HEAD && said.response.status == 101);
	CHECK(is_prefix(h->rest, said.rest));
}

/* The client's `heard` is the upstream's response: the same content, and whole only if that was. */
static void check_response(const struct hearing *h, const struct wish *w,
			   const struct answer *heard)
{
	struct opening o;
	struct answer said;

	if (!is_opened(h, w, &o))
		return;
	said = upstream_answer(w, &o);
	CHECK(said.state == ANSWER_HEAD && said.response.status == heard->response.status);
	CHECK(is_prefix(all_of(&heard->content.bytes), all_of(&said.content.bytes)));
	if (heard->content.is_whole && heard->response.framing != HTTP_NO_BODY)
		CHECK(said.content.is_whole);
	if (said.content.is_whole && w->content.is_whole && is_calm(h, w->upstream) &&
	    w->request.minor == 1)
		CHECK(heard->content.is_whole);
	content_fini(&said.content);
}

/* A refusal for want of time needs time. */
static void check_refusal(const struct hearing *h, const struct answer *heard)
{
	int status = heard->response.status;

	CHECK(status != 500);
	CHECK(status != 408 || h->world->slept_ms >= WORLD_HEAD_MS);
	CHECK(status != 504 || h->world->slept_ms >= WORLD_CONNECT_MS);
	CHECK(status != 503 || h->world->is_drained || h->world->is_limited);
	CHECK(status != 429 || h->world->is_limited);
	if (!heard->response.keep_alive)
		CHECK(h->rest.len == 0);
}

/* No answer to `w` yet, and all is calm: its upstream has not answered either, and has all that it can have. */
static void check_under_way(const struct hearing *h, const struct wish *w)
{
	struct opening o;
	struct answer said;
	struct text heard;
	struct content content;

	if (h->client->has_shut && !w->content.is_whole)
		return; /* it can never be whole: the client is gone */
	CHECK(w->upstream || world_is_looking_up());
	if (!w->upstream)
		return;
	o = opening_read(w->upstream, h->proxy);
	CHECK(!w->is_tunnel || !o.stands);
	if (!o.stands)
		return;
	said = upstream_answer(w, &o);
	CHECK(said.state == ANSWER_PARTIAL);
	heard = text_behind(all_of(&w->upstream->heard), o.len);
	heard = text_behind(heard, head_len(heard));
	content = content_read(heard, w->request.framing, w->request.length);
	CHECK(is_same(all_of(&content.bytes), all_of(&w->content.bytes)));
	CHECK(content.is_whole == w->content.is_whole);
	content_fini(&content);
}

/* The answer to `w`, or (NULL) to what is no request. False when nothing may follow. */
static bool check_answer(struct hearing *h, const struct wish *w)
{
	struct text method = w ? w->request.method : (struct text){"", 0};
	struct answer a = answer_read(h->rest, method);
	bool goes_on;

	CHECK(a.state != ANSWER_BROKEN && !a.content.is_broken);
	if (a.state == ANSWER_PARTIAL) {
		if (w && is_calm(h, w->upstream))
			check_under_way(h, w);
		return false;
	}
	h->rest = a.rest;
	goes_on = a.content.is_whole && a.response.keep_alive;
	if (is_own(&a.response))
		check_refusal(h, &a);
	else if (w && a.response.status == 101)
		check_switched(h, w);
	else if (w && w->is_tunnel && a.response.status / 100 == 2)
		check_connect_tunnel(h, w);
	else if (w && !w->is_tunnel && w->request.form == HTTP_ABSOLUTE_FORM &&
		 w->request.max_forwards != 0)
		check_response(h, w, &a);
	else
		CHECK(w && a.response.status == 200 &&
		      a.content.is_whole); /* our own OPTIONS or TRACE */
	content_fini(&a.content);
	if (w && (w->is_tunnel || a.response.status == 101) && !is_own(&a.response))
		return false;
	if (!goes_on)
		CHECK(h->rest.len == 0);
	return goes_on;
}

static void check_http(struct hearing *h)
{
	const struct wishes *s = h->wishes;

	for (size_t i = 0; i < s->count; i++)
		if (!check_answer(h, &s->wish[i]))
			return;
	if (!s->is_cut && h->rest.len)
		CHECK(!check_answer(h, NULL));
}

/* Takes a message of `len` bytes that begins with `version`; false when it says no, or is not there. */
static bool take_yes(struct hearing *h, char version, char yes, size_t len)
{
	bool is_yes = h->rest.len >= len && h->rest.at[1] == yes;

	CHECK(!h->rest.len || h->rest.at[0] == version);
	CHECK(is_yes || h->rest.len <= len);
	h->rest = text_behind(h->rest, h->rest.len < len ? h->rest.len : len);
	return is_yes;
}

static void check_socks(struct hearing *h)
{
	const struct wishes *s = h->wishes;
	bool is_v4 = s->said.at[0] == 4;
	bool goes_on = true;

	if (!is_v4) {
		goes_on = take_yes(h, 5, s->answers == 2 ? 2 : 0, 2);
		if (goes_on && s->answers == 2)
			goes_on = take_yes(h, 1, 0, 2);
	}
	if (goes_on)
		goes_on = take_yes(h, is_v4 ? 0 : 5, is_v4 ? 90 : 0, is_v4 ? 8 : 10);
	if (!goes_on)
		return;
	CHECK(s->count == 1);
	check_connect_tunnel(h, s->wish);
}

void judge_world(struct world *world, const struct endpoint *proxy, enum listen_protocol protocol)
{
	static struct wishes wishes;

	for (size_t i = 0; i < world->upstream_count; i++)
		judge_silence(&world->upstreams[i], proxy);
	for (size_t i = 0; i < world->client_count; i++) {
		struct hearing hearing = {.world = world,
					  .proxy = proxy,
					  .client = &world->clients[i],
					  .wishes = &wishes,
					  .rest = all_of(&world->clients[i].heard)};

		wishes_read(&wishes, &world->clients[i], protocol);
		match(world, (int)i, &wishes, proxy);
		if (world->lost)
			wishes.is_cut = true;
		else if (wishes.is_socks)
			check_socks(&hearing);
		else
			check_http(&hearing);
		wishes_fini(&wishes);
	}
}
