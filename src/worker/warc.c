/* warc.c - answers as records of a WARC 1.1 file.
 *
 * libcurl has taken off the codings of a body, so that the fields which tell them are left out, and Content-Length
 * tells what stands there. The request is what was asked for; libcurl's own fields (Accept-Encoding) and all
 * credentials are not in it. */
#include "worker/warc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/http.h"

#define BLOCK_MAX ((size_t)2 << 30)
#define ID_SIZE 48
/* "sha256:" and 32 bytes in base 32 */
#define DIGEST_SIZE 64
#define DATE_SIZE 32

struct record {
	const char *type, *content_type;
	const char *target; /* NULL: none */
	const char *date;
	const char *id, *concurrent_to; /* NULL: none */
	const char *truncated;          /* NULL: whole */
	struct text block, payload;     /* payload.at NULL: none */
};

/* RFC 9562 5.4, version 4 */
static int make_id(char id[static ID_SIZE])
{
	uint8_t bytes[16];
	char hex[33];
	int r = random_bytes(bytes, sizeof bytes);

	if (r)
		return r;
	bytes[6] = (uint8_t)(0x40 | (bytes[6] & 0x0f));
	bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f));
	hex_print(bytes, sizeof bytes, hex);
	snprintf(id, ID_SIZE, "<urn:uuid:%.8s-%.4s-%.4s-%.4s-%.12s>", hex, hex + 8, hex + 12,
		 hex + 16, hex + 20);
	return 0;
}

/* In base 32 (RFC 4648 6), as readers of WARC know it. */
static int print_digest(struct text bytes, char ret[static DIGEST_SIZE])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	uint8_t digest[DIGEST_BYTES + 3] = {0}; /* a whole group of five */
	int r = digest_sha256(digest, bytes.at, bytes.len);
	char *to = stpcpy(ret, "sha256:");

	if (r)
		return r;
	for (size_t bit = 0; bit < 8 * DIGEST_BYTES; bit += 5) {
		unsigned pair = (unsigned)digest[bit / 8] << 8 | digest[bit / 8 + 1];

		*to++ = digits[pair >> (11 - bit % 8) & 31];
	}
	strcpy(to, "====");
	return 0;
}

static int add_field(struct buffer *to, const char *name, const char *value)
{
	return value ? buffer_printf(to, "%s: %s\r\n", name, value) : 0;
}

static int add_head(struct buffer *to, const struct record *record)
{
	int r = buffer_printf(to, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: %s\r\n",
			      record->type, record->id);

	if (!r)
		r = add_field(to, "WARC-Date", record->date);
	if (!r)
		r = add_field(to, "WARC-Target-URI", record->target);
	if (!r)
		r = add_field(to, "WARC-Concurrent-To", record->concurrent_to);
	if (!r)
		r = add_field(to, "WARC-Truncated", record->truncated);
	if (!r)
		r = add_field(to, "Content-Type", record->content_type);
	return r;
}

static int add_digest(struct buffer *to, const char *name, struct text bytes)
{
	char digest[DIGEST_SIZE];
	int r = bytes.at ? print_digest(bytes, digest) : 0;

	return r || !bytes.at ? r : add_field(to, name, digest);
}

static int add_record(struct buffer *to, const struct record *record)
{
	int r = add_head(to, record);

	if (!r)
		r = add_digest(to, "WARC-Block-Digest", record->block);
	if (!r)
		r = add_digest(to, "WARC-Payload-Digest", record->payload);
	if (!r)
		r = buffer_printf(to, "Content-Length: %zu\r\n\r\n", record->block.len);
	if (!r)
		r = buffer_add(to, record->block.at, record->block.len);
	return r ? r : buffer_add_text(to, "\r\n\r\n");
}

static void print_date(int64_t wall_ms, char date[static DATE_SIZE])
{
	clock_format(wall_ms, date, DATE_SIZE);
}

