/* pool_stage.c - a pool named "pool" on a server of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static void open_store(struct pool_stage *p, const char *url)
{
	struct store_config config = {.timeout_ms = 20000, .wait_ms = 20000};
	char error[200];

	assert_int_equal(store_url_parse(&config.url, url, error, sizeof(error)), 0);
	assert_int_equal(store_new(&p->store, p->stage.loop, &config), 0);
}

static void open_pool(struct pool_stage *p)
{
	char error[200];

	STAGE_UNTIL(&p->stage, store_is_ready(p->store));
	assert_int_equal(pool_new(&p->pool, p->stage.loop, p->store, "pool", error, sizeof(error)),
			 0);
}

static void open_stage(struct pool_stage *p)
{
	memset(p, 0, sizeof(*p));
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	stage_init(&p->stage);
}

void pool_stage_begin(struct pool_stage *p)
{
	open_stage(p);
	redis_start(&p->redis, NULL, NULL);
	open_store(p, p->redis.url);
	open_pool(p);
}

void pool_stage_greet(struct pool_stage *p)
{
	peer_accept(&p->peer);
	peer_expect(&p->peer, "ROLE\r\n");
	peer_say(&p->peer, "+PONG\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
	STAGE_UNTIL(&p->stage, store_is_ready(p->store));
	peer_forget(&p->peer);
}

void pool_stage_play(struct pool_stage *p)
{
	char path[64], url[80];

	open_stage(p);
	snprintf(p->folder, sizeof(p->folder), "/tmp/fairlead-pool-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	snprintf(path, sizeof(path), "%s/s", p->folder);
	snprintf(url, sizeof(url), "unix://%s", path);
	peer_listen_unix(&p->peer, &p->stage, path);
	open_store(p, url);
	pool_stage_greet(p);
	open_pool(p);
}

void pool_stage_end(struct pool_stage *p)
{
	store_free(p->store);
	pool_free(p->pool);
	stage_fini(&p->stage);
	redis_stop(&p->redis);
	if (p->folder[0]) {
		peer_fini(&p->peer);
		rmdir(p->folder);
	}
}
