/* check_run.h - every proxy of a list probed once, many at a time, and each failure blamed on whom it belongs to. */
#ifndef FAIRLEAD_CLI_CHECK_RUN_H
#define FAIRLEAD_CLI_CHECK_RUN_H

#include "check/blame.h"
#include "check/probe.h"
#include "source/load.h"

struct check_result {
	const char *text; /* canonical form, with credentials */
	size_t len;
	enum blame blame;
	const struct probe_outcome *outcome;
};

struct check_progress {
	size_t total, done, passed;
	int64_t elapsed_ms;
};

struct check_request {
	const struct load *load;
	const struct target *targets;
	size_t target_count; /* 0: the proxies themselves are all that is judged */
	const struct expectation *expectation;
	struct tls *tls;
	int64_t timeout_ms;
	size_t concurrency;
	bool allow_private;
	/* Called as results come; a failure that may be the target's comes when another proxy has reached that, or at the end.
	 * False: nobody wants more. */
	bool (*show)(const struct check_result *result, void *arg);
	void (*progress)(const struct check_progress *progress,
			 void *arg); /* NULL, or now and then */
	void *arg;
};

/* Runs to the end, or until SIGINT or SIGTERM: -EINTR, as when `show` says so. 0 or -errno. */
MUST_USE int check_run(const struct check_request *request, struct check_progress *ret);

#endif
