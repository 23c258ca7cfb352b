/* command_up.c - fairlead up */
#include <errno.h>

#include "cli/cli.h"
#include "node/checks.h"
#include "node/sources.h"
#include "node/supervisor.h"
#include "store/keys.h"

/* What can be known to be wrong before anything is started. */
static int check(struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	struct pool_keys keys;
	char error[512];
	int r;

	if (pool_keys_init(&keys, conf_text(conf, CONF_POOL), error, sizeof error))
		return cli_usage(cli, "--pool: %s", error);
	r = sources_check(conf, error, sizeof error);
	if (!r)
		r = checks_check(conf, error, sizeof error);
	if (r)
		cli_error(cli, "%s", error);
	return r == -EINVAL ? EXIT_USAGE : r ? EXIT_FAILED : EXIT_FINE;
}

int command_up(struct cli *cli)
{
	int r = check(cli);

	return r ? r : supervisor_run(&cli->conf);
}
