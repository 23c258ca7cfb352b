/* fuzz_gateway.c - the whole gateway between scripted clients and upstreams (libFuzzer).
 *
 * An input is a program. Its first byte chooses the kind of upstream, the second has flags; then come texts and operations. A
 * text goes to the gateway from the side that was named last. An operation is a backquote and a letter, some with a byte:
 *
 *   c C    the client, the upstream speaks from now on     ``   a backquote
 *   h H    it half-closes      x X  it resets              r R  it reads what there is
 *   b B +  it sends 1 to 64 KiB                            n    another client connects, and is the one that is meant
 *   0 1 2  this client is meant                            w +  this upstream connection is meant, instead of the last
 *   t +    1 to 8 turns of the loop                        s +  time passes, up to a minute
 *   g      the gateway is configured anew                  z    it drains
 *
 * What must hold: gateway_judge.h, and that in the end nothing is left of it: gateway_world.h. */
#include <string.h>

#include "base/clock.h"
#include "gateway_judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define PROGRAM_MAX ((size_t)8192)
#define OPERATIONS_MAX 300
#define BULK_MAX ((size_t)1 << 20)

enum {
	IS_SMALL = 1,        /* sockets take little, and nobody reads but when the input says so */
	BY_RESET = 2,        /* how the far ends close in the end */
	UPSTREAMS_FIRST = 4, /* who closes first then */
	HAS_LIMITS = 8,
	HTTP_ONLY = 16,
	SOCKS_ONLY = 32,
	IN_FLIGHT = 64, /* the gateway ends first */
};

struct program {
	const uint8_t *at, *end;
	struct world *world;
	const struct endpoint *proxy;
	struct gateway_config config;
	struct peer *client;
	size_t upstream; /* SIZE_MAX: the last */
	bool is_upstream;
	size_t bulk;
	char text[PROGRAM_MAX];
	size_t text_len;
};

static char secret[] = "user:p%20w";

static const struct endpoint proxies[8] = {
    {.scheme = SCHEME_HTTP, .host = "192.0.2.1", .port = 3128},
    {.scheme = SCHEME_HTTP, .host = "192.0.2.1", .port = 3128, .secret = secret},
    {.scheme = SCHEME_SOCKS4, .host = "192.0.2.1", .port = 1080},
    {.scheme = SCHEME_SOCKS4, .host = "192.0.2.1", .port = 1080, .secret = secret},
    {.scheme = SCHEME_SOCKS5, .host = "192.0.2.1", .port = 1080},
    {.scheme = SCHEME_SOCKS5, .host = "192.0.2.1", .port = 1080, .secret = secret},
    {.scheme = SCHEME_DIRECT},
    {.scheme = SCHEME_HTTP, .host = "proxy.example", .port = 3128},
};

static const struct gateway_config common = {
    .policy = {.allow_private = true},
    .name = WORLD_NAME,
    .tries = 3,
    .tries_ms = 30000,
    .connect_ms = WORLD_CONNECT_MS,
    .dial_ms = WORLD_DIAL_MS,
    .head_ms = WORLD_HEAD_MS,
    .response_ms = WORLD_RESPONSE_MS,
    .idle_ms = WORLD_IDLE_MS,
    .retry_body_bytes = 16384,
    .body_rate = 1024,
    .retry_after_s = 1,
    .session_ms = 600000,
    .session_max_ms = 3600000,
    .session_limit = 10000,
    .max_clients = 100,
};

static struct peer *the_client(struct program *p)
{
	if (!p->client)
		p->client = world_connect(p->world);
	return p->client;
}

/* The upstream connection that is meant; one may be about to come. */
static struct peer *the_upstream(struct program *p)
{
	struct world *w = p->world;

	for (int i = 0; i < 4 && !w->upstream_count; i++)
		world_turn(w);
	if (!w->upstream_count)
		return NULL;
	return &w->upstreams[p->upstream < w->upstream_count ? p->upstream : w->upstream_count - 1];
}

static void say(struct program *p, const void *bytes, size_t len)
{
	struct peer *peer = p->is_upstream ? the_upstream(p) : the_client(p);

	if (!peer)
		return;
	if (p->is_upstream) {
		if (!p->world->is_small)
			peer_listen(peer);
		judge_silence(peer, p->proxy);
	}
	peer_say(peer, bytes, len);
}

static void flush(struct program *p)
{
	if (p->text_len)
		say(p, p->text, p->text_len);
	p->text_len = 0;
}

static uint8_t next_byte(struct program *p)
{
	return p->at < p->end ? *p->at++ : 0;
}

