/* detect.h - what kind of list a file is, or that it is none: told from its first bytes, never from
 * its name. */
#ifndef FAIRLEAD_LIST_DETECT_H
#define FAIRLEAD_LIST_DETECT_H

#include <stddef.h>

#include "base/verdict.h"

/* How much of a file decides. */
#define LIST_HEAD_MAX ((size_t)65536)

enum list_format { LIST_AUTO, LIST_LINES, LIST_CSV, LIST_JSON, LIST_JSONL, LIST_FORMAT_COUNT };

/* "auto" "lines" "csv" "json" "jsonl"; static storage. list_format_from_text() returns -1 for any
 * other. */
const char *list_format_word(enum list_format format);
int list_format_from_text(const char *text);

/* `head`: the first LIST_HEAD_MAX bytes, or the whole file if it is shorter. VERDICT_ACCEPTED:
 * nothing against it; else the reason to refuse the whole file. */
enum verdict list_detect(const char *head, size_t len);

/* The format of a list; never LIST_AUTO. */
enum list_format list_format_detect(const char *head, size_t len);

#endif
