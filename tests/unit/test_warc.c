/* test_warc.c - records of WARC 1.1 (ISO 28500:2017): fields, lengths, digests; tests/system reads them by another program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "worker/warc.h"

static const struct visit_header headers[] = {{"Content-Type", "text/plain"},
					      {"content-encoding", "gzip"},
					      {"Transfer-Encoding", "chunked"},
					      {"Content-Length", "999"}};

static const struct visit_answer answer = {
    .status = 200,
    .final_url = "http://a.example/x?y",
    .headers = headers,
    .header_count = 4,
    .http_version = "2",
    .body = "abc",
    .len = 3,
};

static struct task_header task_headers[] = {{(char[]){"Accept"}, (char[]){"text/plain"}},
					    {(char[]){"Authorization"}, (char[]){"Bearer hunter2"}},
					    {(char[]){"cookie"}, (char[]){"id=hunter2"}}};

static const struct task task = {
    .url = (char[]){"http://u:hunter2@a.example/x?y"},
    .shown = (char[]){"http://***@a.example/x?y"},
    .method = (char[]){"POST"},
    .headers = task_headers,
    .header_count = 3,
    .body = (char[]){"q=1"},
    .body_len = 3,
};

static struct carried carried;
static char text[8192];

/* The records of `carried`. */
static const char *add(void)
{
	struct buffer to;

	buffer_init(&to, sizeof text);
	assert_int_equal(warc_add(&to, &task, &carried), 0);
	memcpy(text, buffer_at(&to), buffer_len(&to));
	text[buffer_len(&to)] = '\0';
	buffer_fini(&to);
	return text;
}

static int prepare(void **state)
{
	(void)state;
	carried = (struct carried){.answer = &answer, .began_ms = 1767225600000};
	return 0;
}

static void expect_has(const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("\"%s\" is missing in:\n%s", wanted, text);
}

static void test_a_response_and_its_request_are_records(void **state)
{
	(void)state;
	assert_int_equal(
	    strncmp(add(), "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:", 57), 0);
	expect_has("\r\nWARC-Date: 2026-01-01T00:00:00.000Z\r\n");
	expect_has("\r\nWARC-Target-URI: http://a.example/x?y\r\n");
	expect_has("\r\nContent-Type: application/http;msgtype=response\r\n");
	expect_has("\r\nWARC-Type: request\r\n");
	expect_has("\r\nContent-Type: application/http;msgtype=request\r\n");
	assert_null(strstr(text, "WARC-Truncated"));
}

/* A block is whole HTTP/1.1: its length is that of the decoded body. */
static void test_blocks_say_how_long_the_body_is(void **state)
{
	(void)state;
	add();
	expect_has("\r\nContent-Length: 65\r\n\r\nHTTP/1.1 200 \r\nContent-Type: "
		   "text/plain\r\nContent-Length: 3\r\n\r\nabc\r\n\r\nWARC/1.1");
	expect_has("\r\n\r\nPOST /x?y HTTP/1.1\r\nHost: a.example\r\nAccept: "
		   "text/plain\r\nContent-Length: 3\r\n\r\nq=1\r\n\r\n");
}

static void test_credentials_stay_out(void **state)
{
	(void)state;
	assert_null(strstr(add(), "hunter2"));
	assert_null(strstr(text, "***"));
}

/* python3 -c 'import hashlib,base64; print(base64.b32encode(hashlib.sha256(b"abc").digest()))' */
static void test_the_payload_has_its_digest(void **state)
{
	(void)state;
	add();
	expect_has("\r\nWARC-Payload-Digest: "
		   "sha256:XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ====\r\n");
	expect_has("\r\nWARC-Block-Digest: sha256:");
}

static void test_the_request_names_its_response(void **state)
{
	const char *id, *named;

	(void)state;
	id = strstr(add(), "<urn:uuid:");
	named = strstr(text, "\r\nWARC-Concurrent-To: ");
	assert_non_null(id);
	assert_non_null(named);
	assert_memory_equal(named + strlen("\r\nWARC-Concurrent-To: "), id,
			    strlen("<urn:uuid:>") + 36);
}

static void test_what_is_cut_says_so(void **state)
{
	(void)state;
	carried.reason = REASON_RESPONSE_TIMEOUT;
	add();
	expect_has("\r\nWARC-Truncated: time\r\n");
	carried.reason = REASON_RESPONSE_INCOMPLETE;
	add();
	expect_has("\r\nWARC-Truncated: disconnect\r\n");
}

static void test_a_redirected_response_stands_alone(void **state)
{
	struct visit_answer other = answer;

	(void)state;
	other.redirects = 1;
	carried.answer = &other;
	assert_null(strstr(add(), "WARC-Type: request"));
}

static long size_of(const char *path)
{
	FILE *file = fopen(path, "rb");
	long size;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	fclose(file);
	return size;
}

static void test_a_file_begins_with_one_warcinfo(void **state)
{
	char path[] = "/tmp/fairlead-warc-XXXXXX", begin[64] = "";
	int fd = mkstemp(path);
	struct sink sink;
	long size;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(warc_open(&sink, path), 0);
	sink_close(&sink);
	assert_true(read(fd, begin, sizeof begin - 1) > 0);
	assert_non_null(strstr(begin, "WARC/1.1\r\nWARC-Type: warcinfo\r\n"));
	size = size_of(path);
	assert_int_equal(warc_open(&sink, path), 0);
	sink_close(&sink);
	assert_int_equal(size_of(path), size);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_a_response_and_its_request_are_records, prepare),
	    cmocka_unit_test_setup(test_blocks_say_how_long_the_body_is, prepare),
	    cmocka_unit_test_setup(test_credentials_stay_out, prepare),
	    cmocka_unit_test_setup(test_the_payload_has_its_digest, prepare),
	    cmocka_unit_test_setup(test_the_request_names_its_response, prepare),
	    cmocka_unit_test_setup(test_what_is_cut_says_so, prepare),
	    cmocka_unit_test_setup(test_a_redirected_response_stands_alone, prepare),
	    cmocka_unit_test_setup(test_a_file_begins_with_one_warcinfo, prepare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
