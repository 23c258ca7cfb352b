/* test_child.c - commands, their process groups, and that nothing of them is left. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/child.h"
#include "stage.h"

static struct stage stage;
static char note[32]; /* a file into which commands write the number of a process */
static int ended, status;

static int set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	stage_init(&stage);
	strcpy(note, "/tmp/test_child.XXXXXX");
	close(mkstemp(note));
	setenv("NOTE", note, 1);
	ended = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	stage_fini(&stage);
	unlink(note);
	return 0;
}

static void on_ended(int result, void *arg)
{
	(void)arg;
	ended++;
	status = result;
}

static struct child *start(const struct child_request *request)
{
	struct child *child = NULL;

	assert_int_equal(child_start(&child, stage.loop, request, on_ended, NULL), 0);
	return child;
}

static struct child *start_shell(const char *script, struct child_request request)
{
	char *argv[] = {"sh", "-c", (char *)script, NULL};

	request.argv = argv;
	return start(&request);
}

/* Runs a shell's script to its end; its status as of waitpid(). */
static int run(const char *script, struct child_request request)
{
	struct child *child = start_shell(script, request);

	ended = 0;
	STAGE_UNTIL(&stage, ended);
	assert_int_equal(ended, 1);
	child_free(child);
	return status;
}

#define PLAIN ((struct child_request){.grace_ms = 60000})
#define FOREGROUND ((struct child_request){.is_foreground = true, .grace_ms = 60000})

static void assert_fine(const char *script, struct child_request request)
{
	int result = run(script, request);

	if (!WIFEXITED(result) || WEXITSTATUS(result))
		fail_msg("%s: status %#x", script, (unsigned)result);
}

/* The number in the note; 0: not there yet, or not whole. */
static pid_t noted(void)
{
	char line[32] = "";
	FILE *file = fopen(note, "re");
	size_t len;

	assert_non_null(file);
	len = fread(line, 1, sizeof line - 1, file);
	fclose(file);
	return len && line[len - 1] == '\n' ? (pid_t)atoi(line) : 0;
}

/* A zombie runs no more, whoever has still to reap it. */
static bool runs(pid_t pid)
{
	char path[64], line[256] = "";
	FILE *file;
	char *at;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	at = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return at && at[2] != 'Z' && at[2] != 'X';
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void test_the_status_of_a_command_is_told(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(run("exit 0", PLAIN)), 0);
	assert_int_equal(WEXITSTATUS(run("exit 7", PLAIN)), 7);
	assert_int_equal(WEXITSTATUS(run("exit 7", FOREGROUND)), 7);
	assert_int_equal(WTERMSIG(run("kill -USR1 $$", PLAIN)), SIGUSR1);
}

static void test_a_command_that_is_not_there_starts_nothing(void **state)
{
	char *argv[] = {"no-such-command-anywhere", NULL};
	struct child_request request = {.argv = argv};
	struct child *child = NULL;

	(void)state;
	assert_int_equal(child_start(&child, stage.loop, &request, on_ended, NULL), -ENOENT);
	argv[0] = note;
	assert_int_equal(child_start(&child, stage.loop, &request, on_ended, NULL), -EACCES);
	assert_null(child);
}

static void test_the_environment_is_ours_with_changes(void **state)
{
	const char *changes[] = {"ADDED=a=b", "CHANGED=new", "TAKEN", "NEVER", NULL};
	struct child_request request = {.environment = changes};

	(void)state;
	setenv("KEPT", "kept", 1);
	setenv("CHANGED", "old", 1);
	setenv("TAKEN", "old", 1);
	setenv("TAKEN_NOT", "kept", 1);
	assert_fine("test \"$ADDED $CHANGED $KEPT $TAKEN_NOT\" = 'a=b new kept kept' && "
		    "test -z \"${TAKEN+x}${NEVER+x}\" && test $(env | grep -c ^CHANGED=) = 1",
		    request);
}

static void test_no_descriptor_of_ours_is_inherited(void **state)
{
	int fd = open("/dev/null", O_RDONLY); /* not close-on-exec */
	char script[128];

	(void)state;
	assert_true(fd > 2);
	snprintf(script, sizeof script,
		 "for i in $(seq 3 %d); do test ! -e /proc/$$/fd/$i || exit 1; done", fd + 64);
	assert_fine(script, PLAIN);
	assert_fine(script, FOREGROUND);
	close(fd);
}

