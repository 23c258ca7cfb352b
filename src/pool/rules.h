/* rules.h - the rules of a pool: one agreed set in Redis for all nodes; the rows of tables/rule.def. */
#ifndef FAIRLEAD_POOL_RULES_H
#define FAIRLEAD_POOL_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "base/result.h"

/* The version of the contract that this code writes (docs/wire.md). */
#define POOL_WIRE 1
#define RULE_VALUE_MAX 512

enum rule {
#define RULE(name, word, kind, otherwise, min, max, choices, help) RULE_##name,
#include "tables/rule.def"
#undef RULE
	RULE_COUNT
};

enum rule_kind {
	RULE_IS_NUMBER,
	RULE_IS_COUNT,
	RULE_IS_MS,
	RULE_IS_CHOICE,
	RULE_IS_FLAG,
	RULE_IS_NAME,
	RULE_IS_TEXT
};

struct rule_row {
	const char *word;
	enum rule_kind kind;
	const char *otherwise; /* the default */
	double min, max;
	const char *choices;
	const char *help;
};

struct pool_rules {
	char value[RULE_COUNT][RULE_VALUE_MAX]; /* as stored, or the default */
	bool is_set[RULE_COUNT];                /* stands in Redis */
	uint8_t salt[ENDPOINT_SALT_BYTES];
	bool has_salt;
	int64_t wire; /* 0: not stored yet */
};

const struct rule_row *rule_row(enum rule rule);

/* The rule of that name, or -1. */
int rule_find(const char *word);

/* Checks `value`. 0, or -EINVAL with a line in `error` that names the rule and what it may be. */
MUST_USE int rule_check(enum rule rule, const char *value, char *error, size_t error_size);

/* All defaults, nothing stored. */
void rules_init(struct pool_rules *rules);

/* Takes one field of the hash; what is not valid keeps the default. */
void rules_take(struct pool_rules *rules, const char *field, const char *value);

/* The value of a COUNT or MS rule; the default where what is stored is no such number. */
int64_t rules_number(const struct pool_rules *rules, enum rule rule);

bool rules_flag(const struct pool_rules *rules, enum rule rule);

/* The policy is least-concurrent: members are used with a lease only. */
bool rules_want_leases(const struct pool_rules *rules);

#endif
