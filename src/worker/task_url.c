/* task_url.c - a URL as it is sent: taken apart strictly (RFC 3986), nothing guessed, put together again.
 *
 * Where the WHATWG's URL standard and RFC 3986 would see different hosts, it is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/endpoint.h"
#include "worker/task_parts.h"

#define HOST_SIZE ((size_t)256)
#define SCHEME_SHOWN_MAX 20
/* "https://", brackets, port and NUL, and a canonical address that may be longer than its text. */
#define URL_EXTRA ((size_t)128)

struct url {
	struct text scheme, userinfo, host, port;
	struct text rest; /* path and query */
	bool has_userinfo, is_literal;
	char canonical[HOST_SIZE];
};

static struct text text_skip(struct text t, size_t n)
{
	return (struct text){t.at + n, t.len - n};
}

/* How many bytes stand before the first of `stops`. */
static size_t text_until(struct text t, const char *stops)
{
	size_t n = 0, count = strlen(stops);

	while (n < t.len && !memchr(stops, t.at[n], count))
		n++;
	return n;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* --- taking apart ------------------------------------------------------------------------------------------------- */

/* RFC 3986 3.1: letters first, then also digits, '+', '-' and '.'. 0: none. */
static size_t scheme_len(struct text url)
{
	size_t n = 0;

	while (n < url.len && (is_letter(url.at[n]) || is_digit(url.at[n]) ||
			       (url.at[n] != '\0' && strchr("+-.", url.at[n]))))
		n++;
	if (n == 0 || n == url.len || url.at[n] != ':' || !is_letter(url.at[0]))
		return 0;
	return n;
}

/* "example.com:80/" and "localhost:80/" are hosts to whoever wrote them. */
static bool is_host_and_port(struct text url, size_t len)
{
	return memchr(url.at, '.', len) || (url.len > len + 1 && is_digit(url.at[len + 1]));
}

static int take_scheme(struct url *url, struct text *rest, char error[static TASK_ERROR_MAX])
{
	size_t n = scheme_len(*rest);

	if (n == 0 || is_host_and_port(*rest, n))
		return task_refuse(error,
				   "there is no scheme: write http:// or https:// in front of it");
	url->scheme = (struct text){rest->at, n};
	if (!text_is(url->scheme, "http") && !text_is(url->scheme, "https"))
		return task_refuse(error, "its scheme is \"%.*s\": only http and https are fetched",
				   (int)(n < SCHEME_SHOWN_MAX ? n : SCHEME_SHOWN_MAX), rest->at);
	*rest = text_skip(*rest, n + 1);
	if (rest->len < 2 || memcmp(rest->at, "//", 2) != 0)
		return task_refuse(error, "\"//\" is missing behind the scheme");
	*rest = text_skip(*rest, 2);
	return 0;
}

/* What curl would decode may hold no control byte (CR LF in a password). */
static int check_userinfo(struct text userinfo, char error[static TASK_ERROR_MAX])
{
	if (memchr(userinfo.at, '@', userinfo.len))
		return task_refuse(error,
				   "\"@\" stands twice before the path: write %%40 for the one in "
				   "the user name or password");
	for (size_t i = 0; i < userinfo.len; i++) {
		uint8_t byte;

		if (userinfo.at[i] != '%')
			continue;
		if (userinfo.len - i < 3 || hex_parse(&byte, 1, userinfo.at + i + 1, 2))
			return task_refuse(error,
					   "\"%%\" in the user name or password is followed by no "
					   "two hexadecimal digits: write %%25");
		if (is_control((char)byte))
			return task_refuse(
			    error, "a control byte stands in the user name or password: %%%02X",
			    byte);
	}
	return 0;
}

static int take_userinfo(struct url *url, struct text *authority, char error[static TASK_ERROR_MAX])
{
	const char *at = memrchr(authority->at, '@', authority->len);

	if (!at)
		return 0;
	url->userinfo = (struct text){authority->at, (size_t)(at - authority->at)};
	url->has_userinfo = url->userinfo.len > 0;
	*authority = text_skip(*authority, url->userinfo.len + 1);
	return check_userinfo(url->userinfo, error);
}

/* "[" ... "]" holds IPv6 and nothing else: no zone, no IPvFuture. */
static int take_literal(struct url *url, struct text *authority, char error[static TASK_ERROR_MAX])
{
	const char *end = memchr(authority->at, ']', authority->len);

	if (!end)
		return task_refuse(error, "\"[\" is not closed in the host");
	url->host = (struct text){authority->at + 1, (size_t)(end - authority->at) - 1};
	url->is_literal = true;
	*authority = text_skip(*authority, url->host.len + 2);
	if (!memchr(url->host.at, ':', url->host.len) ||
	    http_canonical_host(url->host, url->canonical, sizeof url->canonical))
		return task_refuse(error,
				   "what stands in brackets is no IPv6 address (without a zone)");
	return 0;
}

static int take_name(struct url *url, struct text *authority, char error[static TASK_ERROR_MAX])
{
	url->host = (struct text){authority->at, text_until(*authority, ":")};
	*authority = text_skip(*authority, url->host.len);
	if (!url->host.len)
		return task_refuse(error, "there is no host");
	for (size_t i = 0; i < url->host.len; i++)
		if ((unsigned char)url->host.at[i] >= 0x80)
			return task_refuse(error, "the host has letters outside ASCII: write it in "
						  "punycode, such as xn--bcher-kva.example");
	if (http_canonical_host(url->host, url->canonical, sizeof url->canonical))
		return task_refuse(error,
				   "its host is neither a name (letters, digits, - and _ between "
				   "dots, not ending in a number) nor an address");
	return 0;
}

/* RFC 3986 3.2.3: an empty port is the scheme's own. No leading zeros, because some read those as octal. */
static int take_port(struct url *url, struct text authority, char error[static TASK_ERROR_MAX])
{
	unsigned port = 0;

	if (!authority.len)
		return 0;
	url->port = text_skip(authority, 1);
	for (size_t i = 0; i < url->port.len && port <= UINT16_MAX; i++)
		port = is_digit(url->port.at[i]) ? port * 10 + (unsigned)(url->port.at[i] - '0')
						 : UINT16_MAX + 1;
	if (authority.at[0] != ':' || port > UINT16_MAX ||
	    (url->port.len && url->port.at[0] == '0'))
		return task_refuse(error, "its port is no number from 1 to 65535");
	return 0;
}

static int take_authority(struct url *url, struct text *rest, char error[static TASK_ERROR_MAX])
{
	struct text authority = {rest->at, text_until(*rest, "/?#")};
	int r;

	*rest = text_skip(*rest, authority.len);
	/* To the WHATWG's standard a backslash ends the host, to RFC 3986 it does not. */
	if (memchr(authority.at, '\\', authority.len))
		return task_refuse(error, "a backslash stands before the path: write /");
	r = take_userinfo(url, &authority, error);
	if (r)
		return r;
	if (authority.len && authority.at[0] == '[')
		r = take_literal(url, &authority, error);
	else
		r = take_name(url, &authority, error);
	return r ? r : take_port(url, authority, error);
}

static int url_read(struct url *url, struct text text, char error[static TASK_ERROR_MAX])
{
	int r;

	if (text.len > TASK_URL_MAX)
		return task_refuse(error, "the URL is longer than %zu bytes", TASK_URL_MAX);
	for (size_t i = 0; i < text.len; i++)
		if (is_control(text.at[i]))
			return task_refuse(error,
					   "it is no URL: byte %zu is a control byte (0x%02x)",
					   i + 1, (unsigned char)text.at[i]);
	r = take_scheme(url, &text, error);
	if (!r)
		r = take_authority(url, &text, error);
	if (!r)
		url->rest = (struct text){text.at, text_until(text, "#")};
	return r;
}

/* --- putting together --------------------------------------------------------------------------------------------- */

static char *put(char *to, const char *text)
{
	return stpcpy(to, text);
}

/* Percent-encodes bytes outside ASCII, blanks and those of `unsafe`, which RFC 3986 lets stand nowhere. */
static char *put_encoded(char *to, struct text part, const char *unsafe)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < part.len; i++) {
		unsigned char byte = (unsigned char)part.at[i];

		if (byte > 0x20 && byte < 0x7f && !strchr(unsafe, byte)) {
			*to++ = (char)byte;
			continue;
		}
		*to++ = '%';
		*to++ = digits[byte >> 4];
		*to++ = digits[byte & 15];
	}
	*to = '\0';
	return to;
}

