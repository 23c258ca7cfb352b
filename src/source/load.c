/* load.c - proxy lists, read to their end. */
#include "source/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fetch/fetch.h"

#define ENTRIES_MAX ((size_t)2000000)
#define HAND_MAX ((size_t)100000)
#define READ_SIZE ((size_t)65536)

struct load {
	struct endpoint_rules rules;
	enum list_format format;
	list_entry_cb *cb;
	void *arg;
	struct load_summary summary;
	struct dedupe hand; /* what was named by hand */
	struct list_reader **readers;
	size_t reader_count;
};

int load_new(struct load **ret, const struct endpoint_rules *rules, enum list_format format)
{
	struct load *load = calloc(1, sizeof *load);

	if (!load || dedupe_init(&load->hand, HAND_MAX)) {
		free(load);
		return -ENOMEM;
	}
	load->rules = *rules;
	load->format = format;
	*ret = load;
	return 0;
}

static void reader_free(struct list_reader *reader)
{
	list_reader_fini(reader);
	free(reader);
}

void load_free(struct load *load)
{
	if (!load)
		return;
	for (size_t i = 0; i < load->reader_count; i++)
		reader_free(load->readers[i]);
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		free(load->summary.first[verdict].text);
	dedupe_fini(&load->hand);
	free(load->readers);
	free(load);
}

void load_watch(struct load *load, list_entry_cb *cb, void *arg)
{
	load->cb = cb;
	load->arg = arg;
}

const struct load_summary *load_summary(const struct load *load)
{
	return &load->summary;
}

uint64_t load_rejected(const struct load *load)
{
	uint64_t rejected = 0;

	for (int verdict = VERDICT_HEADER + 1; verdict < VERDICT_COUNT; verdict++)
		rejected += load->summary.counts[verdict];
	return rejected;
}

/* --- read --------------------------------------------------------------------------------------------------------- */

static void on_entry(const struct list_entry *entry, void *arg)
{
	struct load *load = arg;

	if (load->summary.counts[entry->verdict]++ == 0) {
		load->summary.first[entry->verdict].line = entry->line;
		load->summary.first[entry->verdict].text = strdup(entry->text);
	}
	if (load->cb)
		load->cb(entry, load->arg);
}

static int feed_all(struct list_reader *reader, int fd, uint64_t max_bytes)
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
		r = total > max_bytes ? -EFBIG : list_reader_feed(reader, bytes, (size_t)n);
	}
	return r ? r : list_reader_end(reader);
}

static int hold(struct load *load, struct list_reader *reader)
{
	struct list_reader **readers =
	    realloc(load->readers, (load->reader_count + 1) * sizeof(struct list_reader *));

	if (!readers)
		return -ENOMEM;
	load->readers = readers;
	load->readers[load->reader_count++] = reader;
	return 0;
}

int load_read(struct load *load, int fd, uint64_t max_bytes)
{
	struct list_reader *reader = calloc(1, sizeof *reader);
	int r;

	if (!reader)
		return -ENOMEM;
	r = list_reader_init(reader, &load->rules, ENTRIES_MAX, on_entry, load);
	if (!r) {
		list_reader_force(reader, load->format);
		r = feed_all(reader, fd, max_bytes);
	}
	if (!r)
		r = hold(load, reader);
	if (r)
		reader_free(reader);
	return r;
}

int load_read_file(struct load *load, const char *path, uint64_t max_bytes)
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
		r = load_read(load, fd, max_bytes);
	close(fd);
	return r;
}

static bool is_page(const struct fetch_answer *answer)
{
	char head[256];
	ssize_t n = pread(answer->fd, head, sizeof head - 1, 0);

	if (!strcmp(answer->type, "text/html") || !strcmp(answer->type, "application/xhtml+xml"))
		return true;
	head[n > 0 ? n : 0] = '\0';
	return head[strspn(head, " \t\r\n\xef\xbb\xbf")] == '<';
}

int load_read_answer(struct load *load, const struct fetch_answer *answer, uint64_t max_bytes)
{
	return is_page(answer) ? -EBADMSG : load_read(load, answer->fd, max_bytes);
}

const char *load_error(int r)
{
	if (r == -EBADMSG)
		return "this is HTML, not a list";
	if (r == -ENOBUFS)
		return "more than 2,000,000 entries";
	if (r == -EFBIG)
		return "larger than its limit: 1 GiB for commands, list_max_bytes or max_bytes for "
		       "sources";
	return r == -EINVAL ? "not a file" : strerror(-r);
}

int load_add(struct load *load, const char *text)
{
	struct endpoint_rules rules = load->rules;
	struct endpoint endpoint;
	char canonical[ENDPOINT_TEXT_MAX];
	struct dedupe_item item = {.text = canonical, .country = "", .anonymity = ""};
	int r;

	rules.allow_direct = true;
	r = endpoint_parse(&endpoint, text, strlen(text), &rules);
	if (r)
		return r;
	item.len = endpoint_print(&endpoint, SHOW_SECRET, canonical, sizeof canonical);
	endpoint_fini(&endpoint);
	r = dedupe_add(&load->hand, &item);
	explicit_bzero(canonical, sizeof canonical);
	return r > 0 ? 0 : r; /* named twice is named once */
}

/* --- what it holds ------------------------------------------------------------------------------------------------ */

size_t load_count(const struct load *load)
{
	size_t count = load->hand.count;

	for (size_t i = 0; i < load->reader_count; i++)
		count += load->readers[i]->output.seen.count;
	return count;
}

bool load_next(const struct load *load, struct load_cursor *cursor, struct dedupe_item *ret)
{
	while (cursor->list < load->reader_count) {
		if (list_reader_next(load->readers[cursor->list], &cursor->at, ret))
			return true;
		cursor->list++;
		cursor->at = 0;
	}
	return cursor->list == load->reader_count && dedupe_next(&load->hand, &cursor->at, ret);
}
