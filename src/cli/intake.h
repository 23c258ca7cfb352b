/* intake.h - lists on their way into a pool, for commands: what was refused, progress, what became of the rest. */
#ifndef FAIRLEAD_CLI_INTAKE_H
#define FAIRLEAD_CLI_INTAKE_H

#include "cli/session.h"
#include "source/apply.h"

/* The most bytes of one list. */
#define INTAKE_BYTES_MAX ((uint64_t)1 << 30)

/* How entries are read, by the options of the command and the pool's rule about private addresses (NULL: no pool is
 * asked). */
struct endpoint_rules intake_rules(const struct conf *conf, const struct pool *pool);
enum list_format intake_format(const struct conf *conf);

/* One line for each reason with its first entry, under the list's name. */
void intake_report(const struct cli *cli, const char *name, const struct load *load);

/* Puts what the load holds into the pool, with a progress bar on a terminal, and adds up what became of it.
 * EXIT_FINE, or an exit status after a message. */
MUST_USE int intake_apply(struct session *session, const struct load *load, enum change change,
			  const char *source, struct apply_result *total);

/* Says what became of all. */
void intake_note(const struct session *session, const struct apply_result *total);

#endif
