/* fetch_stage.h - one fetch on a loop, whose server is played by the test. */
#ifndef FAIRLEAD_TESTS_FETCH_STAGE_H
#define FAIRLEAD_TESTS_FETCH_STAGE_H

#include "fetch/fetch.h"
#include "peer.h"

struct fetch_stage {
	struct stage stage;
	struct peer peer;
	char url[256];
	struct fetch_request request; /* of `url`, generous; the test changes it before it begins */
	struct fetch *fetch;
	int ends, result;
	char error[300];
	struct fetch_answer answer;
	char body[1 << 12]; /* the first of it, NUL-terminated */
	size_t body_len;
};

/* A server at 127.0.0.1 and a request for "/list" there. Proxies of the environment are forgotten. */
void fetch_stage_begin(struct fetch_stage *f);
void fetch_stage_end(struct fetch_stage *f);

/* http://`credentials`127.0.0.1:port`path`, where `credentials` is "" or "user:password@". */
void fetch_stage_address(struct fetch_stage *f, const char *credentials, const char *path);

void fetch_stage_start(struct fetch_stage *f);

/* Takes the next connection, waits for a whole request, answers. The connection stays open. */
void fetch_stage_serve(struct fetch_stage *f, const char *response);

/* fetch_stage_start(), fetch_stage_serve(); the connection ends. */
void fetch_stage_ask(struct fetch_stage *f, const char *response);

/* Waits for the end; checks what holds for every end with this result. */
void fetch_stage_expect(struct fetch_stage *f, int result);

#endif
