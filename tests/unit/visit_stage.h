/* visit_stage.h - one visit through a member that the test plays line by line. */
#ifndef FAIRLEAD_TESTS_VISIT_STAGE_H
#define FAIRLEAD_TESTS_VISIT_STAGE_H

#include <stdbool.h>

#include "fetch/visit.h"
#include "peer.h"

struct visit_stage {
	struct stage stage;
	struct peer peer; /* the member */
	struct endpoint proxy;
	struct visit_request request;
	struct visits *visits;
	struct visit *visit;
	char url[256], error[200];
	/* what is_admitted() was asked */
	bool admits;
	int asked, asked_for_targets;
	/* how it ended */
	int ends, reason;
	char detail[300];
	struct visit_answer answer; /* its texts: */
	char final_url[256], version[8], body[1 << 12], headers[1 << 12];
};

/* An HTTP proxy on loopback, admitted, that is to get http://example.com/page; the test changes what it likes. The environment
 * names another proxy, and exempts all hosts from it. */
void visit_stage_begin(struct visit_stage *f);
void visit_stage_end(struct visit_stage *f);

void visit_stage_url(struct visit_stage *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void visit_stage_start(struct visit_stage *f);

/* Takes the next connection and waits for a whole head. */
void visit_stage_hear(struct visit_stage *f);

/* visit_stage_start(), visit_stage_hear(), and this answer; the connection ends. */
void visit_stage_ask(struct visit_stage *f, const char *response);

/* Waits for the end, which must be `reason` and the only one. */
void visit_stage_expect(struct visit_stage *f, int reason);

#endif
