/* outcome.c - how a fetch ended. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fetch/handle.h"
#include "fetch/internal.h"
#include "fetch/spool.h"

__attribute__((format(printf, 2, 3))) static void say(struct fetch *fetch, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fetch->error, sizeof(fetch->error), format, args);
	va_end(args);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* One that does not fit counts as none: half a validator is a wrong one. */
static void copy_header(const struct fetch *fetch, const char *name, char *buffer, size_t size)
{
	struct curl_header *header;

	if (!curl_easy_header(fetch->transfer.easy, name, 0, CURLH_HEADER, -1, &header) &&
	    strlen(header->value) < size)
		strcpy(buffer, header->value);
}

/* RFC 9110 8.3.1: type and subtype are case-insensitive, parameters follow a semicolon. */
static void keep_media_type(char *type)
{
	size_t len = strcspn(type, "; \t");

	type[len] = '\0';
	for (size_t i = 0; i < len; i++)
		type[i] = (char)tolower((unsigned char)type[i]);
}

static void read_answer(struct fetch *fetch)
{
	struct fetch_answer *answer = &fetch->answer;
	long status = 0;

	curl_easy_getinfo(fetch->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	answer->status = (int)status;
	copy_header(fetch, "ETag", answer->etag, sizeof(answer->etag));
	copy_header(fetch, "Last-Modified", answer->modified, sizeof(answer->modified));
	copy_header(fetch, "Content-Type", answer->type, sizeof(answer->type));
	keep_media_type(answer->type);
}

/* --- what went wrong ---------------------------------------------------------------------------------------------- */

static int connect_result(const struct fetch *fetch)
{
	long error = 0;

	curl_easy_getinfo(fetch->transfer.easy, CURLINFO_OS_ERRNO, &error);
	if (error == ENETUNREACH)
		return -EHOSTUNREACH;
	return error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH ? -(int)error
										    : -EIO;
}

/* libcurl also calls it so when the answer is no HTTP/1 at all. */
static int protocol_result(const struct fetch *fetch)
{
	return fetch->answer.status / 100 == 3 ? -EPERM : -EPROTO;
}

/* A proxy that refuses CONNECT looks to libcurl like a connection that broke. */
static int break_result(const struct fetch *fetch)
{
	long connect_status = 0;

	curl_easy_getinfo(fetch->transfer.easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
	return connect_status >= 300 ? -EIO : -EPROTO;
}

static const struct outcome_row {
	CURLcode code;
	int result;
	int (*ask)(const struct fetch *fetch); /* instead */
} rows[] = {
    {CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT, NULL},
    {CURLE_COULDNT_RESOLVE_HOST, -ENOENT, NULL},
    {CURLE_COULDNT_RESOLVE_PROXY, -ENOENT, NULL},
    {CURLE_COULDNT_CONNECT, 0, connect_result},
    {CURLE_TOO_MANY_REDIRECTS, -EPERM, NULL},
    {CURLE_UNSUPPORTED_PROTOCOL, 0, protocol_result},
    {CURLE_PARTIAL_FILE, -EPROTO, NULL},
    {CURLE_GOT_NOTHING, -EPROTO, NULL},
    {CURLE_SEND_ERROR, -EPROTO, NULL},
    {CURLE_RECV_ERROR, 0, break_result},
    {CURLE_WEIRD_SERVER_REPLY, -EPROTO, NULL},
    {CURLE_BAD_CONTENT_ENCODING, -EPROTO, NULL},
    {CURLE_WRITE_ERROR, -EPROTO, NULL}, /* not ours: the decoder's, on bytes behind the end */
    {CURLE_HTTP2, -EPROTO, NULL},
    {CURLE_HTTP2_STREAM, -EPROTO, NULL},
    {CURLE_OUT_OF_MEMORY, -ENOMEM, NULL},
};

static int code_result(const struct fetch *fetch, CURLcode code)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == code)
			return rows[i].ask ? rows[i].ask(fetch) : rows[i].result;
	return -EIO;
}

/* The status decides when the transfer as such went well. */
static int status_result(const struct fetch *fetch)
{
	int status = fetch->answer.status;

	return status == 200 || (status == 304 && fetch->has_validator) ? 0 : -EREMOTEIO;
}

/* An empty body is a body. */
static int finish_body(struct fetch *fetch)
{
	struct fetch_answer *answer = &fetch->answer;

	answer->is_unchanged = answer->status == 304;
	if (answer->is_unchanged)
		return 0;
	if (answer->fd < 0)
		answer->fd = spool_open();
	fetch->spool_result = answer->fd < 0 ? answer->fd : 0;
	if (answer->fd >= 0 && lseek(answer->fd, 0, SEEK_SET) < 0)
		fetch->spool_result = -errno;
	return fetch->spool_result ? -EIO : 0;
}

/* --- in words ----------------------------------------------------------------------------------------------------- */

static void explain(struct fetch *fetch, int result, CURLcode code)
{
	const char *const secrets[] = {fetch->user, fetch->password};

	if (fetch->spool_result)
		say(fetch, "the temporary file: %s", strerror(-fetch->spool_result));
	else if (result == -EREMOTEIO)
		say(fetch, "the status of the answer is %d", fetch->answer.status);
	else if (result == -EMSGSIZE)
		say(fetch, "the body is larger than %zu bytes", fetch->max_bytes);
	else if (result == -EPERM && code == CURLE_UNSUPPORTED_PROTOCOL)
		say(fetch, "a redirect leads to something else than http and https");
	else if (result == -EPERM)
		say(fetch, "there are more than %d redirects", FETCH_REDIRECTS_MAX);
	else if (result == -EPROTO && fetch->result)
		say(fetch, "the headers are larger than %zu bytes", HANDLE_HEADER_BYTES_MAX);
	else
		handle_tidy_words(fetch->error, code, secrets, 2);
}

int fetch_outcome(struct fetch *fetch, CURLcode code)
{
	struct fetch_answer *answer = &fetch->answer;
	int result = fetch->result;

	/* From here on the buffer is ours: closing must not write over what is said in it. */
	curl_easy_setopt(fetch->transfer.easy, CURLOPT_ERRORBUFFER, NULL);
	read_answer(fetch);
	if (!result)
		result = code ? code_result(fetch, code) : status_result(fetch);
	if (!result)
		result = finish_body(fetch);
	if (!result)
		return 0;
	explain(fetch, result, code);
	if (answer->fd >= 0)
		close(answer->fd);
	answer->fd = -1;
	answer->bytes = 0;
	return result;
}
