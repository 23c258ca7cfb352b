/* fuzz_judge.c - answers of a judge: what is accepted names an address, and says how much a proxy tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "check/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static void check_address(const char text[46])
{
	char again[46];
	struct address address;

	CHECK(memchr(text, '\0', 46));
	CHECK(!address_parse(&address, text, strlen(text)));
	address_print(&address, again, sizeof(again));
	CHECK(!strcmp(text, again));
}

static int read_body(const void *body, size_t size, char address[46], enum anonymity *anonymity)
{
	char *copy = malloc(size ? size : 1);
	int r;

	CHECK(copy);
	if (size)
		memcpy(copy, body, size);
	r = judge_read(copy, size, address, anonymity);
	free(copy);
	return r;
}

/* The input as the value of a field: it cannot make a proxy look better than anonymous, nor the answer unreadable. */
static void check_value(const uint8_t *input, size_t size)
{
	static const char *const starts[] = {"Forwarded", "X-Forwarded-For"};
	enum anonymity anonymity;
	char body[1024], address[46];

	for (size_t i = 0; i < 2 && size < 512; i++) {
		int len = snprintf(body, sizeof(body),
				   "{\"judge\":1,\"address\":\"192.0.2.1\",\"headers\":[[\"%s\",\"",
				   starts[i]);

		for (size_t j = 0; j < size; j++)
			body[len++] = strchr("\"\\", input[j]) || input[j] < ' ' || input[j] > '~'
					  ? '.'
					  : (char)input[j];
		len += snprintf(body + len, sizeof(body) - (size_t)len, "\"]]}");
		CHECK(!read_body(body, (size_t)len, address, &anonymity));
		CHECK(!strcmp(address, "192.0.2.1"));
		CHECK(anonymity == ANONYMITY_TRANSPARENT || anonymity == ANONYMITY_ANONYMOUS);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	enum anonymity anonymity = ANONYMITY_UNKNOWN;
	char address[46];
	int r = read_body(input, size, address, &anonymity);

	CHECK(r == 0 || r == -EPROTO);
	CHECK((r == 0) == (anonymity != ANONYMITY_UNKNOWN) && anonymity <= ANONYMITY_ELITE);
	if (!r)
		check_address(address);
	check_value(input, size);
	return 0;
}
