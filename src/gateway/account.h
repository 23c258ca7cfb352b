/* account.h - clients by name: the file of --auth-file, read whole; passwords checked in constant time. Pure but for
 * reading.
 *
 * A line: NAME hmac-sha256:SALT:DIGEST [pools=ALIAS,ALIAS...]; '#' begins a comment. SALT is 16 bytes, DIGEST the 32
 * of HMAC-SHA-256(SALT, password), both in hexadecimal. Passwords should be long and random: the digest is fast on
 * purpose. */
#ifndef FAIRLEAD_GATEWAY_ACCOUNT_H
#define FAIRLEAD_GATEWAY_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/result.h"

#define ACCOUNT_NAME_MAX 64

struct accounts;
struct account;

/* 0, or -errno with one line in `error` that names file, line and fault. A file without an account is an error. */
MUST_USE int accounts_read(struct accounts **ret, const char *path, char *error, size_t error_size);
void accounts_free(struct accounts *accounts);

/* The account whose name is the longest that `user` begins with, followed by '-' or the end; or NULL. */
const struct account *accounts_find(const struct accounts *accounts, const char *user, size_t len);

/* Is it the account's password? `account` NULL: takes as long, and says no. */
bool account_check(const struct account *account, const char *password, size_t len);

const char *account_name(const struct account *account);

/* May it use the pool of that alias? Without pools= it may use all. */
bool account_may_use(const struct account *account, const char *alias);

/* A line of the file for `name` and `password`, without line feed. 0, -EINVAL (no such name can be), -EMSGSIZE, -EIO. */
MUST_USE int account_print_line(const char *name, const char *password, size_t len, char *buffer,
				size_t size);

#endif
