/* sources.h - the sources that the configuration names: by --list, and by [source NAME] sections. */
#ifndef FAIRLEAD_NODE_SOURCES_H
#define FAIRLEAD_NODE_SOURCES_H

#include "base/conf.h"
#include "source/source.h"

#define SOURCES_MAX 256
#define SOURCE_NAME_MAX 1024

size_t sources_count(const struct conf *conf);

/* Looks for what is wrong with them: a name that other hands use, a file that cannot be read. 0, -EINVAL (the
 * configuration) or another -errno (the file), with one line in `error`. */
MUST_USE int sources_check(const struct conf *conf, char *error, size_t size);

/* The source at `index`; its texts point into `conf` and `name`. */
void sources_at(const struct conf *conf, size_t index, struct source_config *ret,
		char name[SOURCE_NAME_MAX]);

#endif
