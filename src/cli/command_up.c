/* command_up.c - fairlead up */
#include "cli/cli.h"
#include "node/supervisor.h"
#include "store/keys.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What can be known to be wrong before anything is started. */
static int check(struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	struct pool_keys keys;
	char error[256];

	if (pool_keys_init(&keys, conf_text(conf, CONF_POOL), error, sizeof error))
		return cli_usage(cli, "--pool: %s", error);
	for (size_t i = 0; i < conf_count(conf, CONF_LIST); i++) {
		const char *path = conf_at(conf, CONF_LIST, i);

		struct stat st = {0};
		int fault = access(path, R_OK) || stat(path, &st) ? errno : 0;

		if (!fault && !S_ISREG(st.st_mode))
			fault = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		if (fault) {
			cli_error(cli, "--list %s: %s; a list is a readable file", path,
				  strerror(fault));
			return EXIT_FAILED;
		}
	}
	return EXIT_FINE;
}

int command_up(struct cli *cli)
{
	int r = check(cli);

	return r ? r : supervisor_run(&cli->conf);
}