static void test_no_signal_is_blocked_and_the_broken_pipe_kills_again(void **state)
{
	sigset_t term;

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	assert_fine("grep -q '^SigBlk:[[:space:]]*0*$' /proc/self/status", PLAIN);
	/* SIGPIPE is number 13: the lowest bit of the fourth digit from the right. */
	assert_fine("grep -q '^SigIgn:[[:space:]]*[0-9a-f]*[02468ace][0-9a-f]\\{3\\}$' "
		    "/proc/self/status",
		    PLAIN);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
}

static void test_the_status_is_told_though_our_starter_ignored_dead_children(void **state)
{
	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(WEXITSTATUS(run("exit 5", PLAIN)), 5);
	signal(SIGCHLD, SIG_DFL);
}

static void test_a_command_leads_its_group_unless_in_the_foreground(void **state)
{
	char script[96];

	(void)state;
	assert_fine("test $(cut -d ' ' -f 5 /proc/$$/stat) = $$", PLAIN);
	snprintf(script, sizeof script, "test $(cut -d ' ' -f 5 /proc/$$/stat) = %d", getpgrp());
	assert_fine(script, FOREGROUND);
}

/* --- standard input ----------------------------------------------------------------------------------------------- */

static void test_input_larger_than_a_pipe_arrives_whole(void **state)
{
	static char input[1 << 20];
	struct child_request request = {.input = input, .input_len = sizeof input};

	(void)state;
	memset(input, 'x', sizeof input);
	input[sizeof input - 1] = 'y';
	assert_fine("test $(tail -c 2 | tr -d '\\n') = xy", request);
	assert_fine("test $(tr -d y | wc -c) = 1048575", request);
}

static void test_no_bytes_of_input_are_an_end_at_once(void **state)
{
	struct child_request request = {.input = "", .input_len = 0};

	(void)state;
	assert_fine("test $(wc -c) = 0", request);
}

static void test_a_command_need_not_read_its_input(void **state)
{
	static char input[1 << 20];
	struct child_request request = {.input = input, .input_len = sizeof input};

	(void)state;
	assert_fine("exec <&-; exit 0", request);
	assert_fine("head -c 1 >/dev/null", request);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void test_what_a_command_leaves_behind_ends_with_it(void **state)
{
	(void)state;
	assert_fine("sleep 1000 & echo $! >$NOTE", PLAIN);
	assert_false(runs(noted()));
	/* An orphan of an orphan, deaf to what can be ignored. */
	assert_fine("(trap '' TERM HUP INT; sleep 1000 & echo $! >$NOTE) &\n"
		    "until grep -q . $NOTE; do :; done",
		    PLAIN);
	assert_false(runs(noted()));
}

static void test_a_stop_is_asked_for_first(void **state)
{
	struct child *child =
	    start_shell("trap 'exit 9' TERM; echo $$ >$NOTE; while :; do sleep 0.01; "
			"done",
			PLAIN);

	(void)state;
	STAGE_UNTIL(&stage, noted());
	child_stop(child);
	STAGE_UNTIL(&stage, ended);
	assert_int_equal(WEXITSTATUS(status), 9);
	child_free(child);
}

static void test_whoever_does_not_stop_is_killed_after_the_grace(void **state)
{
	struct child_request request = {.grace_ms = 50};
	struct child *child =
	    start_shell("trap '' TERM; sleep 1000 & echo $! >$NOTE; wait", request);

	(void)state;
	STAGE_UNTIL(&stage, noted());
	child_stop(child);
	child_stop(child);
	STAGE_UNTIL(&stage, ended);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_false(runs(noted()));
	child_free(child);
}

static void test_a_stopped_command_hears_the_request_to_stop(void **state)
{
	struct child *child =
	    start_shell("trap 'exit 9' TERM; echo $$ >$NOTE; while :; do kill -STOP "
			"$$; done",
			PLAIN);

	(void)state;
	STAGE_UNTIL(&stage, noted());
	child_stop(child);
	STAGE_UNTIL(&stage, ended);
	assert_int_equal(WEXITSTATUS(status), 9);
	child_free(child);
}

static void test_a_signal_reaches_the_group(void **state)
{
	struct child *child = start_shell("sleep 1000 & echo $! >$NOTE; wait", PLAIN);

	(void)state;
	STAGE_UNTIL(&stage, noted());
	child_signal(child, SIGINT);
	STAGE_UNTIL(&stage, ended);
	assert_int_equal(WTERMSIG(status), SIGINT);
	child_signal(child, SIGINT);
	child_free(child);
}

static void test_who_is_freed_dies_and_tells_nobody(void **state)
{
	struct child *child = start_shell("sleep 1000 & echo $! >$NOTE; wait", PLAIN);

	(void)state;
	STAGE_UNTIL(&stage, noted());
	child_free(child);
	assert_false(runs(noted()));
	for (int i = 0; i < 10; i++)
		stage_turn(&stage);
	assert_int_equal(ended, 0);
	child_free(NULL);
}

#define MANY 40

static void on_one_ended(int result, void *arg)
{
	int *statuses = arg;

	*statuses = result;
	ended++;
}

static void test_many_run_at_a_time_and_each_has_its_own_status(void **state)
{
	struct child *many[MANY] = {0};
	int statuses[MANY];
	char script[64];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		char *argv[] = {"sh", "-c", script, NULL};
		struct child_request request = {.argv = argv};

		snprintf(script, sizeof script, "sleep 1000 & sleep 0.0%d; exit %d", i % 10, i);
		assert_int_equal(
		    child_start(&many[i], stage.loop, &request, on_one_ended, &statuses[i]), 0);
	}
	STAGE_UNTIL(&stage, ended == MANY);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(WEXITSTATUS(statuses[i]), i);
		child_free(many[i]);
	}
}

