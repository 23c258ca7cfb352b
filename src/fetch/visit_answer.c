/* visit_answer.c - what came of a visit: status, fields in their order, times, and why not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fetch/visit_parts.h"

#define SECRET_MAX 4097
#define RETRY_AFTER_MAX_S ((int64_t)366 * 24 * 3600)

/* --- fields ------------------------------------------------------------------------------------------------------- */

/* The line at `at`, without its end, which becomes a NUL; moves on behind it. */
static char *next_line(char **at, const char *end)
{
	char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

	*at = stop ? stop + 1 : (char *)end;
	if (!stop)
		return NULL;
	while (stop > line && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	*stop = '\0';
	return line;
}

/* libcurl has taken them for fields; one without a colon is none. A line that goes on from the one before (RFC 9112
 * 5.2) is not either: nobody may send it. */
static bool split_field(struct visit_header *ret, char *line)
{
	char *colon = strchr(line, ':');

	if (!colon || colon == line || *line == ' ' || *line == '\t')
		return false;
	*colon = '\0';
	line[strcspn(line, " \t")] = '\0';
	ret->name = line;
	ret->value = colon + 1 + strspn(colon + 1, " \t");
	return true;
}

static size_t count_lines(const char *at, const char *end)
{
	size_t count = 0;

	while (at < end)
		count += *at++ == '\n';
	return count;
}

/* The caller frees `*ret`, whose texts are visit->head's. 0 or -ENOMEM. */
static int read_fields(struct visit *visit, struct visit_header **ret, size_t *ret_count)
{
	char *at = buffer_at(&visit->head), *end = at + buffer_len(&visit->head), *line;
	struct visit_header *fields;
	size_t count = 0;

	*ret = NULL;
	*ret_count = 0;
	if (visit->phase != PHASE_BODY)
		return 0;
	at += visit->fields_at;
	fields = calloc(count_lines(at, end) + 1, sizeof *fields);
	if (!fields)
		return -ENOMEM;
	while (at < end)
		if ((line = next_line(&at, end)))
			count += split_field(&fields[count], line);
	*ret = fields;
	*ret_count = count;
	return 0;
}

/* --- Retry-After -------------------------------------------------------------------------------------------------- */

/* RFC 9110 10.2.3: seconds, or a date. */
static int64_t read_retry_after(const char *text)
{
	int64_t seconds = 0;
	time_t date;

	if (*text && !text[strspn(text, "0123456789")]) {
		for (; *text && seconds < RETRY_AFTER_MAX_S; text++)
			seconds = seconds * 10 + (*text - '0');
		return (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
	}
	date = curl_getdate(text, NULL);
	if (date == (time_t)-1)
		return -1;
	seconds = (int64_t)date - clock_wall_ms() / 1000;
	if (seconds < 0)
		return 0;
	return (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * 1000;
}

static int64_t retry_after(const struct visit_header *fields, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(fields[i].name, "Retry-After"))
			return read_retry_after(fields[i].value);
	return -1;
}

/* --- the rest of an answer ---------------------------------------------------------------------------------------- */

static long number(const struct visit *visit, CURLINFO info)
{
	long value = 0;

	curl_easy_getinfo(visit->transfer.easy, info, &value);
	return value;
}

/* libcurl's times begin behind our look-up. 0: it did not come so far. */
static int64_t since_start(const struct visit *visit, CURLINFO info)
{
	curl_off_t us = 0;

	curl_easy_getinfo(visit->transfer.easy, info, &us);
	return us ? us + visit->asked_us - visit->began_us : 0;
}

static uint64_t bytes(const struct visit *visit, CURLINFO heads, CURLINFO bodies)
{
	curl_off_t count = 0;

	curl_easy_getinfo(visit->transfer.easy, bodies, &count);
	return (uint64_t)count + (uint64_t)number(visit, heads);
}

static const char *version_text(const struct visit *visit)
{
	switch (number(visit, CURLINFO_HTTP_VERSION)) {
	case CURL_HTTP_VERSION_1_0:
		return "1.0";
	case CURL_HTTP_VERSION_1_1:
		return "1.1";
	case CURL_HTTP_VERSION_2_0:
		return "2";
	case CURL_HTTP_VERSION_3:
		return "3";
	default:
		return "";
	}
}

/* The caller frees it with curl_free(). NULL: none, or no memory. */
static char *shown_url(const struct visit *visit)
{
	const char *text = NULL;
	char *shown = NULL;
	CURLU *url;

	curl_easy_getinfo(visit->transfer.easy, CURLINFO_EFFECTIVE_URL, &text);
	if (!text || handle_read_url(&url, text))
		return NULL;
	curl_url_set(url, CURLUPART_USER, NULL, 0);
	curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
	curl_url_get(url, CURLUPART_URL, &shown, 0);
	curl_url_cleanup(url);
	return shown;
}

static void fill(struct visit_answer *answer, const struct visit *visit)
{
	bool has_head = visit->phase == PHASE_BODY;

	answer->status = has_head ? (int)number(visit, CURLINFO_RESPONSE_CODE) : 0;
	answer->connect_status = visit->connect_status;
	answer->redirects = (int)number(visit, CURLINFO_REDIRECT_COUNT);
	answer->http_version = has_head ? version_text(visit) : "";
	answer->name_us = since_start(visit, CURLINFO_NAMELOOKUP_TIME_T);
	answer->connect_us = since_start(visit, CURLINFO_CONNECT_TIME_T);
	answer->tls_us = since_start(visit, CURLINFO_APPCONNECT_TIME_T);
	answer->first_byte_us = since_start(visit, CURLINFO_STARTTRANSFER_TIME_T);
	answer->total_us = clock_us() - visit->began_us;
	answer->bytes_out = bytes(visit, CURLINFO_REQUEST_SIZE, CURLINFO_SIZE_UPLOAD_T);
	answer->bytes_in = bytes(visit, CURLINFO_HEADER_SIZE, CURLINFO_SIZE_DOWNLOAD_T);
	answer->retry_after_ms = retry_after(answer->headers, answer->header_count);
}

/* --- why not ------------------------------------------------------------------------------------------------------ */

static int reason_of(const struct visit *visit, CURLcode code)
{
	long proxy_code = number(visit, CURLINFO_PROXY_ERROR);
	int known = visit->reason;

	if (!known && code == CURLE_COULDNT_CONNECT)
		known = visit->socket_reason;
	if (!known && !code)
		return REASON_OK;
	return (int)blame_reason(&(struct blame){
	    .scheme = visit->request.proxy->scheme,
	    .phase = visit->phase,
	    .is_tls = visit->is_tls,
	    .known = (enum reason)known,
	    .code = code,
	    .proxy_code = (CURLproxycode)proxy_code,
	    .os_error = (int)number(visit, CURLINFO_OS_ERRNO),
	    .words = visit->words,
	});
}

/* What libcurl says, but nothing of what the URL or the member must keep to themselves. */
static const char *words_of_curl(struct visit *visit, CURLcode code)
{
	char user[SECRET_MAX] = "", password[SECRET_MAX] = "";
	size_t user_len = sizeof user, password_len = sizeof password;
	const char *const secrets[] = {visit->user, visit->password, user, password,
				       visit->request.proxy->secret};

	if (endpoint_credentials(visit->request.proxy, user, &user_len, password, &password_len))
		user[0] = password[0] = '\0';
	handle_tidy_words(visit->words, code, secrets, sizeof secrets / sizeof *secrets);
	explicit_bzero(user, sizeof user);
	explicit_bzero(password, sizeof password);
	return visit->words;
}

static const char *detail_of(struct visit *visit, int reason, CURLcode code)
{
	switch (reason) {
	case REASON_OK:
		return "";
	case REASON_RESPONSE_BODY_SIZE:
		snprintf(visit->words, sizeof visit->words, "the body is larger than %zu bytes",
			 visit->request.max_bytes);
		return visit->words;
	case REASON_RESPONSE_HEAD_SIZE:
		snprintf(visit->words, sizeof visit->words, "the headers are larger than %zu bytes",
			 HANDLE_HEADER_BYTES_MAX);
		return visit->words;
	default:
		return visit->reason || code == CURLE_OPERATION_TIMEDOUT
			   ? ""
			   : words_of_curl(visit, code);
	}
}

void visit_tell(struct visit *visit, CURLcode code)
{
	int reason = reason_of(visit, code);
	char *url = shown_url(visit);
	struct visit_header *fields;
	struct visit_answer answer = {.final_url = url ? url : ""};

	/* From here on the buffer is ours: closing must not write over what is said in it. */
	curl_easy_setopt(visit->transfer.easy, CURLOPT_ERRORBUFFER, NULL);
	if (read_fields(visit, &fields, &answer.header_count) || buffer_add(&visit->body, "", 1))
		reason = REASON_INTERNAL;
	answer.headers = fields;
	answer.body = buffer_len(&visit->body) ? buffer_at(&visit->body) : "";
	answer.len = buffer_len(&visit->body) ? buffer_len(&visit->body) - 1 : 0;
	fill(&answer, visit);
	visit->cb(reason, detail_of(visit, reason, code), &answer, visit->arg);
	free(fields);
	curl_free(url);
}