/* Bytes that tell by themselves when one is missing. */
static void say_bulk(struct program *p, size_t len)
{
	static char bytes[65536];

	if (p->bulk + len > BULK_MAX)
		return;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)('a' + (p->bulk + i) * 7 / 5 % 26);
	p->bulk += len;
	say(p, bytes, len);
}

static void sleep_for(struct program *p, uint8_t choice)
{
	static const int64_t lengths_ms[] = {1,     100,   999,   1000,  2000,  5000,
					     9999,  10000, 10001, 20000, 29999, 30000,
					     30001, 45000, 59999, 60000};

	world_sleep(p->world, lengths_ms[choice % 16]);
}

static void configure_anew(struct program *p)
{
	p->config.idle_ms = p->config.idle_ms == WORLD_IDLE_MS ? 2 * WORLD_IDLE_MS : WORLD_IDLE_MS;
	gateway_configure(p->world->gateway, &p->config);
}

static void drain(struct program *p)
{
	if (!p->world->is_drained)
		gateway_drain(p->world->gateway, clock_ms() + 30000, NULL, NULL);
	p->world->is_drained = true;
}

static void act_on_peer(struct peer *peer, char operation)
{
	if (!peer)
		return;
	if (operation == 'h')
		peer_shut(peer);
	else if (operation == 'x')
		peer_reset(peer);
	else
		peer_listen(peer);
}

static void act(struct program *p, char operation)
{
	switch (operation) {
	case 'c':
	case 'C':
		p->is_upstream = operation == 'C';
		break;
	case 'h':
	case 'x':
	case 'r':
		act_on_peer(the_client(p), operation);
		break;
	case 'H':
	case 'X':
	case 'R':
		act_on_peer(the_upstream(p), (char)(operation | 0x20));
		break;
	case 'b':
	case 'B':
		p->is_upstream = operation == 'B';
		say_bulk(p, ((size_t)next_byte(p) % 64 + 1) << 10);
		break;
	case 'n':
		p->client = world_connect(p->world);
		if (!p->client)
			p->client = &p->world->clients[0];
		break;
	case '0':
	case '1':
	case '2':
		if ((size_t)(operation - '0') < p->world->client_count)
			p->client = &p->world->clients[operation - '0'];
		break;
	case 'w':
		p->upstream = next_byte(p) % WORLD_UPSTREAMS_MAX;
		break;
	case 't':
		for (int i = next_byte(p) % 8; i >= 0; i--)
			world_turn(p->world);
		break;
	case 's':
		sleep_for(p, next_byte(p));
		break;
	case 'g':
		configure_anew(p);
		break;
	case 'z':
		drain(p);
		break;
	}
}

static void run(struct program *p)
{
	int operations = 0;

	while (p->at < p->end && operations < OPERATIONS_MAX) {
		if (*p->at != '`' || (p->at + 1 < p->end && p->at[1] == '`')) {
			p->at += *p->at == '`';
			p->text[p->text_len++] = (char)*p->at++;
			continue;
		}
		flush(p);
		p->at++;
		act(p, (char)next_byte(p));
		operations++;
	}
	flush(p);
}

static struct limits *make_limits(struct world *world)
{
	const struct limits_config config = {
	    .client_rate = 10, .host_concurrent = 1, .host_rate = 3};
	struct limits *limits;

	CHECK(!limits_new(&limits, world->loop, NULL));
	limits_set(limits, &config);
	return limits;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct world *world;
	static struct program program;
	enum listen_protocol protocol = LISTEN_ANY;
	uint8_t flags;

	if (size < 2 || size > PROGRAM_MAX)
		return 0;
	if (!world)
		world = world_new();
	flags = input[1];
	if (flags & HTTP_ONLY)
		protocol = LISTEN_HTTP;
	else if (flags & SOCKS_ONLY)
		protocol = LISTEN_SOCKS;
	program = (struct program){.at = input + 2,
				   .end = input + size,
				   .world = world,
				   .proxy = &proxies[input[0] % 8],
				   .config = common,
				   .upstream = SIZE_MAX};
	program.config.upstream = program.proxy;
	program.config.limits = flags & HAS_LIMITS ? make_limits(world) : NULL;
	world_begin(world, &program.config, protocol, flags & IS_SMALL);
	world->is_limited = flags & HAS_LIMITS;
	run(&program);
	world_settle(world);
	judge_world(world, program.proxy, protocol);
	if (flags & IN_FLIGHT)
		world_free_gateway(world);
	world_end(world, flags & BY_RESET, flags & UPSTREAMS_FIRST);
	limits_free(program.config.limits);
	return 0;
}
