/* target.c - where probes go, and what they expect there. */
#include "check/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/http.h"
#include "base/secret.h"

#define STATUS_MIN 100
#define STATUS_MAX 599

/* --- targets ------------------------------------------------------------------------------------------------------ */

/* A number of up to five digits that is neither 0 nor over 65,535. */
static int parse_port(const char *text, size_t len, uint16_t *ret)
{
	unsigned port = 0;

	if (!len || len > 5)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (!port || port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

/* HOST[:PORT], an IPv6 address in brackets. `target->port` is the default, 0: there is none. 0 or what is wrong. */
static const char *parse_authority(struct target *target, const char *text, size_t len)
{
	bool is_v6 = len && *text == '[';
	const char *host_end = is_v6 ? memchr(text, ']', len) : memchr(text, ':', len);
	struct text host = {text, host_end ? (size_t)(host_end - text) : len};
	const char *rest = text + host.len + (is_v6 ? 1 : 0), *end = text + len;

	if (is_v6 && !host_end)
		return "the bracket of its address is not closed";
	if (is_v6)
		host = (struct text){host.at + 1, host.len - 1};
	if (http_canonical_host(host, target->host, sizeof target->host) ||
	    is_v6 != !!strchr(target->host, ':'))
		return "it has no host that can be reached";
	if (rest == end)
		return target->port ? NULL : "it has no port";
	if (*rest != ':' || parse_port(rest + 1, (size_t)(end - rest) - 1, &target->port))
		return "its port is no number from 1 to 65535";
	return NULL;
}

/* What stands behind the authority: a path, a query, or nothing. */
static const char *parse_path(struct target *target, const char *text, size_t len)
{
	const char *slash = *text == '/' ? "" : "/";

	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == '#')
			return "its path has bytes that may not stand there";
	if (strlen(slash) + len >= sizeof target->path)
		return "its path is longer than 255 bytes";
	snprintf(target->path, sizeof target->path, "%s%.*s", slash, (int)len, text);
	return NULL;
}

static const char *parse_target(struct target *target, const char *text, size_t len)
{
	static const struct {
		const char *prefix;
		enum target_kind kind;
		uint16_t port;
	} rows[] = {{"http://", TARGET_HTTP, 80}, {"https://", TARGET_HTTPS, 443}};
	const char *why;
	size_t end;

	*target = (struct target){.kind = TARGET_TUNNEL, .path = "/"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t prefix = strlen(rows[i].prefix);

		if (len < prefix || strncasecmp(text, rows[i].prefix, prefix))
			continue;
		target->kind = rows[i].kind;
		target->port = rows[i].port;
		text += prefix;
		len -= prefix;
	}
	if (memmem(text, len, "://", 3) && target->kind == TARGET_TUNNEL)
		return "its scheme is neither http nor https";
	if (memchr(text, '@', len))
		return "credentials have no place in it";
	end = target->kind == TARGET_TUNNEL ? len : strcspn(text, "/?# \t");
	if (end > len)
		end = len;
	why = parse_authority(target, text, end);
	return why ? why : parse_path(target, text + end, len - end);
}

static int refuse(char *error, size_t size, const char *text, size_t len, const char *why)
{
	char word[512], shown[128];

	snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), text);
	secret_print(word, shown, sizeof shown);
	snprintf(error, size, "check target '%s': %s", shown, why);
	return -EINVAL;
}

int targets_parse(struct target ret[TARGETS_MAX], size_t *ret_count, const char *text, char *error,
		  size_t error_size)
{
	struct target targets[TARGETS_MAX];
	size_t count = 0;

	for (;;) {
		size_t len;
		const char *why;

		text += strspn(text, " \t");
		if (!*text)
			break;
		len = strcspn(text, " \t");
		why = count < TARGETS_MAX ? parse_target(&targets[count++], text, len)
					  : "there are more than 16";
		if (why)
			return refuse(error, error_size, text, len, why);
		text += len;
	}
	if (count)
		memcpy(ret, targets, count * sizeof *targets);
	*ret_count = count;
	return 0;
}

/* --- expectation -------------------------------------------------------------------------------------------------- */

/* Three digits, within the range of RFC 9110 15. */
static int parse_status(const char **text, int *ret)
{
	const char *at = *text;
	int status = 0;

	for (int i = 0; i < 3; i++, at++) {
		if (*at < '0' || *at > '9')
			return -EINVAL;
		status = status * 10 + (*at - '0');
	}
	if (status < STATUS_MIN || status > STATUS_MAX)
		return -EINVAL;
	*text = at;
	*ret = status;
	return 0;
}

/* "200" or "200-399". */
static int parse_range(struct expectation *expectation, const char **text)
{
	int first = 0, last, r = parse_status(text, &first);

	last = first;
	if (!r && **text == '-') {
		++*text;
		r = parse_status(text, &last);
	}
	if (r || last < first)
		return -EINVAL;
	for (int status = first; status <= last; status++)
		expectation->statuses[status / 8] |= (uint8_t)(1U << status % 8);
	return 0;
}

int expectation_parse(struct expectation *ret, const char *statuses, const char *text, char *error,
		      size_t error_size)
{
	struct expectation expectation = {0};
	const char *at = *statuses ? statuses : "100-599";
	int r;

	for (;;) {
		at += strspn(at, " \t");
		r = parse_range(&expectation, &at);
		at += strspn(at, " \t");
		if (r || *at != ',')
			break;
		at++;
	}
	if (r || *at) {
		snprintf(error, error_size, "'%.64s' are no statuses, such as 200,204 or 200-399",
			 statuses);
		return -EINVAL;
	}
	if (strlen(text) >= sizeof expectation.text) {
		snprintf(error, error_size, "the text that is looked for has more than %zu bytes",
			 sizeof expectation.text - 1);
		return -EINVAL;
	}
	strcpy(expectation.text, text);
	*ret = expectation;
	return 0;
}

bool expectation_allows(const struct expectation *expectation, int status)
{
	if (status < STATUS_MIN || status > STATUS_MAX)
		return false;
	return expectation->statuses[status / 8] >> status % 8 & 1;
}
