/* doctor.h - what the parts of `fairlead doctor` share: findings as rows. */
#ifndef FAIRLEAD_CLI_DOCTOR_H
#define FAIRLEAD_CLI_DOCTOR_H

#include "cli/output.h"
#include "cli/session.h"
#include "store/info.h"

struct doctor {
	struct session session;
	struct output output;
	bool has_errors;
	char info[32768]; /* the server's own words */
	int64_t number;   /* of the last answer */
	char text[64];    /* likewise */
	size_t foreign;   /* members that are no proxies */
};

void doctor_say(struct doctor *d, enum finding finding, const char *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Compares what members count as live leases with the leases themselves. */
void doctor_leases(struct doctor *d);

/* Looks at the queue of --queue. */
void doctor_queue(struct doctor *d);

/* Looks for claims without lease, leases without claim, and due times without task; with --fix they are mended. */
void doctor_orphans(struct doctor *d);

#endif
