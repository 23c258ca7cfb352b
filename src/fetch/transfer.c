/* transfer.c - what libcurl is to do, and what it brings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/handle.h"
#include "fetch/internal.h"
#include "fetch/spool.h"

/* --- what it brings ----------------------------------------------------------------------------------------------- */

/* libcurl takes any other number than that of the bytes for an error. */
static size_t stop(struct fetch *fetch, int result)
{
	fetch->result = result;
	return 0;
}

static long status_of(const struct fetch *fetch)
{
	long status = 0;

	curl_easy_getinfo(fetch->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
	struct fetch *fetch = arg;
	size_t len = size * count;

	(void)bytes;
	fetch->header_bytes += len;
	return fetch->header_bytes <= HANDLE_HEADER_BYTES_MAX ? len : stop(fetch, -EPROTO);
}

static size_t spool(struct fetch *fetch, const char *bytes, size_t len)
{
	struct fetch_answer *answer = &fetch->answer;
	int result = 0;

	if (answer->fd < 0)
		result = answer->fd = spool_open();
	if (result >= 0)
		result = spool_write(answer->fd, bytes, len);
	if (result >= 0)
		return len;
	fetch->spool_result = result;
	return stop(fetch, -EIO);
}

/* Bytes of the last answer, decoded: libcurl passes over the bodies of redirects. */
static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct fetch *fetch = arg;
	struct fetch_answer *answer = &fetch->answer;
	size_t len = size * count;

	if (status_of(fetch) != 200)
		return stop(fetch, -EREMOTEIO);
	if (len > fetch->max_bytes - answer->bytes ||
	    (!answer->bytes && handle_is_declared_larger(fetch->transfer.easy, fetch->max_bytes)))
		return stop(fetch, -EMSGSIZE);
	answer->bytes += len;
	return spool(fetch, bytes, len);
}

/* --- what it is to do --------------------------------------------------------------------------------------------- */

static int read_url(struct fetch *fetch, const char *text)
{
	CURLU *url;
	int result = handle_read_url(&url, text);

	if (result)
		return result;
	curl_url_get(url, CURLUPART_USER, &fetch->user, CURLU_URLDECODE);
	curl_url_get(url, CURLUPART_PASSWORD, &fetch->password, CURLU_URLDECODE);
	curl_url_cleanup(url);
	return 0;
}

/* Validators come from other hosts, and by way of Redis. */
static int add_validator(struct fetch *fetch, const char *name, const char *value)
{
	char line[512];
	struct curl_slist *longer;

	if (!value || !value[0] || !handle_is_field_value(value) ||
	    snprintf(line, sizeof(line), "%s: %s", name, value) >= (int)sizeof(line))
		return 0;
	longer = curl_slist_append(fetch->headers, line);
	if (!longer)
		return -ENOMEM;
	fetch->headers = longer;
	fetch->has_validator = true;
	return 0;
}

static CURLcode set_request(struct fetch *fetch, const struct fetch_request *request)
{
	CURL *easy = fetch->transfer.easy;
	CURLcode code = CURLE_OK;

	code = code ?: curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)FETCH_REDIRECTS_MAX);
	code = code ?: curl_easy_setopt(easy, CURLOPT_URL, request->url);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fetch->headers);
	code = code ?: curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	code = code ?: curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_ms);
	code = code ?: curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch);
	code = code ?: curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	code = code ?: curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
	return code;
}

int fetch_prepare(struct fetch *fetch, const struct fetch_request *request)
{
	int result = read_url(fetch, request->url);

	fetch->max_bytes = request->max_bytes;
	result = result ?: add_validator(fetch, "If-None-Match", request->etag);
	result = result ?: add_validator(fetch, "If-Modified-Since", request->modified);
	if (result)
		return result;
	return set_request(fetch, request) ? -ENOMEM : 0;
}
