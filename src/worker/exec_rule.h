/* exec_rule.h - what the end of a command says about its task: done, again later, or dead. Pure. */
#ifndef FAIRLEAD_WORKER_EXEC_RULE_H
#define FAIRLEAD_WORKER_EXEC_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/result.h"
#include "worker/outcome.h"

struct exec_rule {
	bool is_dead[256]; /* by exit status */
};

#define EXEC_RULE_ERROR_SIZE 120

/* Adds exit statuses that make a dead letter: "65" or "65,66". 0, or -EINVAL with a line in `error` that says what
 * they may be: 0 is done and 75 is later, whoever asks. */
MUST_USE int exec_rule_add(struct exec_rule *rule, const char *statuses, char *error, size_t size);

/* How a command ended. */
struct exec_end {
	int status;       /* as of waitpid() */
	int64_t late_ms;  /* it was ended because it had not by itself, after so long; 0: not */
	bool is_stopping; /* the worker is about to end */
};

#define EXEC_REASON_SIZE 80

/* `reason`: "exit status 1", "killed by SIGSEGV", "timed out after 600000 ms". */
enum outcome exec_judge(const struct exec_rule *rule, const struct exec_end *end,
			char reason[static EXEC_REASON_SIZE]);

#endif
