/* fetch_stage.c - one fetch on a loop, whose server is played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fetch_stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Nor may a resolver that is away take longer than the stage's patience. */
static void forget_surroundings(void)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
					    "ALL_PROXY",  "no_proxy",    "NO_PROXY"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
}

void fetch_stage_begin(struct fetch_stage *f)
{
	signal(SIGPIPE, SIG_IGN);
	forget_surroundings();
	*f = (struct fetch_stage){.request = {.max_bytes = 1 << 20,
					      .timeout_ms = STAGE_PATIENCE_MS,
					      .connect_ms = STAGE_PATIENCE_MS}};
	stage_init(&f->stage);
	peer_listen(&f->peer, &f->stage, "127.0.0.1");
	fetch_stage_address(f, "", "/list");
}

void fetch_stage_end(struct fetch_stage *f)
{
	if (!f->ends)
		fetch_cancel(f->fetch);
	peer_fini(&f->peer);
	stage_fini(&f->stage);
}

void fetch_stage_address(struct fetch_stage *f, const char *credentials, const char *path)
{
	snprintf(f->url, sizeof(f->url), "http://%s127.0.0.1:%u%s", credentials, f->peer.port,
		 path);
	f->request.url = f->url;
}

static void on_end(int result, const char *error, const struct fetch_answer *answer, void *arg)
{
	struct fetch_stage *f = arg;
	ssize_t n;

	f->ends++;
	f->result = result;
	f->answer = *answer;
	snprintf(f->error, sizeof(f->error), "%s", error ? error : "");
	if (answer->fd < 0)
		return;
	n = read(answer->fd, f->body, sizeof(f->body) - 1);
	f->body_len = n > 0 ? (size_t)n : 0;
	close(answer->fd);
}

void fetch_stage_start(struct fetch_stage *f)
{
	assert_int_equal(fetch_start(&f->fetch, f->stage.loop, &f->request, on_end, f), 0);
	assert_int_equal(f->ends, 0);
}

void fetch_stage_serve(struct fetch_stage *f, const char *response)
{
	peer_accept(&f->peer);
	peer_expect(&f->peer, "\r\n\r\n");
	peer_say(&f->peer, response);
}

void fetch_stage_ask(struct fetch_stage *f, const char *response)
{
	fetch_stage_start(f);
	fetch_stage_serve(f, response);
	peer_close(&f->peer);
}

void fetch_stage_expect(struct fetch_stage *f, int result)
{
	STAGE_UNTIL(&f->stage, f->ends);
	for (int i = 0; i < 3; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 1);
	if (f->result != result)
		fail_msg("result %d (%s), not %d", f->result, f->error, result);
	assert_int_equal(f->error[0] == '\0', result == 0);
	assert_null(strpbrk(f->error, "\r\n"));
	if (result)
		assert_int_equal(f->answer.fd, -1);
}
