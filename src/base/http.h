/* http.h - HTTP/1.1 heads and bodies, strictly (RFC 9110, RFC 9112). Pure: bytes in, structures out.
 *
 * Used by the gateway for clients, by dial for upstreams, by the admin listener. There is no lenient mode: bare LF, bare
 * CR, NUL, obs-fold, space before a colon, Content-Length beside Transfer-Encoding, lists of lengths, any coding
 * but exactly "chunked" are refused. Pointers in the structures point into the caller's bytes. */
#ifndef FAIRLEAD_BASE_HTTP_H
#define FAIRLEAD_BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

#define HTTP_HEAD_MAX ((size_t)65536) /* start line and fields */
#define HTTP_LINE_MAX ((size_t)16384) /* start line */
#define HTTP_FIELDS_MAX 128

struct text {
	const char *at;
	size_t len;
};

struct http_field {
	struct text name, value; /* value without surrounding white space */
};

/* Finds the end of a head. Keep one for each message; {0} to begin. */
struct http_scan {
	size_t seen;
	size_t start_line; /* its length with CRLF, 0 = not complete */
};

/* Looks at `len` bytes, the message from its first byte on. Returns the length of the head with its empty line
 * (> 0), 0 if more bytes are needed, or the negative of an `enum reason`: REASON_REQUEST_SYNTAX (bare LF, bare CR,
 * NUL and other controls, a first byte that starts no method or version, a first line that has no version),
 * REASON_REQUEST_URI_SIZE, REASON_REQUEST_HEAD_SIZE. A verdict falls with the byte that decides it, however the bytes
 * arrive; each byte is looked at once over all calls. */
long http_scan_head(struct http_scan *scan, const char *bytes, size_t len);

enum http_framing {
	HTTP_NO_BODY,
	HTTP_LENGTH,
	HTTP_CHUNKED,
	HTTP_UNTIL_CLOSE, /* responses only */
};

enum http_target_form {
	HTTP_ORIGIN_FORM,
	HTTP_ABSOLUTE_FORM,
	HTTP_AUTHORITY_FORM,
	HTTP_ASTERISK_FORM
};

struct http_request {
	struct text method, target;
	int minor; /* HTTP/1.minor, 0 or 1 */
	enum http_target_form form;
	struct text host; /* of the target (absolute and authority form), IPv6 without brackets */
	uint16_t port;    /* likewise; absolute form without a port: 80 */
	/* What an origin gets: "/" if empty ("*" for OPTIONS). It begins with '?' if the target was "http://host?query":
	 * then a '/' goes before it. */
	struct text path;
	enum http_framing framing;
	uint64_t length; /* HTTP_LENGTH */
	bool keep_alive; /* the client allows another request */
	bool expect_continue;
	bool upgrade;         /* to a WebSocket; other upgrades are ignored (RFC 9110 7.8) */
	int64_t max_forwards; /* of OPTIONS and TRACE; -1: without bound */
	struct http_field fields[HTTP_FIELDS_MAX];
	size_t field_count;
};

/* Reads a whole head (as long as http_scan_head() said). Returns 0 or an `enum reason`: REASON_REQUEST_SYNTAX,
 * REASON_REQUEST_VERSION (not 1.0 or 1.1), REASON_REQUEST_CODING (unknown transfer coding, 501), REASON_REQUEST_SCHEME
 * (absolute form with another scheme than http), REASON_REQUEST_HEAD_SIZE (too many fields). */
MUST_USE int http_parse_request(struct http_request *ret, const char *head, size_t len);

struct http_response {
	int minor, status;
	struct text reason;
	enum http_framing framing;
	uint64_t length;
	bool keep_alive;
	struct http_field fields[HTTP_FIELDS_MAX];
	size_t field_count;
};

/* Reads a whole response head to a request with `method` (HEAD and CONNECT change the framing; 1xx, 204, 304 have no
 * body). Returns 0, REASON_RESPONSE_SYNTAX or REASON_RESPONSE_HEAD_SIZE. White space before a colon is accepted in
 * responses only and removed (RFC 9112 5.1). Several equal Content-Length values are refused like unequal ones.
 * Where a response has no body, its Content-Length (checked all the same, except in a 2xx to CONNECT) is found among
 * the fields. */
MUST_USE int http_parse_response(struct http_response *ret, const char *head, size_t len,
				 struct text method);

/* Chunked bodies, incrementally; {0} to begin. */
struct http_chunks {
	int state;
	uint64_t left; /* of the current chunk */
	size_t line;   /* bytes of the current size line or trailer section, capped */
	size_t excess; /* bytes of size lines that no content makes up for, capped */
};

/* Consumes bytes of a chunked body: `*used` of `len` bytes were read, of which data[0..*data_len) is body content (may be
 * empty). Call again with the rest while *used > 0. Returns 0 (more may follow), 1 (the body is complete; bytes
 * behind *used are not its) or -EPROTO. Trailers are checked and dropped; chunk extensions are skipped, capped. */
MUST_USE int http_chunks_read(struct http_chunks *c, const char *bytes, size_t len, size_t *used,
			      const char **data, size_t *data_len);

/* The field `name` (any case), or NULL; http_field_count() tells how many there are. */
const struct http_field *http_find(const struct http_field *fields, size_t count, const char *name);
size_t http_field_count(const struct http_field *fields, size_t count, const char *name);

/* True for fields that end at this hop: Connection and those it names, Keep-Alive, Proxy-Connection, TE, Trailer,
 * Transfer-Encoding, Upgrade, Proxy-Authenticate, Proxy-Authorization, Proxy-Authentication-Info, and the framing field
 * Content-Length, which is always generated anew. */
bool http_is_hop_by_hop(const struct http_field *fields, size_t count,
			const struct http_field *field);

/* Case-insensitive comparison with a C string. */
bool text_is(struct text t, const char *word);

/* A host as clients may name it: a name of letters, digits, '-', '_', '.', or an IP address without brackets;
 * canonicalised (lower case, one trailing dot removed, RFC 5952) into `buffer` (>= 254 bytes). Names that end in a
 * number, such as 127.1 or 0x7f000001, are refused: resolvers take them for addresses. 0 or -EINVAL. */
MUST_USE int http_canonical_host(struct text host, char *buffer, size_t size);

#endif
