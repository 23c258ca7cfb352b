/* visit_setup.c - what libcurl is to do for a visit: the request, the member, and nothing of the environment. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http.h"
#include "fetch/visit_parts.h"

#define PART_MAX 4097 /* of user and password, decoded, as in an entry */
#define SOCKS5_PART_MAX 255
#define RECEIVE_BYTES 16384L /* libcurl's buffers, for each transfer */
#define SEND_BYTES 16384L    /* the least that it takes */

static int complain(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int complain(char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return -EINVAL;
}

/* --- the URL ------------------------------------------------------------------------------------------------------ */

/* The host of `url` is an address. */
static bool read_address(struct address *ret, CURLU *url)
{
	char *host = NULL;
	bool is_address;
	size_t len;

	if (curl_url_get(url, CURLUPART_HOST, &host, 0))
		return false;
	len = strlen(host);
	is_address = *host == '[' && len > 2 ? !address_parse(ret, host + 1, len - 2)
					     : !address_parse(ret, host, len);
	curl_free(host);
	return is_address;
}

static int read_url(struct visit *visit, char *error, size_t error_size)
{
	CURLU *url;
	int result = handle_read_url(&url, visit->request.url);

	if (result == -EINVAL)
		return complain(error, error_size, "this is no http or https URL");
	if (result)
		return result;
	visit->has_target_address = read_address(&visit->target_address, url);
	curl_url_get(url, CURLUPART_USER, &visit->user, CURLU_URLDECODE);
	curl_url_get(url, CURLUPART_PASSWORD, &visit->password, CURLU_URLDECODE);
	curl_url_cleanup(url);
	return curl_easy_setopt(visit->transfer.easy, CURLOPT_URL, visit->request.url) ? -ENOMEM
										       : 0;
}

bool visit_needs_name(const struct visit *visit)
{
	const char *text = NULL;
	struct address address;
	CURLU *url;
	bool is_address;

	if (!visit->is_plain_socks4)
		return false;
	curl_easy_getinfo(visit->transfer.easy, CURLINFO_EFFECTIVE_URL, &text);
	if (!text || handle_read_url(&url, text))
		return true;
	is_address = read_address(&address, url);
	curl_url_cleanup(url);
	return !is_address;
}

/* --- headers ------------------------------------------------------------------------------------------------------ */

/* RFC 9110 5.6.2 */
static bool is_token(const char *text)
{
	return *text && !text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
					   "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

static int add_line(struct visit *visit, const char *line)
{
	struct curl_slist *longer = curl_slist_append(visit->headers, line);

	if (!longer)
		return -ENOMEM;
	visit->headers = longer;
	return 0;
}

/* libcurl takes "Name:" for the wish to send no such field; "Name;" is one without a value. */
static int add_header(struct visit *visit, const struct visit_header *header)
{
	size_t size = strlen(header->name) + strlen(header->value) + 3;
	char *line = malloc(size);
	int result;

	if (!line)
		return -ENOMEM;
	snprintf(line, size, *header->value ? "%s: %s" : "%s;%s", header->name, header->value);
	result = add_line(visit, line);
	free(line);
	return result;
}

/* Connection and framing are libcurl's affair. */
static bool is_ours(const char *name)
{
	const struct http_field field = {.name = {name, strlen(name)}};

	return http_is_hop_by_hop(NULL, 0, &field) || text_is(field.name, "expect");
}

static int add_headers(struct visit *visit, char *error, size_t error_size)
{
	const struct visit_request *request = &visit->request;
	bool has_type = false;
	int result = 0;

	for (size_t i = 0; i < request->header_count && !result; i++) {
		const struct visit_header *header = &request->headers[i];

		if (!is_token(header->name))
			return complain(error, error_size,
					"header %zu has no name that can be sent", i + 1);
		if (!handle_is_field_value(header->value) || header->value[0] == ' ')
			return complain(error, error_size, "the value of %s cannot be sent",
					header->name);
		if (is_ours(header->name))
			return complain(error, error_size, "%s is not for a task to say",
					header->name);
		has_type |= !strcasecmp(header->name, "Content-Type");
		result = add_header(visit, header);
	}
	if (!result && request->body && !has_type)
		result = add_line(visit, "Content-Type:"); /* none, rather than that of a form */
	return result ? result : add_line(visit, "Expect:");
}

/* --- method and body ---------------------------------------------------------------------------------------------- */

/* libcurl turns a POST into a GET at a redirect as browsers do. Another method must be sent again as it was (RFC 9110
 * 15.4). */
static CURLcode set_method(struct visit *visit)
{
	CURL *easy = visit->transfer.easy;
	const struct visit_request *request = &visit->request;
	const char *method = request->method;
	bool is_get = !strcmp(method, "GET") && !request->body;
	bool is_post = !strcmp(method, "POST");
	CURLcode code = CURLE_OK;

	if (visit->is_head)
		return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	if (is_post || request->body) {
		code = code
			   ?: curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
					       (curl_off_t)request->body_len);
		code = code
			   ?: curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
					       request->body ? request->body : "");
	}
	if (is_get || is_post)
		return code;
	code = code
		   ?: curl_easy_setopt(easy, CURLOPT_POSTREDIR,
				       (long)(CURL_REDIR_POST_301 | CURL_REDIR_POST_302));
	return code ?: curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

static int check_method(struct visit *visit, char *error, size_t error_size)
{
	const struct visit_request *request = &visit->request;

	if (!is_token(request->method) || !strcasecmp(request->method, "CONNECT"))
		return complain(error, error_size, "this is no method that can be sent");
	visit->is_head = !strcmp(request->method, "HEAD");
	if (visit->is_head && request->body)
		return complain(error, error_size, "HEAD has no body");
	return 0;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

static CURLcode set_behaviour(struct visit *visit)
{
	CURL *easy = visit->transfer.easy;
	const struct visit_request *request = &visit->request;
	CURLcode code = CURLE_OK;

	/* Deadlines are ours (visit.c): behind them libcurl's own is a second one. */
	code = code
		   ?: curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
				       (long)(2 * request->connect_ms + 1000));
	code = code
		   ?: curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION,
				       request->redirects_max > 0 ? 1L : 0L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)request->redirects_max);
	code = code ?: curl_easy_setopt(easy, CURLOPT_UNRESTRICTED_AUTH, 0L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HTTPHEADER, visit->headers);
	code = code ?: curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
	code = code ?: curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BYTES);
	return code;
}

