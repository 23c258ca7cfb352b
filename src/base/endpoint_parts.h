/* endpoint_parts.h - the steps behind endpoint_parse(), for formats that carry more than one entry
 * in a text.
 *
 * A text is split into parts (only where each stands), then an endpoint is built from the parts.
 * Files that keep host, port and credentials in fields of their own (JSON, CSV) fill the parts
 * themselves. Parts own nothing. */
#ifndef FAIRLEAD_BASE_ENDPOINT_PARTS_H
#define FAIRLEAD_BASE_ENDPOINT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/endpoint.h"

struct span {
	const char *at;
	size_t len;
};

struct endpoint_parts {
	int scheme;       /* enum scheme, -1 = none was named */
	struct span host; /* IPv6 in brackets, unless is_bare_host */
	struct span port;
	struct span user, password;
	struct span label; /* behind the port; names the scheme when no other does */
	bool has_credentials;
	bool is_encoded;   /* user and password are percent-encoded (at-form) */
	bool is_bare_host; /* from a field of its own: IPv6 without brackets */
	const char *end;   /* where the reading stopped: end of the text, a separator or '#' */
};

/* No scheme, everything empty. */
void parts_init(struct endpoint_parts *ret);

/* Reads url-form, at-form or colon-form at the start of `text`, up to a space or tab. What
 * follows at ret->end is the caller's: separators, labels, a comment. Returns 0 or an `enum
 * verdict`; `ret` is written in both cases. */
MUST_USE int parts_split(struct endpoint_parts *ret, const char *text, size_t len,
			 const struct endpoint_rules *rules);

/* Reads column-form: host, separator, port. Returns 0, an `enum verdict`, or -ENOENT when this
 * is not two columns. */
MUST_USE int parts_split_columns(struct endpoint_parts *ret, const char *text, size_t len,
				 const struct endpoint_rules *rules);

/* Judges the parts and fills `ret` (endpoint_fini). Returns 0, an `enum verdict` or -ENOMEM. */
MUST_USE int parts_build(struct endpoint *ret, const struct endpoint_parts *parts,
			 const struct endpoint_rules *rules);

/* A host, canonical (lower case, without brackets and trailing dot, RFC 5952) into `ret` unless
 * NULL. Whether an address may be used is not asked here. Returns 0 or an `enum verdict`. */
MUST_USE int host_parse(char ret[ENDPOINT_HOST_MAX + 1], struct span text, bool is_bare,
			bool allow_single_label);

/* True for localhost and names below it (RFC 6761 6.3), and for addresses that are no place for
 * a proxy. `host`: canonical. */
bool host_is_bogon(const char *host);

/* Returns 0 or an `enum verdict`; `ret` may be NULL. */
MUST_USE int port_parse(uint16_t *ret, struct span text);

/* One of the bytes that end a column: space, tab, '|', ',' or ';'. */
bool is_separator(char c);

#endif
