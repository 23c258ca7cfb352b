/* greeting.c - what a new connection to the store says first, and who it must find there. */
#include <stdio.h>
#include <string.h>

#include "store/internal.h"

/* One answer of the greeting. A rejection closes the connection as soon as the reply has been dealt with. */
static void on_greeting(int result, const struct reply *reply, void *arg)
{
	struct store *store = arg;
	const char *error = reply_text(reply, NULL);
	bool is_last = --store->greetings == 0; /* ROLE, which may be forbidden to us */

	(void)result;
	if (reply_kind(reply) == REPLY_ERROR && !(is_last && !strncmp(error, "NOPERM", 6)))
		snprintf(store->rejection, sizeof store->rejection, "%s", error);
	else if (reply_kind(reply) == REPLY_ARRAY &&
		 strcmp(reply_text(reply_at(reply, 0), NULL), "master"))
		snprintf(store->rejection, sizeof store->rejection,
			 "READONLY: this is a replica; name its master");
	if (is_last && !store->rejection[0])
		connection_ready(store);
}

int greeting_send(struct store *store)
{
	const struct store_url *url = &store->config.url;
	struct word auth[3] = {WORD("AUTH"), WORD(url->user), WORD(url->password)};
	char db[12];
	int r = 0;

	store->greetings = 2;
	if (url->password[0] && !url->user[0]) {
		auth[1] = auth[2];
		store->greetings++;
		r = operation_greet(store, auth, 2, on_greeting);
	} else if (url->user[0]) {
		store->greetings++;
		r = operation_greet(store, auth, 3, on_greeting);
	}
	if (!r && url->db) {
		snprintf(db, sizeof db, "%d", url->db);
		store->greetings++;
		r = operation_greet(store, (struct word[]){WORD("SELECT"), WORD(db)}, 2,
				    on_greeting);
	}
	/* PING answers LOADING and MISCONF; ROLE tells a replica, and may be forbidden to us. */
	if (!r)
		r = operation_greet(store, (struct word[]){WORD("PING")}, 1, on_greeting);
	if (!r)
		r = operation_greet(store, (struct word[]){WORD("ROLE")}, 1, on_greeting);
	return r;
}
