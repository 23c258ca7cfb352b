/* country.c - the country of an address. */
#include "check/country.h"

#include <errno.h>
#include <maxminddb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

struct countries {
	MMDB_s database;
};

static int explain(const char *path, int r, char *error, size_t size)
{
	snprintf(error, size, "%.300s: %s", path,
		 r == -EINVAL ? "no database in MaxMind's format" : strerror(-r));
	return r;
}

/* What MMDB_open() returned, as -errno. */
static int open_result(int status)
{
	if (status == MMDB_OUT_OF_MEMORY_ERROR)
		return -ENOMEM;
	if ((status == MMDB_FILE_OPEN_ERROR || status == MMDB_IO_ERROR) && errno)
		return -errno;
	return status ? -EINVAL : 0;
}

int countries_open(struct countries **ret, const char *path, char *error, size_t size)
{
	struct countries *countries = calloc(1, sizeof *countries);
	int r;

	if (!countries)
		return explain(path, -ENOMEM, error, size);
	errno = 0;
	r = open_result(MMDB_open(path, MMDB_MODE_MMAP, &countries->database));
	if (r) {
		free(countries);
		return explain(path, r, error, size);
	}
	*ret = countries;
	return 0;
}

void countries_close(struct countries *countries)
{
	if (!countries)
		return;
	MMDB_close(&countries->database);
	free(countries);
}

/* ISO 3166-1: two letters. What else a database may hold is not passed on. */
static bool read_code(MMDB_entry_s *entry, const char *where, char ret[3])
{
	MMDB_entry_data_s data;
	char code[3] = "";

	if (MMDB_get_value(entry, &data, where, "iso_code", NULL) != MMDB_SUCCESS ||
	    !data.has_data || data.type != MMDB_DATA_TYPE_UTF8_STRING || data.data_size != 2)
		return false;
	for (int i = 0; i < 2; i++) {
		code[i] = (char)(data.utf8_string[i] | 0x20);
		if (code[i] < 'a' || code[i] > 'z')
			return false;
	}
	memcpy(ret, code, sizeof code);
	return true;
}

void countries_find(const struct countries *countries, const char *address, char ret[3])
{
	struct sockaddr_storage sa;
	struct address parsed;
	MMDB_lookup_result_s found;
	int status;

	ret[0] = '\0';
	if (!countries || address_parse(&parsed, address, strlen(address)))
		return;
	address_to_sockaddr(&parsed, 0, &sa);
	found = MMDB_lookup_sockaddr(&countries->database, (struct sockaddr *)&sa, &status);
	if (status != MMDB_SUCCESS || !found.found_entry)
		return;
	if (!read_code(&found.entry, "country", ret))
		(void)read_code(&found.entry, "registered_country", ret);
}
