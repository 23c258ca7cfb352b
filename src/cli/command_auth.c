/* command_auth.c - fairlead auth: a line for the file of --auth-file. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/digest.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "gateway/account.h"

#define PASSWORD_MAX 255 /* RFC 1929 2 */
#define GENERATED_LEN 24
#define LINE_MAX_BYTES 256

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught = number;
}

/* The first line of standard input, as far as there is room. A byte at a time: what follows is not ours. Its length,
 * or -errno. */
static int read_line(char *line, size_t size)
{
	size_t len = 0;
	ssize_t n;
	char c;

	while ((n = read(STDIN_FILENO, &c, 1)) > 0 && c != '\n' && len + 1 < size)
		line[len++] = c;
	if (n < 0)
		return -errno;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	line[len] = '\0';
	return (int)len;
}

/* Asks without echo. A signal ends the program as ever, but not before the terminal is as it was. */
static int ask(const char *question, char *line, size_t size)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction action = {.sa_handler = on_signal};
	struct sigaction before[sizeof numbers / sizeof *numbers];
	struct termios shown, hidden;
	int len;

	if (tcgetattr(STDIN_FILENO, &shown))
		return -errno;
	hidden = shown;
	hidden.c_lflag &= ~(tcflag_t)ECHO;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &action, &before[i]);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
	fprintf(stderr, "%s: ", question);
	len = read_line(line, size);
	fputc('\n', stderr);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &before[i], NULL);
	if (caught)
		raise(caught);
	return len;
}

static int ask_twice(const struct cli *cli, char *password, size_t size)
{
	char again[PASSWORD_MAX + 2] = "";
	int len = ask("Password", password, size);
	int again_len = len < 0 ? len : ask("The same again", again, sizeof again);
	bool is_same = len == again_len && len >= 0 && memcmp(password, again, (size_t)len) == 0;

	explicit_bzero(again, sizeof again);
	if (again_len < 0)
		return again_len;
	if (is_same)
		return len;
	cli_error(cli, "the two passwords differ");
	return -EINVAL;
}

/* What HTTP Basic (RFC 7617 2) and SOCKS5 (RFC 1929 2) both can carry. */
static int judge_password(const struct cli *cli, const char *password, size_t len)
{
	const char *fault = NULL;

	if (len == 0)
		fault = "the password is empty";
	else if (len > PASSWORD_MAX)
		fault = "the password is longer than 255 bytes";
	for (size_t i = 0; i < len && !fault; i++)
		if ((unsigned char)password[i] < 0x20 || password[i] == 0x7f)
			fault = "the password has control bytes";
	if (!fault)
		return 0;
	cli_error(cli, "%s", fault);
	return -EINVAL;
}

/* 6 bits a character, all of them as they are in URLs. On standard error, so that the line can go into the file. */
static int generate(char password[GENERATED_LEN + 1])
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._";
	uint8_t bytes[GENERATED_LEN];
	int r = random_bytes(bytes, sizeof bytes);

	if (r)
		return r;
	for (size_t i = 0; i < GENERATED_LEN; i++)
		password[i] = letters[bytes[i] % 64];
	password[GENERATED_LEN] = '\0';
	explicit_bzero(bytes, sizeof bytes);
	fprintf(stderr, "password: %s\n", password);
	return GENERATED_LEN;
}

/* The password's length, or -errno; -EINVAL has been told. */
static int get_password(const struct cli *cli, char *password, size_t size)
{
	int len, r;

	if (conf_bool(&cli->conf, CONF_GENERATE))
		return generate(password);
	len = isatty(STDIN_FILENO) ? ask_twice(cli, password, size) : read_line(password, size);
	if (len < 0)
		return len;
	r = judge_password(cli, password, (size_t)len);
	return r ? r : len;
}

static void print(const struct cli *cli, const char *line)
{
	static const struct column columns[] = {{"name"}, {"line"}};
	struct output output;

	if (!conf_bool(&cli->conf, CONF_JSON)) {
		printf("%s\n", line);
		return;
	}
	output_begin(&output, stdout, OUTPUT_JSON, columns, 2);
	output_row(&output, (struct cell[]){CELL_TEXT(cli->args[0]), CELL_TEXT(line)});
	output_finish(&output);
}

int command_auth(struct cli *cli)
{
	char password[PASSWORD_MAX + 2] = "", line[LINE_MAX_BYTES];
	int len, r;

	/* A wrong name is told before a password is asked for. It is not shown: it may hold one. */
	if (account_print_line(cli->args[0], "", 0, line, sizeof line) == -EINVAL)
		return cli_usage(cli, "a name has 1 to 64 visible ASCII characters without ':' and "
				      "'#' in front");
	len = get_password(cli, password, sizeof password);
	r = len < 0 ? len
		    : account_print_line(cli->args[0], password, (size_t)len, line, sizeof line);
	explicit_bzero(password, sizeof password);
	if (!r) {
		print(cli, line);
		return EXIT_FINE;
	}
	if (r != -EINVAL)
		cli_error(cli, "%s", strerror(-r));
	return EXIT_FAILED;
}
