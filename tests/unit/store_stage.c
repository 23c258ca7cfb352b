/* store_stage.c - a store whose server the test plays line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void store_stage_on_end(int result, const struct reply *reply, void *arg)
{
	struct store_outcome *outcome = arg;

	outcome->ends++;
	outcome->result = result;
	snprintf(outcome->text, sizeof(outcome->text), "%s", reply_text(reply, NULL));
	if (reply_kind(reply) == REPLY_INTEGER)
		snprintf(outcome->text, sizeof(outcome->text), "%lld",
			 (long long)reply_integer(reply, 0));
}

void store_stage_begin(struct store_stage *f, const char *userinfo, int64_t timeout_ms,
		       int64_t wait_ms)
{
	struct store_config config = {.timeout_ms = timeout_ms, .wait_ms = wait_ms};
	char url[128], error[200];

	memset(f, 0, sizeof(*f));
	log_setup(LOG_ERROR, LOG_KEY_VALUE);
	stage_init(&f->stage);
	snprintf(f->folder, sizeof(f->folder), "/tmp/fairlead-store-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/s", f->folder);
	peer_listen_unix(&f->peer, &f->stage, f->path);
	snprintf(url, sizeof(url), "unix://%s%s", userinfo, f->path);
	assert_int_equal(store_url_parse(&config.url, url, error, sizeof(error)), 0);
	assert_int_equal(store_new(&f->store, f->stage.loop, &config), 0);
}

void store_stage_end(struct store_stage *f)
{
	store_free(f->store);
	peer_fini(&f->peer);
	rmdir(f->folder);
	stage_fini(&f->stage);
}

void store_stage_greet(struct store_stage *f)
{
	peer_accept(&f->peer);
	peer_expect(&f->peer, "ROLE\r\n");
	peer_say(&f->peer, "+PONG\r\n" MASTER);
	STAGE_UNTIL(&f->stage, store_is_ready(f->store));
	peer_forget(&f->peer);
}

void store_stage_ready(struct store_stage *f)
{
	store_stage_begin(f, "", 60000, 60000);
	store_stage_greet(f);
}

void store_stage_ask(struct store_stage *f, int flags, const char *word,
		     struct store_outcome *outcome)
{
	struct word words[] = {WORD("GET"), WORD(word)};

	*outcome = (struct store_outcome){0};
	assert_int_equal(store_command(f->store, flags, words, 2, store_stage_on_end, outcome), 0);
	assert_int_equal(outcome->ends, 0);
}

void store_stage_allocate(struct store_stage *f, struct store_outcome *outcome)
{
	struct word words[] = {WORD("pool"), WORD("1")};

	*outcome = (struct store_outcome){0};
	assert_int_equal(
	    store_script(f->store, SCRIPT_ALLOCATE, 0, words, 2, store_stage_on_end, outcome), 0);
}

void store_stage_expect(struct store_stage *f, struct store_outcome *outcome, int result)
{
	STAGE_UNTIL(&f->stage, outcome->ends);
	assert_int_equal(outcome->result, result);
	for (int i = 0; i < 5; i++)
		stage_turn(&f->stage);
	assert_int_equal(outcome->ends, 1);
}
