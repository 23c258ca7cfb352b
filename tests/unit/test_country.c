/* test_country.c - countries from a database in MaxMind's format, made here by its specification (version 2.0). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "check/country.h"

/* --- a database --------------------------------------------------------------------------------------------------- */

#define NODES_MAX 512
#define RECORD_BYTES 3
#define SEPARATOR_BYTES 16

/* A search tree over IPv6, IPv4 below ::/96, as the database's authors do it. A record is a node, or NODES_MAX + the offset
 * of data + 1; 0: nothing. */
static struct {
	unsigned records[NODES_MAX][2];
	unsigned node_count;
	uint8_t data[2048];
	size_t data_len;
	uint8_t file[NODES_MAX * 2 * RECORD_BYTES + 4096];
	size_t file_len;
} db;

static char path[] = "/tmp/fairlead-country-XXXXXX";

static void put_bytes(uint8_t *to, size_t *len, const void *bytes, size_t count)
{
	memcpy(to + *len, bytes, count);
	*len += count;
}

/* A control byte has type and size: 2 is a string, 7 a map (of so many pairs); types over 7 stand in a byte of their own. */
static void put_control(uint8_t *to, size_t *len, unsigned type, size_t size)
{
	uint8_t bytes[2] = {(uint8_t)((type < 8 ? type << 5 : 0) | size), (uint8_t)(type - 7)};

	put_bytes(to, len, bytes, type < 8 ? 1 : 2);
}

static void put_text(uint8_t *to, size_t *len, const char *text)
{
	put_control(to, len, 2, strlen(text));
	put_bytes(to, len, text, strlen(text));
}

/* {where: {"iso_code": code}}; returns its offset. */
static unsigned add_data(const char *where, const char *code)
{
	size_t at = db.data_len;

	put_control(db.data, &db.data_len, 7, 1);
	put_text(db.data, &db.data_len, where);
	put_control(db.data, &db.data_len, 7, 1);
	put_text(db.data, &db.data_len, "iso_code");
	put_text(db.data, &db.data_len, code);
	return (unsigned)at;
}

static void add_network(const char *text, const char *where, const char *code)
{
	uint8_t bits[16] = {0};
	struct network network;
	unsigned node = 0, prefix;

	assert_int_equal(network_parse(&network, text, strlen(text)), 0);
	prefix = network.prefix + (network.address.family == AF_INET ? 96 : 0);
	memcpy(bits + (network.address.family == AF_INET ? 12 : 0), network.address.bytes,
	       network.address.family == AF_INET ? 4 : 16);
	for (unsigned i = 0; i < prefix; i++) {
		unsigned *record = &db.records[node][bits[i / 8] >> (7 - i % 8) & 1];

		if (i + 1 == prefix)
			*record = NODES_MAX + add_data(where, code) + 1;
		else if (!*record)
			*record = ++db.node_count;
		node = *record;
		assert_true(db.node_count < NODES_MAX);
	}
}

/* As it stands in the file: a node, "nothing" (their number), or data behind both. */
static unsigned file_record(unsigned record)
{
	unsigned count = db.node_count + 1;

	if (record > NODES_MAX)
		return record - NODES_MAX - 1 + count + SEPARATOR_BYTES;
	return record ? record : count;
}

static void put_number(const char *name, unsigned type, uint16_t value)
{
	uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};

	put_text(db.file, &db.file_len, name);
	put_control(db.file, &db.file_len, type, sizeof bytes);
	put_bytes(db.file, &db.file_len, bytes, sizeof bytes);
}

#define UINT16 5
#define UINT32 6
#define UINT64 9
#define ARRAY 11

static void put_metadata(void)
{
	put_bytes(db.file, &db.file_len, "\xab\xcd\xefMaxMind.com", 14);
	put_control(db.file, &db.file_len, 7, 9);
	put_number("node_count", UINT32, (uint16_t)(db.node_count + 1));
	put_number("record_size", UINT16, 8 * RECORD_BYTES);
	put_number("ip_version", UINT16, 6);
	put_number("binary_format_major_version", UINT16, 2);
	put_number("binary_format_minor_version", UINT16, 0);
	put_number("build_epoch", UINT64, 1);
	put_text(db.file, &db.file_len, "database_type");
	put_text(db.file, &db.file_len, "Test");
	put_text(db.file, &db.file_len, "languages");
	put_control(db.file, &db.file_len, ARRAY, 0);
	put_text(db.file, &db.file_len, "description");
	put_control(db.file, &db.file_len, 7, 0);
}

