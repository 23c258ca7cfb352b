/* visit_stage.c - one visit through a member that the test plays line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "visit_stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Port 9 (discard): whoever obeys goes wrong. */
static void mislead(void)
{
	signal(SIGPIPE, SIG_IGN);
	setenv("http_proxy", "http://127.0.0.9:9", 1);
	setenv("https_proxy", "http://127.0.0.9:9", 1);
	setenv("ALL_PROXY", "http://127.0.0.9:9", 1);
	setenv("NO_PROXY", "*", 1);
	setenv("no_proxy", "*", 1);
	setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
}

static bool is_admitted(const struct address *address, uint16_t port, bool is_target, void *arg)
{
	struct visit_stage *f = arg;

	(void)address;
	(void)port;
	f->asked++;
	f->asked_for_targets += is_target;
	return f->admits;
}

void visit_stage_begin(struct visit_stage *f)
{
	memset(f, 0, sizeof(*f));
	mislead();
	stage_init(&f->stage);
	peer_listen(&f->peer, &f->stage, "127.0.0.1");
	assert_int_equal(visits_new(&f->visits, f->stage.loop), 0);
	f->admits = true;
	f->proxy =
	    (struct endpoint){.scheme = SCHEME_HTTP, .host = "127.0.0.1", .port = f->peer.port};
	f->request = (struct visit_request){.method = "GET",
					    .proxy = &f->proxy,
					    .max_bytes = 1 << 20,
					    .redirects_max = 5,
					    .timeout_ms = STAGE_PATIENCE_MS,
					    .connect_ms = STAGE_PATIENCE_MS,
					    .is_admitted = is_admitted,
					    .admit_arg = f};
	visit_stage_url(f, "http://example.com/page");
}

void visit_stage_end(struct visit_stage *f)
{
	visits_free(f->visits);
	peer_fini(&f->peer);
	stage_fini(&f->stage);
}

void visit_stage_url(struct visit_stage *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->url, sizeof(f->url), format, args);
	va_end(args);
	f->request.url = f->url;
}

static void keep_texts(struct visit_stage *f, const struct visit_answer *answer)
{
	size_t at = 0;

	snprintf(f->final_url, sizeof(f->final_url), "%s", answer->final_url);
	snprintf(f->version, sizeof(f->version), "%s", answer->http_version);
	snprintf(f->body, sizeof(f->body), "%s", answer->body);
	assert_int_equal(answer->body[answer->len], '\0');
	f->headers[0] = '\0';
	for (size_t i = 0; i < answer->header_count && at < sizeof(f->headers) - 300; i++)
		at += (size_t)snprintf(f->headers + at, 300, "%s=%s\n", answer->headers[i].name,
				       answer->headers[i].value);
}

static void on_end(int reason, const char *detail, const struct visit_answer *answer, void *arg)
{
	struct visit_stage *f = arg;

	f->ends++;
	f->reason = reason;
	snprintf(f->detail, sizeof(f->detail), "%s", detail);
	f->answer = *answer;
	keep_texts(f, answer);
	visit_cancel(f->visit); /* does nothing */
}

void visit_stage_start(struct visit_stage *f)
{
	f->ends = 0;
	assert_int_equal(
	    visit_start(&f->visit, f->visits, &f->request, on_end, f, f->error, sizeof(f->error)),
	    0);
	assert_int_equal(f->ends, 0);
}

void visit_stage_hear(struct visit_stage *f)
{
	peer_accept(&f->peer);
	peer_expect(&f->peer, "\r\n\r\n");
}

void visit_stage_ask(struct visit_stage *f, const char *response)
{
	visit_stage_start(f);
	visit_stage_hear(f);
	peer_say(&f->peer, response);
	peer_close(&f->peer);
}

void visit_stage_expect(struct visit_stage *f, int reason)
{
	STAGE_UNTIL(&f->stage, f->ends);
	if (f->reason != reason)
		fail_msg("%s (%s), not %s", result_word(f->reason), f->detail, result_word(reason));
	for (int i = 0; i < 3; i++)
		stage_turn(&f->stage);
	assert_int_equal(f->ends, 1);
	assert_null(strpbrk(f->detail, "\r\n"));
}
