/* fuzz_list.c - the reader of proxy lists on arbitrary bytes (libFuzzer).
 *
 * The last byte, which stays part of the list, chooses options and cuts, so that real lists are seeds as they are. What
 * must hold for every input: how the bytes arrive changes nothing; what is accepted is canonical; a message is printable
 * and short; a document that is refused accepts nothing; what stays in the reader is what was accepted, in order. */
#include <stdlib.h>
#include <string.h>

#include "list/item.h"
#include "list/plain.h"
#include "list/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define ENTRIES_MAX ((size_t)100000)
#define MESSAGE_MAX ((size_t)400)
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)

/* What a reading said: a running hash of everything, and its accepted entries in order. */
struct said {
	const struct endpoint_rules *rules;
	uint64_t hash, accepted_hash;
	size_t accepted;
	bool is_refused; /* as a whole, behind its first entry or not */
};

static const uint64_t no_key[2];

static void hash_add(uint64_t *hash, const void *bytes, size_t len)
{
	*hash = *hash * 0x100000001b3 + siphash(no_key, bytes, len) + len;
}

static void check_canonical(const struct endpoint *e, const struct endpoint_rules *rules,
			    char *once)
{
	static char twice[ENDPOINT_TEXT_MAX];
	struct endpoint again;
	size_t len = endpoint_print(e, SHOW_SECRET, once, ENDPOINT_TEXT_MAX);

	CHECK(len + 1 < ENDPOINT_TEXT_MAX);
	CHECK(endpoint_parse(&again, once, len, rules) == 0);
	endpoint_print(&again, SHOW_SECRET, twice, sizeof(twice));
	CHECK(strcmp(once, twice) == 0);
	endpoint_fini(&again);
}

static void check_text(const char *text)
{
	CHECK(strlen(text) < MESSAGE_MAX);
	for (; *text; text++)
		CHECK(*text > 0x20 && *text < 0x7f);
}

static void on_entry(const struct list_entry *e, void *arg)
{
	static char canonical[ENDPOINT_TEXT_MAX];
	struct said *s = arg;

	canonical[0] = '\0';
	check_text(e->text);
	CHECK(strlen(e->scheme) < LIST_SCHEME_MAX && strlen(e->country) < LIST_TAG_MAX &&
	      strlen(e->anonymity) < LIST_TAG_MAX);
	CHECK((e->endpoint != NULL) ==
	      (e->verdict == VERDICT_ACCEPTED || e->verdict == VERDICT_DUPLICATE));
	if (e->endpoint)
		check_canonical(e->endpoint, s->rules, canonical);
	if (e->verdict == VERDICT_ACCEPTED) {
		s->accepted++;
		hash_add(&s->accepted_hash, canonical, strlen(canonical));
	}
	s->is_refused = s->is_refused || (e->line == 0 && e->verdict == VERDICT_JSON_SYNTAX);
	hash_add(&s->hash, &e->line, sizeof(e->line));
	hash_add(&s->hash, &e->verdict, sizeof(e->verdict));
	hash_add(&s->hash, canonical, strlen(canonical));
	hash_add(&s->hash, e->text, strlen(e->text));
}

static void check_kept(const struct list_reader *r, const struct said *s)
{
	struct dedupe_item item;
	uint64_t hash = 0;
	size_t at = 0, count = 0;

	for (; list_reader_next(r, &at, &item); count++)
		hash_add(&hash, item.text, item.len);
	CHECK(count == s->accepted && hash == s->accepted_hash);
}

static struct said read_in_steps(const char *bytes, size_t len, enum list_format format,
				 const struct endpoint_rules *rules, size_t step)
{
	static struct list_reader r;
	struct said s = {.rules = rules};

	CHECK(list_reader_init(&r, rules, ENTRIES_MAX, on_entry, &s) == 0);
	list_reader_force(&r, format);
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;
		char *piece = malloc(n);

		CHECK(piece != NULL);
		memcpy(piece, bytes + at, n);
		CHECK(list_reader_feed(&r, piece, n) == 0);
		free(piece);
	}
	CHECK(list_reader_end(&r) == 0);
	check_kept(&r, &s);
	list_reader_fini(&r);
	return s;
}

/* The quick reader takes nothing that the careful one reads otherwise. */
static void check_plain(const char *bytes, size_t len, const struct endpoint_rules *rules)
{
	struct endpoint quick, slow;
	struct endpoint_parts parts;

	if (!list_plain_read(&quick, bytes, len, rules))
		return;
	CHECK(list_item_split(&parts, bytes, len, rules) == 0);
	CHECK(parts_build(&slow, &parts, rules) == 0);
	CHECK(quick.scheme == slow.scheme && quick.port == slow.port && !slow.secret);
	CHECK(strcmp(quick.host, slow.host) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes;
	struct endpoint_rules rules = {.default_scheme = SCHEME_HTTP};
	struct said whole, pieces;
	enum list_format format;
	uint8_t choice;

	if (len == 0)
		return 0;
	choice = bytes[len - 1];
	rules.allow_private = choice & 0x20;
	rules.allow_single_label = choice & 0x40;
	rules.colon_order = choice & 0x80 ? COLON_USER_FIRST : COLON_AUTO;
	format = choice & 0x10 ? (enum list_format)(choice % LIST_FORMAT_COUNT) : LIST_AUTO;
	whole = read_in_steps(text, len, format, &rules, len);
	pieces = read_in_steps(text, len, format, &rules, len > 4096 ? 997 : 1 + choice % 7);
	CHECK(whole.hash == pieces.hash && whole.accepted_hash == pieces.accepted_hash);
	CHECK(!whole.is_refused || whole.accepted == 0);
	check_plain(text, len, &rules);
	return 0;
}
