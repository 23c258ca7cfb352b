/* options.c - the command line: words, options, arguments. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "cli/suggest.h"

/* An option as it stands on the line. It is judged when the command is known, which may come
 * behind it. */
struct option {
	const char *typed; /* the argument it came from */
	int id;            /* enum conf_id, or -1: unknown */
	const char *value; /* NULL: missing */
	bool is_taken;     /* the value is an argument of its own */
};

struct line {
	int argc;
	char **argv;
	int at;
	bool is_over; /* behind "--" or --exec: what follows is not ours to read */
	struct option *options;
	int option_count;
};

static int short_option(char letter)
{
	static const struct {
		char letter;
		enum conf_id id;
	} letters[] = {{'h', CONF_HELP},
		       {'V', CONF_VERSION},
		       {'v', CONF_VERBOSE},
		       {'q', CONF_QUIET},
		       {'o', CONF_OUTPUT}};

	for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
		if (letters[i].letter == letter)
			return (int)letters[i].id;
	return -1;
}

/* The setting of a long option without its dashes and value: "connect-timeout". */
static int long_option(const char *name, size_t len)
{
	char key[64];

	if (len == 0 || len >= sizeof key || memchr(name, '_', len))
		return -1;
	for (size_t i = 0; i < len; i++)
		key[i] = name[i] == '-' ? '_' : name[i];
	key[len] = '\0';
	return conf_find(key);
}

static bool is_accepted(const struct command *command, int id)
{
	uint64_t groups = command ? command->groups : (uint64_t)IN_ALL;

	return conf_row((enum conf_id)id)->groups & groups;
}

/* A name that another command's setting has may stand for this command's own: of `judge`, --listen is judge_listen, of
 * `queue push`, --id is push_id. */
static int own_id(const struct command *command, int id)
{
	const char *space;
	char name[128];
	int own;

	if (id < 0 || !command || is_accepted(command, id))
		return id;
	space = strrchr(command->words, ' ');
	snprintf(name, sizeof name, "%s_%s", space ? space + 1 : command->words,
		 conf_row((enum conf_id)id)->name);
	own = conf_find(name);
	return own >= 0 && is_accepted(command, own) ? own : id;
}

static bool is_switch(int id)
{
	return id >= 0 && conf_row((enum conf_id)id)->kind == KIND_BOOL;
}

bool options_takes_next(const char *typed)
{
	int id = strncmp(typed, "--", 2) == 0 ? long_option(typed + 2, strlen(typed + 2)) : -1;

	return id >= 0 && !is_switch(id);
}

/* Something that looks like an option is taken for a forgotten value, a negative number is not. */
static const char *take_value(struct line *line)
{
	const char *next = line->at < line->argc ? line->argv[line->at] : NULL;

	if (!next || (next[0] == '-' && next[1] && !isdigit((unsigned char)next[1])))
		return NULL;
	line->at++;
	return next;
}

/* Whoever writes "--" behind --exec means the same by it. */
static void begin_command(struct line *line)
{
	line->is_over = true;
	if (line->at < line->argc && !strcmp(line->argv[line->at], "--"))
		line->at++;
}

/* The command of one or two words; `ret_taken` is their number. NULL: unknown, or a group's word
 * alone. */
static const struct command *look_up(const char *first, const char *second, int *ret_taken)
{
	const struct command *command = command_find(first);
	char words[64];

	*ret_taken = 1;
	if (command || !second)
		return command;
	snprintf(words, sizeof words, "%s %s", first, second);
	*ret_taken = 2;
	return command_find(words);
}

/* What the words before an option name already: it decides whether the option takes a value. */
static const struct command *command_so_far(const struct cli *cli)
{
	int taken;

	if (cli->copy_count == 0)
		return NULL;
	return look_up(cli->copies[0], cli->copy_count > 1 ? cli->copies[1] : NULL, &taken);
}

static void read_long(const struct cli *cli, struct line *line, const char *typed)
{
	struct option *option = &line->options[line->option_count++];
	const char *name = typed + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);

	*option = (struct option){.typed = typed,
				  .id = own_id(command_so_far(cli), long_option(name, len))};
	if (option->id < 0 && !equals && strncmp(name, "no-", 3) == 0) {
		int id = long_option(name + 3, len - 3);

		option->id = is_switch(id) ? id : -1;
		option->value = "false";
		return;
	}
	if (equals)
		option->value = equals + 1;
	else if (is_switch(option->id))
		option->value = "true";
	else if (option->id >= 0)
		option->value = take_value(line);
	if (option->id == CONF_EXEC && !equals)
		begin_command(line);
}

/* Letters may stand together; one that takes a value is the last, and takes what is behind it, or the next argument. */
static void read_short(struct line *line, const char *typed)
{
	for (const char *letter = typed + 1; *letter; letter++) {
		struct option *option = &line->options[line->option_count++];

		*option =
		    (struct option){.typed = typed, .id = short_option(*letter), .value = "true"};
		if (option->id < 0)
			return;
		if (!is_switch(option->id)) {
			option->value = letter[1] ? letter + 1 : take_value(line);
			return;
		}
	}
}

