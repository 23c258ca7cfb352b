/* info.h - what a server tells of itself in INFO, and what of it a pool cannot live with. Pure. */
#ifndef FAIRLEAD_STORE_INFO_H
#define FAIRLEAD_STORE_INFO_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a field of an INFO text into `buffer`, which is returned; "" if it is not there. */
const char *info_field(const char *info, const char *field, char *buffer, size_t size);

enum finding { FINDING_OK, FINDING_WARNING, FINDING_ERROR };

/* One judgement: what was looked at, and a line that says what is the matter and the way out. */
struct info_finding {
	enum finding finding;
	const char *check;
	char detail[200];
};

#define INFO_FINDINGS 3

/* Judges version, eviction policy and persistence. (A replica is refused when the connection is made.) */
void info_judge(const char *info, struct info_finding ret[INFO_FINDINGS]);

#endif
