/* test_end.c - what waits to be written at an end of an exchange, and how much goes from one end to the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/net.h"
#include "gateway/end.h"
#include "stage.h"

#define MUCH ((size_t)64 << 20)
#define PIPES_MAX 16 /* src/gateway/pipe.c */

/* A sender, the two ends of an exchange, a receiver: bytes go from `writer` through `from` and `to` to `reader`. */
struct relay {
	struct stage stage;
	struct end from, to;
	int writer, reader;
	char *sent, *got;
	size_t sent_len, got_len;
};

static void on_ready(struct stream *stream, int ready, void *arg)
{
	(void)stream, (void)ready, (void)arg;
}

/* A connection over TCP: opens `end` on one side, returns the other. */
static int open_end(struct relay *r, struct end *end)
{
	struct net_place place;
	struct sockaddr_storage peer;
	int listener, ours, theirs;

	assert_int_equal(net_place_parse(&place, "127.0.0.1:0"), 0);
	listener = net_listen(&place);
	assert_true(listener >= 0);
	assert_int_equal(net_local_place(listener, &place), 0);
	ours = net_connect((struct sockaddr *)&place.sa, place.len, NULL);
	assert_true(ours >= 0);
	assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 5000), 1);
	theirs = net_accept(listener, &peer);
	assert_true(theirs >= 0);
	close(listener);
	end_init(end);
	stream_open(&end->stream, r->stage.loop, ours, on_ready, NULL);
	return theirs;
}

static int setup(void **state)
{
	struct relay *r = calloc(1, sizeof *r);

	stage_init(&r->stage);
	r->writer = open_end(r, &r->from);
	r->reader = open_end(r, &r->to);
	r->sent = malloc(MUCH);
	r->got = malloc(MUCH);
	for (size_t i = 0; i < MUCH; i++)
		r->sent[i] = (char)(i * 2654435761u >> 13);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct relay *r = *state;

	end_close(&r->from);
	end_close(&r->to);
	close(r->writer);
	close(r->reader);
	stage_fini(&r->stage);
	free(r->sent);
	free(r->got);
	free(r);
	return 0;
}

/* Sends up to `len` more of `sent`, as far as the socket takes it. */
static void push(struct relay *r, size_t len)
{
	ssize_t n = write(r->writer, r->sent + r->sent_len, len);

	r->sent_len += n > 0 ? (size_t)n : 0;
}

static void await(int fd)
{
	assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5000), 1);
}

/* Passes what has come as long as the receiver's socket takes it. */
static void pass(struct relay *r)
{
	await(r->from.stream.fd);
	end_pass(&r->from, &r->to);
	assert_false(r->from.is_broken || r->to.is_broken);
}

static void pull(struct relay *r)
{
	ssize_t n = read(r->reader, r->got + r->got_len, MUCH - r->got_len);

	r->got_len += n > 0 ? (size_t)n : 0;
}

/* Nobody reads: until something waits at `to`. */
static void fill(struct relay *r)
{
	while (!end_is_full(&r->to)) {
		push(r, 262144);
		assert_true(r->sent_len < MUCH);
		pass(r);
	}
}

/* Reads and flushes until all that was passed has come. */
static void drain(struct relay *r)
{
	int64_t end_ms = stage_real_ms() + STAGE_PATIENCE_MS;

	while (r->got_len < r->from.bytes_in && stage_real_ms() < end_ms) {
		pull(r);
		assert_int_equal(end_flush(&r->to), 0);
	}
	assert_int_equal(r->got_len, r->from.bytes_in);
	assert_int_equal(r->to.bytes_out, r->from.bytes_in);
	assert_memory_equal(r->got, r->sent, r->got_len);
}

static void test_little_is_copied_and_leaves_nothing_behind(void **state)
{
	struct relay *r = *state;

	push(r, 100);
	pass(r);
	assert_null(r->to.pipe);
	assert_null(r->to.out.data);
	drain(r);
}

static void test_much_waits_in_a_pipe_and_arrives_in_order(void **state)
{
	struct relay *r = *state;

	fill(r);
	assert_non_null(r->to.pipe);
	drain(r);
	assert_null(r->to.pipe);
	assert_false(end_is_full(&r->to));
}

static void test_without_a_pipe_much_is_copied(void **state)
{
	struct relay *r = *state;
	struct pipe *pipes[PIPES_MAX];

	for (int i = 0; i < PIPES_MAX; i++) {
		pipes[i] = pipe_borrow();
		assert_non_null(pipes[i]);
	}
	assert_null(pipe_borrow());
	fill(r);
	assert_null(r->to.pipe);
	for (int i = 0; i < PIPES_MAX; i++)
		pipe_return(pipes[i]);
	drain(r);
}

static void test_the_end_of_the_stream_comes_behind_what_waits(void **state)
{
	struct relay *r = *state;
	char byte;

	fill(r);
	end_shutdown(&r->to);
	assert_false(r->to.is_shut);
	drain(r);
	assert_int_equal(end_flush(&r->to), 0);
	await(r->reader);
	assert_int_equal(read(r->reader, &byte, 1), 0);
}

static void test_an_end_that_closes_gives_its_pipe_back(void **state)
{
	struct relay *r = *state;

	for (int i = 0; i < 2 * PIPES_MAX; i++) {
		struct pipe *pipe;

		r->sent_len = 0;
		fill(r);
		assert_non_null(r->to.pipe);
		end_close(&r->to);
		close(r->reader);
		r->reader = open_end(r, &r->to);
		pipe = pipe_borrow();
		assert_non_null(pipe);
		pipe_return(pipe);
	}
}

static void test_a_receiver_that_has_gone_is_told(void **state)
{
	struct relay *r = *state;

	fill(r);
	close(r->reader);
	r->reader = -1;
	STAGE_UNTIL(&r->stage, end_flush(&r->to) < 0);
	assert_true(r->to.is_broken);
	assert_false(end_is_full(&r->to));
}

static void test_a_buffer_takes_no_more_than_it_has_room_for(void **state)
{
	struct relay *r = *state;
	struct buffer in;

	buffer_init(&in, 1000);
	push(r, 1500);
	await(r->from.stream.fd);
	assert_int_equal(end_read_into(&r->from, &in), 1000);
	assert_int_equal(buffer_room(&in), 0);
	buffer_consume(&in, 900);
	assert_int_equal(end_read_into(&r->from, &in), 500);
	assert_memory_equal(buffer_at(&in), r->sent + 900, 600);
	assert_int_equal(end_read_into(&r->from, &in), -EAGAIN);
	buffer_fini(&in);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_little_is_copied_and_leaves_nothing_behind),
	    TEST(test_much_waits_in_a_pipe_and_arrives_in_order),
	    TEST(test_without_a_pipe_much_is_copied),
	    TEST(test_the_end_of_the_stream_comes_behind_what_waits),
	    TEST(test_an_end_that_closes_gives_its_pipe_back),
	    TEST(test_a_receiver_that_has_gone_is_told),
	    TEST(test_a_buffer_takes_no_more_than_it_has_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
