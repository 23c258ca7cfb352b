/* tally_text.c - a worker's live line as text. */
#include "worker/tally_text.h"

#include <stdio.h>

const char *tally_name(enum outcome outcome)
{
	static const char *const names[] = {[OUTCOME_DONE] = "done",
					    [OUTCOME_RETRY] = "retried",
					    [OUTCOME_RELEASE] = "given_back",
					    [OUTCOME_DEAD] = "failed"};

	return names[outcome];
}

/* "12 s", "3 min 20 s", "5 h 1 min" */
static void print_span(double seconds, char *text, size_t size)
{
	long long s = (long long)seconds;

	if (s < 60)
		snprintf(text, size, "%lld s", s);
	else if (s < 3600)
		snprintf(text, size, "%lld min %lld s", s / 60, s % 60);
	else
		snprintf(text, size, "%lld h %lld min", s / 3600, s / 60 % 60);
}

void tally_line(const struct tally_view *view, char line[static TALLY_LINE_SIZE])
{
	size_t used =
	    (size_t)snprintf(line, TALLY_LINE_SIZE, "%llu done, %llu failed, %llu retried, %.1f/s",
			     (unsigned long long)view->done, (unsigned long long)view->failed,
			     (unsigned long long)view->retried, view->rate);
	char span[48];

	if (view->waiting >= 0)
		used += (size_t)snprintf(line + used, TALLY_LINE_SIZE - used, ", %lld waiting",
					 (long long)view->waiting);
	/* Not before there is something to go by, nor for longer than anybody would believe. */
	if (view->waiting > 0 && view->rate > 0 && (double)view->waiting / view->rate < 1e7) {
		print_span((double)view->waiting / view->rate, span, sizeof span);
		used += (size_t)snprintf(line + used, TALLY_LINE_SIZE - used, " (%s)", span);
	}
	if (view->in_flight >= 0)
		used += (size_t)snprintf(line + used, TALLY_LINE_SIZE - used, ", %lld in flight",
					 (long long)view->in_flight);
	if (view->eligible >= 0)
		snprintf(line + used, TALLY_LINE_SIZE - used, ", %lld eligible",
			 (long long)view->eligible);
}
