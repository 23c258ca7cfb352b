/* command_queue_nack.c - fairlead queue nack */
#include "cli/claims.h"

int command_queue_nack(struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	const char *reason = conf_text(conf, CONF_REASON);
	struct settlement how = {
	    .verb = conf_bool(conf, CONF_DEAD) ? SETTLE_DEAD : SETTLE_NACK,
	    .ms = conf_is_set(conf, CONF_DELAY) ? conf_ms(conf, CONF_DELAY) : -1,
	    .reason = *reason ? reason : NULL,
	};

	if (conf_bool(conf, CONF_DEAD) && conf_is_set(conf, CONF_DELAY))
		return cli_usage(cli, "--dead and --delay exclude each other");
	return claims_settle(cli, &how, "is put back");
}
