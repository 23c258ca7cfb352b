/* text.h - what the readers of all formats ask of a piece of text. */
#ifndef FAIRLEAD_LIST_TEXT_H
#define FAIRLEAD_LIST_TEXT_H

#include <stdbool.h>

#include "base/endpoint_parts.h"

/* Without spaces and tabs around it. */
struct span span_trim(struct span s);

/* Without the byte order mark of UTF-8, which also stands where files were joined. */
struct span span_drop_mark(struct span s);

/* Begins with '#', ';' or "//". */
bool span_is_comment(struct span s);

/* Any case of ASCII. */
bool span_is(struct span s, const char *word);

#endif
