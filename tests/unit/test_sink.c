/* test_sink.c - records are in the file whole or not at all, whoever else writes and however full the disk is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "worker/body_file.h"
#include "worker/sink.h"

struct stand {
	char folder[32], path[64];
	struct sink sink;
};

static void stand_up(struct stand *stand)
{
	strcpy(stand->folder, "/tmp/fairlead-sink-XXXXXX");
	assert_non_null(mkdtemp(stand->folder));
	snprintf(stand->path, sizeof stand->path, "%s/results", stand->folder);
	assert_int_equal(sink_open(&stand->sink, stand->path), 0);
}

static void stand_down(struct stand *stand)
{
	sink_close(&stand->sink);
	unlink(stand->path);
	assert_int_equal(rmdir(stand->folder), 0);
}

static void expect_file(const char *path, const char *wanted)
{
	char bytes[4096];
	FILE *file = fopen(path, "rb");
	size_t n;

	assert_non_null(file);
	n = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	assert_int_equal(n, strlen(wanted));
	assert_memory_equal(bytes, wanted, n);
}

static int write_text(struct sink *sink, const char *text)
{
	return sink_write(sink, text, strlen(text));
}

static void test_records_are_appended(void **state)
{
	struct stand stand;

	(void)state;
	stand_up(&stand);
	assert_int_equal(write_text(&stand.sink, "one\n"), 0);
	sink_close(&stand.sink);
	assert_int_equal(sink_open(&stand.sink, stand.path), 0);
	assert_int_equal(write_text(&stand.sink, "two\nthree\n"), 0);
	expect_file(stand.path, "one\ntwo\nthree\n");
	stand_down(&stand);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A file that may grow no more takes a part of a write, as a full disk does. */
static void test_what_a_full_disk_has_cut_is_taken_back(void **state)
{
	struct stand stand;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	stand_up(&stand);
	assert_int_equal(write_text(&stand.sink, "one\n"), 0);
	limit_file_size(10);
	assert_int_equal(write_text(&stand.sink, "two, and much more\n"), -EFBIG);
	expect_file(stand.path, "one\n");
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(write_text(&stand.sink, "two\n"), 0);
	expect_file(stand.path, "one\ntwo\n");
	stand_down(&stand);
}

static void test_another_writer_is_waited_for(void **state)
{
	struct stand stand;
	int other;

	(void)state;
	stand_up(&stand);
	other = open(stand.path, O_WRONLY | O_APPEND);
	assert_int_equal(flock(other, LOCK_EX), 0);
	assert_int_equal(write_text(&stand.sink, "one\n"), -EAGAIN);
	close(other);
	assert_int_equal(write_text(&stand.sink, "one\n"), 0);
	expect_file(stand.path, "one\n");
	stand_down(&stand);
}

static void test_nothing_is_glued_to_what_a_killed_process_left(void **state)
{
	struct stand stand;
	int other;

	(void)state;
	stand_up(&stand);
	other = open(stand.path, O_WRONLY | O_APPEND);
	assert_int_equal(write(other, "{\"to", 4), 4);
	close(other);
	assert_int_equal(write_text(&stand.sink, "one\n"), 0);
	assert_int_equal(write_text(&stand.sink, "two\n"), 0);
	expect_file(stand.path, "{\"to\none\ntwo\n");
	stand_down(&stand);
}

/* Reads what is there. */
static size_t drain(int fd, char *to, size_t size)
{
	ssize_t n = read(fd, to, size);

	assert_true(n > 0);
	return (size_t)n;
}

static void test_a_slow_reader_gets_all_of_it_piece_by_piece(void **state)
{
	static char bytes[300000], got[sizeof bytes];
	struct sink sink = {.fd = -1};
	size_t have = 0;
	int fds[2], r;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)('a' + i % 23);
	assert_int_equal(pipe(fds), 0);
	sink.fd = fds[1];
	while ((r = sink_write(&sink, bytes, sizeof bytes)) == -EAGAIN)
		have += drain(fds[0], got + have, sizeof got - have);
	assert_int_equal(r, 0);
	while (have < sizeof got)
		have += drain(fds[0], got + have, sizeof got - have);
	assert_memory_equal(got, bytes, sizeof bytes);
	sink_close(&sink);
	close(fds[0]);
}

static void test_a_reader_that_has_gone_is_an_error(void **state)
{
	struct sink sink = {.fd = -1};
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	sink.fd = fds[1];
	assert_int_equal(write_text(&sink, "one\n"), -EPIPE);
	sink_close(&sink);
}

static void test_nowhere_takes_everything(void **state)
{
	struct sink sink;

	(void)state;
	assert_int_equal(sink_open(&sink, NULL), 0);
	assert_int_equal(write_text(&sink, "one\n"), 0);
	sink_close(&sink);
	assert_int_equal(sink_open(&sink, "/dev/null"), 0);
	assert_int_equal(write_text(&sink, "one\n"), 0);
	sink_close(&sink);
	assert_int_equal(sink_open(&sink, "/nonexistent/file"), -ENOENT);
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

/* FIPS 180-4's example: SHA-256 of "abc" */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void test_a_body_lies_whole_under_its_digest(void **state)
{
	char folder[] = "/tmp/fairlead-body-XXXXXX", path[128], name[BODY_NAME_SIZE];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof path, "%s/" ABC, folder);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(body_file_write(fd, "abc", 3, name), 0);
		assert_string_equal(name, ABC);
		expect_file(path, "abc");
	}
	assert_int_equal(truncate(path, 1), 0); /* what a crash of the machine may leave */
	assert_int_equal(body_file_write(fd, "abc", 3, name), 0);
	expect_file(path, "abc");
	close(fd);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static void test_a_body_that_has_no_room_leaves_nothing(void **state)
{
	char folder[] = "/tmp/fairlead-body-XXXXXX", name[BODY_NAME_SIZE];
	int fd;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_non_null(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	limit_file_size(2);
	assert_int_equal(body_file_write(fd, "abc", 3, name), -EFBIG);
	limit_file_size(RLIM_INFINITY);
	close(fd);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_records_are_appended),
	    cmocka_unit_test(test_what_a_full_disk_has_cut_is_taken_back),
	    cmocka_unit_test(test_another_writer_is_waited_for),
	    cmocka_unit_test(test_nothing_is_glued_to_what_a_killed_process_left),
	    cmocka_unit_test(test_a_slow_reader_gets_all_of_it_piece_by_piece),
	    cmocka_unit_test(test_a_reader_that_has_gone_is_an_error),
	    cmocka_unit_test(test_nowhere_takes_everything),
	    cmocka_unit_test(test_a_body_lies_whole_under_its_digest),
	    cmocka_unit_test(test_a_body_that_has_no_room_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
