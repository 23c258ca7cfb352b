/* gateway_judge.h - what must hold of the bytes that went through the gateway, told from both far ends of it. */
#ifndef FAIRLEAD_FUZZ_GATEWAY_JUDGE_H
#define FAIRLEAD_FUZZ_GATEWAY_JUDGE_H

#include "gateway_world.h"

/* Before an upstream speaks: the gateway has not passed on a byte of its client's yet, unless the tunnel stands. */
void judge_silence(const struct peer *upstream, const struct endpoint *proxy);

/* At the end, when the world has settled:
 *   what each upstream heard belongs to one request of its client's, at most one request head a connection, in order;
 *   it reads again as a request, with one framing, and no byte behind it;
 *   what each client heard are whole answers to its requests, in order, the content that its upstream said;
 *   behind a request that cannot be read there is one refusal and nothing more;
 *   with nobody gone and no time passed, nothing is held back. */
void judge_world(struct world *world, const struct endpoint *proxy, enum listen_protocol protocol);

#endif
