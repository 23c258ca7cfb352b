/* command_pool_import.c - fairlead pool import */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/intake.h"
#include "cli/place.h"

/* One list of those that were named. */
struct list {
	struct place place;
	struct load *load; /* NULL: it could not be read */
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
	printf(entry->line ? "%s\t%llu" : "%s\t*", list->place.base,
	       (unsigned long long)entry->line);
	printf("\t%s\t%s\n", kind_of(entry->verdict),
	       entry->endpoint ? canonical : verdict_word((int)entry->verdict));
}

/* --- read --------------------------------------------------------------------------------------------------------- */

/* EXIT_FINE, or EXIT_FAILED after a message. */
static int read_list(struct cli *cli, const struct endpoint_rules *rules, const char *place,
		     struct list *list)
{
	char error[256];
	int r;

	place_name(&list->place, place);
	if (load_new(&list->load, rules, intake_format(&cli->conf)))
		return EXIT_FAILED;
	if (conf_bool(&cli->conf, CONF_VERDICTS))
		load_watch(list->load, print_verdict, list);
	r = place_read(list->load, place, error, sizeof error);
	if (r) {
		cli_error(cli, "%s: %s", list->place.name, error);
		load_free(list->load);
		list->load = NULL;
		return EXIT_FAILED;
	}
	intake_report(cli, list->place.name, list->load);
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
		snprintf(source, sizeof source, "import:%s", lists[i].place.base);
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
