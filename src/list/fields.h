/* fields.h - entries whose parts have names: CSV columns and JSON members.
 *
 * A name is one of a closed list, any case. Of several names for one thing the first of the list
 * that has a value counts, whatever their order in the file. */
#ifndef FAIRLEAD_LIST_FIELDS_H
#define FAIRLEAD_LIST_FIELDS_H

#include "base/endpoint_parts.h"
#include "list/entry.h"

#define FIELD_SCHEMES_MAX 16

enum field {
	FIELD_HOST,
	FIELD_PORT,
	FIELD_SCHEME,
	FIELD_USER,
	FIELD_PASSWORD,
	FIELD_PROXY,
	FIELD_COUNTRY,
	FIELD_ANONYMITY,
	FIELD_COUNT
};

/* One entry; texts are the caller's. */
struct fields {
	struct span values[FIELD_COUNT]; /* at = NULL: not given */
	int names[FIELD_COUNT];          /* by which name */
	struct span schemes[FIELD_SCHEMES_MAX];
	size_t scheme_count;
	bool is_misshapen; /* a value of a kind that cannot be read, or too many schemes */
};

void fields_init(struct fields *f);

/* The index of a name, or -1. */
int field_name_find(struct span name);
enum field field_name_field(int name);

/* A name that holds several schemes in one text. */
bool field_name_is_plural(int name);

/* Not for FIELD_SCHEME. */
void fields_set(struct fields *f, int name, struct span value);

/* Like fields_set(), for one or more schemes. */
void fields_set_schemes(struct fields *f, int name, const struct span *schemes, size_t count);

/* Whether there is a host or a proxy. */
bool fields_have_endpoint(const struct fields *f);

/* Judges the fields and reports one entry for each scheme; a scheme inside the host's or the
 * proxy's own text wins. Returns as list_output_endpoint(). */
MUST_USE int fields_report(const struct fields *f, struct list_output *o, uint64_t line);

#endif
