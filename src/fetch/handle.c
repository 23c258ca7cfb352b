/* handle.c - an easy handle as all of ours begin. */
#include "fetch/handle.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static CURLcode set_up(CURL *easy)
{
	CURLcode code = CURLE_OK;

	code = code ?: curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	code = code ?: curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	code = code ?: curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	code = code ?: curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	code = code ?: curl_easy_setopt(easy, CURLOPT_USERAGENT, "fairlead/" FAIRLEAD_VERSION);
	code = code ?: curl_easy_setopt(easy, CURLOPT_FAILONERROR, 0L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* Whoever gives up a name does not wait for the resolver's thread: that one cleans up when it is through. */
	code = code ?: curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	return code;
}

CURL *handle_new(void)
{
	CURL *easy = curl_easy_init();

	if (!easy || !set_up(easy))
		return easy;
	curl_easy_cleanup(easy);
	return NULL;
}

int handle_read_url(CURLU **ret, const char *text)
{
	CURLU *url = curl_url();
	char *scheme = NULL;
	bool is_ours;

	if (!url)
		return -ENOMEM;
	is_ours = !curl_url_set(url, CURLUPART_URL, text, 0) &&
		  !curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) &&
		  (!strcmp(scheme, "http") || !strcmp(scheme, "https"));
	curl_free(scheme);
	if (!is_ours) {
		curl_url_cleanup(url);
		return -EINVAL;
	}
	*ret = url;
	return 0;
}

bool handle_is_declared_larger(CURL *easy, size_t max_bytes)
{
	struct curl_header *encoding;
	curl_off_t length = -1;

	if (!curl_easy_header(easy, "Content-Encoding", 0, CURLH_HEADER, -1, &encoding))
		return false;
	curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	return length > 0 && (uint64_t)length > max_bytes;
}

bool handle_is_field_value(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == '\x7f')
			return false;
	return true;
}

static bool tells(const char *text, const char *secret)
{
	return secret && secret[0] && strstr(text, secret);
}

void handle_tidy_words(char text[static CURL_ERROR_SIZE], CURLcode code, const char *const *secrets,
		       size_t count)
{
	bool is_told = false;

	for (size_t i = 0; i < count; i++)
		is_told |= tells(text, secrets[i]);
	if (!text[0] || is_told)
		snprintf(text, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
}
