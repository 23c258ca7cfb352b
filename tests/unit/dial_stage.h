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
	char early[2000];
	size_t early_len;
	int calls; /* of the stream, after it was taken */
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

/* Waits for exactly these bytes, then forgets them. */
void dial_stage_hear(struct dial_stage *f, const void *bytes, size_t len);

/* Says `len` bytes, in two pieces if `cut` is less, or byte by byte if it is DIAL_STAGE_DRIP; what is left when the dial has ended
 * is not said. */
#define DIAL_STAGE_DRIP SIZE_MAX
void dial_stage_say(struct dial_stage *f, const void *bytes, size_t len, size_t cut);

/* Waits for the end, which must be `result` and the only one. */
void dial_stage_expect(struct dial_stage *f, int result);

#endif
