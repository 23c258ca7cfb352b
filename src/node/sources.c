/* sources.c - the sources that the configuration names. */
#include "node/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"

size_t sources_count(const struct conf *conf)
{
	size_t count = conf_count(conf, CONF_LIST) + conf_source_count(conf);

	return count < SOURCES_MAX ? count : SOURCES_MAX;
}

/* A place as the name of a source: without credentials, and without what a member's record uses. */
static void name_place(const char *place, char *name)
{
	char shown[SOURCE_NAME_MAX - 5];

	secret_print(place, shown, sizeof shown);
	for (char *c = shown; *c; c++)
		if (strchr("\t\n,=", *c))
			*c = '_';
	snprintf(name, SOURCE_NAME_MAX, "list:%s", shown);
}

static void of_list(const struct conf *conf, size_t index, struct source_config *ret, char *name)
{
	const char *place = conf_at(conf, CONF_LIST, index);

	name_place(place, name);
	*ret = (struct source_config){
	    .name = name,
	    .place = place,
	    .rules = {.default_scheme = (enum scheme)conf_enum(conf, CONF_DEFAULT_SCHEME),
		      .colon_order = (enum colon_order)conf_enum(conf, CONF_COLON_ORDER),
		      .https_means_connect = conf_enum(conf, CONF_HTTPS_MEANS) == 1,
		      .allow_single_label = conf_bool(conf, CONF_ALLOW_SINGLE_LABEL)},
	    .format = (enum list_format)conf_enum(conf, CONF_FORMAT),
	    .split = (enum source_split)conf_enum(conf, CONF_LIST_SPLIT),
	    .is_strict = conf_enum(conf, CONF_ON_REJECT) == 1,
	    .interval_ms = conf_ms(conf, CONF_LIST_INTERVAL),
	    .grace_ms = conf_ms(conf, CONF_LIST_GRACE),
	    .timeout_ms = conf_ms(conf, CONF_LIST_TIMEOUT),
	    .max_bytes = conf_bytes(conf, CONF_LIST_MAX_BYTES),
	};
}

static void of_section(const struct conf *conf, size_t index, struct source_config *ret, char *name)
{
	snprintf(name, SOURCE_NAME_MAX, "%s", conf_source_name(conf, index));
	*ret = (struct source_config){
	    .name = name,
	    .place = conf_source_text(conf, index, SOURCE_PLACE),
	    .rules = {.default_scheme =
			  (enum scheme)conf_source_enum(conf, index, SOURCE_DEFAULT_SCHEME),
		      .colon_order =
			  (enum colon_order)conf_source_enum(conf, index, SOURCE_COLON_ORDER),
		      .https_means_connect = conf_source_enum(conf, index, SOURCE_HTTPS_MEANS) == 1,
		      .allow_single_label =
			  conf_source_bool(conf, index, SOURCE_ALLOW_SINGLE_LABEL)},
	    .format = (enum list_format)conf_source_enum(conf, index, SOURCE_FORMAT),
	    .split = (enum source_split)conf_source_enum(conf, index, SOURCE_SPLIT),
	    .is_strict = conf_enum(conf, CONF_ON_REJECT) == 1,
	    .interval_ms = conf_source_ms(conf, index, SOURCE_INTERVAL),
	    .grace_ms = conf_source_ms(conf, index, SOURCE_GRACE),
	    .timeout_ms = conf_source_ms(conf, index, SOURCE_TIMEOUT),
	    .max_bytes = conf_source_bytes(conf, index, SOURCE_MAX_BYTES),
	};
}

void sources_at(const struct conf *conf, size_t index, struct source_config *ret,
		char name[SOURCE_NAME_MAX])
{
	size_t lists = conf_count(conf, CONF_LIST);

	if (index < lists)
		of_list(conf, index, ret, name);
	else
		of_section(conf, index - lists, ret, name);
}

/* Members that others name must not leave with a list. */
static bool is_reserved(const char *name)
{
	return !strcmp(name, "operator") || !strcmp(name, "demo");
}

static int check_file(const char *path)
{
	struct stat st;

	if (access(path, R_OK) || stat(path, &st))
		return -errno;
	if (S_ISREG(st.st_mode))
		return 0;
	return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
}

int sources_check(const struct conf *conf, char *error, size_t size)
{
	for (size_t i = 0; i < sources_count(conf); i++) {
		struct source_config source;
		char name[SOURCE_NAME_MAX];
		int r;

		sources_at(conf, i, &source, name);
		if (is_reserved(name)) {
			snprintf(error, size, "[source %s]: the name '%s' is taken; choose another",
				 name, name);
			return -EINVAL;
		}
		r = source_is_url(source.place) ? 0 : check_file(source.place);
		if (r) {
			snprintf(error, size,
				 "list %.300s: %s; a list is a readable file, or an http(s) URL",
				 source.place, r == -ENXIO ? "not a file" : strerror(-r));
			return r;
		}
	}
	return 0;
}
