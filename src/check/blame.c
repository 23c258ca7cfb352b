/* blame.c - whose failure a failed probe is. */
#include "check/blame.h"

void blame_note_pass(struct target_record *record, int64_t now_ms)
{
	record->good_ms = now_ms;
}

/* What no target can have done: the proxy was not there, stayed silent, wanted other credentials, or does not speak its
 * protocol. */
static bool is_proxy_at_once(int reason)
{
	return reason == REASON_PROXY_REFUSED || reason == REASON_PROXY_TIMEOUT ||
	       reason == REASON_PROXY_SILENT || reason == REASON_PROXY_AUTH ||
	       reason == REASON_PROXY_GARBAGE;
}

static bool is_known_good(const struct target_record *record, int64_t now_ms, int64_t window_ms)
{
	return record->good_ms && now_ms - record->good_ms <= window_ms;
}

enum blame blame_of(const struct target_record *record, int reason, int64_t now_ms,
		    int64_t window_ms)
{
	switch (reason_row(reason)->fault) {
	case FAULT_US:
	case FAULT_STORE:
	case FAULT_CLIENT: /* the check itself is not allowed to go there */
		return BLAME_NOBODY;
	case FAULT_NOBODY:
	case FAULT_PROXY:
	case FAULT_TARGET:
		break;
	}
	if (reason == REASON_OK)
		return BLAME_PASS;
	if (!record || is_proxy_at_once(reason) || is_known_good(record, now_ms, window_ms))
		return BLAME_PROXY;
	return BLAME_NOBODY;
}
