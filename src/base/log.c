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

/* The length of the UTF-8 sequence (RFC 3629) at the front of a text; 0: it is none. */
static size_t utf8_len(const char *text)
{
	static const struct {
		unsigned char first, last, low, high; /* of the lead byte; of the byte behind it */
		size_t len;
	} table[] = {
	    {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	const unsigned char *at = (const unsigned char *)text;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (*at < table[i].first || *at > table[i].last)
			continue;
		if (table[i].len > 1 && (at[1] < table[i].low || at[1] > table[i].high))
			return 0;
		for (size_t k = 2; k < table[i].len; k++)
			if ((at[k] & 0xc0) != 0x80)
				return 0;
		return table[i].len;
	}
	return 0;
}

/* Writes `text` between quotes, escaped as in JSON (RFC 8259 section 7); a byte that is no UTF-8 as U+FFFD. */
static int add_quoted(struct buffer *line, const char *text)
{
	int r = buffer_add(line, "\"", 1);

	for (size_t len = 0; *text && !r; text += len ? len : 1) {
		unsigned char c = (unsigned char)*text;

		len = utf8_len(text);
		if (!len)
			r = buffer_add_text(line, "\\ufffd");
		else if (c == '"' || c == '\\')
			r = buffer_printf(line, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			r = buffer_printf(line, "\\u%04x", c);
		else
			r = buffer_add(line, text, len);
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
