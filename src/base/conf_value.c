/* conf_value.c - numbers of settings as text. */
#include "base/conf_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *suffix;
	int64_t factor;
};

/* The largest first, as conf_value_print() tries them. */
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
					     {"s", 1000},     {"ms", 1},      {NULL, 0}};
static const struct unit size_units[] = {
    {"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}, {"", 1}, {NULL, 0}};
static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(enum conf_kind kind)
{
	if (kind == KIND_MS)
		return duration_units;
	return kind == KIND_BYTES ? size_units : plain_units;
}

void conf_value_print(enum conf_kind kind, int64_t number, char *buffer, size_t size)
{
	const struct unit *unit = units_of(kind);

	if (number == 0) {
		snprintf(buffer, size, "0");
		return;
	}
	while (unit[1].suffix && number % unit->factor)
		unit++;
	snprintf(buffer, size, "%lld%s", (long long)(number / unit->factor), unit->suffix);
}

static void print_choices(const char *choices, char *buffer, size_t size)
{
	size_t used = 0;

	for (; *choices && used + 3 < size; choices++) {
		buffer[used++] = *choices == '|' ? ',' : *choices;
		if (*choices == '|')
			buffer[used++] = ' ';
	}
	buffer[used] = '\0';
}

void conf_value_range(const struct conf_row *row, char *buffer, size_t size)
{
	char min[32], max[32];

	buffer[0] = '\0';
	if (row->kind == KIND_BOOL)
		snprintf(buffer, size, "true or false");
	if (row->kind == KIND_ENUM)
		print_choices(row->placeholder, buffer, size);
	if (row->kind == KIND_INT || row->kind == KIND_MS || row->kind == KIND_BYTES) {
		conf_value_print(row->kind, row->min, min, sizeof min);
		conf_value_print(row->kind, row->max, max, sizeof max);
		snprintf(buffer, size, "%s to %s", min, max);
	}
}

static int out_of_range(const struct conf_row *row, char *why, size_t size)
{
	char range[128];

	conf_value_range(row, range, sizeof range);
	snprintf(why, size, row->kind == KIND_ENUM ? "must be one of %s" : "must be %s", range);
	return -EINVAL;
}

/* "5" may mean seconds or milliseconds: whoever writes it must say. */
static int unit_missing(const char *text, char *why, size_t size)
{
	snprintf(why, size, "needs a unit: %.20sms, %.20ss, %.20sm or %.20sh", text, text, text,
		 text);
	return -EINVAL;
}

static int parse_number(const struct conf_row *row, const char *text, int64_t *ret, char *why,
			size_t size)
{
	const struct unit *unit = units_of(row->kind);
	bool negative = *text == '-';
	const char *digits = text + negative;
	int64_t number;
	char *end;

	if (!isdigit((unsigned char)*digits))
		return out_of_range(row, why, size);
	errno = 0;
	number = strtoll(digits, &end, 10);
	if (errno)
		return out_of_range(row, why, size);
	if (row->kind == KIND_MS && !*end && number != 0)
		return unit_missing(digits, why, size);
	while (unit->suffix && strcasecmp(unit->suffix, end) != 0)
		unit++;
	if (!unit->suffix && !(number == 0 && !*end))
		return out_of_range(row, why, size);
	if (__builtin_mul_overflow(number, unit->suffix ? unit->factor : 1, &number))
		return out_of_range(row, why, size);
	if (negative)
		number = -number;
	if (number < row->min || number > row->max)
		return out_of_range(row, why, size);
	*ret = number;
	return 0;
}

static int parse_bool(const struct conf_row *row, const char *text, int64_t *ret, char *why,
		      size_t size)
{
	static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*ret = i % 2;
			return 0;
		}
	}
	return out_of_range(row, why, size);
}

static int parse_choice(const struct conf_row *row, const char *text, int64_t *ret, char *why,
			size_t size)
{
	const char *choice = row->placeholder;
	size_t len = strlen(text);

	for (int64_t index = 0;; index++) {
		size_t choice_len = strcspn(choice, "|");

		if (choice_len == len && memcmp(choice, text, len) == 0) {
			*ret = index;
			return 0;
		}
		if (!choice[choice_len])
			return out_of_range(row, why, size);
		choice += choice_len + 1;
	}
}

static int parse_text(const struct conf_row *row, const char *text, int64_t *ret, char *why,
		      size_t size)
{
	int64_t len = (int64_t)strlen(text);

	*ret = 0;
	if (len >= row->min && len <= row->max)
		return 0;
	snprintf(why, size, "must have %lld to %lld bytes", (long long)row->min,
		 (long long)row->max);
	return -EINVAL;
}

int conf_value_parse(const struct conf_row *row, const char *text, int64_t *ret, char *why,
		     size_t size)
{
	switch (row->kind) {
	case KIND_INT:
	case KIND_MS:
	case KIND_BYTES:
		return parse_number(row, text, ret, why, size);
	case KIND_BOOL:
		return parse_bool(row, text, ret, why, size);
	case KIND_ENUM:
		return parse_choice(row, text, ret, why, size);
	case KIND_TEXT:
	case KIND_PATH:
	case KIND_URL:
		return parse_text(row, text, ret, why, size);
	case KIND_LIST:
		break;
	}
	*ret = 0;
	return 0;
}

void conf_value_clear(struct conf_value *value)
{
	for (size_t i = 0; i < value->count; i++)
		free(value->texts[i]);
	free(value->texts);
	*value = (struct conf_value){0};
}
