/* account.c - clients by name, from a file; passwords by salted digest. */
#include "gateway/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/digest.h"

#define SALT_BYTES ((size_t)16)
#define ALIAS_MAX ((size_t)64)
#define ACCOUNTS_MAX 1000000
#define METHOD "hmac-sha256:"
#define POOLS "pools="

struct account {
	char name[ACCOUNT_NAME_MAX + 1];
	uint8_t salt[SALT_BYTES], digest[DIGEST_BYTES];
	char *pools; /* "eu,us"; NULL: all */
	size_t line;
	UT_hash_handle hh;
};

struct accounts {
	struct account *index;
};

struct word {
	const char *at;
	size_t len;
};

struct source {
	FILE *file;
	const char *path;
	size_t line;
	char *error;
	size_t error_size;
};

static int refuse(const struct source *s, const char *fault)
{
	snprintf(s->error, s->error_size, "%s:%zu: %s", s->path, s->line, fault);
	return -EINVAL;
}

static int refuse_file(const struct source *s, int result)
{
	snprintf(s->error, s->error_size, "%s: %s", s->path, strerror(-result));
	return result;
}

/* The next word of a line; none behind a '#' that begins one. */
static struct word next_word(const char **at)
{
	struct word word = {*at + strspn(*at, " \t"), 0};

	if (*word.at != '#')
		word.len = strcspn(word.at, " \t");
	*at = word.at + word.len;
	return word;
}

static bool has_prefix(struct word word, const char *prefix)
{
	return word.len >= strlen(prefix) && memcmp(word.at, prefix, strlen(prefix)) == 0;
}

static bool name_is_valid(const char *name, size_t len)
{
	if (len == 0 || len > ACCOUNT_NAME_MAX || name[0] == '#' || name[0] == '~')
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == ':')
			return false;
	return true;
}

/* "hmac-sha256:SALT:DIGEST" */
static int read_digest(struct account *account, struct word word)
{
	const size_t start = strlen(METHOD), colon = start + 2 * SALT_BYTES;

	if (!has_prefix(word, METHOD) || word.len <= colon || word.at[colon] != ':')
		return -EINVAL;
	if (hex_parse(account->salt, SALT_BYTES, word.at + start, 2 * SALT_BYTES))
		return -EINVAL;
	return hex_parse(account->digest, DIGEST_BYTES, word.at + colon + 1, word.len - colon - 1);
}

/* Aliases as -pool- in a user name has them, separated by commas. */
static bool pools_are_valid(struct word list)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._";
	size_t len;

	for (const char *at = list.at;; at += len + 1) {
		len = strspn(at, allowed);
		if (len == 0 || len > ALIAS_MAX)
			return false;
		if (at + len == list.at + list.len)
			return true;
		if (at[len] != ',')
			return false;
	}
}

static int read_pools(const struct source *s, struct account *account, struct word word)
{
	struct word list = {word.at + strlen(POOLS), word.len - strlen(POOLS)};

	if (account->pools)
		return refuse(s, "pools= stands there twice");
	if (!pools_are_valid(list))
		return refuse(s, "pools= needs aliases of letters, digits, '.' and '_', separated "
				 "by commas");
	account->pools = strndup(list.at, list.len);
	return account->pools ? 0 : -ENOMEM;
}

/* What is wrong is never shown: it may be a password. */
static int read_words(const struct source *s, struct account *account, const char *line)
{
	struct word word = next_word(&line);
	int r = 0;

	if (!name_is_valid(word.at, word.len))
		return refuse(s, "a name has 1 to 64 visible ASCII characters without ':'");
	memcpy(account->name, word.at, word.len);
	if (read_digest(account, next_word(&line)))
		return refuse(s, "the name must be followed by hmac-sha256:SALT:DIGEST, as "
				 "'fairlead auth' prints it");
	for (word = next_word(&line); word.len > 0 && !r; word = next_word(&line))
		r = has_prefix(word, POOLS)
			? read_pools(s, account, word)
			: refuse(s, "only pools=ALIAS,... may follow the digest");
	return r;
}

static int add_account(const struct source *s, struct accounts *accounts, struct account *account)
{
	struct account *other;
	char fault[64];

	HASH_FIND_STR(accounts->index, account->name, other);
	if (other) {
		snprintf(fault, sizeof fault, "the name stands on line %zu already", other->line);
		return refuse(s, fault);
	}
	if (HASH_COUNT(accounts->index) >= ACCOUNTS_MAX)
		return refuse(s, "there are too many accounts");
	HASH_ADD_STR(accounts->index, name, account);
	return 0;
}

static void account_free(struct account *account)
{
	free(account->pools);
	free(account);
}

