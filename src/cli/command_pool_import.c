/* command_pool_import.c - fairlead pool import */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "cli/intake.h"
#include "fetch/fetch.h"
#include "source/source.h"

#define FETCH_MS 60000
#define CONNECT_MS 10000

/* One list of those that were named. */
struct list {
	const char *name;  /* as messages show it, without credentials */
	struct load *load; /* NULL: it could not be read */
	char shown[256];
	char base[256]; /* the last part of it, in the table of verdicts */
};

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

static const char *kind_of(enum verdict verdict)
{
	if (verdict == VERDICT_ACCEPTED || verdict == VERDICT_DUPLICATE)
		return verdict_word((int)verdict);
	return verdict <= VERDICT_HEADER ? "skipped" : "rejected";
}

/* file TAB line TAB verdict TAB result */
static void print_verdict(const struct list_entry *entry, void *arg)
{
	const struct list *list = arg;
	char canonical[ENDPOINT_TEXT_MAX];

	if (entry->endpoint)
		endpoint_print(entry->endpoint, SHOW_SECRET, canonical, sizeof canonical);
	printf(entry->line ? "%s\t%llu" : "%s\t*", list->base, (unsigned long long)entry->line);
	printf("\t%s\t%s\n", kind_of(entry->verdict),
	       entry->endpoint ? canonical : verdict_word((int)entry->verdict));
}

/* --- read --------------------------------------------------------------------------------------------------------- */

struct download {
	struct loop *loop;
	struct load *load;
	bool is_done;
	int result; /* of the download, then of the reading */
	char error[256];
};

/* The whole list is here, in a temporary file, before anything of it is read. */
static void on_fetched(int result, const char *error, const struct fetch_answer *answer, void *arg)
{
	struct download *download = arg;

	if (!result) {
		result = load_read_answer(download->load, answer, INTAKE_BYTES_MAX);
		error = load_error(result);
	}
	download->is_done = true;
	download->result = result;
	snprintf(download->error, sizeof download->error, "%s", error);
	if (answer->fd >= 0)
		close(answer->fd);
}

static int read_url(struct load *load, const char *url, char *error, size_t size)
{
	struct fetch_request request = {.url = url,
					.max_bytes = (size_t)INTAKE_BYTES_MAX,
					.timeout_ms = FETCH_MS,
					.connect_ms = CONNECT_MS};
	struct download download = {.load = load};
	struct fetch *fetch;
	int r = loop_new(&download.loop);

	if (!r)
		r = fetch_start(&fetch, download.loop, &request, on_fetched, &download);
	while (!r && !download.is_done)
		loop_turn(download.loop);
	loop_free(download.loop);
	snprintf(error, size, "%s", r ? strerror(-r) : download.error);
	return r ? r : download.result;
}

static int read_place(struct load *load, const char *place, char *error, size_t size)
{
	int r;

	if (source_is_url(place))
		return read_url(load, place, error, size);
	r = strcmp(place, "-") ? load_read_file(load, place, INTAKE_BYTES_MAX)
			       : load_read(load, STDIN_FILENO, INTAKE_BYTES_MAX);
	snprintf(error, size, "%s%s", load_error(r),
		 r == -EINVAL ? "; a pipe can be given as standard input, '-'" : "");
	return r;
}

/* The last part is taken from the place itself: what is shown of it may be cut. */
static void name_list(struct list *list, const char *place)
{
	const char *slash = strrchr(place, '/');

	secret_print(place, list->shown, sizeof list->shown);
	secret_print(slash && slash[1] ? slash + 1 : place, list->base, sizeof list->base);
	list->name = strcmp(place, "-") ? list->shown : "standard input";
}

/* EXIT_FINE, or EXIT_FAILED after a message. */
static int read_list(struct cli *cli, const struct endpoint_rules *rules, const char *place,
		     struct list *list)
{
	char error[256];
	int r;