/* Trust anchors in a file are read once a process, those in a folder for each connection, which takes tens of
 * milliseconds. */
static CURLcode prefer_file(CURL *easy)
{
	const char *file = NULL;
	CURLcode code = curl_easy_getinfo(easy, CURLINFO_CAINFO, &file);

	if (code || !file)
		return code;
	code = code ?: curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	return code ?: curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
}

static CURLcode set_tls(struct visit *visit)
{
	CURL *easy = visit->transfer.easy;
	const char *ca_file = visit->request.ca_file;
	CURLcode code = CURLE_OK;

	code = code ?: curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	code =
	    code ?: curl_easy_setopt(easy, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	code = code ?: curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 1L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 2L);
	code = code ?: curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	if (ca_file && *ca_file) {
		code = code ?: curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
		code = code ?: curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, ca_file);
	}
	return code ?: prefer_file(easy);
}

int visit_prepare(struct visit *visit, char *error, size_t error_size)
{
	int result;

	visit->transfer.easy = handle_new();
	if (!visit->transfer.easy)
		return -ENOMEM;
	result = read_url(visit, error, error_size);
	if (!result)
		result = check_method(visit, error, error_size);
	if (!result)
		result = add_headers(visit, error, error_size);
	if (result)
		return result;
	return set_method(visit) || set_behaviour(visit) || set_tls(visit) ? -ENOMEM : 0;
}