static int read_line(const struct source *s, struct accounts *accounts, char *line, size_t len)
{
	const char *rest = line;
	struct account *account;
	int r;

	if (memchr(line, '\0', len))
		return refuse(s, "there is a NUL byte");
	line[strcspn(line, "\r\n")] = '\0';
	if (next_word(&rest).len == 0)
		return 0;
	account = calloc(1, sizeof *account);
	if (!account)
		return -ENOMEM;
	account->line = s->line;
	r = read_words(s, account, line);
	if (!r)
		r = add_account(s, accounts, account);
	if (r)
		account_free(account);
	return r;
}

static int read_lines(struct source *s, struct accounts *accounts)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int r = 0;

	while (!r && (len = getline(&line, &size, s->file)) >= 0) {
		s->line++;
		r = read_line(s, accounts, line, (size_t)len);
	}
	free(line);
	if (r == -ENOMEM || (!r && ferror(s->file)))
		return refuse_file(s, r ? r : -EIO);
	if (!r && !accounts->index) {
		snprintf(s->error, s->error_size, "%s: there is no account in it", s->path);
		return -EINVAL;
	}
	return r;
}

/* A pipe would block a gateway that reads its settings again, and has nothing for its neighbours. */
static int open_file(struct source *s)
{
	int fd = open(s->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat about;

	if (fd < 0)
		return refuse_file(s, -errno);
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
		s->file = fdopen(fd, "r");
		if (s->file)
			return 0;
	}
	close(fd);
	snprintf(s->error, s->error_size, "%s: it is no regular file", s->path);
	return -EINVAL;
}

int accounts_read(struct accounts **ret, const char *path, char *error, size_t error_size)
{
	struct source s = {.path = path, .error = error, .error_size = error_size};
	struct accounts *accounts = NULL;
	int r = open_file(&s);

	if (r)
		return r;
	accounts = calloc(1, sizeof *accounts);
	r = accounts ? read_lines(&s, accounts) : refuse_file(&s, -ENOMEM);
	fclose(s.file);
	if (r)
		accounts_free(accounts);
	else
		*ret = accounts;
	return r;
}

void accounts_free(struct accounts *accounts)
{
	struct account *account, *next;

	if (!accounts)
		return;
	account = accounts->index;
	HASH_CLEAR(hh, accounts->index);
	for (; account; account = next) {
		next = account->hh.next;
		account_free(account);
	}
	free(accounts);
}

/* Names may hold '-' themselves, so each place where one could end is tried, the longest first. */
const struct account *accounts_find(const struct accounts *accounts, const char *user, size_t len)
{
	const size_t longest = len < ACCOUNT_NAME_MAX ? len : ACCOUNT_NAME_MAX;
	struct account *account;

	for (size_t end = longest; end > 0; end--) {
		if (end < len && user[end] != '-')
			continue;
		HASH_FIND(hh, accounts->index, user, (unsigned)end, account);
		if (account)
			return account;
	}
	return NULL;
}

bool account_check(const struct account *account, const char *password, size_t len)
{
	static const struct account nobody;
	const struct account *checked = account ? account : &nobody;
	uint8_t digest[DIGEST_BYTES];
	bool is_equal;

	if (digest_hmac(digest, checked->salt, SALT_BYTES, password, len))
		return false;
	is_equal = digest_equal(digest, checked->digest, DIGEST_BYTES);
	return is_equal && account;
}

const char *account_name(const struct account *account)
{
	return account->name;
}

bool account_may_use(const struct account *account, const char *alias)
{
	const size_t len = strlen(alias);
	size_t part;

	if (!account->pools)
		return true;
	for (const char *at = account->pools; *at; at += part + (at[part] == ',')) {
		part = strcspn(at, ",");
		if (part == len && memcmp(at, alias, len) == 0)
			return true;
	}
	return false;
}

int account_print_line(const char *name, const char *password, size_t len, char *buffer,
		       size_t size)
{
	uint8_t salt[SALT_BYTES], digest[DIGEST_BYTES];
	char salt_text[2 * SALT_BYTES + 1], digest_text[2 * DIGEST_BYTES + 1];
	int printed;

	if (!name_is_valid(name, strlen(name)))
		return -EINVAL;
	if (random_bytes(salt, sizeof salt) ||
	    digest_hmac(digest, salt, sizeof salt, password, len))
		return -EIO;
	hex_print(salt, sizeof salt, salt_text);
	hex_print(digest, sizeof digest, digest_text);
	printed = snprintf(buffer, size, "%s " METHOD "%s:%s", name, salt_text, digest_text);
	return printed < (int)size ? 0 : -EMSGSIZE;
}
