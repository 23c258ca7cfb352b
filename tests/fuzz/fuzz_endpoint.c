/* fuzz_endpoint.c - a proxy URL from a list: what is read prints as something that reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/endpoint.h"

#define ENTRY_MAX 4096 /* as long as a line of a list */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_canonical(const struct endpoint *e, const struct endpoint_rules *rules)
{
	static char once[ENDPOINT_TEXT_MAX], twice[ENDPOINT_TEXT_MAX];
	struct endpoint again;
	size_t len = endpoint_print(e, SHOW_SECRET, once, sizeof once);

	if (endpoint_parse(&again, once, len, rules))
		abort();
	endpoint_print(&again, SHOW_SECRET, twice, sizeof twice);
	if (strcmp(once, twice) != 0)
		abort();
	endpoint_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct endpoint_rules rules = {.default_scheme = SCHEME_HTTP};
	struct endpoint e;
	bool has_secret;

	if (len == 0 || len > ENTRY_MAX)
		return 0;
	rules.allow_private = bytes[0] & 1;
	rules.allow_single_label = bytes[0] & 2;
	rules.allow_direct = bytes[0] & 4;
	if (endpoint_parse(&e, (const char *)bytes + 1, len - 1, &rules) == 0) {
		check_canonical(&e, &rules);
		endpoint_fini(&e);
	}
	if (endpoint_parse_id(&e, &has_secret, (const char *)bytes + 1, len - 1) == 0)
		endpoint_fini(&e);
	return 0;
}