	name_list(list, place);
	if (load_new(&list->load, rules, intake_format(&cli->conf)))
		return EXIT_FAILED;
	if (conf_bool(&cli->conf, CONF_VERDICTS))
		load_watch(list->load, print_verdict, list);
	r = read_place(list->load, place, error, sizeof error);
	if (r) {
		cli_error(cli, "%s: %s", list->name, error);
		load_free(list->load);
		list->load = NULL;
		return EXIT_FAILED;
	}
	intake_report(cli, list->name, list->load);
	/* A file that is no list at all is a failure, a bad line is not. */
	return load_rejected(list->load) && !load_count(list->load) ? EXIT_FAILED : EXIT_FINE;
}

static int read_all(struct cli *cli, const struct endpoint_rules *rules, struct list *lists)
{
	int status = EXIT_FINE;

	for (int i = 0; i < cli->arg_count; i++)
		if (read_list(cli, rules, cli->args[i], &lists[i]))
			status = EXIT_FAILED;
	return status;
}

static void note_counts(struct cli *cli, const struct list *lists)
{
	uint64_t accepted = 0, duplicate = 0, rejected = 0;

	for (int i = 0; i < cli->arg_count; i++) {
		const struct load_summary *summary =
		    lists[i].load ? load_summary(lists[i].load) : NULL;

		if (!summary)
			continue;
		accepted += summary->counts[VERDICT_ACCEPTED];
		duplicate += summary->counts[VERDICT_DUPLICATE];
		rejected += load_rejected(lists[i].load);
	}
	cli_note(cli, "%llu accepted, %llu duplicate, %llu rejected", (unsigned long long)accepted,
		 (unsigned long long)duplicate, (unsigned long long)rejected);
}

/* --- apply -------------------------------------------------------------------------------------------------------- */

static bool has_rejects(const struct cli *cli, const struct list *lists)
{
	for (int i = 0; i < cli->arg_count; i++)
		if (!lists[i].load || load_rejected(lists[i].load))
			return true;
	return false;
}

static int apply_all(struct session *session, const struct list *lists)
{
	enum change change =
	    conf_bool(&session->cli->conf, CONF_ELIGIBLE) ? CHANGE_ADD : CHANGE_CANDIDATE;
	struct apply_result total = {0};
	char source[300];
	int r = session_found_pool(session);

	for (int i = 0; i < session->cli->arg_count && !r; i++) {
		if (!lists[i].load)
			continue;
		snprintf(source, sizeof source, "import:%s", lists[i].base);
		for (char *c = source; *c; c++)
			if (strchr("\t\n,=", *c))
				*c = '_';
		r = intake_apply(session, lists[i].load, change, source, &total);
	}
	if (r == EXIT_FINE)
		intake_note(session, &total);
	return r;
}

/* Everything is read before anything is written. */
static int run(struct session *session, struct list *lists)
{
	struct cli *cli = session->cli;
	struct endpoint_rules rules;
	int status, r = session_read_rules(session);

	if (r)
		return r;
	rules = intake_rules(&cli->conf, session->pool);
	status = read_all(cli, &rules, lists);
	note_counts(cli, lists);
	if (has_rejects(cli, lists) && conf_enum(&cli->conf, CONF_ON_REJECT) == 1) {
		cli_error(cli, "nothing was changed (--on-reject fail)");
		return EXIT_FAILED;
	}
	r = apply_all(session, lists);
	return r ? r : status;
}

static int run_dry(struct cli *cli, struct list *lists)
{
	struct endpoint_rules rules = intake_rules(&cli->conf, NULL);
	int status = read_all(cli, &rules, lists);

	note_counts(cli, lists);
	if (has_rejects(cli, lists) && conf_enum(&cli->conf, CONF_ON_REJECT) == 1)
		status = EXIT_FAILED;
	return status;
}

int command_pool_import(struct cli *cli)
{
	struct list *lists = calloc((size_t)cli->arg_count, sizeof *lists);
	struct session session;
	int r;

	if (!lists)
		return EXIT_FAILED;
	if (conf_bool(&cli->conf, CONF_DRY_RUN)) {
		r = run_dry(cli, lists);
	} else {
		r = session_open(&session, cli);
		if (r == EXIT_FINE)
			r = run(&session, lists);
		session_close(&session);
	}
	for (int i = 0; i < cli->arg_count; i++)
		load_free(lists[i].load);
	free(lists);
	return r;
}
