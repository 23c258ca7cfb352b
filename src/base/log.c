/* log.c - messages for people and machines, on standard error. */
#include "base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"

#define LINE_CAP ((size_t)16384)

#define HELD_CAP ((size_t)65536)

static struct {
	bool hold;
	enum log_level level;
	enum log_format format;
	char context[64];
} settings = {.level = LOG_INFO};

static const char *const level_words[] = {
    [LOG_ERROR] = "error",
    [LOG_WARN] = "warn",
    [LOG_INFO] = "info",
    [LOG_DEBUG] = "debug",
};

void log_setup(enum log_level level, enum log_format format)
{
	settings.level = level;
	settings.format = format;
}

/* Lines that wait for the end of the turn. */
static struct buffer held = {.cap = HELD_CAP};

void log_hold(bool hold)
{
	settings.hold = hold;
	log_flush();
}

void log_flush(void)
{
	if (buffer_len(&held) && write(STDERR_FILENO, buffer_at(&held), buffer_len(&held)) < 0) {
		/* Nobody reads standard error: there is no better place to say so. */
	}
	held.start = held.end = 0;
}

void log_context(const char *context)
{
	snprintf(settings.context, sizeof settings.context, "%s", context);
}

bool log_enabled(enum log_level level)
{
	return level <= settings.level;
}

/* Writes `text` between quotes, escaped as in JSON (RFC 8259 section 7). Bytes outside ASCII pass. */
static int add_quoted(struct buffer *line, const char *text)
{
	int r = buffer_add(line, "\"", 1);

	for (; *text && !r; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			r = buffer_printf(line, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			r = buffer_printf(line, "\\u%04x", c);
		else
			r = buffer_add(line, text, 1);
	}
	return r ? r : buffer_add(line, "\"", 1);
}

static bool is_plain(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!isgraph((unsigned char)*text) || *text == '"' || *text == '\\' || *text == '=')
			return false;
	return true;
}

static int add_field(struct buffer *line, const struct log_field *field)
{
	bool json = settings.format == LOG_JSON;
	int r = buffer_printf(line, json ? ",\"%s\":" : " %s=", field->key);

	if (r)
		return r;
	if (!field->text)
		return buffer_printf(line, "%lld", (long long)field->number);
	if (json || !is_plain(field->text))
		return add_quoted(line, field->text);
	return buffer_add_text(line, field->text);
}

static int add_head(struct buffer *line, enum log_level level, const char *message)
{
	char time[32];
	int r;

	clock_format(clock_wall_ms(), time, sizeof time);
	if (settings.format == LOG_KEY_VALUE) {
		r = buffer_printf(line, "%s %-5s ", time, level_words[level]);
		if (!r && settings.context[0])
			r = buffer_printf(line, "%s: ", settings.context);
		return r ? r : buffer_add_text(line, message);
	}
	r = buffer_printf(line, "{\"time\":\"%s\",\"level\":\"%s\"", time, level_words[level]);
	if (!r && settings.context[0]) {
		r = buffer_add_text(line, ",\"context\":");
		if (!r)
			r = add_quoted(line, settings.context);
	}
	if (!r)
		r = buffer_add_text(line, ",\"message\":");
	return r ? r : add_quoted(line, message);
}

static int add_line(struct buffer *line, enum log_level level, const char *message,
		    const struct log_field *fields, size_t count)
{
	int r = add_head(line, level, message);

	for (size_t i = 0; i < count && !r; i++)
		r = add_field(line, &fields[i]);
	return r ? r : buffer_add_text(line, settings.format == LOG_JSON ? "}\n" : "\n");
}

void log_fields(enum log_level level, const char *message, const struct log_field *fields,
		size_t count)
{
	size_t before;

	if (!log_enabled(level))
		return;
	if (buffer_room(&held) < LINE_CAP)
		log_flush();
	before = held.end;
	if (add_line(&held, level, message, fields, count))
		held.end = before; /* no memory, or longer than any line of ours */
	if (!settings.hold || level <= LOG_WARN)
		log_flush();
}
