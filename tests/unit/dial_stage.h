/* dial_stage.h - a dial whose proxy the test plays line by line. */
#ifndef FAIRLEAD_TESTS_DIAL_STAGE_H
#define FAIRLEAD_TESTS_DIAL_STAGE_H

#include <stdbool.h>

#include "dial/dial.h"
#include "peer.h"

struct dial_stage {
	struct stage stage;
	struct peer peer;
	struct endpoint proxy;
	struct dial_request request;
	struct dial *dial;
	int ends, result, status;
	struct stream stream;
	char early[200];
	size_t early_len;
	/* what is_admitted() was asked */
	bool admits, was_target;
	uint16_t asked_port;
	int asked;
};

/* An HTTP proxy on loopback, admitted, that is to reach example.com:443; the test changes what it likes. */
void dial_stage_begin(struct dial_stage *f);
void dial_stage_end(struct dial_stage *f);

/* Starts the dial. */
void dial_stage_start(struct dial_stage *f);

/* Starts, and accepts the connection with its whole question. */
void dial_stage_ask(struct dial_stage *f);

/* Waits for the end, which must be `result` and the only one. */
void dial_stage_expect(struct dial_stage *f, int result);

#endif
