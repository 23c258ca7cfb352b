/* rules.c - the rules of a pool: the table, checking, taking over what Redis holds. */
#include "pool/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"

static const struct rule_row rows[RULE_COUNT] = {
#define RULE(name, word, kind, otherwise, min, max, choices, help)                                 \
	[RULE_##name] = {word, RULE_IS_##kind, otherwise, min, max, choices, help},
#include "tables/rule.def"
#undef RULE
};

const struct rule_row *rule_row(enum rule rule)
{
	return &rows[rule];
}

int rule_find(const char *word)
{
	for (int rule = 0; rule < RULE_COUNT; rule++)
		if (!strcmp(rows[rule].word, word))
			return rule;
	return -1;
}

#define NAME_RULE_MAX ((size_t)63)

static bool is_choice(const char *choices, const char *value)
{
	size_t len = strlen(value);

	for (const char *at = choices; *at;) {
		size_t word = strcspn(at, "|");

		if (word == len && !memcmp(at, value, len))
			return true;
		at += word + (at[word] == '|');
	}
	return false;
}

static bool is_name(const char *value)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
	size_t len = strlen(value);

	return len <= NAME_RULE_MAX && strspn(value, letters) == len;
}

static bool is_text(const char *value)
{
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return strlen(value) < RULE_VALUE_MAX;
}

static bool is_number(const struct rule_row *row, const char *value)
{
	char *end;
	double number = strtod(value, &end);

	/* Only what Lua's tonumber() reads alike: no hex, no names. */
	if (!*value || *end || strspn(value, "0123456789+-.eE") != strlen(value))
		return false;
	if (number < row->min || number > row->max)
		return false;
	return row->kind == RULE_IS_NUMBER || number == (double)(int64_t)number;
}

int rule_check(enum rule rule, const char *value, char *error, size_t error_size)
{
	const struct rule_row *row = &rows[rule];

	if (row->kind == RULE_IS_FLAG) {
		if (!strcmp(value, "0") || !strcmp(value, "1"))
			return 0;
		snprintf(error, error_size, "rule %s: '%.60s' is neither 0 nor 1", row->word,
			 value);
		return -EINVAL;
	}
	if (row->kind == RULE_IS_CHOICE) {
		if (is_choice(row->choices, value))
			return 0;
		snprintf(error, error_size, "rule %s: '%.60s' is not one of %s", row->word, value,
			 row->choices);
		return -EINVAL;
	}
	if (row->kind == RULE_IS_NAME) {
		if (is_name(value))
			return 0;
		snprintf(error, error_size,
			 "rule %s: '%.60s' is not a name of up to 63 letters, digits, '.' and '_'",
			 row->word, value);
		return -EINVAL;
	}
	if (row->kind == RULE_IS_TEXT) {
		if (is_text(value))
			return 0;
		snprintf(error, error_size,
			 "rule %s: at most %d printable characters, and this is no such text",
			 row->word, RULE_VALUE_MAX - 1);
		return -EINVAL;
	}
	if (is_number(row, value) && strlen(value) < RULE_VALUE_MAX)
		return 0;
	snprintf(error, error_size, "rule %s: '%.60s' is not a %snumber from %g to %g", row->word,
		 value, row->kind == RULE_IS_NUMBER ? "" : "whole ", row->min, row->max);
	return -EINVAL;
}

void rules_init(struct pool_rules *rules)
{
	*rules = (struct pool_rules){0};
	for (int rule = 0; rule < RULE_COUNT; rule++)
		snprintf(rules->value[rule], sizeof rules->value[rule], "%s", rows[rule].otherwise);
}

void rules_take(struct pool_rules *rules, const char *field, const char *value)
{
	int rule = rule_find(field);
	char error[160];

	if (!strcmp(field, "salt")) {
		rules->has_salt = !hex_parse(rules->salt, sizeof rules->salt, value, strlen(value));
	} else if (!strcmp(field, "wire")) {
		rules->wire = strtoll(value, NULL, 10);
	} else if (rule >= 0 && rule_check((enum rule)rule, value, error, sizeof error)) {
		log_warn("a pool's rule is not valid, its default holds", LOG_TEXT("error", error));
	} else if (rule >= 0) {
		snprintf(rules->value[rule], sizeof rules->value[rule], "%s", value);
		rules->is_set[rule] = true;
	}
}

bool rules_flag(const struct pool_rules *rules, enum rule rule)
{
	return rules->value[rule][0] == '1';
}

int64_t rules_number(const struct pool_rules *rules, enum rule rule)
{
	return (int64_t)strtod(rules->value[rule], NULL);
}

bool rules_want_leases(const struct pool_rules *rules)
{
	return !strcmp(rules->value[RULE_POLICY], "least-concurrent");
}