int warc_add_info(struct buffer *to)
{
	static const char block[] = "software: fairlead/" FAIRLEAD_VERSION "\r\n"
				    "format: WARC File Format 1.1\r\n"
				    "conformsTo: http://iipc.github.io/warc-specifications/"
				    "specifications/warc-format/warc-1.1/\r\n";
	char id[ID_SIZE], date[DATE_SIZE];
	struct record record = {.type = "warcinfo",
				.content_type = "application/warc-fields",
				.date = date,
				.id = id,
				.block = {block, sizeof block - 1}};
	int r = make_id(id);

	print_date(clock_wall_ms(), date);
	return r ? r : add_record(to, &record);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Does the field speak of how the body was sent, which it is no longer? */
static bool is_of_coding(const char *name)
{
	struct text text = {name, strlen(name)};

	return text_is(text, "Content-Length") || text_is(text, "Content-Encoding") ||
	       text_is(text, "Transfer-Encoding");
}

static bool is_credential(const char *name)
{
	struct text text = {name, strlen(name)};

	return text_is(text, "Authorization") || text_is(text, "Cookie");
}

static int add_response_block(struct buffer *block, const struct visit_answer *answer)
{
	int r = buffer_printf(block, "HTTP/1.1 %d \r\n", answer->status);

	for (size_t i = 0; i < answer->header_count && !r; i++)
		if (!is_of_coding(answer->headers[i].name))
			r = add_field(block, answer->headers[i].name, answer->headers[i].value);
	if (!r)
		r = buffer_printf(block, "Content-Length: %zu\r\n\r\n", answer->len);
	return r ? r : buffer_add(block, answer->body, answer->len);
}

static int add_request_block(struct buffer *block, const struct task *task)
{
	/* Behind "https://"; task_read() has put a "/" there. */
	const char *authority = strstr(task->shown, "://") + 3, *path = strchr(authority, '/');
	const char *at = memchr(authority, '@', (size_t)(path - authority));
	const char *host = at ? at + 1 : authority;
	int r = buffer_printf(block, "%s %s HTTP/1.1\r\nHost: %.*s\r\n", task->method, path,
			      (int)(path - host), host);

	for (size_t i = 0; i < task->header_count && !r; i++)
		if (!is_credential(task->headers[i].name))
			r = add_field(block, task->headers[i].name, task->headers[i].value);
	if (!r && task->body)
		r = buffer_printf(block, "Content-Length: %zu\r\n", task->body_len);
	if (!r)
		r = buffer_add_text(block, "\r\n");
	return r || !task->body ? r : buffer_add(block, task->body, task->body_len);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

/* ISO 28500 5.13: the words for why a block is not whole. */
static const char *truncated_word(int reason)
{
	if (reason == REASON_OK)
		return NULL;
	if (reason == REASON_RESPONSE_TIMEOUT)
		return "time";
	if (reason == REASON_RESPONSE_BODY_SIZE)
		return "length";
	return reason == REASON_RESPONSE_INCOMPLETE ? "disconnect" : "unspecified";
}

static int add_response(struct buffer *to, const struct carried *carried, struct record *record)
{
	const struct visit_answer *answer = carried->answer;
	struct buffer block;
	int r;

	buffer_init(&block, BLOCK_MAX);
	r = add_response_block(&block, answer);
	record->type = "response";
	record->content_type = "application/http;msgtype=response";
	record->truncated = truncated_word(carried->reason);
	if (!r) {
		record->block = (struct text){buffer_at(&block), buffer_len(&block)};
		record->payload =
		    (struct text){record->block.at + record->block.len - answer->len, answer->len};
		r = add_record(to, record);
	}
	buffer_fini(&block);
	return r;
}

static int add_request(struct buffer *to, const struct task *task, struct record *record)
{
	struct buffer block;
	int r;

	buffer_init(&block, BLOCK_MAX);
	r = add_request_block(&block, task);
	record->type = "request";
	record->content_type = "application/http;msgtype=request";
	record->truncated = NULL;
	record->payload = (struct text){NULL, 0};
	if (!r) {
		record->block = (struct text){buffer_at(&block), buffer_len(&block)};
		r = add_record(to, record);
	}
	buffer_fini(&block);
	return r;
}

int warc_add(struct buffer *to, const struct task *task, const struct carried *carried)
{
	const struct visit_answer *answer = carried->answer;
	char response[ID_SIZE], request[ID_SIZE], date[DATE_SIZE];
	struct record record = {.target = answer->final_url, .date = date, .id = response};
	int r = make_id(response);

	if (!r)
		r = make_id(request);
	print_date(carried->began_ms, date);
	if (!r)
		r = add_response(to, carried, &record);
	if (r || answer->redirects)
		return r;
	record.id = request;
	record.concurrent_to = response;
	return add_request(to, task, &record);
}

int warc_open(struct sink *ret, const char *path)
{
	struct sink sink;
	struct buffer info;
	struct stat status;
	int r = sink_open(&sink, path);

	if (r)
		return r;
	buffer_init(&info, 4096);
	r = fstat(sink.fd, &status) ? -errno : warc_add_info(&info);
	if (!r && status.st_size == 0)
		r = sink_write(&sink, buffer_at(&info), buffer_len(&info));
	buffer_fini(&info);
	if (r)
		sink_close(&sink);
	else
		*ret = sink;
	return r;
}
