/* command_pool_release.c - fairlead pool release */
#include "cli/lease_word.h"

static int release(struct session *session, const struct lease_word *word, pool_cb *cb, void *arg)
{
	return pool_lease_release(session->pool, word->id, word->token, cb, arg);
}

int command_pool_release(struct cli *cli)
{
	return lease_words_ask(cli, release, "released");
}
