/* report.h - what attempts through members showed, brought to the store, where one script decides for all nodes.
 *
 * `fall` failures in a row by the proxy's fault park a member, `rise` passes bring back one that failures had parked,
 * a newcomer needs one. A failure counts only if its attempt began after the last one that was counted. Reports that
 * follow move the member through place.lua, so that nothing brings back what an operator has taken out (docs/wire.md,
 * "Health"). */
#ifndef FAIRLEAD_POOL_REPORT_H
#define FAIRLEAD_POOL_REPORT_H

#include "pool/member.h"
#include "pool/pool.h"

#define REPORT_MAX ((size_t)64) /* of one call */
#define REPORT_FACTS_MAX 256

/* Passive: an attempt of a client's request through `member` that began at `began_ms` (clock_ms()) ended with
 * `reason`; tables/reason.def says what that is worth. Gathered, at most one call a turn; passes are reported only
 * for members that are known to be failing. Nothing waits for it, and what is lost is lost. */
void pool_report(struct pool *pool, const struct member *member, int reason, int64_t began_ms);

/* A probe's outcome. */
struct probe_report {
	const char *member; /* identifier */
	int reason;         /* REASON_OK: passed */
	bool
	    is_inconclusive; /* shown among the last verdicts, decides nothing; sets the next check */
	int64_t age_ms;      /* since the attempt began */
	int64_t latency_ms; /* of a pass */
	const char *
	    facts; /* packed pairs to keep in `health` (exit=..., anonymity=..., country=...), or "" */
};

/* Where the reported members stand now: the codes of `enum placed` (pool/change.h), in order; `is_held`: parking was
 * due and the guard against mass ejection stopped it. */
struct report_result {
	int placed;
	bool is_held;
};

/* 0 and results, or a store's reason with its error. */
typedef void report_cb(int result, const char *error, const struct report_result *results,
		       size_t count, void *arg);

/* Active: up to REPORT_MAX probes, copied. Also sets the time of each member's next check: check_interval_ms give or
 * take a fifth, for the failing with full jitter up to backoff_max_ms. 0 if queued, else -errno (-EPERM: a newer node
 * has written the pool). */
MUST_USE int pool_report_probes(struct pool *pool, const struct probe_report *reports, size_t count,
				report_cb *cb, void *arg);

#endif
