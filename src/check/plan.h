/* plan.h - how the members of a pool are checked: its rules, read; and what is known of their targets.
 *
 * A check holds a reference, so that a plan outlives the rules that it was made from. */
#ifndef FAIRLEAD_CHECK_PLAN_H
#define FAIRLEAD_CHECK_PLAN_H

#include "check/blame.h"
#include "check/target.h"
#include "pool/rules.h"

struct plan_target {
	struct target target;
	struct target_record record;
	int64_t control_ms; /* when a direct request to it last began; 0: never */
	bool is_control_under_way;
	int64_t told_ms; /* when it was last told that nobody reaches it */
};

struct plan {
	int references;
	int64_t begun_ms;
	size_t count; /* 0: the connection and the proxy's greeting only */
	struct plan_target targets[TARGETS_MAX];
	struct expectation expectation;
	char texts[3][RULE_VALUE_MAX]; /* the rules that it was made from */
};

/* The plan that `rules` ask for, with one reference. 0, -ENOMEM, or -EINVAL with a line in `error`. */
MUST_USE int plan_new(struct plan **ret, const struct pool_rules *rules, char *error, size_t size);

/* Do the rules still ask for the same? */
bool plan_is_of(const struct plan *plan, const struct pool_rules *rules);

/* Accepts NULL. */
void plan_unref(struct plan *plan);

#endif
