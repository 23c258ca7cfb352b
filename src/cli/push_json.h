/* push_json.h - a task as a JSON object of one line. Pure. */
#ifndef FAIRLEAD_CLI_PUSH_JSON_H
#define FAIRLEAD_CLI_PUSH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"

struct json_t;

struct push_object {
	struct json_t *json; /* owned; holds the texts */
	char *decoded;       /* owned: of payload_base64 */
	const char *payload;
	size_t len;
	const char *level; /* NULL: not named */
	const char *key;   /* of de-duplication; "": none */
	size_t key_len;
	bool is_urgent, is_at;
	int64_t when_ms;
};

/* Reads payload (a text) or payload_base64, and level, id, delay_ms, at (as --at, or milliseconds since 1970),
 * urgent. A member that is null is as good as none; one of another name is refused. 0, -ENOMEM, or -EINVAL with a
 * line in `why`. push_object_fini() is due in all cases. */
MUST_USE int push_object_read(struct push_object *ret, const char *text, size_t len, char *why,
			      size_t size);
void push_object_fini(struct push_object *object);

#endif
