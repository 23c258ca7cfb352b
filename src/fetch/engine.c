/* engine.c - libcurl's multi on the loop: its descriptors and its timer as plain events. */
#include "fetch/engine.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

/* A descriptor that libcurl wants to be told about. */
struct watch {
	struct event event;
	struct engine *engine;
	LIST_ENTRY(watch) link;
};

struct engine {
	struct grave grave;
	struct loop *loop;
	CURLM *multi;
	size_t users;
	struct event timer;
	LIST_HEAD(, watch) watches; /* for what libcurl would leave behind */
};

static struct engine *the_engine;

/* --- ends --------------------------------------------------------------------------------------------------------- */

/* libcurl takes every handle's PRIVATE as it is. */
static struct transfer *transfer_of(CURL *easy)
{
	char *transfer = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
	return (struct transfer *)(void *)transfer;
}

static void end(struct transfer *transfer, CURLcode code)
{
	engine_remove(transfer);
	transfer->ended(transfer, code);
}

/* The message is libcurl's until its handle is removed. */
static void take_ends(struct engine *engine)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(engine->multi, &left)))
		end(transfer_of(message->easy_handle), message->data.result);
}

static void advance(struct engine *engine, curl_socket_t fd, int what)
{
	int running;

	/* What fails here fails its transfer, which then ends by itself. */
	curl_multi_socket_action(engine->multi, fd, what, &running);
	take_ends(engine);
}

/* --- libcurl on the loop ------------------------------------------------------------------------------------------ */

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	const struct watch *watch = arg;

	advance(watch->engine, fd,
		(what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	advance(arg, CURL_SOCKET_TIMEOUT, 0);
}

static struct watch *watch_new(struct engine *engine, curl_socket_t fd)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->engine = engine;
	event_assign(&watch->event, loop_base(engine->loop), fd, 0, on_ready, watch);
	LIST_INSERT_HEAD(&engine->watches, watch, link);
	curl_multi_assign(engine->multi, fd, watch);
	return watch;
}

static void watch_free(struct watch *watch)
{
	event_del(&watch->event);
	LIST_REMOVE(watch, link);
	free(watch);
}

/* CURLMOPT_SOCKETFUNCTION: -1 for want of memory gives up all transfers, each at its next event or deadline. */
static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct engine *engine = arg;
	struct watch *watch = known;
	short events = EV_PERSIST;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watch)
			watch_free(watch);
		return 0;
	}
	if (!watch)
		watch = watch_new(engine, fd);
	if (!watch)
		return -1;
	events |= what & CURL_POLL_IN ? EV_READ : 0;
	events |= what & CURL_POLL_OUT ? EV_WRITE : 0;
	event_del(&watch->event);
	event_assign(&watch->event, loop_base(engine->loop), fd, events, on_ready, watch);
	return event_add(&watch->event, NULL);
}

/* CURLMOPT_TIMERFUNCTION. */
static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct engine *engine = arg;
	struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	(void)multi;
	return timeout_ms < 0 ? event_del(&engine->timer) : event_add(&engine->timer, &tv);
}

/* --- the engine ---------------------------------------------------------------------------------------------------- */

static void free_engine(struct grave *grave)
{
	struct engine *engine = (struct engine *)grave;

	curl_multi_cleanup(engine->multi);
	while (!LIST_EMPTY(&engine->watches)) {
		/* The one before left the list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		watch_free(LIST_FIRST(&engine->watches));
	}
	event_del(&engine->timer);
	free(engine);
}

/* Not before the first transfer: nothing of it must exist when the supervisor forks. */
static int init_curl(void)
{
	static bool is_ready;

	if (!is_ready)
		is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
	return is_ready ? 0 : -ENOMEM;
}

/* No transfer rides on the connection of another one: not even at the same time, by HTTP/2. */
static CURLMcode set_up(struct engine *engine)
{
	CURLM *multi = engine->multi;
	CURLMcode code = CURLM_OK;

	code = code ?: curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_interest);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, engine);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
	code = code ?: curl_multi_setopt(multi, CURLMOPT_TIMERDATA, engine);
	return code;
}

static struct engine *engine_new(struct loop *loop)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->grave.free_object = free_engine;
	engine->loop = loop;
	LIST_INIT(&engine->watches);
	evtimer_assign(&engine->timer, loop_base(loop), on_time, engine);
	engine->multi = curl_multi_init();
	if (engine->multi && !set_up(engine))
		return engine;
	free_engine(&engine->grave);
	return NULL;
}

int engine_ref(struct engine **ret, struct loop *loop)
{
	if (init_curl())
		return -ENOMEM;
	if (!the_engine)
		the_engine = engine_new(loop);
	if (!the_engine)
		return -ENOMEM;
	the_engine->users++;
	*ret = the_engine;
	return 0;
}

/* It may be at work further up. */
void engine_unref(struct engine *engine)
{
	if (!engine || --engine->users)
		return;
	the_engine = NULL;
	loop_bury(engine->loop, &engine->grave);
}

/* The timer that libcurl asks for at once makes the first turn of the transfer. */
int engine_add(struct engine *engine, struct transfer *transfer)
{
	if (curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, (void *)transfer) ||
	    curl_multi_add_handle(engine->multi, transfer->easy))
		return -ENOMEM;
	transfer->engine = engine;
	return 0;
}

void engine_remove(struct transfer *transfer)
{
	if (!transfer->engine)
		return;
	curl_multi_remove_handle(transfer->engine->multi, transfer->easy);
	transfer->engine = NULL;
}
