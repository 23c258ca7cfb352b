/* visit_watch.c - what libcurl tells a visit on its way: sockets, TLS, heads, bodies; and what it may not do. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http.h"
#include "fetch/visit_parts.h"

/* A body that comes slower than this for so long has stopped, whatever time is left. */
#define SLOW_BYTES_PER_S 16L
#define SLOW_S 30L

static bool is_direct(const struct visit *visit)
{
	return visit->request.proxy->scheme == SCHEME_DIRECT;
}

static bool is_http_member(const struct visit *visit)
{
	enum scheme scheme = visit->request.proxy->scheme;

	return scheme == SCHEME_HTTP || scheme == SCHEME_HTTPS;
}

bool visit_is_forwarded(const struct visit *visit)
{
	return is_http_member(visit) && !visit->is_tls;
}

/* libcurl takes any other number than that of the bytes for an error. */
static size_t stop(struct visit *visit, enum reason reason)
{
	visit->reason = (int)reason;
	return 0;
}

/* --- sockets ------------------------------------------------------------------------------------------------------ */

bool visit_is_connected(const struct visit *visit)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;

	return visit->fd >= 0 && !getpeername(visit->fd, (struct sockaddr *)&peer, &len);
}

static bool is_same(const struct address *a, const struct address *b)
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, a->family == AF_INET ? 4 : 16);
}

static bool is_member(const struct visit *visit, const struct address *address, uint16_t port)
{
	if (port != visit->request.proxy->port)
		return false;
	for (size_t i = 0; i < visit->address_count; i++)
		if (is_same(address, &visit->addresses[i]))
			return true;
	return false;
}

/* 0, or why this address is not connected to. */
static int judge(const struct visit *visit, const struct sockaddr *sa)
{
	const struct visit_request *request = &visit->request;
	/* The port has the same offset in both families. */
	uint16_t port = ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
	struct address address;

	if (address_from_sockaddr(&address, sa))
		return REASON_INTERNAL;
	if (!is_direct(visit))
		return is_member(visit, &address, port) ? 0 : REASON_PROXY_PROHIBITED;
	if (request->is_admitted)
		return request->is_admitted(&address, port, true, request->admit_arg)
			   ? 0
			   : REASON_TARGET_PROHIBITED;
	return address_is_special(&address) ? REASON_TARGET_PROHIBITED : 0;
}

