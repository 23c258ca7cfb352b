/* log.h - messages for people and machines, on standard error.
 *
 * A line is a message and fields, written as key=value or as one JSON object. Nothing here hides a secret: whoever
 * logs an endpoint prints it with endpoint_print(..., HIDE_SECRET). */
#ifndef FAIRLEAD_BASE_LOG_H
#define FAIRLEAD_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_KEY_VALUE, LOG_JSON };

struct log_field {
	const char *key;
	const char *text; /* NULL: the field is `number` */
	int64_t number;
};

#define LOG_TEXT(k, v) ((struct log_field){.key = (k), .text = (v)})
#define LOG_NUMBER(k, v) ((struct log_field){.key = (k), .number = (v)})

/* Lines above `level` are dropped. Default: LOG_INFO, LOG_KEY_VALUE. */
void log_setup(enum log_level level, enum log_format format);

/* Prefix of every line of this process, such as "gateway.1"; copied, at most 63 bytes. "" = none. */
void log_context(const char *context);

/* Lines of LOG_INFO and below wait for log_flush(), which the loop calls at the end of each turn; the others go at once and
 * take along what waits. */
void log_hold(bool hold);
void log_flush(void);

bool log_enabled(enum log_level level);

/* One line, one write(2). Control bytes and quotes in texts are escaped. */
void log_fields(enum log_level level, const char *message, const struct log_field *fields,
		size_t count);

#define log_line(level, message, ...)                                                              \
	log_fields((level), (message), (const struct log_field[]){__VA_ARGS__},                    \
		   sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
#define log_error(message, ...) log_line(LOG_ERROR, message, ##__VA_ARGS__)
#define log_warn(message, ...) log_line(LOG_WARN, message, ##__VA_ARGS__)
#define log_info(message, ...) log_line(LOG_INFO, message, ##__VA_ARGS__)
#define log_debug(message, ...) log_line(LOG_DEBUG, message, ##__VA_ARGS__)

#endif
