/* service.c - what every long-running process of fairlead has. */
#include "node/service.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/heartbeat.h"
#include "node/notify.h"

#define HEARTBEAT_MS 2000
#define RULES_MS 5000

/* --- the store's place -------------------------------------------------------------------------------------------- */

/* The first line of the file; its mode is its owner's business. 0 or -errno. */
static int read_password(const char *path, char *ret, size_t size)
{
	char line[1024];
	FILE *file = fopen(path, "re");
	bool has_line = file && fgets(line, sizeof line, file);
	int r = file ? 0 : -errno;

	if (file)
		fclose(file);
	if (r)
		return r;
	if (!has_line)
		return -ENODATA;
	line[strcspn(line, "\r\n")] = '\0';
	r = snprintf(ret, size, "%s", line) >= (int)size ? -EMSGSIZE : 0;
	explicit_bzero(line, sizeof line);
	return r;
}

int service_store_config(const struct conf *conf, const struct private_server *private,
			 struct store_config *ret)
{
	const char *text = private ? private_url(private) : conf_text(conf, CONF_REDIS);
	const char *file = conf_text(conf, CONF_REDIS_PASSWORD_FILE);
	char error[160];
	int r;

	*ret = (struct store_config){.timeout_ms = conf_ms(conf, CONF_STORE_TIMEOUT),
				     .wait_ms = conf_ms(conf, CONF_STORE_WAIT)};
	if (store_url_parse(&ret->url, text, error, sizeof error)) {
		fprintf(stderr, "fairlead: --redis: %s\n", error);
		return 2;
	}
	if (!*file || private)
		return 0;
	r = read_password(file, ret->url.password, sizeof ret->url.password);
	if (r)
		fprintf(stderr, "fairlead: --redis-password-file %s: %s\n", file, strerror(-r));
	return r ? 1 : 0;
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

/* Alone, and so the process that systemd, if anybody, looks at. */
static bool is_alone(const struct service *service)
{
	return !service->parent;
}

int64_t service_drain_ms(const struct service *service)
{
	if (service->is_orphan)
		return SERVICE_ORPHAN_MS;
	return conf_ms(service->conf,
		       service->is_handover ? CONF_HANDOVER_TIMEOUT : CONF_DRAIN_TIMEOUT);
}

static void on_stop(evutil_socket_t number, short what, void *arg)
{
	struct service *service = arg;

	(void)what;
	/* Asked twice: at once. */
	if (service->is_stopping && !service->is_handover) {
		service_done(service, 0);
		return;
	}
	service->is_stopping = true;
	service->is_handover = false;
	service->is_orphan = service->parent && getppid() != service->parent;
	log_info("stopping", LOG_NUMBER("signal", number));
	if (is_alone(service))
		notify_stopping();
	service->stop(service);
}

/* The successor writes under the name that this process had until now. */
static void take_own_name(struct service *service)
{
	heartbeat_name(service->id, sizeof service->id, getpid(), service->name);
	if (service->pool)
		alarm_set(&service->heartbeat, clock_ms());
}

static void on_handover(evutil_socket_t number, short what, void *arg)
{
	struct service *service = arg;

	(void)number;
	(void)what;
	if (service->is_stopping)
		return;
	service->is_stopping = true;
	service->is_handover = true;
	take_own_name(service);
	log_info("handing over");
	service->stop(service);
}

/* Settings come first, so that what they name is read again under the new ones. */
static void reload(void *arg)
{
	struct service *service = arg;
	struct conf *fresh;

	if (is_alone(service))
		notify_reloading();
	if (!reload_read(&fresh, service->conf, service->check, is_alone(service))) {
		service->conf = fresh;
		if (service->reload)
			service->reload(service);
		reload_free(service->own_conf);
		service->own_conf = fresh;
	}
	if (is_alone(service))
		notify_ready();
}

/* However many come at once, or while it is under way: it is done once more behind the last. */
static void on_reload(evutil_socket_t number, short what, void *arg)
{
	struct service *service = arg;

	(void)number;
	(void)what;
	alarm_set(&service->reread, clock_ms());
}

void service_hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void watch_signals(struct service *service)
{
	sigset_t none;

	static const struct {
		int number;
		event_callback_fn cb;
	} table[SERVICE_SIGNALS] = {
	    {SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_reload}, {SIGUSR2, on_handover}};

	for (int i = 0; i < SERVICE_SIGNALS; i++) {
		evsignal_assign(&service->signals[i], loop_base(service->loop), table[i].number,
				table[i].cb, service);
		event_add(&service->signals[i], NULL);
	}
	/* Held back by whoever started this process. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A signal that is repeated now must not cut the end short: what is left to do is little, and the private server may have to
 * be stopped. */
static void unwatch_signals(struct service *service)
{
	sigset_t set, before;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &before);
	for (int i = 0; i < SERVICE_SIGNALS; i++) {
		int number = event_get_signal(&service->signals[i]);

		event_del(&service->signals[i]);
		signal(number, SIG_IGN);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* --- rules and heartbeat ------------------------------------------------------------------------------------------ */

static void on_rules(int result, const char *error, void *arg)
{
	struct service *service = arg;

	if (!service->has_rules && (!result || result == REASON_STORE_NEWER)) {
		service->has_rules = true;
		alarm_set(&service->heartbeat,
			  clock_ms()); /* the store is there: nobody waits to be seen */
	}
	if (result == REASON_STORE_NEWER)
		log_error("a newer fairlead writes this pool; this one reads only",
			  LOG_TEXT("pool", pool_name(service->pool)));
	else if (result && result != REASON_STORE_NOT_DONE)
		log_warn("the pool's rules cannot be read", LOG_TEXT("reason", result_word(result)),
			 LOG_TEXT("error", error));
	if (!result && service->rules_read)
		service->rules_read(service);
	alarm_set(&service->rules, clock_ms() + RULES_MS);
}

static void read_rules(void *arg)
{
	struct service *service = arg;

	if (pool_read_rules(service->pool, on_rules, service))
		alarm_set(&service->rules, clock_ms() + RULES_MS);
}

static void beat(void *arg)
{
	struct service *service = arg;

	heartbeat_send(service->store, service->id, service->role);
	alarm_set(&service->heartbeat, clock_ms() + HEARTBEAT_MS);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int open_store(struct service *service)
{
	const char *name = conf_text(service->conf, CONF_POOL);
	struct store_config config;
	char error[256] = "out of memory";
	int r = service_store_config(service->conf, service->private, &config);

	if (r)
		return r;
	config.private = service->private;
	config.is_daemon = true;
	if (store_new(&service->store, service->loop, &config))
		return 1;
	store_url_wipe(&config.url);
	if (pool_new(&service->pool, service->loop, service->store, name, error, sizeof error)) {
		fprintf(stderr, "fairlead: %s\n", error);
		return 2;
	}
	alarm_init(&service->heartbeat, service->loop, beat, service);
	alarm_init(&service->rules, service->loop, read_rules, service);
	alarm_set(&service->heartbeat, clock_ms() + HEARTBEAT_MS);
	read_rules(service);
	return 0;
}

static int set_nameservers(struct service *service)
{
	const struct conf *conf = service->conf;
	const char *texts[LOOP_NAMESERVERS_MAX];
	size_t count = conf_count(conf, CONF_NAMESERVER), bad;

	for (size_t i = 0; i < count && i < LOOP_NAMESERVERS_MAX; i++)
		texts[i] = conf_at(conf, CONF_NAMESERVER, i);
	if (!loop_nameservers(service->loop, texts, count, &bad))
		return 0;
	fprintf(stderr, "fairlead: --nameserver %s: expected ADDRESS or ADDRESS:PORT\n",
		conf_at(conf, CONF_NAMESERVER, bad));
	return 2;
}

int service_start(struct service *service, const struct role_context *context, const char *role,
		  bool has_store)
{
	int r;

	service->conf = context->conf;
	service->private = context->private;
	service->role = role;
	service->name = context->name;
	service->parent = context->owner_pid == getpid() ? 0 : context->owner_pid;
	heartbeat_name(service->id, sizeof service->id, context->owner_pid, context->name);
	if (loop_new(&service->loop)) {
		fprintf(stderr, "fairlead: no memory for an event loop\n");
		return 1;
	}
	log_hold(true);
	alarm_init(&service->reread, service->loop, reload, service);
	watch_signals(service);
	r = set_nameservers(service);
	return r || !has_store ? r : open_store(service);
}

void service_done(struct service *service, int exit_status)
{
	service->exit_status = exit_status;
	loop_stop(service->loop);
}

/* What is in flight may end; a store that is away does not hold up the end. */
static void say_goodbye(struct service *service)
{
	int64_t deadline = clock_ms() + SERVICE_STOP_MS;

	if (!service->store || !store_is_ready(service->store) ||
	    !heartbeat_end(service->store, service->id))
		return;
	while (store_is_busy(service->store) && clock_ms() < deadline)
		loop_turn(service->loop);
}

int service_run(struct service *service)
{
	loop_run(service->loop);
	return service->exit_status;
}

void service_end_store(struct service *service)
{
	if (service->pool) {
		alarm_fini(&service->heartbeat);
		alarm_fini(&service->rules);
		say_goodbye(service);
	}
	store_free(service->store);
	service->store = NULL;
}

void service_fini(struct service *service)
{
	if (!service->loop)
		return;
	if (service->store)
		service_end_store(service);
	unwatch_signals(service);
	alarm_fini(&service->reread);
	pool_free(service->pool);
	loop_free(service->loop);
	reload_free(service->own_conf);
	log_hold(false);
}

void role_is_ready(const struct role_context *context, const char *saying)
{
	char text[1 + ROLE_SAYING_MAX];

	if (context->owner_pid == getpid())
		notify_ready();
	if (context->ready_fd < 0)
		return;
	snprintf(text, sizeof text, "r%s", saying);
	if (write(context->ready_fd, text, strlen(text)) < 0) {
		/* Whoever waited is gone; the signal of its death is on its way. */
	}
	close(context->ready_fd);
}
