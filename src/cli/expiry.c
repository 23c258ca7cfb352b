/* expiry.c - the time at which proxies expire, as a user writes it. */
#include "cli/expiry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/conf_value.h"
#include "cli/time_text.h"

#define LONGEST_MS ((int64_t)3650 * 86400000)

int expiry_parse(const char *text, int64_t now_ms, int64_t *ret_ms, char *why, size_t size)
{
	static const struct conf_row row = {
	    .name = "expires", .kind = KIND_MS, .min = 1000, .max = LONGEST_MS};
	int64_t ms;

	if (strchr(text, '-')) {
		if (time_text_parse(text, &ms)) {
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
