/* json_scan.h - cuts JSON into its top-level elements, as the bytes come.
 *
 * Looks at brackets, strings and the names of members only; what an element is worth is the
 * caller's to judge. Elements stand in arrays: the document itself, or a member named data,
 * proxies, list, results, result or after a scheme, also within such a member that is an object.
 * Several documents may follow each other. */
#ifndef FAIRLEAD_LIST_JSON_SCAN_H
#define FAIRLEAD_LIST_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

#define JSON_ELEMENT_MAX ((size_t)65536)
#define JSON_FRAMES_MAX 6
/* Brackets within an element; deeper ones are counted, but their kinds are not compared. */
#define JSON_DEPTH_MAX 64
#define JSON_NAME_MAX ((size_t)24)

enum json_piece {
	JSON_ELEMENT,  /* of an array */
	JSON_DOCUMENT, /* an object in which no array of elements stood; NULL = too long or deep */
	JSON_TOO_LONG, /* an element; text = NULL */
	JSON_TOO_DEEP, /* the same */
};

/* `scheme`: enum scheme of the innermost member named after one, else -1. What it returns other
 * than 0 ends the feed. */
typedef int json_scan_cb(enum json_piece piece, uint64_t line, const char *text, size_t len,
			 int scheme, void *arg);

/* A container around elements. */
struct json_frame {
	bool is_array, has_comma;
	int scheme;
	enum { MEMBER_NAME, MEMBER_COLON, MEMBER_VALUE, MEMBER_REST, MEMBER_DONE } member;
};

struct json_scan {
	json_scan_cb *cb;
	void *arg;
	uint64_t line;
	bool is_broken, after_cr;
	size_t document_count; /* begun */

	struct json_frame frames[JSON_FRAMES_MAX];
	size_t frame_count;
	bool has_elements; /* the document has an array for them, even if empty */

	/* within an element or a member */
	bool is_string, is_escaped, is_filled, is_too_long, is_too_deep;
	unsigned depth;
	uint64_t brackets; /* bit i: bracket i is '[' */
	char name[JSON_NAME_MAX];
	size_t name_len;

	char *bytes; /* the element, or the document while it has none */
	size_t len;
	uint64_t text_line; /* of its first byte */
};

/* `line`: the number of the first line. */
void json_scan_init(struct json_scan *s, uint64_t line, json_scan_cb *cb, void *arg);
void json_scan_fini(struct json_scan *s);

/* Forgets everything but the callback. */
void json_scan_restart(struct json_scan *s, uint64_t line);

/* Returns 0, -ENOMEM, or what the callback returned. Once is_broken is set nothing more is told. */
MUST_USE int json_scan_feed(struct json_scan *s, const char *bytes, size_t len);

/* Whether all that was opened is closed. */
bool json_scan_is_closed(const struct json_scan *s);

#endif
