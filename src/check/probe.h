/* probe.h - one attempt through one proxy: the gateway's own dial to a check target, then perhaps an HTTP exchange.
 *
 * One deadline covers all of it. What a client's request would send through this proxy, a probe sends too, byte for
 * byte, up to the target. To an https target through an https proxy the tunnel is all that is tried: TLS within TLS
 * is not spoken. */
#ifndef FAIRLEAD_CHECK_PROBE_H
#define FAIRLEAD_CHECK_PROBE_H

#include "base/address.h"
#include "base/endpoint.h"
#include "base/loop.h"
#include "check/target.h"

struct probe;
struct tls;

/* What is pointed to outlives the probe. */
struct probe_request {
	const struct endpoint *proxy;
	/* NULL: the connection, TLS with an https proxy, and the greeting of SOCKS5 are all that is tried. */
	const struct target *target;
	const struct expectation *expectation; /* of the target's answer; NULL: any complete one */
	struct tls *tls; /* for https proxies and targets; NULL: REASON_PROXY_CANNOT for these */
	int64_t timeout_ms;
	bool (*is_admitted)(const struct address *address, uint16_t port, bool is_target,
			    void *arg);
	void *arg;
};

enum anonymity { ANONYMITY_UNKNOWN, ANONYMITY_TRANSPARENT, ANONYMITY_ANONYMOUS, ANONYMITY_ELITE };

struct probe_outcome {
	/* REASON_OK, or what ended it, as the gateway would say; beside the dial's: REASON_PROXY_SILENT, _RESET, _GARBAGE and _AUTH of
	 * a proxy that forwards, REASON_RESPONSE_*, REASON_CHECK_*. */
	int reason;
	int64_t latency_ms;    /* until the end of the handshake or of the answer's head */
	int status;            /* of the target's answer; 0: none */
	char exit_address[46]; /* as the judge saw it; "" = not known */
	enum anonymity anonymity;
};

typedef void probe_cb(struct probe *probe, const struct probe_outcome *outcome, void *arg);

/* `cb` runs once, never before this returns, and ends the probe. 0 or -ENOMEM. */
MUST_USE int probe_start(struct probe **ret, struct loop *loop, const struct probe_request *request,
			 probe_cb *cb, void *arg);

/* `cb` will not run. Accepts NULL. */
void probe_cancel(struct probe *probe);

const char *anonymity_word(enum anonymity anonymity);

#endif
