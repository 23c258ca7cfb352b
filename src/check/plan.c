/* plan.c - how the members of a pool are checked. */
#include "check/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const enum rule rules_of_plan[] = {RULE_CHECK_TARGET, RULE_CHECK_STATUS, RULE_CHECK_TEXT};

static int read_targets(struct plan *plan, char *error, size_t size)
{
	struct target targets[TARGETS_MAX];
	int r = targets_parse(targets, &plan->count, plan->texts[0], error, size);

	for (size_t i = 0; i < plan->count && !r; i++)
		plan->targets[i].target = targets[i];
	return r;
}

int plan_new(struct plan **ret, const struct pool_rules *rules, char *error, size_t size)
{
	struct plan *plan = calloc(1, sizeof *plan);
	int r;

	if (!plan)
		return -ENOMEM;
	plan->references = 1;
	plan->begun_ms = clock_ms();
	for (int i = 0; i < 3; i++)
		snprintf(plan->texts[i], sizeof plan->texts[i], "%s",
			 rules->value[rules_of_plan[i]]);
	r = read_targets(plan, error, size);
	if (!r)
		r = expectation_parse(&plan->expectation, plan->texts[1], plan->texts[2], error,
				      size);
	if (r)
		free(plan);
	else
		*ret = plan;
	return r;
}

bool plan_is_of(const struct plan *plan, const struct pool_rules *rules)
{
	for (int i = 0; i < 3; i++)
		if (strcmp(plan->texts[i], rules->value[rules_of_plan[i]]))
			return false;
	return true;
}

void plan_unref(struct plan *plan)
{
	if (plan && --plan->references == 0)
		free(plan);
}