/* Who has left its group is no business of the command's any more, but must not stay as a zombie either. */
static void test_a_daemon_goes_on_and_is_reaped_when_it_has_ended(void **state)
{
	pid_t daemon;

	(void)state;
	assert_fine(
	    "setsid sh -c 'echo $$ >$NOTE; exec sleep 1000' & until grep -q . $NOTE; do :; done",
	    PLAIN);
	daemon = noted();
	assert_true(runs(daemon));
	kill(daemon, SIGKILL);
	STAGE_UNTIL(&stage, !runs(daemon));
	assert_fine("exit 0", PLAIN);
	assert_int_equal(kill(daemon, 0), -1);
	assert_int_equal(errno, ESRCH);
}

/* A process that starts a command and has no time to say goodbye. */
static pid_t fork_starter(const char *script)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	stage_init(&stage);
	start_shell(script, PLAIN);
	for (;;)
		pause();
}

static void test_the_whole_group_dies_with_a_process_that_was_killed(void **state)
{
	pid_t starter =
	    fork_starter("trap '' TERM HUP; sh -c 'sleep 1000 & echo $! >$NOTE; wait' & wait");
	pid_t left;

	(void)state;
	STAGE_UNTIL(&stage, (left = noted()));
	assert_true(runs(left));
	kill(starter, SIGKILL);
	waitpid(starter, NULL, 0);
	STAGE_UNTIL(&stage, !runs(left));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_the_status_of_a_command_is_told),
	    TEST(test_a_command_that_is_not_there_starts_nothing),
	    TEST(test_the_environment_is_ours_with_changes),
	    TEST(test_no_descriptor_of_ours_is_inherited),
	    TEST(test_no_signal_is_blocked_and_the_broken_pipe_kills_again),
	    TEST(test_the_status_is_told_though_our_starter_ignored_dead_children),
	    TEST(test_a_command_leads_its_group_unless_in_the_foreground),
	    TEST(test_input_larger_than_a_pipe_arrives_whole),
	    TEST(test_no_bytes_of_input_are_an_end_at_once),
	    TEST(test_a_command_need_not_read_its_input),
	    TEST(test_what_a_command_leaves_behind_ends_with_it),
	    TEST(test_a_stop_is_asked_for_first),
	    TEST(test_whoever_does_not_stop_is_killed_after_the_grace),
	    TEST(test_a_stopped_command_hears_the_request_to_stop),
	    TEST(test_a_signal_reaches_the_group),
	    TEST(test_who_is_freed_dies_and_tells_nobody),
	    TEST(test_many_run_at_a_time_and_each_has_its_own_status),
	    TEST(test_a_daemon_goes_on_and_is_reaped_when_it_has_ended),
	    TEST(test_the_whole_group_dies_with_a_process_that_was_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
