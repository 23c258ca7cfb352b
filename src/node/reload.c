/* reload.c - the configuration read anew in a running process. */
#include "node/reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* What a process holds on to from its start. They keep their values: a child that is started again must not differ
 * from its sisters. */
static const enum conf_id fixed[] = {
    CONF_LISTEN,     CONF_WORKERS,       CONF_DEMO,
    CONF_POOL,       CONF_REDIS,         CONF_REDIS_PASSWORD_FILE,
    CONF_STATE_DIR,  CONF_STORE_TIMEOUT, CONF_STORE_WAIT,
    CONF_NAMESERVER, CONF_LOG_FORMAT,    CONF_QUIET,
    CONF_VERBOSE,    CONF_QUEUE,         CONF_LEVELS,
    CONF_LISTS,      CONF_LOST_MAX,      CONF_DEAD_MAX,
};

static int keep_fixed(struct conf *conf, const struct conf *old, bool is_telling)
{
	char names[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
		if (conf_is_same(conf, old, fixed[i]))
			continue;
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
					 used ? ", " : "", conf_row(fixed[i])->name);
		if (conf_keep(conf, old, fixed[i]))
			return -ENOMEM;
	}
	if (used && is_telling)
		log_warn("settings differ that need a handover (SIGUSR2) or a restart",
			 LOG_TEXT("settings", names));
	return 0;
}

int reload_read(struct conf **ret, const struct conf *old, reload_check *check, bool is_telling)
{
	struct conf *conf = calloc(1, sizeof *conf);
	struct conf_error error = {"out of memory"};
	int r = conf ? conf_reload(conf, old, &error) : -ENOMEM;

	if (!r)
		r = keep_fixed(conf, old, is_telling);
	if (!r && check)
		r = check(conf, error.text, sizeof error.text);
	if (r) {
		log_error("the configuration cannot be used; all stays as it is",
			  LOG_TEXT("error", error.text));
		reload_free(conf);
		return r;
	}
	*ret = conf;
	return 0;
}

void reload_free(struct conf *conf)
{
	if (conf)
		conf_fini(conf);
	free(conf);
}
