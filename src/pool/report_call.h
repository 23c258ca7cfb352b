/* report_call.h - what active and passive reports share; for src/pool/report*.c alone. */
#ifndef FAIRLEAD_POOL_REPORT_CALL_H
#define FAIRLEAD_POOL_REPORT_CALL_H

#include "pool/report.h"

/* One call of lua/report.lua, and what follows from it. `source`: "probe" or "passive". As pool_report_probes(). */
MUST_USE int report_call(struct pool *pool, const struct probe_report *reports, size_t count,
			 const char *source, report_cb *cb, void *arg);

#endif
