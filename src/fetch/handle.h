/* handle.h - an easy handle as all of ours begin: http(s) only, nothing kept, nothing of the user's files. */
#ifndef FAIRLEAD_FETCH_HANDLE_H
#define FAIRLEAD_FETCH_HANDLE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/result.h"

/* Of one transfer, redirects and trailers included. libcurl keeps them all. */
#define HANDLE_HEADER_BYTES_MAX ((size_t)256 * 1024)

/* NULL: no memory. */
CURL *handle_new(void);

/* Reads an absolute http or https URL as libcurl will; `*ret` is freed by curl_url_cleanup(). The scheme must be
 * there: libcurl guesses one otherwise. 0, -EINVAL or -ENOMEM. */
MUST_USE int handle_read_url(CURLU **ret, const char *text);

/* The length that the answer tells is larger; nothing is known of one that is still encoded. */
bool handle_is_declared_larger(CURL *easy, size_t max_bytes);

/* `text` is a field's value: bytes that can stand there (RFC 9110 5.5). */
bool handle_is_field_value(const char *text);

/* Makes one printable line of libcurl's own words, or of others for `code` when a secret stands in them. */
void handle_tidy_words(char text[static CURL_ERROR_SIZE], CURLcode code, const char *const *secrets,
		       size_t count);

#endif
