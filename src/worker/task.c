/* task.c - a payload as a request to be made. */
#include "worker/task.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/task_parts.h"

static struct text text_skip(struct text t, size_t n)
{
	return (struct text){t.at + n, t.len - n};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A line feed too: `echo URL | redis-cli -x LPUSH` leaves one. */
static struct text trim(struct text t)
{
	if (t.len >= 3 && !memcmp(t.at, "\xEF\xBB\xBF", 3))
		t = text_skip(t, 3);
	while (t.len && is_blank(t.at[0]))
		t = text_skip(t, 1);
	while (t.len && is_blank(t.at[t.len - 1]))
		t.len--;
	return t;
}

int task_refuse(char error[static TASK_ERROR_MAX], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, TASK_ERROR_MAX, format, arguments);
	va_end(arguments);
	return REASON_TASK_INVALID;
}

bool task_is_token(struct text text)
{
	static const char tchars[] = "!#$%&'*+-.^_`|~0123456789"
				     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (size_t i = 0; i < text.len; i++)
		if (!memchr(tchars, text.at[i], sizeof tchars - 1))
			return false;
	return text.len > 0;
}

static int read_url_mode(struct task *task, struct text payload, char error[static TASK_ERROR_MAX])
{
	if (payload.at[0] == '{')
		return task_refuse(error, "it is an object, but the tasks of this worker are URLs: "
					  "--tasks-are json reads objects");
	task->method = strdup("GET");
	if (!task->method)
		return -ENOMEM;
	return task_read_url(task, payload.at, payload.len, error);
}

int task_read(struct task *ret, enum task_mode mode, const char *payload, size_t len,
	      char error[static TASK_ERROR_MAX])
{
	struct text trimmed = trim((struct text){payload, len});
	struct task task = {0};
	int r;

	if (!trimmed.len)
		return task_refuse(error, "the task is empty");
	if (mode == TASK_JSON)
		r = task_read_json(&task, trimmed, error);
	else
		r = read_url_mode(&task, trimmed, error);
	if (r)
		task_fini(&task);
	else
		*ret = task;
	return r;
}

void task_fini(struct task *task)
{
	for (size_t i = 0; i < task->header_count; i++) {
		free(task->headers[i].name);
		free(task->headers[i].value);
	}
	free(task->headers);
	free(task->url);
	free(task->shown);
	free(task->host);
	free(task->method);
	free(task->id);
	free(task->meta);
	free(task->body);
	*task = (struct task){0};
}
