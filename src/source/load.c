/* load.c - a proxy list into a pool: read to its end, then applied. */
#include "source/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "list/reader.h"

#define ENTRIES_MAX ((size_t)2000000)
#define FILE_MAX ((uint64_t)1 << 30)
#define READ_SIZE ((size_t)65536)

struct load {
	struct endpoint_rules rules;
	struct load_summary summary;
	struct endpoint *endpoints;
	size_t count, size;
	int result; /* of an entry that could not be kept */

	/* while it is applied */
	struct pool *pool;
	enum change change;
	const char *source;
	load_cb *cb;
	void *arg;
	size_t next;
	struct load_result done;
};

int load_new(struct load **ret, const struct endpoint_rules *rules)
{
	struct load *load = calloc(1, sizeof *load);

	if (!load)
		return -ENOMEM;
	load->rules = *rules;
	*ret = load;
	return 0;
}

void load_free(struct load *load)
{
	if (!load)
		return;
	for (size_t i = 0; i < load->count; i++)
		endpoint_fini(&load->endpoints[i]);
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		free(load->summary.first[verdict].text);
	free(load->endpoints);
	free(load);
}

const struct load_summary *load_summary(const struct load *load)
{
	return &load->summary;
}

size_t load_count(const struct load *load)
{
	return load->count;
}

const struct endpoint *load_at(const struct load *load, size_t index)
{
	return &load->endpoints[index];
}

/* --- read --------------------------------------------------------------------------------------------------------- */

static int keep(struct load *load, const struct endpoint *endpoint)
{
	if (load->count == load->size) {
		size_t size = load->size ? 2 * load->size : 64;
		struct endpoint *endpoints = realloc(load->endpoints, size * sizeof *endpoints);

		if (!endpoints)
			return -ENOMEM;
		load->endpoints = endpoints;
		load->size = size;
	}
	if (endpoint_copy(&load->endpoints[load->count], endpoint))
		return -ENOMEM;
	load->count++;
	return 0;
}

static void on_entry(const struct list_entry *entry, void *arg)
{
	struct load *load = arg;

	if (load->summary.counts[entry->verdict]++ == 0) {
		load->summary.first[entry->verdict].line = entry->line;
		load->summary.first[entry->verdict].text = strdup(entry->text);
	}
	if (entry->verdict == VERDICT_ACCEPTED && !load->result)
		load->result = keep(load, entry->endpoint);
}

static int feed_all(struct list_reader *reader, int fd)
{
	char bytes[READ_SIZE];
	uint64_t total = 0;
	ssize_t n;
	int r = 0;

	while (!r && (n = read(fd, bytes, sizeof bytes)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		total += (uint64_t)n;
		r = total > FILE_MAX ? -EFBIG : list_reader_feed(reader, bytes, (size_t)n);
	}
	return r ? r : list_reader_end(reader);
}

int load_read(struct load *load, int fd)
{
	struct list_reader reader;
	int r = list_reader_init(&reader, &load->rules, ENTRIES_MAX, on_entry, load);

	if (!r)
		r = feed_all(&reader, fd);
	list_reader_fini(&reader);
	return r ? r : load->result;
}

int load_read_file(struct load *load, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else
		r = load_read(load, fd);
	close(fd);
	return r;
}

int load_add(struct load *load, const char *text)
{
	struct endpoint_rules rules = load->rules;
	struct endpoint endpoint;
	int r;

	rules.allow_direct = true;
	r = endpoint_parse(&endpoint, text, strlen(text), &rules);
	if (r)
		return r;
	r = keep(load, &endpoint);
	endpoint_fini(&endpoint);
	return r;
}

/* --- apply -------------------------------------------------------------------------------------------------------- */

static int apply_next(struct load *load);

static void on_changed(int result, const char *error, const enum placed *placed, size_t count,
		       void *arg)
{
	struct load *load = arg;

	for (size_t i = 0; i < count && !result; i++)
		load->done.placed[placed[i]]++;
	if (!result && load->next < load->count) {
		if (!apply_next(load))
			return;
		result = REASON_STORE_NOT_DONE;
	}
	load->cb(result, error, &load->done, load->arg);
}

/* The next batch: identifiers are made from the pool's salt. 0 or -errno. */
static int apply_next(struct load *load)
{
	struct change_item items[CHANGE_MAX];
	char ids[CHANGE_MAX][ENDPOINT_ID_MAX];
	size_t count = 0;

	while (count < CHANGE_MAX && load->next < load->count) {
		const struct endpoint *endpoint = &load->endpoints[load->next++];
		int r = endpoint_id(endpoint, pool_rules(load->pool)->salt, ids[count],
				    sizeof ids[count]);

		if (r)
			return r;
		items[count] = (struct change_item){.id = ids[count], .secret = endpoint->secret};
		count++;
	}
	return pool_change(load->pool, load->change, load->source, items, count, on_changed, load);
}

int load_apply(struct load *load, struct pool *pool, enum change change, const char *source,
	       load_cb *cb, void *arg)
{
	load->pool = pool;
	load->change = change;
	load->source = source;
	load->cb = cb;
	load->arg = arg;
	load->next = 0;
	load->done = (struct load_result){0};
	return load->count ? apply_next(load) : -ENOENT;
}
