/* environment.c - a member as the environment of a command. */
#include "pool/environment.h"

#include <stdio.h>
#include <string.h>

/* Clients read one of these or the other: curl, and whoever fears that a CGI server sets HTTP_PROXY from a request's
 * header, only http_proxy. One that stayed as it was could lead past the member. */
static const char *const proxy_names[ENVIRONMENT_PROXIES] = {
    "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY",
    "all_proxy",  "ALL_PROXY",  "ftp_proxy",   "FTP_PROXY"};
/* What stands in these goes direct. */
static const char *const removed_names[ENVIRONMENT_REMOVED] = {"no_proxy", "NO_PROXY"};

/* Names are for the member to resolve: that is socks5h for curl and others, which look them up themselves for socks5. */
static void print_for_clients(const struct endpoint *member, char *ret, size_t size)
{
	struct endpoint told = *member; /* borrows the secret */

	if (told.scheme == SCHEME_SOCKS5)
		told.scheme = SCHEME_SOCKS5H;
	endpoint_print(&told, SHOW_SECRET, ret, size);
}

static void append(struct environment *environment, const char *variable)
{
	environment->list[environment->count++] = variable;
	environment->list[environment->count] = NULL;
}

void environment_init(struct environment *environment, const struct endpoint *member)
{
	char url[ENDPOINT_TEXT_MAX];

	environment->count = environment->added_count = 0;
	print_for_clients(member, url, sizeof url);
	for (size_t i = 0; i < ENVIRONMENT_PROXIES; i++) {
		snprintf(environment->proxies[i], sizeof environment->proxies[i], "%s=%s",
			 proxy_names[i], url);
		append(environment, environment->proxies[i]);
	}
	for (size_t i = 0; i < ENVIRONMENT_REMOVED; i++)
		append(environment, removed_names[i]);
	endpoint_print(member, SHOW_SECRET, url, sizeof url);
	snprintf(environment->proxy, sizeof environment->proxy, "FAIRLEAD_PROXY=%s", url);
	append(environment, environment->proxy);
	explicit_bzero(url, sizeof url);
}

void environment_add(struct environment *environment, const char *name, const char *value)
{
	char *text = environment->added[environment->added_count++];

	snprintf(text, ENVIRONMENT_TEXT, "%s=%s", name, value);
	append(environment, text);
}

void environment_wipe(struct environment *environment)
{
	explicit_bzero(environment, sizeof *environment);
}
