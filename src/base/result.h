/* result.h - what fallible functions return, and the reasons behind it.
 *
 * 0 is fine, a negative value is -errno and only ever forwarded, a positive value is an `enum reason` that the
 * function's header names and its caller handles. */
#ifndef FAIRLEAD_BASE_RESULT_H
#define FAIRLEAD_BASE_RESULT_H

/* For a large array of which little is used: the build zeroes all others (-ftrivial-auto-var-init). */
#define NOT_ZEROED __attribute__((uninitialized))

#define MUST_USE __attribute__((warn_unused_result))

enum fault { FAULT_NOBODY, FAULT_CLIENT, FAULT_PROXY, FAULT_TARGET, FAULT_STORE, FAULT_US };
enum health { HEALTH_NONE, HEALTH_PASS, HEALTH_FAIL, HEALTH_AUTH };

enum reason {
#define REASON(name, word, status, error, socks, fault, health) REASON_##name,
#include "tables/reason.def"
#undef REASON
	REASON_COUNT
};

/* One row of tables/reason.def. */
struct reason_row {
	const char *name;
	const char *word;  /* in logs */
	int status;        /* HTTP status, 0 = nothing can be sent */
	const char *error; /* RFC 9209 error type, "" = none */
	int socks;         /* RFC 1928 reply */
	enum fault fault;
	enum health health;
};

/* The row of `reason`; never NULL. A value outside the table gives the row of REASON_INTERNAL. */
const struct reason_row *reason_row(int reason);

/* "nobody", "client", "proxy" ... ; static storage. */
const char *fault_word(enum fault fault);
const char *health_word(enum health health);

/* The log word of any result: "ok", a reason's word, or the text of -errno. Static storage. */
const char *result_word(int result);

#endif
