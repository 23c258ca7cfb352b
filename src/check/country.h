/* country.h - the country of an address, by a database in MaxMind's format that the user has; libmaxminddb. */
#ifndef FAIRLEAD_CHECK_COUNTRY_H
#define FAIRLEAD_CHECK_COUNTRY_H

#include <stddef.h>

#include "base/result.h"

struct countries;

/* 0, or -errno with a line in `error`. */
MUST_USE int countries_open(struct countries **ret, const char *path, char *error, size_t size);
void countries_close(struct countries *countries);

/* Two lower-case letters, or "" (not known, no address, `countries` NULL). */
void countries_find(const struct countries *countries, const char *address, char ret[3]);

#endif
