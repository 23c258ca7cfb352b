/* lease.pml - the life cycle of leases (docs/wire.md, "Leases"), for spin.
 *
 * Two clients ask one store for one member whose cap is 1. Messages to the store are delayed (taken in any order), lost and
 * duplicated; answers are lost; a client dies at any of its steps and asks again under the operation id that it had, as a
 * program that is started again does. Any lease may be found expired at any moment: that is a clock that steps, a client that
 * was stopped, and time. Each of the store's actions is one step, as a script is.
 *
 * tools/model checks it. -DNO_TOKEN_CHECK leaves out the comparison of tokens in renew and release: that must fail. */

#ifndef ROUNDS
#define ROUNDS 2 /* acquisitions of one client */
#endif
#ifndef FAULTS
#define FAULTS 2 /* duplicates, and deaths */
#endif
#define CLIENTS 2
#ifndef WAYS
#define WAYS 3 /* messages under way to the store */
#endif
#define TOKENS 12 /* more than can be given: an assertion holds the bound */

mtype = { ACQUIRE, RENEW, RELEASE, GRANTED, FULL, FINE, STALE };

chan to_store = [WAYS] of { mtype, byte, byte }; /* what, operation id (of the client), token */
chan to_client[CLIENTS] = [1] of { mtype, byte, byte }; /* what, about which question, token */

/* The store. A lease is known by its operation id; token 0 is none. */
byte holder_token[CLIENTS];
byte live;
byte last_token;
bool is_released[TOKENS]; /* the set of tokens released lately */

/* What really happened, which nobody in the system can see. */
byte ended[TOKENS];        /* how often a lease came to its end */
bool is_expired[TOKENS];   /* it was collected */
byte faults = FAULTS;
byte clients_done;

/* The lease of `id` ends on behalf of whoever holds `token`: expiry does so in the name of the lease itself. */
inline end_lease(id, token)
{
	assert(holder_token[id] == token); /* nobody ends another's lease */
	ended[token]++;
	assert(ended[token] == 1); /* no lease ends twice */
	holder_token[id] = 0;
	assert(live > 0);
	live--
}

/* acquire.lua */
inline acquire(id)
{
	if
	:: holder_token[id] -> /* asked again: the same lease */
		answer = GRANTED
	:: !holder_token[id] && live > 0 -> /* the member is at its cap */
		answer = FULL
	:: !holder_token[id] && live == 0 ->
		last_token++;
		assert(last_token < TOKENS);
		holder_token[id] = last_token;
		live++;
		answer = GRANTED
	fi;
	token = holder_token[id]
}

#ifdef NO_TOKEN_CHECK
#define IS_HOLDER(id, token) (holder_token[id] != 0)
#else
#define IS_HOLDER(id, token) (holder_token[id] != 0 && holder_token[id] == token)
#endif

/* release.lua */
inline release(id, token)
{
	if
	:: IS_HOLDER(id, token) ->
		end_lease(id, token);
		is_released[token] = true;
		answer = FINE
	:: !IS_HOLDER(id, token) && is_released[token] -> answer = FINE
	:: !IS_HOLDER(id, token) && !is_released[token] -> answer = STALE
	fi
}

/* renew.lua: it answers for the lease that is renewed, which must be the asker's. */
inline renew(id, token)
{
	if
	:: IS_HOLDER(id, token) ->
		assert(holder_token[id] == token);
		answer = FINE
	:: !IS_HOLDER(id, token) -> answer = STALE
	fi
}

/* An answer is lost when nobody waits for it, or at random. */
inline reply(id, what, token)
{
	if
	:: nfull(to_client[id]) -> to_client[id]!answer, what, token
	:: true
	fi
}

active proctype store()
{
	mtype what, answer;
	byte id, token;

end:
	do
	:: atomic { to_store??what, id, token ->
		if
		:: faults > 0 && nfull(to_store) -> /* it comes once more */
			faults--;
			to_store!what, id, token
		:: true
		fi;
		if
		:: what == ACQUIRE -> acquire(id)
		:: what == RENEW -> renew(id, token)
		:: what == RELEASE -> release(id, token)
		fi;
		reply(id, what, token);
		answer = 0; what = 0; id = 0; token = 0 }
	:: atomic { to_store??what, id, token -> what = 0; id = 0; token = 0 } /* lost */
	:: atomic { holder_token[0] -> is_expired[holder_token[0]] = true; end_lease(0, holder_token[0]) }
	:: atomic { holder_token[1] -> is_expired[holder_token[1]] = true; end_lease(1, holder_token[1]) }
	od
}

proctype client(byte me)
{
	byte rounds = ROUNDS;
	byte mine, token;
	mtype answer;

	do
	:: rounds == 0 -> break
	:: rounds > 0 ->
		rounds--;
asking:
		to_store!ACQUIRE, me, 0;
		do /* the answer, or patience ends and it asks again */
		:: atomic { to_client[me]?answer, ACQUIRE, mine ->
			if
			:: answer == GRANTED -> goto holding
			:: answer == FULL -> mine = 0; goto next
			fi }
		:: atomic { to_client[me]?answer, RENEW, token -> token = 0 }   /* an old one: matched to nothing */
		:: atomic { to_client[me]?answer, RELEASE, token -> token = 0 }
		:: atomic { empty(to_client[me]) && nfull(to_store) && faults > 0 -> faults--; goto asking }
		:: goto next /* gives up: what was granted runs out */
		od;
holding:
		do
		:: to_store!RENEW, me, mine; break
		:: break
		od;
		if
		:: atomic { faults > 0 -> faults--; mine = 0; goto asking } /* dies, is started again, and asks under its id */
		:: true
		fi;
		to_store!RELEASE, me, mine;
		do
		:: atomic { to_client[me]?answer, RELEASE, token ->
			/* Only who has lost a lease by expiry is told that it is stale. */
			assert(answer == FINE || token != mine || is_expired[mine]);
			if
			:: token == mine -> goto next
			:: token != mine
			fi }
		:: atomic { to_client[me]?answer, ACQUIRE, token -> token = 0 }
		:: atomic { to_client[me]?answer, RENEW, token ->
			assert(answer == FINE || token != mine || is_expired[mine] || ended[mine]);
			token = 0 }
		:: goto next /* nobody waits for the answer of a release */
		od;
next:
		mine = 0; token = 0; answer = 0
	od;
	clients_done++
}

init
{
	atomic { run client(0); run client(1) }
}

/* At every moment the count of live leases is the number of leases, and within the cap. */
#define COUNTS_AGREE (live == (holder_token[0] != 0) + (holder_token[1] != 0) && live <= 1)
ltl counts { [] COUNTS_AGREE }

/* Whoever's lease is held is held under the token that was given last for it: a token is never held again once it ended. */
#define NO_RETURN ((!holder_token[0] || !ended[holder_token[0]]) && (!holder_token[1] || !ended[holder_token[1]]))
ltl no_return { [] NO_RETURN }

/* With the janitor at work (the store's two last steps are always open to it), what nobody holds any more comes to its end: from every state
 * in which all clients are done and nothing is under way, no lease is left for ever. */
#define IDLE (clients_done == CLIENTS && len(to_store) == 0)
ltl no_residue { [] (IDLE -> <> (live == 0)) }
