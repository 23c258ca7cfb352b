/* command_work_exec.c - fairlead work exec */
#include "cli/cli.h"
#include "cli/queue_session.h"
#include "node/alone.h"
#include "worker/exec_rule.h"

static int judge_statuses(const struct cli *cli)
{
	char error[EXEC_RULE_ERROR_SIZE];
	struct exec_rule rule = {0};

	for (size_t i = 0; i < conf_count(&cli->conf, CONF_DEAD_STATUS); i++)
		if (exec_rule_add(&rule, conf_at(&cli->conf, CONF_DEAD_STATUS, i), error,
				  sizeof error))
			return cli_usage(cli, "--dead-status: %s", error);
	return EXIT_FINE;
}

int command_work_exec(struct cli *cli)
{
	int r = queue_session_judge(cli);

	if (!r)
		r = judge_statuses(cli);
	return r ? r : alone_work_exec(&cli->conf, (char *const *)cli->args);
}