/* The source address of a direct member. 0, or -1: it cannot be had for this family or on this host. */
static int bind_source(const struct visit *visit, int fd)
{
	const char *host = visit->request.proxy->host;
	const int on = 1;
	struct sockaddr_storage sa;
	struct address source;
	socklen_t len;

	if (!is_direct(visit) || !*host)
		return 0;
	if (address_parse(&source, host, strlen(host)))
		return -1;
	len = address_to_sockaddr(&source, 0, &sa);
	/* The port is chosen at connect(2), so that one source address serves more than 28,000 targets at once. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	return bind(fd, (struct sockaddr *)&sa, len);
}

static void begin_step(struct visit *visit)
{
	int64_t connect_ms = clock_ms() + visit->request.connect_ms;

	visit->phase = PHASE_CONNECT;
	visit->is_tls = visit->has_met_proxy = false;
	visit->connect_status = 0;
	visit->scan = (struct http_scan){0};
	buffer_fini(&visit->head);
	alarm_set(&visit->alarm, connect_ms < visit->deadline_ms ? connect_ms : visit->deadline_ms);
}

/* A descriptor, or the negative of a reason. */
static int open_socket(const struct visit *visit, const struct curl_sockaddr *sa)
{
	int refused = judge(visit, &sa->addr);
	int fd;

	if (refused)
		return -refused;
	fd = socket(sa->family, sa->socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, sa->protocol);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -REASON_NO_DESCRIPTORS
							  : -REASON_PROXY_CANNOT;
	if (!bind_source(visit, fd))
		return fd;
	close(fd);
	return -REASON_PROXY_CANNOT;
}

/* CURLOPT_OPENSOCKETFUNCTION: the one place where a visit gets sockets, so that never-direct holds in code. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *sa)
{
	struct visit *visit = arg;
	int fd = -REASON_INTERNAL;

	if (visit->phase != PHASE_CONNECT)
		begin_step(visit);
	if (purpose == CURLSOCKTYPE_IPCXN)
		fd = open_socket(visit, sa);
	visit->socket_reason = fd < 0 ? -fd : 0;
	visit->fd = fd < 0 ? -1 : fd;
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* CURLOPT_RESOLVER_START_FUNCTION: not 0 refuses. libcurl asks for addresses in text, too. Names of targets are
 * looked up for direct members alone; the one other case would be a redirect to a name, with a target that was an
 * address for SOCKS4. */
static int on_lookup(void *resolver, void *reserved, void *arg)
{
	struct visit *visit = arg;

	(void)resolver;
	(void)reserved;
	if (is_direct(visit))
		visit->phase = PHASE_NAME;
	else if (visit_needs_name(visit))
		visit->reason = REASON_PROXY_CANNOT;
	return visit->reason;
}

/* --- TLS, and the request ----------------------------------------------------------------------------------------- */

/* CURLOPT_SSL_CTX_FUNCTION: TLS begins, with an https member first. */
static CURLcode on_tls(CURL *easy, void *context, void *arg)
{
	struct visit *visit = arg;

	(void)easy;
	(void)context;
	if (visit->request.proxy->scheme == SCHEME_HTTPS && !visit->has_met_proxy) {
		visit->has_met_proxy = true;
		visit->phase = PHASE_HANDSHAKE;
	} else {
		visit->phase = PHASE_TARGET_TLS;
		visit->is_tls = true;
	}
	return CURLE_OK;
}

/* CURLOPT_PREREQFUNCTION: the connection stands, whatever it consists of. */
static int on_request(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct visit *visit = arg;

	(void)ip;
	(void)local_ip;
	(void)port;
	(void)local_port;
	visit->phase = PHASE_REQUEST;
	buffer_fini(&visit->head);
	alarm_set(&visit->alarm, visit->deadline_ms);
	return CURL_PREREQFUNC_OK;
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

static bool is_blank(const char *line, size_t len)
{
	return len && (line[0] == '\r' || line[0] == '\n');
}

/* A line of an answer to CONNECT: judged as dial does. libcurl goes on by itself behind a 2xx, and only then. */
static size_t take_connect_line(struct visit *visit, const char *line, size_t len)
{
	const struct text connect = {"CONNECT", 7};
	struct http_response response;
	enum reason reason;
	long head;

	if (buffer_add(&visit->head, line, len))
		return stop(visit, REASON_PROXY_GARBAGE);
	head = http_scan_head(&visit->scan, buffer_at(&visit->head), buffer_len(&visit->head));
	if (head < 0)
		return stop(visit, REASON_PROXY_GARBAGE);
	if (!head)
		return len;
	if (http_parse_response(&response, buffer_at(&visit->head), (size_t)head, connect) ||
	    response.status == 101)
		return stop(visit, REASON_PROXY_GARBAGE);
	visit->connect_status = response.status;
	reason = blame_connect_status(response.status);
	return reason ? stop(visit, reason) : len;
}

static long status_of(const struct visit *visit)
{
	long status = 0;

	curl_easy_getinfo(visit->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* RFC 9110 15.4.4: what follows a 303 is a GET. libcurl would keep a method of our own. */
static void follow_other(struct visit *visit)
{
	curl_easy_setopt(visit->transfer.easy, CURLOPT_CUSTOMREQUEST, NULL);
}

static size_t end_head(struct visit *visit, size_t len)
{
	CURL *easy = visit->transfer.easy;
	long status = status_of(visit);

	if (status < 200)
		return len;
	visit->phase = PHASE_BODY;
	/* A 407 through a tunnel is the target's affair. */
	if (status == 407 && visit_is_forwarded(visit))
		return stop(visit, REASON_PROXY_AUTH);
	if (status == 303 && !visit->is_head)
		follow_other(visit);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_PER_S);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, SLOW_S);
	return len;
}

/* A line of a response, an interim or a final one; a status line begins it anew. Trailers, which come in the same way, are
 * none of it. */
static size_t take_response_line(struct visit *visit, const char *line, size_t len)
{
	bool is_first = len >= 5 && !memcmp(line, "HTTP/", 5) && visit->phase == PHASE_REQUEST;

	if (visit->phase != PHASE_REQUEST)
		return len;
	if (is_blank(line, len))
		return end_head(visit, len);
	if (is_first)
		buffer_fini(&visit->head);
	if (buffer_add(&visit->head, line, len))
		return stop(visit, REASON_INTERNAL);
	if (is_first)
		visit->fields_at = len;
	return len;
}

/* CURLOPT_HEADERFUNCTION */
static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
	struct visit *visit = arg;
	size_t len = size * count;

	visit->header_bytes += len;
	if (visit->phase < PHASE_REQUEST)
		return take_connect_line(visit, line, len);
	if (visit->header_bytes > HANDLE_HEADER_BYTES_MAX)
		return stop(visit, REASON_RESPONSE_HEAD_SIZE);
	return take_response_line(visit, line, len);
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

/* CURLOPT_WRITEFUNCTION: bytes of the last answer, decoded; libcurl passes over the bodies of redirects. */
static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct visit *visit = arg;
	size_t len = size * count, max = visit->request.max_bytes;

	if (len > max - buffer_len(&visit->body) ||
	    (!buffer_len(&visit->body) && handle_is_declared_larger(visit->transfer.easy, max)))
		return stop(visit, REASON_RESPONSE_BODY_SIZE);
	return buffer_add(&visit->body, bytes, len) ? stop(visit, REASON_INTERNAL) : len;
}

int visit_set_watch(struct visit *visit)
{
	CURL *easy = visit->transfer.easy;
	CURLcode code = CURLE_OK;

	code = code ?: curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	code = code ?: curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, visit);
	code = code ?: curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_lookup);
	code = code ?: curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, visit);
	code = code ?: curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_tls);
	code = code ?: curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, visit);
	code = code ?: curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
	code = code ?: curl_easy_setopt(easy, CURLOPT_PREREQDATA, visit);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	code = code ?: curl_easy_setopt(easy, CURLOPT_HEADERDATA, visit);
	code = code ?: curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	code = code ?: curl_easy_setopt(easy, CURLOPT_WRITEDATA, visit);
	code = code ?: curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, visit->words);
	return code ? -ENOMEM : 0;
}
