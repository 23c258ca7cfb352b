/* time_text.c - a time of UTC as a user writes it. */
#include "cli/time_text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

/* ".25": milliseconds of a fraction, what is finer is cut off. Behind it in `text`. */
static int64_t take_fraction(const char **text)
{
	int64_t ms = 0;
	int unit = 100;

	if (**text != '.' || !isdigit((unsigned char)(*text)[1]))
		return 0;
	for (++*text; isdigit((unsigned char)**text); ++*text, unit /= 10)
		ms += unit * (**text - '0');
	return ms;
}

static int finish(struct tm *parts, int64_t ms, int64_t *ret_ms)
{
	int64_t time_ms = (int64_t)timegm(parts) * 1000 + ms;

	if (time_ms < 0 || time_ms >= TIME_TEXT_END_MS)
		return -EINVAL;
	*ret_ms = time_ms;
	return 0;
}

int time_text_parse(const char *text, int64_t *ret_ms)
{
	struct tm parts = {0}, date = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
	int64_t ms;

	if (end) {
		ms = take_fraction(&end);
		return strcmp(end, "Z") ? -EINVAL : finish(&parts, ms, ret_ms);
	}
	end = strptime(text, "%Y-%m-%d", &date);
	return !end || *end ? -EINVAL : finish(&date, 0, ret_ms);
}
