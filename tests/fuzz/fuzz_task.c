/* fuzz_task.c - tasks of both modes: what is accepted can be sent as it is and read again as the same, what is refused is told in ASCII.
 *
 * The first byte is the mode: 'j' is JSON, any other a URL. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http.h"
#include "worker/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

static void check_graph(const char *text)
{
	for (; *text; text++)
		CHECK(*text > ' ' && *text <= '~');
}

/* What stands between "://" and the path. */
static struct text authority(const char *url)
{
	const char *at = strstr(url, "://") + 3;

	return (struct text){at, strcspn(at, "/?#")};
}

static void check_url(const struct task *task)
{
	struct text sent = authority(task->url), shown = authority(task->shown);
	char canonical[256];

	CHECK(!strncmp(task->url, "http://", 7) || !strncmp(task->url, "https://", 8));
	check_graph(task->url);
	check_graph(task->shown);
	CHECK(!strchr(task->url, '#'));
	CHECK(sent.at[sent.len] == '/');
	CHECK(!strcmp(sent.at + sent.len, shown.at + shown.len));
	if (memchr(sent.at, '@', sent.len))
		CHECK(!strncmp(shown.at, "***@", 4));
	else
		CHECK(!strcmp(task->url, task->shown));
	CHECK(!http_canonical_host((struct text){task->host, strlen(task->host)}, canonical,
				   sizeof canonical));
	CHECK(!strcmp(canonical, task->host));
}

static void check_again(const struct task *task)
{
	char error[TASK_ERROR_MAX];
	struct task again;
	int r = task_read(&again, TASK_URL, task->url, strlen(task->url), error);

	/* What is encoded is longer, and may be too long now. */
	CHECK(r == 0 || strlen(task->url) > 65536);
	if (r)
		return;
	CHECK(!strcmp(again.url, task->url) && !strcmp(again.host, task->host));
	task_fini(&again);
}

static void check_line(const char *text)
{
	CHECK(!strpbrk(text, "\r\n"));
}

static void check_task(const struct task *task)
{
	check_url(task);
	check_again(task);
	check_graph(task->method);
	CHECK(*task->method && strcmp(task->method, "CONNECT") != 0);
	CHECK(task->header_count <= 64);
	for (size_t i = 0; i < task->header_count; i++) {
		CHECK(*task->headers[i].name);
		check_graph(task->headers[i].name);
		CHECK(strcasecmp(task->headers[i].name, "Host") != 0);
		CHECK(strncasecmp(task->headers[i].name, "Proxy-", 6) != 0);
		check_line(task->headers[i].value);
	}
	CHECK(!task->id || *task->id);
	CHECK(!task->body || task->body[task->body_len] == '\0');
	CHECK(task->timeout_ms >= 0 && task->timeout_ms <= 3600000);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	enum task_mode mode = size && input[0] == 'j' ? TASK_JSON : TASK_URL;
	size_t len = size ? size - 1 : 0;
	char error[TASK_ERROR_MAX] = "", *copy = malloc(len ? len : 1);
	struct task task;
	int r;

	if (!copy)
		abort();
	if (len)
		memcpy(copy, input + 1, len);
	r = task_read(&task, mode, copy, len, error);
	free(copy);
	CHECK(r == 0 || r == REASON_TASK_INVALID);
	if (r) {
		CHECK(*error && strnlen(error, TASK_ERROR_MAX) < TASK_ERROR_MAX);
		return 0;
	}
	check_task(&task);
	task_fini(&task);
	return 0;
}
