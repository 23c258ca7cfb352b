/* connection.c - the socket to the store: connect, greet, read, write, and come back after a loss. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/net.h"
#include "store/internal.h"
#include "store/private.h"

#define READ_SIZE ((size_t)16384)
#define OUT_CAP ((size_t)128 << 20)
#define REPLY_BYTES_MAX ((size_t)256 << 20)
#define REPLY_ELEMENTS_MAX ((size_t)1 << 20)
#define BACKOFF_FIRST_MS 20
#define BACKOFF_MAX_MS 1000

static void connection_schedule(struct store *store);
static void on_ready(struct stream *stream, int ready, void *arg);

/* Full jitter: anything from 0 to a bound that doubles, so that a fleet does not come back in step. */
static int64_t backoff_ms(const struct store *store)
{
	unsigned doublings = store->attempts < 6 ? store->attempts : 6;
	int64_t bound = (int64_t)BACKOFF_FIRST_MS << doublings;

	if (store->trouble_is_final)
		return BACKOFF_MAX_MS;
	return arc4random_uniform((uint32_t)(bound < BACKOFF_MAX_MS ? bound : BACKOFF_MAX_MS) + 1);
}

/* True when waiting cannot help: somebody has to change the configuration. */
static bool is_final_error(const char *error)
{
	static const char *const starts[] = {
	    "WRONGPASS",    "NOAUTH", "NOPERM", "DENIED", "ERR AUTH", "ERR invalid password",
	    "ERR DB index",
	};

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (!strncmp(error, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static void set_trouble(struct store *store, const char *why)
{
	char place[300];

	store_url_print(&store->config.url, place, sizeof place);
	snprintf(store->trouble, sizeof store->trouble, "%.120s: %.120s", place, why);
	store->trouble_is_final = is_final_error(why);
	if (store->config.is_daemon && !store->trouble_is_told) {
		log_warn("store away", LOG_TEXT("store", place), LOG_TEXT("error", why));
		store->trouble_is_told = true;
	}
}

void connection_lost(struct store *store, const char *why)
{
	if (store->state == STORE_AWAY)
		return;
	if (store->state == STORE_READY && !store->is_unproven)
		store->away_since_ms = clock_ms();
	set_trouble(store, why);
	resolve_cancel(store->resolve);
	store->resolve = NULL;
	stream_close(&store->stream);
	operations_lost(store);
	buffer_fini(&store->out);
	if (store->reader)
		redisReaderFree(store->reader);
	store->reader = NULL;
	store->state = STORE_AWAY;
	store->retry_at_ms = clock_ms() + backoff_ms(store);
	store->attempts++;
	connection_schedule(store);
	if (store->observer)
		store->observer->lost(store->observer->arg);
}

void connection_drain(struct store *store, const char *why)
{
	if (store->state != STORE_READY)
		return;
	if (!store->is_unproven)
		store->away_since_ms = clock_ms();
	store->state = STORE_DRAINING;
	set_trouble(store, why);
	loop_again(store->loop);
}

void connection_ready(struct store *store)
{
	store->state = STORE_READY;
	store->is_unproven = true;
	store->trouble_is_final = false;
	metric_add(METRIC_STORE_CONNECTS, 0, 1);
	if (store->config.private)
		private_settled(store->config.private);
	if (store->observer)
		store->observer->ready(store->observer->arg);
	loop_again(store->loop);
}

/* A greeting proves little: a server that answers it and then refuses everything must not be asked in a tight loop. */
void connection_prove(struct store *store)
{
	char place[300];

	store_url_print(&store->config.url, place, sizeof place);
	if (store->trouble_is_told)
		log_info("store back", LOG_TEXT("store", place),
			 LOG_NUMBER("away_ms", clock_ms() - store->away_since_ms));
	store->is_unproven = false;
	store->trouble_is_told = false;
	store->attempts = 0;
}

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static redisReplyObjectFunctions capped;
static void *(*create_array)(const redisReadTask *, element_count);

/* hiredis allocates what a header announces; nothing that we ask for has so many elements. */
static void *create_capped_array(const redisReadTask *task, element_count count)
{
	return (size_t)count > REPLY_ELEMENTS_MAX ? NULL : create_array(task, count);
}

static redisReader *new_reader(void)
{
	redisReader *reader = redisReaderCreate();

	if (!reader)
		return NULL;
	if (!create_array) {
		capped = *reader->fn;
		create_array = capped.createArray;
		capped.createArray = create_capped_array;
	}
	reader->fn = &capped;
	return reader;
}

static void begin_greeting(struct store *store)
{
	store->reader = new_reader();
	store->rejection[0] = '\0';
	store->state = STORE_GREETING;
	store->out_position = store->out_written = 0;
	if (!store->reader || greeting_send(store)) {
		connection_lost(store, "out of memory");
		return;
	}
	stream_want(&store->stream, STREAM_READ);
	loop_again(store->loop);
}

static void connect_to(struct store *store, const struct sockaddr *sa, socklen_t len)
{
	int fd = net_connect(sa, len, NULL);

	if (fd < 0) {
		connection_lost(store, strerror(-fd));
		return;
	}
	stream_open(&store->stream, store->loop, fd, on_ready, store);
	stream_want(&store->stream, STREAM_WRITE);
}

static void on_resolved(int result, const struct address *addresses, size_t count, void *arg)
{
	struct store *store = arg;
	struct sockaddr_storage sa;
	socklen_t len;

	store->resolve = NULL;
	if (result) {
		connection_lost(store, "the host name has no address");
		return;
	}
	/* Another one at each attempt: the first may be one that nobody serves. */
	len = address_to_sockaddr(&addresses[store->attempts % count], store->config.url.port, &sa);
	connect_to(store, (struct sockaddr *)&sa, len);
}

static void connect_unix(struct store *store)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	memcpy(un.sun_path, store->config.url.path, sizeof un.sun_path);
	connect_to(store, (struct sockaddr *)&un, sizeof un);
}

static void connection_open(struct store *store)
{
	const struct store_url *url = &store->config.url;
	struct address address;

	store->state = STORE_CONNECTING;
	store->phase_deadline_ms = clock_ms() + store->config.timeout_ms;
	if (store->config.private && store->attempts > 0)
		private_revive(store->config.private);
	if (url->kind == STORE_UNIX)
		connect_unix(store);
	else if (!address_parse(&address, url->host, strlen(url->host)))
		on_resolved(0, &address, 1, store);
	else if (resolve_start(&store->resolve, store->loop, url->host, on_resolved, store))
		connection_lost(store, "cannot look up names");
	connection_schedule(store);
}

static void connection_flush(struct store *store)
{
	ssize_t n;

	if (store->state < STORE_GREETING || store->state > STORE_DRAINING ||
	    !buffer_len(&store->out))
		return;
	while (buffer_len(&store->out)) {
		n = stream_write(&store->stream, buffer_at(&store->out), buffer_len(&store->out));
		if (n == -EAGAIN)
			break;
		if (n < 0) {
			connection_lost(store, strerror((int)-n));
			return;
		}
		store->out_written += (uint64_t)n;
		buffer_consume(&store->out, (size_t)n);
	}
	KILL_POINT("store-written");
	stream_want(&store->stream, STREAM_READ | (buffer_len(&store->out) ? STREAM_WRITE : 0));
}

static bool is_message(const struct store *store, const void *reply)
{
	const struct store_observer *observer = store->observer;

	return observer && observer->message && observer->message(reply, observer->arg);
}

/* Takes whole replies out of the reader. False when the connection is gone or has nothing more. */
static bool take_reply(struct store *store)
{
	void *reply = NULL;

	if (redisReaderGetReply(store->reader, &reply) != REDIS_OK) {
		connection_lost(store, store->reader->errstr);
		return false;
	}
	if (!reply)
		return false;
	if (is_message(store, reply)) {
		freeReplyObject(reply);
		return true;
	}
	if (TAILQ_EMPTY(&store->sent)) {
		/* "max number of clients" and the like come unasked, before a close. */
		connection_lost(store, reply_text(reply, NULL));
		freeReplyObject(reply);
		return false;
	}
	operation_answered(store, reply);
	freeReplyObject(reply);
	if (store->rejection[0]) {
		connection_lost(store, store->rejection);
		return false;
	}
	return true;
}

static void on_readable(struct store *store)
{
	char bytes[READ_SIZE] NOT_ZEROED;
	ssize_t n = stream_read(&store->stream, bytes, sizeof bytes);

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		connection_lost(store, n ? strerror((int)-n) : "the server closed the connection");
		return;
	}
	if (store->reader->len > REPLY_BYTES_MAX) {
		connection_lost(store, "an answer is too large");
		return;
	}
	if (redisReaderFeed(store->reader, bytes, (size_t)n) != REDIS_OK) {
		connection_lost(store, "out of memory");
		return;
	}
	while (store->reader && take_reply(store))
		;
}

static void on_ready(struct stream *stream, int ready, void *arg)
{
	struct store *store = arg;
	int r;

	if (store->state == STORE_CONNECTING) {
		r = stream_connect_result(stream);
		if (r)
			connection_lost(store, strerror(-r));
		else
			begin_greeting(store);
	} else if (ready & STREAM_READ) {
		on_readable(store);
	} else {
		connection_flush(store);
	}
}

/* --- timers ------------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
	return a && a < b ? a : b;
}

static int64_t connection_next_deadline(const struct store *store)
{
	const struct operation *sent = TAILQ_FIRST(&store->sent),
			       *waiting = TAILQ_FIRST(&store->waiting);
	int64_t next = INT64_MAX;

	if (store->state == STORE_AWAY)
		next = earlier(store->retry_at_ms, next);
	if (store->state == STORE_CONNECTING || store->state == STORE_GREETING)
		next = earlier(store->phase_deadline_ms, next);
	if (sent)
		next = earlier(sent->deadline_ms, next);
	if (waiting && store->state != STORE_READY)
		next = earlier(store->away_since_ms + store->config.wait_ms, next);
	if (waiting)
		next = earlier(waiting->deadline_ms, next);
	return next;
}

static void connection_schedule(struct store *store)
{
	int64_t next = connection_next_deadline(store);

	if (next != INT64_MAX)
		alarm_set(&store->alarm, next);
}

static void on_deadline(void *arg)
{
	struct store *store = arg;

	if (store->state == STORE_AWAY && clock_ms() >= store->retry_at_ms)
		connection_open(store);
	else if ((store->state == STORE_CONNECTING || store->state == STORE_GREETING) &&
		 clock_ms() >= store->phase_deadline_ms)
		connection_lost(store, "no answer in time");
	operations_expire(store);
	connection_schedule(store);
}

static void on_turn(void *arg)
{
	struct store *store = arg;

	if (store->state == STORE_DRAINING && TAILQ_EMPTY(&store->sent))
		connection_lost(store, "the server cannot serve now");
	operations_send(store);
	connection_flush(store);
	if (!TAILQ_EMPTY(&store->failed) ||
	    (!TAILQ_EMPTY(&store->waiting) && store->state != STORE_READY))
		operations_expire(store);
	connection_schedule(store);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

int store_new(struct store **ret, struct loop *loop, const struct store_config *config)
{
	struct store *store = calloc(1, sizeof *store);

	if (!store)
		return -ENOMEM;
	store->loop = loop;
	store->config = *config;
	store->away_since_ms = clock_ms();
	buffer_init(&store->out, OUT_CAP);
	TAILQ_INIT(&store->waiting);
	TAILQ_INIT(&store->sent);
	TAILQ_INIT(&store->failed);
	store->hook = (struct turn_hook){.run = on_turn, .arg = store};
	alarm_init(&store->alarm, loop, on_deadline, store);
	loop_hook(loop, &store->hook);
	connection_open(store);
	*ret = store;
	return 0;
}

static void cancel_all(struct operations *operations)
{
	struct operation *op;

	while ((op = TAILQ_FIRST(operations))) {
		TAILQ_REMOVE(operations, op, link);
		if (op->is_greeting)
			operation_free(op);
		else
			operation_finish(op, -ECANCELED, NULL);
	}
}

void store_free(struct store *store)
{
	if (!store)
		return;
	store->is_ending = true;
	loop_unhook(store->loop, &store->hook);
	alarm_fini(&store->alarm);
	resolve_cancel(store->resolve);
	stream_close(&store->stream);
	cancel_all(&store->sent);
	cancel_all(&store->waiting);
	cancel_all(&store->failed);
	buffer_fini(&store->out);
	if (store->reader)
		redisReaderFree(store->reader);
	store_url_wipe(&store->config.url);
	free(store);
}

bool store_is_ready(const struct store *store)
{
	return store->state == STORE_READY;
}

bool store_is_busy(const struct store *store)
{
	return !TAILQ_EMPTY(&store->waiting) || !TAILQ_EMPTY(&store->sent) ||
	       !TAILQ_EMPTY(&store->failed);
}

const char *store_trouble(const struct store *store, bool *is_final)
{
	*is_final = store->trouble_is_final;
	return store->state == STORE_READY ? "" : store->trouble;
}

/* Ends a turn. */
static void wake(void *arg)
{
	(void)arg;
}

int store_wait_ready(struct store *store, int64_t wait_ms)
{
	int64_t deadline = clock_ms() + wait_ms;
	struct alarm alarm;

	alarm_init(&alarm, store->loop, wake, NULL);
	alarm_set(&alarm, deadline);
	while (store->state != STORE_READY && !store->trouble_is_final && clock_ms() < deadline)
		loop_turn(store->loop);
	alarm_fini(&alarm);
	if (store->state == STORE_READY)
		return 0;
	return store->trouble_is_final ? REASON_STORE_REFUSED : REASON_STORE_NOT_DONE;
}