/* --- the member --------------------------------------------------------------------------------------------------- */

struct login {
	char user[PART_MAX], password[PART_MAX];
	size_t user_len, password_len;
};

static int read_login(struct login *ret, const struct endpoint *proxy)
{
	ret->user_len = sizeof ret->user;
	ret->password_len = sizeof ret->password;
	return endpoint_credentials(proxy, ret->user, &ret->user_len, ret->password,
				    &ret->password_len);
}

static bool has_control(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)bytes[i] < ' ' || bytes[i] == '\x7f')
			return true;
	return false;
}

/* Credentials that the protocol (RFC 1929) or libcurl cannot carry are as good as wrong ones. */
static bool is_fit(const struct endpoint *proxy)
{
	bool is_socks5 = proxy->scheme == SCHEME_SOCKS5 || proxy->scheme == SCHEME_SOCKS5H;
	struct login login NOT_ZEROED;
	bool fits;

	if (!proxy->secret)
		return true;
	fits = !read_login(&login, proxy) && !has_control(login.user, login.user_len) &&
	       !has_control(login.password, login.password_len) &&
	       !(is_socks5 &&
		 (login.user_len > SOCKS5_PART_MAX || login.password_len > SOCKS5_PART_MAX));
	explicit_bzero(&login, sizeof login);
	return fits;
}

static bool is_socks4(const struct endpoint *proxy)
{
	return proxy->scheme == SCHEME_SOCKS4 || proxy->scheme == SCHEME_SOCKS4A;
}

/* SOCKS4 has no IPv6; and 0.0.0.1 to 0.0.0.255 are how SOCKS4A says that a name follows. */
static bool is_beyond_socks4(const struct address *a)
{
	return a->family != AF_INET ||
	       (!a->bytes[0] && !a->bytes[1] && !a->bytes[2] && a->bytes[3]);
}

int visit_check(const struct visit *visit)
{
	const struct endpoint *proxy = visit->request.proxy;

	if (is_socks4(proxy) && visit->has_target_address &&
	    is_beyond_socks4(&visit->target_address))
		return REASON_PROXY_CANNOT;
	return is_fit(proxy) ? 0 : REASON_PROXY_AUTH;
}

/* Names of targets are the member's to look up. An address goes to SOCKS4 as one: not every such proxy knows SOCKS4A. */
static curl_proxytype type_of(const struct visit *visit)
{
	switch (visit->request.proxy->scheme) {
	case SCHEME_HTTPS:
		return CURLPROXY_HTTPS;
	case SCHEME_SOCKS4:
	case SCHEME_SOCKS4A:
		return visit->has_target_address ? CURLPROXY_SOCKS4 : CURLPROXY_SOCKS4A;
	case SCHEME_SOCKS5:
	case SCHEME_SOCKS5H:
		return CURLPROXY_SOCKS5_HOSTNAME;
	case SCHEME_HTTP:
	case SCHEME_DIRECT:
	case SCHEME_COUNT:
		break;
	}
	return CURLPROXY_HTTP;
}

/* Appends `bytes` so that a URL's decoder gives them back. */
static int add_encoded(struct buffer *out, const char *bytes, size_t len)
{
	static const char unreserved[] =
	    "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	int result = 0;

	for (size_t i = 0; i < len && !result; i++)
		result = memchr(unreserved, bytes[i], sizeof unreserved - 1)
			     ? buffer_add(out, &bytes[i], 1)
			     : buffer_printf(out, "%%%02X", (unsigned char)bytes[i]);
	return result;
}

