/* test_net.c - places to listen and to connect; descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/net.h"

static void test_places_are_read_and_printed_alike(void **state)
{
	static const struct {
		const char *text, *printed;
		bool is_local;
	} rows[] = {
	    {"127.0.0.1:8888", "127.0.0.1:8888", true},
	    {"127.255.0.9:0", "127.255.0.9:0", true},
	    {"0.0.0.0:65535", "0.0.0.0:65535", false},
	    {"10.0.0.1:80", "10.0.0.1:80", false},
	    {"[::1]:8888", "[::1]:8888", true},
	    {"[::]:1", "[::]:1", false},
	    {"[2001:DB8:0:0::1]:443", "[2001:db8::1]:443", false},
	    {"unix:/run/x.sock", "unix:/run/x.sock", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct net_place place;
		char text[128];

		assert_int_equal(net_place_parse(&place, rows[i].text), 0);
		net_place_print(&place, text, sizeof(text));
		assert_string_equal(text, rows[i].printed);
		assert_int_equal(net_place_is_local(&place), rows[i].is_local);
	}
}

static void test_what_is_no_place_is_refused(void **state)
{
	static const char *const texts[] = {
	    "",
	    ":",
	    ":80",
	    "127.0.0.1",
	    "127.0.0.1:",
	    "127.0.0.1:x",
	    "127.0.0.1:65536",
	    "127.0.0.1:-1",
	    "127.0.0.1:+1",
	    "127.0.0.1: 1",
	    "127.0.0.1:99999999999999999999",
	    "127.1:80",
	    "localhost:80",
	    "[::1]",
	    "[::1]80",
	    "[]:80",
	    "unix:",
	    /* RFC 3986 3.2.2: brackets are for IPv6, and IPv6 before a port needs them. */
	    "::1:8888",
	    "[127.0.0.1]:80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct net_place place;

		if (net_place_parse(&place, texts[i]) != -EINVAL)
			fail_msg("'%s' is taken for a place", texts[i]);
	}
}

static void test_the_path_of_a_unix_socket_has_at_most_107_bytes(void **state)
{
	struct net_place place;
	char text[200] = "unix:/";

	(void)state;
	memset(text + 6, 'a', 106);
	assert_int_equal(net_place_parse(&place, text), 0);
	memset(text + 6, 'a', 107);
	assert_int_equal(net_place_parse(&place, text), -EINVAL);
}

static void test_descriptors_do_not_block_and_do_not_outlive_exec(void **state)
{
	struct net_place place;
	struct sockaddr_storage peer;
	int fds[3];

	(void)state;
	assert_int_equal(net_place_parse(&place, "127.0.0.1:0"), 0);
	fds[0] = net_listen(&place);
	assert_int_equal(net_local_place(fds[0], &place), 0);
	fds[1] = net_connect((struct sockaddr *)&place.sa, place.len, NULL);
	while ((fds[2] = net_accept(fds[0], &peer)) == -EAGAIN)
		;
	for (int i = 0; i < 3; i++) {
		assert_true(fds[i] >= 0);
		assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(net_accept(fds[0], &peer), -EAGAIN);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void test_a_connection_leaves_from_its_source_address(void **state)
{
	struct net_place place;
	struct sockaddr_storage peer;
	struct address source, seen;
	char text[64];
	int listener, near, far;

	(void)state;
	assert_int_equal(net_place_parse(&place, "127.0.0.1:0"), 0);
	listener = net_listen(&place);
	assert_int_equal(net_local_place(listener, &place), 0);
	assert_int_equal(address_parse(&source, "127.0.0.77", 10), 0);
	near = net_connect((struct sockaddr *)&place.sa, place.len, &source);
	while ((far = net_accept(listener, &peer)) == -EAGAIN)
		;
	assert_int_equal(address_from_sockaddr(&seen, (struct sockaddr *)&peer), 0);
	address_print(&seen, text, sizeof(text));
	assert_string_equal(text, "127.0.0.77");
	close(near);
	close(far);
	close(listener);
}

static void test_a_port_in_use_is_told(void **state)
{
	struct net_place place;
	int first;

	(void)state;
	assert_int_equal(net_place_parse(&place, "127.0.0.1:0"), 0);
	first = net_listen(&place);
	assert_int_equal(net_local_place(first, &place), 0);
	assert_int_equal(net_listen(&place), -EADDRINUSE);
	close(first);
}

static void make_place(struct net_place *place, char *path, size_t size)
{
	char folder[] = "/tmp/fairlead-net-XXXXXX", text[128];

	assert_non_null(mkdtemp(folder));
	snprintf(path, size, "%s/s", folder);
	snprintf(text, sizeof(text), "unix:%s", path);
	assert_int_equal(net_place_parse(place, text), 0);
}

static void clear_place(char *path)
{
	unlink(path);
	path[strlen(path) - 2] = '\0';
	assert_int_equal(rmdir(path), 0);
}

static void test_a_unix_socket_is_replaced_only_when_nobody_listens(void **state)
{
	struct net_place place;
	char path[100];
	int first, second;

	(void)state;
	make_place(&place, path, sizeof(path));
	first = net_listen(&place);
	assert_true(first >= 0);
	assert_int_equal(net_listen(&place), -EADDRINUSE);
	close(first);
	second = net_listen(&place);
	assert_true(second >= 0);
	close(second);
	clear_place(path);
}

/* connect(2) to a regular file fails with ECONNREFUSED as to a dead socket. */
static void test_a_file_that_is_no_socket_is_never_removed(void **state)
{
	struct net_place place;
	char path[100];
	int file;

	(void)state;
	make_place(&place, path, sizeof(path));
	file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	close(file);
	assert_int_equal(net_listen(&place), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	clear_place(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_places_are_read_and_printed_alike),
	    cmocka_unit_test(test_what_is_no_place_is_refused),
	    cmocka_unit_test(test_the_path_of_a_unix_socket_has_at_most_107_bytes),
	    cmocka_unit_test(test_descriptors_do_not_block_and_do_not_outlive_exec),
	    cmocka_unit_test(test_a_connection_leaves_from_its_source_address),
	    cmocka_unit_test(test_a_port_in_use_is_told),
	    cmocka_unit_test(test_a_unix_socket_is_replaced_only_when_nobody_listens),
	    cmocka_unit_test(test_a_file_that_is_no_socket_is_never_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
