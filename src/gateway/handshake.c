/* handshake.c - the clients' side of SOCKS5 and SOCKS4 until the request is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/internal.h"

static void refuse(struct client *client, int reason, const char *detail)
{
	client->state = CLIENT_BUSY;
	exchange_refuse(client, reason, detail);
}

/* Sends a message of the handshake. False when the client is gone, and ended. */
static bool say(struct client *client, const char *bytes, size_t len)
{
	if (!end_write(&client->end, bytes, len))
		return true;
	refuse(client, REASON_CLIENT_GONE, "");
	return false;
}

/* Finds out who it is. False when it was refused. */
static bool identify(struct client *client, const struct credentials *given)
{
	char detail[IDENTITY_DETAIL_MAX] = "";
	struct identity *identity;
	int r = 0;

	if (!client->is_allowed)
		r = REASON_REQUEST_DENIED;
	if (r || !client->gateway->config.pools) {
		if (r)
			refuse(client, r, "");
		return !r;
	}
	identity = calloc(1, sizeof *identity);
	r = identity ? identity_judge(identity, client->listener, given, detail, sizeof detail)
		     : REASON_INTERNAL;
	if (r) {
		free(identity);
		refuse(client, r, detail);
		return false;
	}
	client->identity = identity;
	return true;
}

/* The method that carries a user name is taken whenever it is offered: the name may hold parameters. */
static bool take_greeting(struct client *client, const struct socks_greeting *greeting)
{
	const struct listener *listener = client->listener;
	const struct credentials none = {0};
	enum socks_method method = SOCKS_NO_METHOD;
	char answer[10];

	if (greeting->offers_password)
		method = SOCKS_PASSWORD;
	else if (greeting->offers_none && !listener->needs_account)
		method = SOCKS_NO_PASSWORD;
	if (method == SOCKS_NO_METHOD) {
		refuse(client, REASON_CLIENT_UNKNOWN, "");
		return false;
	}
	if (method == SOCKS_NO_PASSWORD && !identify(client, &none))
		return false;
	client->protocol = method == SOCKS_PASSWORD ? CLIENT_SOCKS5_LOGIN : CLIENT_SOCKS5;
	return say(client, answer, socks5_write_method(answer, method));
}

static bool take_login(struct client *client, const struct socks_login *login)
{
	const struct credentials given = {.user = login->user,
					  .user_len = login->user_len,
					  .password = login->password,
					  .password_len = login->password_len};
	char answer[10];

	if (!identify(client, &given))
		return false;
	client->protocol = CLIENT_SOCKS5;
	return say(client, answer, socks5_write_login(answer, true));
}

/* Reads one message of the handshake: its length, 0 (incomplete), or the negative of a reason. */
static long take_message(struct client *client, bool *ret_goes_on)
{
	const char *bytes = buffer_at(&client->in);
	size_t len = buffer_len(&client->in);
	struct socks_greeting greeting;
	struct socks_login login;
	long n;

	if (client->protocol == CLIENT_SOCKS5_GREETING) {
		n = socks5_read_greeting(&greeting, bytes, len);
		*ret_goes_on = n > 0 && take_greeting(client, &greeting);
	} else {
		n = socks5_read_login(&login, bytes, len);
		*ret_goes_on = n > 0 && take_login(client, &login);
	}
	return n;
}

/* USERID is a user name, with parameters as any; a password cannot be given. */
static bool identify_v4(struct client *client, const struct socks_request *request)
{
	const struct credentials given = {.user = *request->user ? request->user : NULL,
					  .user_len = strlen(request->user),
					  .password = ""};

	return identify(client, &given);
}

static void take_request(struct client *client)
{
	const char *bytes = buffer_at(&client->in);
	size_t len = buffer_len(&client->in);
	struct socks_request request;
	bool is_v4 = client->protocol == CLIENT_SOCKS4;
	long n = is_v4 ? socks4_read_request(&request, bytes, len)
		       : socks5_read_request(&request, bytes, len);

	if (n == 0)
		return;
	if (n < 0) {
		refuse(client, (int)-n, "");
		return;
	}
	buffer_consume(&client->in, (size_t)n);
	if (is_v4 && !identify_v4(client, &request))
		return;
	client->state = CLIENT_BUSY;
	exchange_begin_socks(client, &request);
}

void handshake_take(struct client *client)
{
	bool goes_on = true;

	while (goes_on && (client->protocol == CLIENT_SOCKS5_GREETING ||
			   client->protocol == CLIENT_SOCKS5_LOGIN)) {
		long n = take_message(client, &goes_on);

		if (n < 0)
			refuse(client, (int)-n, "");
		if (n <= 0 || !goes_on)
			return;
		buffer_consume(&client->in, (size_t)n);
	}
	take_request(client);
}