static int add_login(struct buffer *out, const struct endpoint *proxy)
{
	struct login login NOT_ZEROED;
	int result;

	if (!proxy->secret)
		return 0;
	result = read_login(&login, proxy);
	if (!result)
		result = add_encoded(out, login.user, login.user_len);
	if (!result)
		result = buffer_add(out, ":", 1);
	if (!result)
		result = add_encoded(out, login.password, login.password_len);
	if (!result)
		result = buffer_add(out, "@", 1);
	explicit_bzero(&login, sizeof login);
	return result;
}

/* As part of the proxy's URL libcurl decodes credentials exactly once for each step; CURLOPT_PROXYUSERNAME is decoded
 * again at each redirect by 7.88. */
static int write_proxy(struct buffer *out, const struct visit *visit)
{
	static const char *const schemes[] = {
	    [CURLPROXY_HTTP] = "http",
	    [CURLPROXY_HTTPS] = "https",
	    [CURLPROXY_SOCKS4] = "socks4",
	    [CURLPROXY_SOCKS4A] = "socks4a",
	    [CURLPROXY_SOCKS5_HOSTNAME] = "socks5h",
	};
	const struct endpoint *proxy = visit->request.proxy;
	int result = buffer_printf(out, "%s://", schemes[type_of(visit)]);

	if (!result)
		result = add_login(out, proxy);
	return result ? result
		      : buffer_printf(out, strchr(proxy->host, ':') ? "[%s]:%u" : "%s:%u",
				      proxy->host, proxy->port);
}

/* A cache of its own: the engine's is shared with all others. */
static int tell_addresses(struct visit *visit)
{
	const char *host = visit->request.proxy->host;
	char text[ENDPOINT_HOST_MAX + 10 + RESOLVE_MAX * 50];
	int len = snprintf(text, sizeof text, "%s:%u:", host, visit->request.proxy->port);

	for (size_t i = 0; i < visit->address_count; i++) {
		char address[46];

		address_print(&visit->addresses[i], address, sizeof address);
		len += snprintf(text + len, sizeof text - (size_t)len,
				strchr(address, ':') ? "%s[%s]" : "%s%s", i ? "," : "", address);
	}
	visit->resolve = curl_slist_append(NULL, text);
	visit->share = curl_share_init();
	if (!visit->resolve || !visit->share ||
	    curl_share_setopt(visit->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) ||
	    curl_easy_setopt(visit->transfer.easy, CURLOPT_SHARE, visit->share) ||
	    curl_easy_setopt(visit->transfer.easy, CURLOPT_RESOLVE, visit->resolve))
		return -ENOMEM;
	return 0;
}

static CURLcode set_proxy(struct visit *visit, const char *proxy)
{
	CURL *easy = visit->transfer.easy;
	CURLcode code = CURLE_OK;

	code = code ?: curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
	code = code ?: curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
	code = code ?: curl_easy_setopt(easy, CURLOPT_PROXYTYPE, (long)type_of(visit));
	code = code ?: curl_easy_setopt(easy, CURLOPT_PROXYAUTH, (long)CURLAUTH_BASIC);
	code = code ?: curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	return code;
}

int visit_set_proxy(struct visit *visit)
{
	const struct endpoint *proxy = visit->request.proxy;
	struct address address;
	struct buffer url;
	int result = 0;

	if (proxy->scheme == SCHEME_DIRECT)
		return set_proxy(visit, "") ? -ENOMEM : 0;
	visit->is_plain_socks4 = type_of(visit) == CURLPROXY_SOCKS4;
	buffer_init(&url, ENDPOINT_TEXT_MAX + 2 * 3 * PART_MAX);
	result = write_proxy(&url, visit);
	if (!result)
		result = buffer_add(&url, "", 1);
	if (!result)
		result = set_proxy(visit, buffer_at(&url)) ? -ENOMEM : 0;
	if (url.data)
		explicit_bzero(url.data, url.size);
	buffer_fini(&url);
	if (!result && address_parse(&address, proxy->host, strlen(proxy->host)))
		result = tell_addresses(visit);
	return result;
}
