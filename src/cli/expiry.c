/* expiry.c - the time at which proxies expire, as a user writes it. */
#include "cli/expiry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/conf_value.h"

#define LONGEST_MS ((int64_t)3650 * 86400000)

/* RFC 3339 5.6, of UTC and without fractions, or its date alone. 0 or -EINVAL. */
static int parse_time(const char *text, int64_t *ret_ms)
{
	static const char *const forms[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct tm parts = {0};
		const char *end = strptime(text, forms[i], &parts);

		if (!end || *end)
			continue;
		*ret_ms = (int64_t)timegm(&parts) * 1000;
		return 0;
	}
	return -EINVAL;
}

int expiry_parse(const char *text, int64_t now_ms, int64_t *ret_ms, char *why, size_t size)
{
	static const struct conf_row row = {
	    .name = "expires", .kind = KIND_MS, .min = 1000, .max = LONGEST_MS};
	int64_t ms;

	if (strchr(text, '-')) {
		if (parse_time(text, &ms)) {
			snprintf(why, size,
				 "'%.40s' is no time: write 2026-12-31 or 2026-12-31T18:00:00Z",
				 text);
			return -EINVAL;
		}
		if (ms <= now_ms) {
			snprintf(why, size, "%.40s has passed", text);
			return -EINVAL;
		}
	} else {
		if (conf_value_parse(&row, text, &ms, why, size))
			return -EINVAL;
		ms += now_ms;
	}
	*ret_ms = ms;
	return 0;
}
