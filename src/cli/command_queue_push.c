/* command_queue_push.c - fairlead queue push */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/conf_value.h"
#include "cli/output.h"
#include "cli/push_batch.h"
#include "cli/push_json.h"
#include "cli/push_lines.h"
#include "cli/queue_session.h"
#include "cli/time_text.h"

#define BAR_WIDTH 30
#define BAR_EVERY_MS 100

struct pushing {
	struct session session;
	struct push_batch batch;
	struct push_lines lines;
	struct push_way way; /* by the options */
	size_t payload_max;
	uint64_t refused;
	uint64_t read_bytes, file_bytes; /* of standard input; 0: nobody knows how many come */
	int64_t began_ms, shown_ms;
	bool has_bar, is_bar_shown;
};

/* --- progress ----------------------------------------------------------------------------------------------------- */

static void clear_bar(struct pushing *p)
{
	if (p->is_bar_shown)
		fprintf(stderr, "\r\033[K");
	p->is_bar_shown = false;
}

static void show_bar(struct pushing *p)
{
	unsigned long long done = p->batch.pushed + p->batch.left_out;
	int64_t now = clock_ms(), elapsed_ms = now - p->began_ms;
	unsigned percent = p->file_bytes ? (unsigned)(p->read_bytes * 100 / p->file_bytes) : 0;
	char bar[BAR_WIDTH + 1] = "";

	if (!p->has_bar || now - p->shown_ms < BAR_EVERY_MS)
		return;
	p->shown_ms = now;
	clear_bar(p);
	memset(bar, '#', (size_t)(percent > 100 ? 100 : percent) * BAR_WIDTH / 100);
	if (p->file_bytes)
		fprintf(stderr, "[%-*s] %3u%% ", BAR_WIDTH, bar, percent);
	fprintf(stderr, "%llu tasks, %.0f/s", done,
		elapsed_ms > 0 ? (double)done * 1000 / (double)elapsed_ms : 0);
	p->is_bar_shown = true;
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct pushing *p, uint64_t number, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	clear_bar(p);
	p->refused++;
	cli_error(p->session.cli, "%s %" PRIu64 " is left out: %s", p->batch.unit, number, text);
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static void refuse_size(struct pushing *p, uint64_t number)
{
	char most[32];

	conf_value_print(KIND_BYTES, (int64_t)p->payload_max, most, sizeof most);
	refuse(p, number, "it is larger than --payload-max (%s)", most);
}

static int add(struct pushing *p, const struct push_way *way, const struct push_item *item,
	       uint64_t number)
{
	int r;

	if (item->payload.len > p->payload_max) {
		refuse_size(p, number);
		return EXIT_FINE;
	}
	r = push_batch_add(&p->batch, way, item, number);
	if (!r)
		show_bar(p);
	return r;
}

static int add_object(struct pushing *p, const char *text, size_t len, uint64_t number)
{
	const struct queue_keys *keys = queue_keys(p->session.queue);
	struct push_object object;
	struct push_way way = p->way;
	int r, level = (int)way.level;
	char why[200];

	r = push_object_read(&object, text, len, why, sizeof why);
	if (!r && object.level)
		level = queue_level_find(keys, object.level, strlen(object.level));
	if (r) {
		refuse(p, number, "%s", r == -ENOMEM ? strerror(ENOMEM) : why);
		r = EXIT_FINE;
	} else if (level < 0) {
		refuse(p, number, "queue '%s' has no level '%.100s'", keys->name, object.level);
	} else {
		way = (struct push_way){(size_t)level, object.is_urgent, object.is_at,
					object.when_ms};
		r = add(
		    p, &way,
		    &(struct push_item){{object.payload, object.len}, {object.key, object.key_len}},
		    number);
	}
	push_object_fini(&object);
	return r;
}

/* Of a list for people: spaces, and the mark that some editors put in front of a file. False: nothing is left, or a
 * comment. */
static bool trim(const char **text, size_t *len, uint64_t number)
{
	if (number == 1 && *len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0)
		*text += 3, *len -= 3;
	while (*len && isspace((unsigned char)**text))
		++*text, --*len;
	while (*len && isspace((unsigned char)(*text)[*len - 1]))
		--*len;
	return *len && **text != '#' && **text != ';';
}

static int add_line(struct pushing *p, const char *text, size_t len)
{
	const struct conf *conf = &p->session.cli->conf;
	uint64_t number = p->lines.number;

	if (conf_bool(conf, CONF_JSONL))
		return add_object(p, text, len, number);
	if (conf_bool(conf, CONF_TRIM) && !trim(&text, &len, number))
		return EXIT_FINE;
	return add(p, &p->way, &(struct push_item){{text, len}, {"", 0}}, number);
}

/* --- standard input ----------------------------------------------------------------------------------------------- */

static void on_input(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	session_answered(arg, 0, "");
}

/* Whoever writes slowly has what he wrote pushed; meanwhile the loop heeds the store. */
static int wait_for_input(struct pushing *p)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct event event;
	int r;

	if (poll(&input, 1, 0) != 0)
		return EXIT_FINE;
	r = push_batch_send(&p->batch);
	if (r)
		return r;
	event_assign(&event, loop_base(p->session.loop), STDIN_FILENO, EV_READ, on_input,
		     &p->session);
	/* What cannot be waited for does not block. */
	if (!event_add(&event, NULL))
		session_wait(&p->session);
	event_del(&event);
	return EXIT_FINE;
}

