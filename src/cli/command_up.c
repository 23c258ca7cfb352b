/* command_up.c - fairlead up */
#include "cli/cli.h"
#include "node/sources.h"
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
	for (size_t i = 0; i < sources_count(conf); i++) {
		struct source_config source;
		char name[SOURCE_NAME_MAX];
		struct stat st = {0};
		int fault;

		sources_at(conf, i, &source, name);
		if (source_is_url(source.place))
			continue;
		fault = access(source.place, R_OK) || stat(source.place, &st) ? errno : 0;
		if (!fault && !S_ISREG(st.st_mode))
			fault = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		if (fault) {
			cli_error(cli, "list %s: %s; a list is a readable file, or an http(s) URL",
				  source.place, strerror(fault));
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
