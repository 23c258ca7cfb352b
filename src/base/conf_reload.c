/* conf_reload.c - settings read anew while they are in force. */
#include "base/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf_value.h"

/* Replaces a value by a copy of another. 0, or -ENOMEM and the value is as it was. */
static int copy_value(struct conf_value *value, const struct conf_value *from)
{
	struct conf_value copy = *from;

	copy.count = 0;
	copy.texts = from->count ? calloc(from->count, sizeof *copy.texts) : NULL;
	if (from->count && !copy.texts)
		return -ENOMEM;
	for (; copy.count < from->count; copy.count++) {
		copy.texts[copy.count] = strdup(from->texts[copy.count]);
		if (!copy.texts[copy.count]) {
			conf_value_clear(&copy);
			return -ENOMEM;
		}
	}
	conf_value_clear(value);
	*value = copy;
	return 0;
}

/* Flags stay what they were. So does a default that was worked out at the start, such as the state directory. */
static int copy_flags(struct conf *conf, const struct conf *old)
{
	int r = 0;

	for (int id = 0; id < CONF_ROWS && !r; id++) {
		enum conf_level level = conf_level(old, (enum conf_id)id);

		if (level == FROM_FLAG || level == FROM_DEFAULT)
			r = copy_value(&conf->values[id], &old->values[id]);
	}
	return r;
}

int conf_reload(struct conf *ret, const struct conf *old, struct conf_error *error)
{
	struct conf conf;
	int r = conf_init(&conf);

	if (!r)
		r = copy_flags(&conf, old);
	if (!r)
		r = conf_load_env(&conf, error);
	if (!r && *conf_text(&conf, CONF_CONFIG))
		r = conf_load_file(&conf, conf_text(&conf, CONF_CONFIG), error);
	if (r) {
		conf_fini(&conf);
		return r;
	}
	*ret = conf;
	return 0;
}

bool conf_is_same(const struct conf *conf, const struct conf *other, enum conf_id id)
{
	const struct conf_value *a = &conf->values[id], *b = &other->values[id];

	if (a->number != b->number || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->texts[i], b->texts[i]) != 0)
			return false;
	return true;
}

int conf_keep(struct conf *conf, const struct conf *old, enum conf_id id)
{
	return copy_value(&conf->values[id], &old->values[id]);
}