static int keep_argument(struct cli *cli, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	cli->copies[cli->copy_count++] = copy;
	return 0;
}

/* Sorts the line into options and all else. */
static int read_line(struct cli *cli, struct line *line)
{
	size_t most = 1;
	int r = 0;

	/* A cluster of letters is at most as many options as it has bytes. */
	for (int i = 1; i < line->argc; i++)
		most += strlen(line->argv[i]) + 1;
	line->options = calloc(most, sizeof *line->options);
	cli->copies = calloc((size_t)line->argc + 1, sizeof *cli->copies);
	if (!line->options || !cli->copies)
		return -ENOMEM;
	for (line->at = 1; line->at < line->argc && !r;) {
		const char *typed = line->argv[line->at++];

		if (line->is_over || typed[0] != '-' || !typed[1])
			r = keep_argument(cli, typed);
		else if (strcmp(typed, "--") == 0)
			line->is_over = true;
		else if (typed[1] == '-')
			read_long(cli, line, typed);
		else
			read_short(line, typed);
	}
	return r;
}

/* Behind a group's word: the nearest of its commands, by their second word. */
static void suggest_in_group(struct suggestion *s, const char *group)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		if (command_in_group(command, group))
			suggest_try(s, strchr(command->words, ' ') + 1);
}

/* The nearest command or group; or a command whose group was left out. */
static void suggest_command(struct suggestion *s)
{
	const struct command *command;
	char word[64];

	for (size_t i = 0; (command = command_at(i)); i++) {
		const char *space = strchr(command->words, ' ');

		snprintf(word, sizeof word, "%.*s", (int)strcspn(command->words, " "),
			 command->words);
		suggest_try(s, word);
		suggest_try(s, command->words);
		if (space && strcmp(space + 1, s->typed) == 0 && s->distance > 0)
			suggest_take(s, command->words);
	}
}

static int fail_unknown(const char *typed, const char *hint, const char *see,
			struct conf_error *error)
{
	char shown[128];

	secret_print(typed, shown, sizeof shown);
	return conf_fail(error, "unknown command '%s'%s; see 'fairlead %s'", shown, hint, see);
}

static int unknown_in_group(const char *group, const char *second, struct conf_error *error)
{
	char typed[128], hint[160] = "", see[64];
	struct suggestion s;

	suggest_begin(&s, second);
	suggest_in_group(&s, group);
	if (s.best[0])
		snprintf(hint, sizeof hint, " (did you mean '%s %s'?)", group, s.best);
	snprintf(typed, sizeof typed, "%s %s", group, second);
	snprintf(see, sizeof see, "%s --help", group);
	return fail_unknown(typed, hint, see, error);
}

/* Two words may be a command with a slip in its first, "pol allocate"; else the second is an
 * argument. */
static int unknown_command(const char *first, const char *second, struct conf_error *error)
{
	char both[128], hint[160] = "";
	const char *typed = both;
	struct suggestion s;

	snprintf(both, sizeof both, "%s %s", first, second ? second : "");
	suggest_begin(&s, both);
	if (second)
		suggest_command(&s);
	if (!s.best[0]) {
		typed = first;
		suggest_begin(&s, first);
		suggest_command(&s);
	}
	if (s.best[0])
		snprintf(hint, sizeof hint, " (did you mean '%s'?)", s.best);
	return fail_unknown(typed, hint, "help", error);
}

