/* main.c - from argv to a command's exit status. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/hide.h"
#include "cli/options.h"
#include "cli/output.h"
#include "node/handover.h"

/* Where the private server lives by default (XDG Base Directory specification: a relative value
 * counts as none). */
static int set_state_dir(struct conf *conf, struct conf_error *error)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	bool is_state = state && state[0] == '/';
	char path[4096];

	if (*conf_text(conf, CONF_STATE_DIR) || (!is_state && (!home || !*home)))
		return 0;
	if (snprintf(path, sizeof path, "%s%s/fairlead", is_state ? state : home,
		     is_state ? "" : "/.local/state") >= (int)sizeof path)
		return conf_fail(error, "the path of the state directory is too long");
	return conf_set(conf, CONF_STATE_DIR, path, (struct conf_place){.level = FROM_DEFAULT},
			error);
}

static int load_conf(struct conf *conf, struct conf_error *error)
{
	const char *path;
	int r = conf_load_env(conf, error);

	if (r)
		return r;
	path = conf_text(conf, CONF_CONFIG);
	if (*path)
		r = conf_load_file(conf, path, error);
	return r ? r : set_state_dir(conf, error);
}

/* Of --quiet and --verbose the one from the higher place holds. */
static void set_up_log(const struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	bool is_quiet = conf_bool(conf, CONF_QUIET);
	bool is_verbose = conf_bool(conf, CONF_VERBOSE);
	/* Long-running processes tell what they do; others only what is wrong. */
	enum log_level level = cli->command->groups & IN_SERVICE ? LOG_INFO : LOG_WARN;

	if (is_quiet && is_verbose)
		is_quiet = conf_level(conf, CONF_QUIET) > conf_level(conf, CONF_VERBOSE);
	if (is_quiet)
		level = LOG_ERROR;
	else if (is_verbose)
		level = LOG_DEBUG;
	log_setup(level, conf_enum(conf, CONF_LOG_FORMAT) ? LOG_JSON : LOG_KEY_VALUE);
}

static void warn_of_hidden(const struct cli *cli, unsigned hidden)
{
	if (hidden & HIDDEN_IN_OPTION)
		cli_note(cli, "the credentials on the command line were visible to other users; "
			      "--redis-password-file keeps them out of it");
	else if (hidden)
		cli_note(cli, "the credentials on the command line were visible to other users; "
			      "'fairlead pool add -' reads proxies from standard input");
}

static int print_help(const struct cli *cli, FILE *out)
{
	if (cli->command)
		help_command(out, cli->command);
	else if (cli->group && *cli->group)
		help_group(out, cli->group);
	else
		help_overview(out);
	return out == stdout ? EXIT_FINE : EXIT_USAGE;
}

/* Settings that are wrong are no reason to refuse help. */
static int dispatch(struct cli *cli, unsigned hidden)
{
	struct conf_error error;
	int r;

	if (conf_bool(&cli->conf, CONF_HELP))
		return print_help(cli, stdout);
	if (conf_bool(&cli->conf, CONF_VERSION))
		return command_version(cli);
	if (!cli->command)
		return print_help(cli, stderr);
	r = load_conf(&cli->conf, &error);
	if (r && cli->command->groups != IN_ALL) {
		cli_error(cli, "%s", r == -ENOMEM ? strerror(-r) : error.text);
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	set_up_log(cli);
	warn_of_hidden(cli, hidden);
	if (conf_bool(&cli->conf, CONF_PRINT_CONFIG)) {
		conf_print(&cli->conf, stdout);
		return EXIT_FINE;
	}
	return cli->command->run(cli);
}

/* Results that nobody received are a failure: a full disk, a closed pipe. */
static int finish_output(const struct cli *cli, int status)
{
	int r = fflush(stdout) ? -errno : ferror(stdout) ? -EIO : 0;

	if (output_error())
		r = output_error();
	if (!r)
		return status;
	cli_error(cli, "cannot write to standard output: %s", strerror(-r));
	return EXIT_FAILED;
}

/* A standard descriptor that is closed would become that of the next file or socket, and a message would go into it. */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDERR_FILENO
					      ? O_RDWR
					      : O_RDONLY); /* the lowest number: this one */
}

int main(int argc, char **argv)
{
	struct cli cli = {0};
	struct conf_error error = {"the program before has left nothing that can be read"};
	int status = EXIT_FAILED;
	unsigned hidden = 0;
	int r;

	occupy_standard_descriptors();
	signal(SIGPIPE, SIG_IGN);
	r = conf_init(&cli.conf);
	if (!r)
		r = handover_begin(argc, argv);
	if (!r)
		r = options_parse(&cli, argc, handover_arguments(), &error);
	/* Those of a program that was executed by its predecessor are hidden already. */
	if (r != -ENOMEM && !handover_received())
		hidden = hide_secrets(argc, argv);
	if (r) {
		cli_error(&cli, "%s", r == -ENOMEM ? strerror(-r) : error.text);
		status = r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	} else {
		status = finish_output(&cli, dispatch(&cli, hidden));
	}
	options_fini(&cli);
	conf_fini(&cli.conf);
	return status;
}
