/* command_pool_renew.c - fairlead pool renew */
#include "cli/lease_word.h"

static int renew(struct session *session, const struct lease_word *word, pool_cb *cb, void *arg)
{
	return pool_lease_renew(session->pool, word->id, word->token,
				conf_ms(&session->cli->conf, CONF_TTL), cb, arg);
}

int command_pool_renew(struct cli *cli)
{
	return lease_words_ask(cli, renew, "renewed");
}
