/* probe_stage.h - a probe whose proxy, and the target behind it, the test plays line by line. */
#ifndef FAIRLEAD_TESTS_PROBE_STAGE_H
#define FAIRLEAD_TESTS_PROBE_STAGE_H

#include "check/probe.h"
#include "peer.h"

#define PROBE_STAGE_TIMEOUT_MS 5000
#define PROBE_STAGE_START_MS 1000

struct probe_stage {
	struct stage stage;
	struct peer peer;
	struct endpoint proxy;
	struct target target;
	struct expectation expectation;
	struct probe_request request;
	struct probe *probe;
	int ends;
	struct probe_outcome outcome;
};

/* A proxy on loopback and the target http://target.example/page; the test changes what it likes. The clock stands still. */
void probe_stage_begin(struct probe_stage *f, enum scheme scheme);
void probe_stage_end(struct probe_stage *f);

/* What the target's answer must be. */
void probe_stage_expect(struct probe_stage *f, const char *statuses, const char *text);

/* Starts the probe; and accepts its connection. */
void probe_stage_launch(struct probe_stage *f);
void probe_stage_start(struct probe_stage *f);

/* Waits for exactly these bytes, then forgets them. */
void probe_stage_hear(struct probe_stage *f, const void *bytes, size_t len);
void probe_stage_hear_text(struct probe_stage *f, const char *text);

/* Waits for the end, which must be `reason` and the only one. */
void probe_stage_finish(struct probe_stage *f, int reason);

/* The same, at the deadline and not a millisecond before. */
void probe_stage_at_deadline(struct probe_stage *f, int reason);

#endif