static void write_file(size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(db.file, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static int make_database(void **state)
{
	static const uint8_t separator[SEPARATOR_BYTES];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	add_network("192.0.2.0/24", "country", "DE");
	add_network("198.51.100.0/24", "registered_country", "FR");
	add_network("203.0.113.0/24", "continent", "EU");
	add_network("203.0.112.0/24", "country", "D1");
	add_network("2001:db8::/32", "country", "US");
	for (unsigned i = 0; i <= db.node_count; i++)
		for (int side = 0; side < 2; side++) {
			unsigned record = file_record(db.records[i][side]);
			uint8_t bytes[] = {(uint8_t)(record >> 16), (uint8_t)(record >> 8),
					   (uint8_t)record};

			put_bytes(db.file, &db.file_len, bytes, sizeof bytes);
		}
	put_bytes(db.file, &db.file_len, separator, sizeof separator);
	put_bytes(db.file, &db.file_len, db.data, db.data_len);
	put_metadata();
	return 0;
}

static int remove_database(void **state)
{
	(void)state;
	return unlink(path);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static struct countries *open_whole(void)
{
	struct countries *countries = NULL;
	char error[400] = "";

	write_file(db.file_len);
	if (countries_open(&countries, path, error, sizeof error))
		fail_msg("%s", error);
	return countries;
}

static void is_in(const struct countries *countries, const char *address, const char *expected)
{
	char code[3] = "??";

	countries_find(countries, address, code);
	assert_string_equal(code, expected);
}

static void test_an_address_has_its_networks_country(void **state)
{
	struct countries *countries = open_whole();

	(void)state;
	is_in(countries, "192.0.2.1", "de");
	is_in(countries, "192.0.2.255", "de");
	is_in(countries, "2001:db8::1", "us");
	countries_close(countries);
}

static void test_without_a_country_the_registered_one_is_told(void **state)
{
	struct countries *countries = open_whole();

	(void)state;
	is_in(countries, "198.51.100.9", "fr");
	countries_close(countries);
}

static void test_what_is_not_known_is_empty(void **state)
{
	struct countries *countries = open_whole();

	(void)state;
	is_in(countries, "192.0.3.1", "");
	is_in(countries, "2001:db9::1", "");
	is_in(countries, "203.0.113.1", ""); /* its record has no country */
	is_in(countries, "203.0.112.1", ""); /* its code is none */
	is_in(countries, "", "");
	is_in(countries, "host.example", "");
	is_in(NULL, "192.0.2.1", "");
	countries_close(countries);
	countries_close(NULL);
}

static void fails_to_open(const char *name, int expected, const char *text)
{
	struct countries *countries;
	char error[400] = "", line[400];

	assert_int_equal(countries_open(&countries, name, error, sizeof error), expected);
	snprintf(line, sizeof line, "%s: %s", name, text);
	assert_string_equal(error, line);
}

static void test_a_file_that_cannot_be_used_is_named(void **state)
{
	(void)state;
	fails_to_open("/nowhere/geo.mmdb", -ENOENT, "No such file or directory");
	write_file(0);
	fails_to_open(path, -EINVAL, "no database in MaxMind's format");
	write_file(100);
	fails_to_open(path, -EINVAL, "no database in MaxMind's format");
}

static void ask_all(const struct countries *countries)
{
	static const char *const addresses[] = {"192.0.2.1",   "198.51.100.9", "203.0.113.1",
						"2001:db8::1", "::",           "255.255.255.255"};
	char code[3];

	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		countries_find(countries, addresses[i], code);
		assert_in_range(strlen(code), 0, 2);
	}
}

static void change_byte(int fd, size_t at, uint8_t byte)
{
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* libmaxminddb 1.7 forgets what it has read of the metadata when the rest of it is broken. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libmaxminddb.so";
}

/* Each byte in turn becomes another one: opening or lookups may fail, and nothing else. */
static void test_a_corrupt_database_does_no_harm(void **state)
{
	static const uint8_t masks[] = {0xff, 0x01, 0x80, 0x20};
	struct countries *countries;
	char error[400];
	size_t opened = 0, count = db.file_len * sizeof masks;
	int fd = open(path, O_WRONLY);

	(void)state;
	write_file(db.file_len);
	for (size_t i = 0; i < count; i++) {
		size_t at = i / sizeof masks;

		change_byte(fd, at, db.file[at] ^ masks[i % sizeof masks]);
		if (!countries_open(&countries, path, error, sizeof error)) {
			opened++;
			ask_all(countries);
			countries_close(countries);
		}
		change_byte(fd, at, db.file[at]);
	}
	close(fd);
	assert_in_range(opened, 1, count - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_address_has_its_networks_country),
	    cmocka_unit_test(test_without_a_country_the_registered_one_is_told),
	    cmocka_unit_test(test_what_is_not_known_is_empty),
	    cmocka_unit_test(test_a_file_that_cannot_be_used_is_named),
	    cmocka_unit_test(test_a_corrupt_database_does_no_harm),
	};
	return cmocka_run_group_tests(tests, make_database, remove_database);
}
