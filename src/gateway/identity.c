/* identity.c - who a client is and what it wants. */
#include "gateway/identity.h"

#include <stdio.h>
#include <string.h>

#include "gateway/internal.h"

/* Where the parameters begin when there is no account to be matched: at the first '-'. */
static size_t name_len(const char *user, size_t len)
{
	const char *dash = memchr(user, '-', len);

	return dash ? (size_t)(dash - user) : len;
}

static bool is_printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

/* A name that nobody vouches for: it keeps sessions apart, and can never be that of an account. */
static int take_free_name(struct identity *ret, const char *user, size_t len, char *detail,
			  size_t detail_size)
{
	if (len > ACCOUNT_NAME_MAX || !is_printable(user, len)) {
		snprintf(detail, detail_size,
			 "a user name has at most %d printable characters before its parameters",
			 ACCOUNT_NAME_MAX);
		return REASON_USER_PARAMETER;
	}
	if (len)
		snprintf(ret->client, sizeof ret->client, "~%.*s", (int)len, user);
	return 0;
}

/* Finds out who it is; *ret_used of the user name is the name. */
static int authenticate(struct identity *ret, const struct listener *listener,
			const struct credentials *given, bool is_trusted,
			const struct account **ret_account, size_t *ret_used, char *detail,
			size_t detail_size)
{
	const struct accounts *accounts = listener->gateway->config.accounts;
	const struct account *account =
	    accounts ? accounts_find(accounts, given->user, given->user_len) : NULL;

	/* An unknown name takes as long as a wrong password. */
	if (accounts && !is_trusted &&
	    !account_check(account, given->password, given->password_len)) {
		if (listener->needs_account)
			return REASON_CLIENT_UNKNOWN;
		account = NULL;
	}
	*ret_account = account;
	if (account) {
		*ret_used = strlen(account_name(account));
		snprintf(ret->client, sizeof ret->client, "%s", account_name(account));
		return 0;
	}
	*ret_used = name_len(given->user, given->user_len);
	return take_free_name(ret, given->user, *ret_used, detail, detail_size);
}

static int choose_pool(struct identity *ret, const struct listener *listener,
		       const struct account *account, const struct user *user, char *detail,
		       size_t detail_size)
{
	struct pools *pools = listener->gateway->config.pools;
	struct pool *first = pools_find(pools, "");
	const char *base = pool_name(first);
	char alias[KEY_NAME_MAX + USER_VALUE_MAX + 2];

	if (*user->pool)
		base = user->pool;
	else if (*listener->pool)
		base = listener->pool;
	snprintf(alias, sizeof alias, *user->country ? "%s.%s" : "%s", base, user->country);
	/* --pool may have a name that cannot be an alias. */
	ret->pool = strcmp(alias, pool_name(first)) ? pools_find(pools, alias) : first;
	if (ret->pool && (!account || account_may_use(account, alias)))
		return 0;
	/* What the client said, never the name of a key. */
	snprintf(detail, detail_size, "there is no pool '%s%s%s' for this client", user->pool,
		 *user->country ? "." : "", user->country);
	return REASON_POOL_DENIED;
}

int identity_judge(struct identity *ret, const struct listener *listener,
		   const struct credentials *given, char *detail, size_t detail_size)
{
	const struct gateway_config *config = &listener->gateway->config;
	const struct credentials own = {.user = listener->user, .user_len = strlen(listener->user)};
	const struct account *account = NULL;
	struct identity identity = {.lifetime_ms = config->session_ms};
	bool is_trusted = !given->user && *listener->user;
	struct user user = {0};
	size_t used = 0;
	int r = 0;

	*detail = '\0';
	if (is_trusted)
		given = &own;
	if (!given->user && listener->needs_account)
		return REASON_CLIENT_UNKNOWN;
	if (given->user)
		r = authenticate(&identity, listener, given, is_trusted, &account, &used, detail,
				 detail_size);
	if (!r && given->user)
		r = user_parse(&user, given->user + used, given->user_len - used,
			       config->session_max_ms, detail, detail_size);
	if (!r)
		r = choose_pool(&identity, listener, account, &user, detail, detail_size);
	if (r)
		return r;
	memcpy(identity.session, user.session, sizeof identity.session);
	if (user.lifetime_ms)
		identity.lifetime_ms = user.lifetime_ms;
	identity.is_strict = user.is_strict;
	*ret = identity;
	return 0;
}

const char *identity_account(const struct identity *identity)
{
	return *identity->client == '~' ? "" : identity->client;
}
