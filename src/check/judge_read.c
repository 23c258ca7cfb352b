/* judge_read.c - reads the judge's answer: what a proxy tells a server about itself and its client. */
#include "check/judge.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- fields that name the client ---------------------------------------------------------------------------------- */

/* The values are addresses, separated by commas where one proxy has asked the next. In Forwarded they stand behind
 * "for=". */
static const char *const client_fields[] = {
    "Forwarded", /* RFC 7239 */
    "X-Forwarded-For",  "X-Forwarded",      "Forwarded-For",    "X-Real-IP",
    "Client-IP",        "True-Client-IP",   "X-Client-IP",      "X-Cluster-Client-IP",
    "CF-Connecting-IP", "Fastly-Client-IP", "X-Originating-IP", "X-Remote-IP",
    "X-Remote-Addr",    "X-ProxyUser-IP",   "Proxy-Client-IP",  "WL-Proxy-Client-IP",
    "X-Tinyproxy",
};

/* Those that tell that there is a proxy, and no more. Proxy-Connection and Proxy-Authorization were meant for the proxy,
 * which has passed them on (RFC 9110 7.6.1, 11.7.2). */
static const char *const proxy_fields[] = {
    "Via", /* RFC 9110 7.6.3 */
    "X-BlueCoat-Via",
    "CDN-Loop", /* RFC 8586 */
    "Mt-Proxy-ID",
};
static const char *const proxy_prefixes[] = {"X-Forwarded-", "X-Proxy-", "Proxy-"};

static bool stands_in(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return false;
}

static bool tells_of_proxy(const char *name)
{
	for (size_t i = 0; i < COUNT(proxy_prefixes); i++)
		if (!strncasecmp(name, proxy_prefixes[i], strlen(proxy_prefixes[i])))
			return true;
	return stands_in(name, proxy_fields, COUNT(proxy_fields));
}

/* --- addresses in their values ------------------------------------------------------------------------------------ */

static struct text trim(struct text t, const char *what)
{
	while (t.len && strchr(what, t.at[0]))
		t = (struct text){t.at + 1, t.len - 1};
	while (t.len && strchr(what, t.at[t.len - 1]))
		t.len--;
	return t;
}

/* Takes the next part off the front, up to a comma or semicolon that is not quoted. */
static struct text next_part(struct text *rest)
{
	struct text part = {rest->at, 0};
	bool is_quoted = false;

	for (; part.len < rest->len; part.len++) {
		char c = rest->at[part.len];

		if (c == '"')
			is_quoted = !is_quoted;
		else if (!is_quoted && (c == ',' || c == ';'))
			break;
	}
	*rest = part.len < rest->len
		    ? (struct text){part.at + part.len + 1, rest->len - part.len - 1}
		    : (struct text){part.at + part.len, 0};
	return trim(part, " \t");
}

/* "192.0.2.43", "192.0.2.43:47011", "[2001:db8::1]:4711" in quotes or not (RFC 7239 6), "2001:db8::1". 0 or -EINVAL. */
static int read_node(struct text node, struct address *ret)
{
	const char *end;

	node = trim(node, "\" \t");
	if (node.len && node.at[0] == '[') {
		end = memchr(node.at, ']', node.len);
		return end ? address_parse(ret, node.at + 1, (size_t)(end - node.at) - 1) : -EINVAL;
	}
	if (!address_parse(ret, node.at, node.len))
		return 0;
	end = memchr(node.at, ':', node.len);
	return end ? address_parse(ret, node.at, (size_t)(end - node.at)) : -EINVAL;
}

static bool is_same(const struct address *a, const struct address *b)
{
	struct address x, y;

	if (!address_unwrap(a, &x))
		x = *a;
	if (!address_unwrap(b, &y))
		y = *b;
	return x.family == y.family &&
	       !memcmp(x.bytes, y.bytes, x.family == AF_INET ? 4 : sizeof x.bytes);
}

/* `key`: what stands before an address, NULL: nothing does. */
static bool names_other(const char *value, const char *key, const struct address *seen)
{
	struct text rest = {value, strlen(value)};
	size_t key_len = key ? strlen(key) : 0;
	struct address address;

	while (rest.len) {
		struct text part = next_part(&rest);

		if (part.len < key_len || (key && strncasecmp(part.at, key, key_len) != 0))
			continue;
		part = (struct text){part.at + key_len, part.len - key_len};
		if (!read_node(part, &address) && !is_same(&address, seen))
			return true;
	}
	return false;
}

static enum anonymity judge_field(const char *name, const char *value, const struct address *seen)
{
	const char *key = strcasecmp(name, "Forwarded") == 0 ? "for=" : NULL;

	if (stands_in(name, client_fields, COUNT(client_fields)))
		return names_other(value, key, seen) ? ANONYMITY_TRANSPARENT : ANONYMITY_ANONYMOUS;
	return tells_of_proxy(name) ? ANONYMITY_ANONYMOUS : ANONYMITY_ELITE;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* The worst of the fields decides. */
static int read_fields(const json_t *fields, const struct address *seen, enum anonymity *ret)
{
	enum anonymity worst = ANONYMITY_ELITE;

	if (!json_is_array(fields))
		return -EPROTO;
	for (size_t i = 0; i < json_array_size(fields); i++) {
		const json_t *field = json_array_get(fields, i);
		const char *name = json_string_value(json_array_get(field, 0));
		const char *value = json_string_value(json_array_get(field, 1));
		enum anonymity anonymity;

		if (json_array_size(field) != 2 || !name || !value)
			return -EPROTO;
		anonymity = judge_field(name, value, seen);
		if (anonymity < worst)
			worst = anonymity;
	}
	*ret = worst;
	return 0;
}

static int read_answer(const json_t *answer, struct address *ret_seen, enum anonymity *ret)
{
	const json_t *version = json_object_get(answer, "judge");
	const char *address = json_string_value(json_object_get(answer, "address"));

	if (!json_is_integer(version) || json_integer_value(version) != JUDGE_VERSION || !address ||
	    address_parse(ret_seen, address, strlen(address)))
		return -EPROTO;
	return read_fields(json_object_get(answer, "headers"), ret_seen, ret);
}

int judge_read(const char *body, size_t len, char exit_address[46], enum anonymity *ret_anonymity)
{
	json_t *answer = NULL;
	struct address seen;
	int r;

	if (len <= JUDGE_ANSWER_MAX)
		answer = json_loadb(body, len, JSON_REJECT_DUPLICATES, NULL);
	r = answer ? read_answer(answer, &seen, ret_anonymity) : -EPROTO;
	if (!r)
		address_print(&seen, exit_address, 46);
	json_decref(answer);
	return r;
}
