/* info.c - what a server tells of itself in INFO. */
#include "store/info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDIS_MAJOR 6
#define REDIS_MINOR 2

const char *info_field(const char *info, const char *field, char *buffer, size_t size)
{
	size_t len = strlen(field);

	buffer[0] = '\0';
	for (const char *at = info; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, field, len) && at[len] == ':')
			snprintf(buffer, size, "%.*s", (int)strcspn(at + len + 1, "\r\n"),
				 at + len + 1);
	return buffer;
}

static void __attribute__((format(printf, 3, 4)))
say(struct info_finding *f, enum finding finding, const char *format, ...)
{
	va_list args;

	f->finding = finding;
	va_start(args, format);
	vsnprintf(f->detail, sizeof f->detail, format, args);
	va_end(args);
}

static void judge_version(const char *info, struct info_finding *f)
{
	char version[32], *end;
	long major, minor;

	info_field(info, "redis_version", version, sizeof version);
	major = strtol(version, &end, 10);
	minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	if (major > REDIS_MAJOR || (major == REDIS_MAJOR && minor >= REDIS_MINOR))
		say(f, FINDING_OK, "%s", version);
	else
		say(f, FINDING_ERROR, "%s is too old: Redis %d.%d or later, or Valkey", version,
		    REDIS_MAJOR, REDIS_MINOR);
}

static void judge_eviction(const char *info, struct info_finding *f)
{
	char policy[32];

	info_field(info, "maxmemory_policy", policy, sizeof policy);
	if (!strcmp(policy, "noeviction"))
		say(f, FINDING_OK, "noeviction");
	else if (!strncmp(policy, "allkeys", 7))
		say(f, FINDING_ERROR,
		    "maxmemory-policy %s lets Redis drop whole pools; set it to noeviction",
		    policy);
	else
		say(f, FINDING_WARNING,
		    "maxmemory-policy %s lets Redis drop keys that expire; noeviction is safer",
		    policy);
}

static void judge_persistence(const char *info, struct info_finding *f)
{
	char enabled[8], status[8];

	info_field(info, "aof_enabled", enabled, sizeof enabled);
	info_field(info, "aof_last_write_status", status, sizeof status);
	if (strcmp(enabled, "1"))
		say(f, FINDING_WARNING,
		    "the append-only file is off: counts since the last snapshot are lost with the "
		    "server; set appendonly yes");
	else if (!strcmp(status, "ok"))
		say(f, FINDING_OK, "append-only file");
	else
		say(f, FINDING_ERROR,
		    "the last write of the append-only file failed: is the disk full?");
}

void info_judge(const char *info, struct info_finding ret[INFO_FINDINGS])
{
	static const struct {
		const char *check;
		void (*judge)(const char *info, struct info_finding *f);
	} table[INFO_FINDINGS] = {
	    {"version", judge_version},
	    {"eviction", judge_eviction},
	    {"persistence", judge_persistence},
	};

	for (int i = 0; i < INFO_FINDINGS; i++) {
		ret[i].check = table[i].check;
		table[i].judge(info, &ret[i]);
	}
}