/* EXIT_FINE, or EXIT_FAILED after a message. Sets lines.is_ended at the end. */
static int read_some(struct pushing *p)
{
	size_t size;
	char *to = push_lines_reserve(&p->lines, &size);
	ssize_t n;
	int r = to ? wait_for_input(p) : EXIT_FAILED;

	if (r)
		return r;
	n = read(STDIN_FILENO, to, size);
	if (n > 0) {
		push_lines_commit(&p->lines, (size_t)n);
		p->read_bytes += (uint64_t)n;
	} else if (n == 0) {
		p->lines.is_ended = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		cli_error(p->session.cli, "standard input: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_FINE;
}

/* All lines that are there. */
static int take_lines(struct pushing *p)
{
	const char *text;
	size_t len;
	int r = EXIT_FINE;

	while (!r) {
		enum push_line line = push_lines_next(&p->lines, &text, &len);

		if (line == PUSH_LINE_NONE)
			break;
		if (line == PUSH_LINE_TOO_LONG)
			refuse_size(p, p->lines.number);
		else
			r = add_line(p, text, len);
	}
	return r;
}

static void prepare_input(struct pushing *p)
{
	const struct conf *conf = &p->session.cli->conf;
	/* A byte of a payload is at most "\u0000" in JSON; the names and the key beside it are small. */
	size_t max = conf_bool(conf, CONF_JSONL) ? 6 * p->payload_max + 4096 : p->payload_max;
	struct stat stat;

	/* What is trimmed off does not count. */
	if (conf_bool(conf, CONF_TRIM))
		max += 4096;
	push_lines_init(&p->lines, conf_bool(conf, CONF_NULL) ? '\0' : '\n', max);
	if (!fstat(STDIN_FILENO, &stat) && S_ISREG(stat.st_mode))
		p->file_bytes = (uint64_t)stat.st_size;
	p->began_ms = p->shown_ms = clock_ms();
	p->has_bar = isatty(STDERR_FILENO) && !isatty(STDIN_FILENO) && !conf_bool(conf, CONF_QUIET);
}

static int push_input(struct pushing *p)
{
	int r = EXIT_FINE;

	prepare_input(p);
	while (!r && !p->lines.is_ended) {
		r = read_some(p);
		if (!r)
			r = take_lines(p);
	}
	if (!r)
		r = push_batch_send(&p->batch);
	clear_bar(p);
	push_lines_fini(&p->lines);
	return r;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static bool is_input(const struct cli *cli)
{
	return cli->arg_count == 1 && strcmp(cli->args[0], "-") == 0;
}

static const char *unit_name(const struct cli *cli)
{
	if (!is_input(cli))
		return "argument";
	return conf_bool(&cli->conf, CONF_NULL) ? "task" : "line";
}

static int push_arguments(struct pushing *p)
{
	const struct cli *cli = p->session.cli;
	const char *key = conf_text(&cli->conf, CONF_PUSH_ID);
	int r = EXIT_FINE;

	for (int i = 0; i < cli->arg_count && !r; i++)
		r = add(p, &p->way, &(struct push_item){WORD(cli->args[i]), WORD(key)},
			(uint64_t)i + 1);
	return r ? r : push_batch_send(&p->batch);
}

static int judge_input_options(const struct cli *cli)
{
	static const enum conf_id ways[] = {CONF_NULL, CONF_JSONL, CONF_TRIM};
	const struct conf *conf = &cli->conf;
	int count = 0;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		count += conf_bool(conf, ways[i]);
	if (count && !is_input(cli))
		return cli_usage(cli, "--null, --jsonl and --trim are for '-'");
	if (count > 1)
		return cli_usage(cli, "--null, --jsonl and --trim exclude each other");
	if (conf_bool(conf, CONF_JSONL) &&
	    (conf_bool(conf, CONF_URGENT) || conf_is_set(conf, CONF_DELAY) ||
	     conf_is_set(conf, CONF_AT)))
		return cli_usage(cli, "with --jsonl each line says urgent, delay_ms or at itself");
	return EXIT_FINE;
}

static int judge_options(const struct cli *cli)
{
	const struct conf *conf = &cli->conf;
	bool is_later = conf_ms(conf, CONF_DELAY) || *conf_text(conf, CONF_AT);

	if (conf_ms(conf, CONF_DELAY) && *conf_text(conf, CONF_AT))
		return cli_usage(cli, "--delay and --at exclude each other");
	if (conf_bool(conf, CONF_URGENT) && is_later)
		return cli_usage(
		    cli, "--urgent cannot be delayed: a delayed task joins the tail of its level");
	if (*conf_text(conf, CONF_PUSH_ID) && (cli->arg_count > 1 || is_input(cli)))
		return cli_usage(cli, "--id is the key of one PAYLOAD%s",
				 is_input(cli) ? "; with --jsonl a line has its \"id\"" : "");
	return judge_input_options(cli);
}

/* EXIT_FINE, or EXIT_USAGE after a message. */
static int read_way(struct pushing *p)
{
	const struct conf *conf = &p->session.cli->conf;
	const char *level = conf_text(conf, CONF_LEVEL), *at = conf_text(conf, CONF_AT);

	p->way = (struct push_way){
	    .level = queue_keys(p->session.queue)->level_count / 2,
	    .is_urgent = conf_bool(conf, CONF_URGENT),
	    .when_ms = conf_ms(conf, CONF_DELAY),
	    .is_at = *at,
	};
	if (*at && time_text_parse(at, &p->way.when_ms))
		return cli_usage(p->session.cli,
				 "--at: '%s' is no time: write 2026-12-31T18:00:00Z", at);
	return *level ? queue_session_level(&p->session, level, &p->way.level) : EXIT_FINE;
}

/* What is zero goes without saying. */
static void note_sums(const struct pushing *p)
{
	char left_out[80] = "", refused[40] = "";

	if (p->batch.left_out)
		snprintf(left_out, sizeof left_out,
			 ", %" PRIu64 " left out (their keys were pushed before)",
			 p->batch.left_out);
	if (p->refused)
		snprintf(refused, sizeof refused, ", %" PRIu64 " refused", p->refused);
	cli_note(p->session.cli, "queue '%s': %" PRIu64 " pushed%s%s",
		 queue_keys(p->session.queue)->name, p->batch.pushed, left_out, refused);
}

static void print_sums(const struct pushing *p)
{
	static const struct column columns[] = {{"queue"}, {"pushed"}, {"left_out"}, {"refused"}};
	struct output output;

	output_begin(&output, stdout, OUTPUT_JSON, columns, 4);
	output_row(&output, (struct cell[]){CELL_TEXT(queue_keys(p->session.queue)->name),
					    CELL_NUMBER((int64_t)p->batch.pushed),
					    CELL_NUMBER((int64_t)p->batch.left_out),
					    CELL_NUMBER((int64_t)p->refused)});
	output_finish(&output);
}

int command_queue_push(struct cli *cli)
{
	struct pushing p = {.payload_max = conf_bytes(&cli->conf, CONF_PAYLOAD_MAX)};
	int r = judge_options(cli);

	if (r)
		return r;
	r = queue_session_open(&p.session, cli, 0);
	push_batch_init(&p.batch, &p.session, unit_name(cli));
	if (!r)
		r = read_way(&p);
	if (!r) {
		r = is_input(cli) ? push_input(&p) : push_arguments(&p);
		note_sums(&p);
		if (conf_bool(&cli->conf, CONF_JSON))
			print_sums(&p);
	}
	push_batch_fini(&p.batch);
	session_close(&p.session);
	return r || !p.refused ? r : EXIT_FAILED;
}
