/* members.h - members named on the command line, and a change of all of them. */
#ifndef FAIRLEAD_CLI_MEMBERS_H
#define FAIRLEAD_CLI_MEMBERS_H

#include "cli/session.h"
#include "pool/change.h"

/* The identifier that `text` means: itself if it is one, else that of the proxy URL (with the pool's salt), whose rules must
 * have been read. EXIT_FINE, or EXIT_USAGE after a message. */
MUST_USE int member_id_of(struct session *session, const char *text, char *ret, size_t size);

/* Opens, changes all members named as arguments, closes. `done`: what a member is then, for the note. Unknown members
 * are named, the others are changed; the exit status is EXIT_FAILED then. */
int members_change(struct cli *cli, enum change change, const char *done);

#endif
