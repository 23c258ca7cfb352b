/* elders.c - children that earlier programs have started. */
#include "node/elders.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"

void elders_init(struct elders *elders, const struct handover *left)
{
	elders->count = left ? left->child_count : 0;
	if (left)
		memcpy(elders->list, left->children, sizeof elders->list);
}

static bool is_of(const struct handover_child *child, const char *role)
{
	return !role || !strcmp(child->role, role);
}

bool elders_run(const struct elders *elders, const char *role)
{
	for (size_t i = 0; i < elders->count; i++)
		if (is_of(&elders->list[i], role))
			return true;
	return false;
}

void elders_signal(const struct elders *elders, const char *role, int number)
{
	for (size_t i = 0; i < elders->count; i++)
		if (is_of(&elders->list[i], role))
			kill(elders->list[i].pid, number);
}

static void tell_death(const struct handover_child *child, int status)
{
	bool is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	log_line(is_well ? LOG_INFO : LOG_WARN, "a child of the program before has ended",
		 LOG_TEXT("role", child->role), LOG_NUMBER("number", child->number),
		 LOG_NUMBER("exit", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
		 LOG_NUMBER("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

bool elders_reap(struct elders *elders, pid_t pid, int status)
{
	for (size_t i = 0; i < elders->count; i++) {
		if (elders->list[i].pid != pid)
			continue;
		tell_death(&elders->list[i], status);
		elders->list[i] = elders->list[--elders->count];
		return true;
	}
	return false;
}
