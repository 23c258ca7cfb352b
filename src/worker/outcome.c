/* outcome.c - one rule for what becomes of a task. docs/worker.md has the same table, and a test holds them together. */
#include "worker/outcome.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/result.h"

/* Another proxy, or another day, changes nothing about them. */
static const int never_works[] = {
    REASON_TASK_INVALID,       REASON_REQUEST_SYNTAX,    REASON_REQUEST_SCHEME,
    REASON_REQUEST_URI_SIZE,   REASON_REQUEST_HEAD_SIZE, REASON_REQUEST_DENIED,
    REASON_TARGET_PROHIBITED,  REASON_PORT_DENIED,       REASON_HOST_DENIED,
    REASON_RESPONSE_BODY_SIZE, REASON_RESPONSE_REDIRECT,
};

/* Nothing of the task has left, and what stopped it has nothing to do with the task: nobody to send it through, a
 * proxy that cannot be reached, the host's turn not yet, no store, no descriptors. */
static const int not_begun[] = {
    REASON_POOL_EMPTY,        REASON_POOL_FULL,     REASON_LEASE_STALE,       REASON_PROXY_REFUSED,
    REASON_PROXY_UNREACHABLE, REASON_PROXY_NAME,    REASON_PROXY_PROHIBITED,  REASON_PROXY_TIMEOUT,
    REASON_PROXY_AUTH,        REASON_PROXY_TLS,     REASON_PROXY_CERTIFICATE, REASON_PROXY_ALERT,
    REASON_HOST_LIMIT,        REASON_HOST_RATE,     REASON_CLIENT_LIMIT,      REASON_CLIENT_RATE,
    REASON_STORE_NOT_DONE,    REASON_STORE_REFUSED, REASON_STORE_PARTIAL,     REASON_STORE_UNKNOWN,
    REASON_STORE_NEWER,       REASON_SHUTDOWN,      REASON_NO_DESCRIPTORS,    REASON_NO_SOURCE_PORT,
};

/* The server asks for patience, or fails in a way that passes (RFC 9110 15.5.9, 15.6; RFC 8470 5.2; RFC 6585 4). */
static const int passing_statuses[] = {408, 425, 429, 500, 502, 503, 504};

#define IS_IN(list, value) is_in(list, sizeof list / sizeof *list, value)

static bool is_in(const int *list, size_t count, int value)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == value)
			return true;
	return false;
}

enum outcome outcome_of(int reason, int status, int64_t retry_after_ms, int64_t *ret_delay_ms)
{
	enum outcome outcome = OUTCOME_RETRY;

	if (reason == REASON_OK && !IS_IN(passing_statuses, status))
		outcome = OUTCOME_DONE;
	else if (IS_IN(never_works, reason))
		outcome = OUTCOME_DEAD;
	else if (IS_IN(not_begun, reason))
		outcome = OUTCOME_RELEASE;
	*ret_delay_ms = 0;
	if (outcome == OUTCOME_RETRY || outcome == OUTCOME_RELEASE)
		*ret_delay_ms = retry_after_ms > 0 ? retry_after_ms : 0;
	return outcome;
}

const char *outcome_word(enum outcome outcome)
{
	static const char *const words[] = {[OUTCOME_DONE] = "done",
					    [OUTCOME_RETRY] = "retry",
					    [OUTCOME_RELEASE] = "release",
					    [OUTCOME_DEAD] = "dead"};

	return words[outcome];
}
