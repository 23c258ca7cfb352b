/* fuzz_dial.c - what proxies answer to each kind of handshake, on arbitrary bytes (libFuzzer).
 *
 * The first byte chooses the kind and whether there are credentials, the second where the rest is cut. What must hold for
 * every input: however the answer is split, the same verdict falls, the same questions are asked, and the same bytes are left
 * for the tunnel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dial/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

#define INPUT_MAX ((size_t)1 << 20)
#define OUT_MAX ((size_t)32768)

static const struct dial_kind *const kinds[] = {&dial_http, &dial_https, &dial_socks4,
						&dial_socks5};

/* How one reading of the input went. */
struct reading {
	struct dial dial;
	int result;
	size_t used; /* bytes of the input that were taken: the rest is the tunnel's */
};

static void begin(struct reading *r, const struct dial_kind *kind, const struct endpoint *proxy)
{
	memset(r, 0, sizeof *r);
	r->dial.request =
	    (struct dial_request){.proxy = proxy, .host = "target.example", .port = 443};
	buffer_init(&r->dial.in, INPUT_MAX);
	buffer_init(&r->dial.out, OUT_MAX);
	CHECK(!kind->check || !kind->check(&r->dial));
	CHECK(!kind->begin(&r->dial));
	CHECK(buffer_len(&r->dial.out));
	r->result = -EAGAIN;
}

static void check_result(const struct reading *r)
{
	switch (r->result) {
	case 0:
	case -EAGAIN:
	case REASON_PROXY_GARBAGE:
	case REASON_PROXY_AUTH:
	case REASON_PROXY_CANNOT:
		break;
	default:
		CHECK(reason_row(r->result)->fault == FAULT_TARGET);
	}
}

/* In pieces: `first` bytes, then `step` at a time. */
static void read_in_steps(struct reading *r, const struct dial_kind *kind, const uint8_t *bytes,
			  size_t len, size_t first, size_t step)
{
	size_t fed = 0, n = first;

	while (fed < len && r->result == -EAGAIN) {
		n = len - fed < n ? len - fed : n;
		if (n) {
			CHECK(!buffer_add(&r->dial.in, bytes + fed, n));
			fed += n;
			r->result = kind->take(&r->dial);
			check_result(r);
		}
		n = step;
	}
	r->used = fed - buffer_len(&r->dial.in);
}

static void check_same(const struct reading *a, const struct reading *b)
{
	size_t out = buffer_len(&a->dial.out);

	CHECK(a->result == b->result);
	CHECK(a->dial.received_status == b->dial.received_status);
	if (a->result <= 0)
		CHECK(a->used == b->used);
	CHECK(out == buffer_len(&b->dial.out));
	CHECK(!memcmp(buffer_at(&a->dial.out), buffer_at(&b->dial.out), out));
}

static void end(struct reading *r)
{
	buffer_fini(&r->dial.in);
	buffer_fini(&r->dial.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static char secret[] = "user:p%20w";
	const struct dial_kind *kind;
	struct endpoint proxy = {.host = "proxy.example", .port = 1080};
	struct reading whole, cut, drip;
	size_t len;

	if (size < 2 || size > INPUT_MAX)
		return 0;
	kind = kinds[input[0] % 4];
	proxy.secret = input[0] & 4 ? secret : NULL;
	len = size - 2;
	begin(&whole, kind, &proxy);
	begin(&cut, kind, &proxy);
	begin(&drip, kind, &proxy);
	read_in_steps(&whole, kind, input + 2, len, len, len);
	read_in_steps(&cut, kind, input + 2, len, len * input[1] / 256, len);
	read_in_steps(&drip, kind, input + 2, len, 1, 1);
	check_same(&whole, &cut);
	check_same(&whole, &drip);
	end(&whole);
	end(&cut);
	end(&drip);
	return 0;
}