static void url_print(const struct url *url, enum secret secret, char *to)
{
	to = put(to, text_is(url->scheme, "https") ? "https://" : "http://");
	if (url->has_userinfo && secret == HIDE_SECRET)
		to = put(to, "***@");
	else if (url->has_userinfo)
		to = put(put_encoded(to, url->userinfo, "\"<>\\^`{|}[]"), "@");
	to = put(to, url->is_literal ? "[" : "");
	to = put(to, url->canonical);
	to = put(to, url->is_literal ? "]" : "");
	if (url->port.len)
		to += sprintf(to, ":%.*s", (int)url->port.len, url->port.at);
	/* RFC 9110 4.2.3: an empty path is "/". */
	if (!url->rest.len || url->rest.at[0] != '/')
		to = put(to, "/");
	put_encoded(to, url->rest, "\"<>\\^`{|}");
}

int task_read_url(struct task *task, const char *bytes, size_t len,
		  char error[static TASK_ERROR_MAX])
{
	struct url url = {0};
	int r = url_read(&url, (struct text){bytes, len}, error);

	if (r)
		return r;
	task->url = malloc(3 * len + URL_EXTRA);
	task->shown = malloc(3 * len + URL_EXTRA);
	task->host = strdup(url.canonical);
	if (!task->url || !task->shown || !task->host)
		return -ENOMEM;
	url_print(&url, SHOW_SECRET, task->url);
	url_print(&url, HIDE_SECRET, task->shown);
	return 0;
}
