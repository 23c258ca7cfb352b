/* buffer.c - bytes in order, with a cap. */
#include "base/buffer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE ((size_t)512)

void buffer_init(struct buffer *b, size_t cap)
{
	*b = (struct buffer){.cap = cap};
}

void buffer_fini(struct buffer *b)
{
	free(b->data);
	buffer_init(b, b->cap);
}

static void move_to_front(struct buffer *b)
{
	if (b->start == 0)
		return;
	memmove(b->data, buffer_at(b), buffer_len(b));
	b->end -= b->start;
	b->start = 0;
}

char *buffer_reserve(struct buffer *b, size_t len)
{
	size_t need, size;
	char *data;

	if (len > buffer_room(b)) {
		errno = EMSGSIZE;
		return NULL;
	}
	if (b->size - b->end >= len && b->data)
		return b->data + b->end;
	if (b->data)
		move_to_front(b);
	need = b->end + len;
	if (need > b->size || !b->data) {
		for (size = b->size ? b->size : FIRST_SIZE; size < need;)
			size *= 2;
		if (size > b->cap && b->cap >= need)
			size = b->cap;
		data = realloc(b->data, size ? size : 1);
		if (!data) {
			errno = ENOMEM;
			return NULL;
		}
		b->data = data;
		b->size = size;
	}
	return b->data + b->end;
}

void buffer_commit(struct buffer *b, size_t len)
{
	b->end += len;
}

int buffer_add(struct buffer *b, const void *bytes, size_t len)
{
	char *at;

	if (len == 0)
		return 0;
	at = buffer_reserve(b, len);
	if (!at)
		return -errno;
	memcpy(at, bytes, len);
	buffer_commit(b, len);
	return 0;
}

int buffer_add_text(struct buffer *b, const char *text)
{
	return buffer_add(b, text, strlen(text));
}

/* Long enough for most of what is printed, so that it is formatted once. */
#define PRINTF_GUESS ((size_t)128)

int buffer_printf(struct buffer *b, const char *format, ...)
{
	size_t room = buffer_room(b) < PRINTF_GUESS ? buffer_room(b) : PRINTF_GUESS;
	char *at = buffer_reserve(b, room);
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(at, at ? room : 0, format, args);
	va_end(args);
	if (len < 0)
		return -EINVAL;
	if ((size_t)len >= room || !at) {
		/* The terminating NUL is written behind the content and not counted, but the cap must admit it. */
		room = (size_t)len + 1;
		at = buffer_reserve(b, room);
		if (!at)
			return -errno;
		va_start(args, format);
		vsnprintf(at, room, format, args);
		va_end(args);
	}
	buffer_commit(b, (size_t)len);
	return 0;
}

void buffer_consume(struct buffer *b, size_t len)
{
	b->start += len;
	if (b->start == b->end)
		buffer_fini(b);
}
