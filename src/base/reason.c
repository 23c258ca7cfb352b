/* reason.c - the rows of tables/reason.def as data. */
#include "base/result.h"

#include <string.h>

static const struct reason_row rows[REASON_COUNT] = {
#define REASON(name, word, status, error, socks, fault, health)                                    \
	[REASON_##name] = {#name, word, status, error, socks, FAULT_##fault, HEALTH_##health},
#include "tables/reason.def"
#undef REASON
};

const struct reason_row *reason_row(int reason)
{
	if (reason < 0 || reason >= REASON_COUNT)
		return &rows[REASON_INTERNAL];
	return &rows[reason];
}

const char *fault_word(enum fault fault)
{
	static const char *const words[] = {
	    [FAULT_NOBODY] = "nobody", [FAULT_CLIENT] = "client", [FAULT_PROXY] = "proxy",
	    [FAULT_TARGET] = "target", [FAULT_STORE] = "store",   [FAULT_US] = "us",
	};
	return words[fault];
}

const char *health_word(enum health health)
{
	static const char *const words[] = {
	    [HEALTH_NONE] = "none",
	    [HEALTH_PASS] = "pass",
	    [HEALTH_FAIL] = "fail",
	    [HEALTH_AUTH] = "auth-failed",
	};
	return words[health];
}

const char *result_word(int result)
{
	return result < 0 ? strerror(-result) : reason_row(result)->word;
}