/* Takes the command's words off the front of what is not an option. */
static int find_command(struct cli *cli, struct conf_error *error)
{
	const char *first = cli->copy_count > 0 ? cli->copies[0] : "";
	const char *second = cli->copy_count > 1 ? cli->copies[1] : NULL;
	int taken;

	cli->command = look_up(first, second, &taken);
	if (cli->command) {
		cli->args = (const char **)cli->copies + taken;
		cli->arg_count = cli->copy_count - taken;
		return 0;
	}
	/* Copies are texts, never NULL. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	if (*first && !command_is_group(first))
		return unknown_command(first, second, error);
	cli->group = first;
	return second ? unknown_in_group(first, second, error) : 0;
}

/* "; see 'fairlead pool add --help'" */
static const char *where_help_is(const struct cli *cli, char *buffer, size_t size)
{
	if (cli->command)
		snprintf(buffer, size, "; see 'fairlead %s --help'", cli->command->words);
	else
		snprintf(buffer, size, "; see 'fairlead help'");
	return buffer;
}

static int unknown_option(const struct cli *cli, const char *typed, struct conf_error *error)
{
	char name[96], flag[64], shown[128], hint[96] = "", see[96];
	struct suggestion s;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
	suggest_begin(&s, name);
	for (int id = 0; id < CONF_ROWS; id++)
		if (!cli->command || is_accepted(cli->command, id))
			suggest_try(&s, conf_flag_name((enum conf_id)id, flag, sizeof flag));
	secret_print(name, shown, sizeof shown);
	if (s.best[0])
		snprintf(hint, sizeof hint, " (did you mean '%s'?)", s.best);
	return conf_fail(error, "unknown option '%s'%s%s", shown, hint,
			 where_help_is(cli, see, sizeof see));
}

/* "'up', 'gateway'": the first commands that take the option. */
static void print_owners(int id, char *buffer, size_t size)
{
	const struct command *command;
	int count = 0;

	for (size_t i = 0; (command = command_at(i)) && count < 3; i++) {
		size_t used = strlen(buffer);

		if (command->groups & conf_row((enum conf_id)id)->groups)
			snprintf(buffer + used, size - used, "%s'%s'", count++ ? ", " : "",
				 command->words);
	}
}

static int foreign_option(const struct cli *cli, int id, struct conf_error *error)
{
	char flag[64], owners[160] = "", see[96];

	conf_flag_name((enum conf_id)id, flag, sizeof flag);
	where_help_is(cli, see, sizeof see);
	if (!cli->command)
		return conf_fail(error, "%s needs a command%s", flag, see);
	print_owners(id, owners, sizeof owners);
	return conf_fail(error, "%s is no option of this command, but of %s%s", flag, owners, see);
}

static int missing_value(const struct cli *cli, const char *typed, int id, struct conf_error *error)
{
	char see[96];

	return conf_fail(error, "%s needs a value: %s%s", typed,
			 conf_row((enum conf_id)id)->placeholder,
			 where_help_is(cli, see, sizeof see));
}

static int judge_option(struct cli *cli, const struct option *option, struct conf_error *error)
{
	int id;

	if (option->id < 0)
		return unknown_option(cli, option->typed, error);
	id = own_id(cli->command, option->id);
	if (!is_accepted(cli->command, id))
		return foreign_option(cli, id, error);
	if (!option->value)
		return missing_value(cli, option->typed, id, error);
	return conf_set(&cli->conf, (enum conf_id)id, option->value,
			(struct conf_place){.level = FROM_FLAG}, error);
}

static int judge_arguments(const struct cli *cli, struct conf_error *error)
{
	const struct command *command = cli->command;
	char shown[96], see[96];

	if (!command)
		return 0;
	where_help_is(cli, see, sizeof see);
	if (cli->arg_count < command->min_args)
		return conf_fail(error, "an argument is missing: %s%s", command->synopsis, see);
	if (command->max_args < 0 || cli->arg_count <= command->max_args)
		return 0;
	secret_print(cli->args[command->max_args], shown, sizeof shown);
	return conf_fail(error, "unexpected argument '%s'%s", shown, see);
}

/* --help and --version win over whatever else is on the line. */
static bool asks_for_help(struct cli *cli, const struct line *line)
{
	struct conf_error ignored;

	for (int i = 0; i < line->option_count; i++) {
		const struct option *option = &line->options[i];

		if ((option->id == CONF_HELP || option->id == CONF_VERSION) &&
		    strcmp(option->value, "true") == 0)
			return conf_set(&cli->conf, (enum conf_id)option->id, "true",
					(struct conf_place){.level = FROM_FLAG}, &ignored) == 0;
	}
	return false;
}

/* An option that nobody knows is told first: its value may stand where a command was looked for. */
static int judge_line(struct cli *cli, const struct line *line, struct conf_error *error)
{
	int r = find_command(cli, error);

	if (asks_for_help(cli, line))
		return r;
	for (int i = 0; i < line->option_count; i++)
		if (line->options[i].id < 0)
			return unknown_option(cli, line->options[i].typed, error);
	for (int i = 0; i < line->option_count && !r; i++)
		r = judge_option(cli, &line->options[i], error);
	return r ? r : judge_arguments(cli, error);
}

int options_parse(struct cli *cli, int argc, char **argv, struct conf_error *error)
{
	struct line line = {.argc = argc, .argv = argv};
	int r = read_line(cli, &line);

	if (!r)
		r = judge_line(cli, &line, error);
	free(line.options);
	return r;
}

const char *options_flag_name(const struct command *command, enum conf_id id, char *buffer,
			      size_t size)
{
	const char *space = strrchr(command->words, ' ');
	const char *last = space ? space + 1 : command->words;
	const char *name = conf_row(id)->name;
	size_t len = strlen(last);
	int other;

	conf_flag_name(id, buffer, size);
	if (strncmp(name, last, len) != 0 || name[len] != '_')
		return buffer;
	other = conf_find(name + len + 1);
	return other >= 0 && own_id(command, other) == (int)id
		   ? conf_flag_name((enum conf_id)other, buffer, size)
		   : buffer;
}

void options_fini(struct cli *cli)
{
	for (int i = 0; i < cli->copy_count; i++)
		free(cli->copies[i]);
	free(cli->copies);
	cli->copies = NULL;
	cli->copy_count = 0;
}
