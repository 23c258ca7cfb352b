/* fuzz_user.c - parameters in user names: what is accepted is in range, what is refused is told in printable ASCII. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#define HOUR_MS 3600000
#define DETAIL_SIZE 128

static void check_value(const char value[USER_VALUE_MAX + 1])
{
	size_t len = strnlen(value, USER_VALUE_MAX + 1);

	CHECK(len <= USER_VALUE_MAX);
	for (size_t i = 0; i < len; i++)
		CHECK((value[i] >= '0' && value[i] <= '9') || value[i] == '_' || value[i] == '.' ||
		      ((value[i] | 0x20) >= 'a' && (value[i] | 0x20) <= 'z'));
}

static void check_user(const struct user *user)
{
	check_value(user->pool);
	check_value(user->country);
	check_value(user->session);
	CHECK(!strpbrk(user->country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
	CHECK(user->lifetime_ms == 0 ||
	      (user->lifetime_ms >= 1000 && user->lifetime_ms <= HOUR_MS));
}

/* It stands in a quoted string of a response field and in a log line. */
static void check_detail(const char *detail)
{
	size_t len = strnlen(detail, DETAIL_SIZE);

	CHECK(len > 0 && len < DETAIL_SIZE);
	for (size_t i = 0; i < len; i++)
		CHECK(detail[i] >= ' ' && detail[i] <= '~' && !strchr("\"'\\", detail[i]));
}

/* Our own spelling of it is read as the same. */
static void check_round_trip(const struct user *user)
{
	char text[512] = "", detail[DETAIL_SIZE];
	struct user again;
	size_t used = 0;

	if (*user->pool)
		used += (size_t)sprintf(text + used, "-pool-%s", user->pool);
	if (*user->country)
		used += (size_t)sprintf(text + used, "-country-%s", user->country);
	if (*user->session)
		used += (size_t)sprintf(text + used, "-session-%s", user->session);
	if (user->lifetime_ms % 1000 == 0 && user->lifetime_ms > 0)
		used += (size_t)sprintf(text + used, "-lifetime-%llds",
					(long long)user->lifetime_ms / 1000);
	if (user->is_strict)
		used += (size_t)sprintf(text + used, "-strict");
	CHECK(user_parse(&again, text, used, HOUR_MS, detail, sizeof(detail)) == 0);
	CHECK(!strcmp(again.pool, user->pool) && !strcmp(again.country, user->country));
	CHECK(!strcmp(again.session, user->session) && again.is_strict == user->is_strict);
	CHECK(again.lifetime_ms == user->lifetime_ms || user->lifetime_ms % 1000 != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char detail[DETAIL_SIZE] = "", *copy = malloc(size ? size : 1);
	struct user user;
	int result;

	if (!copy)
		abort();
	if (size)
		memcpy(copy, input, size);
	result = user_parse(&user, copy, size, HOUR_MS, detail, sizeof(detail));
	free(copy);
	CHECK(result == 0 || result == REASON_USER_PARAMETER);
	if (result) {
		check_detail(detail);
	} else {
		check_user(&user);
		check_round_trip(&user);
	}
	return 0;
}
