/* setup.h - what the settings of a gateway are made into: lists, accounts, trust; judged before they are used. */
#ifndef FAIRLEAD_NODE_SETUP_H
#define FAIRLEAD_NODE_SETUP_H

#include "base/conf.h"
#include "gateway/gateway.h"

struct setup;

/* 0, or -errno with one line in `error` that names the setting. */
MUST_USE int setup_new(struct setup **ret, const struct conf *conf, char *error, size_t size);

/* Accepts NULL. */
void setup_free(struct setup *setup);

/* Is the configuration fit for a gateway? Likewise; nothing is kept. */
MUST_USE int setup_check(const struct conf *conf, char *error, size_t size);

/* What https members are verified against. Likewise; `*ret` may be set on failure, too, and is the caller's to free. */
struct tls;
MUST_USE int setup_trust(const struct conf *conf, struct tls **ret, char *error, size_t size);

/* Fills what comes from settings; the texts and lists stay the setup's. */
void setup_fill(const struct setup *setup, const struct conf *conf, struct gateway_config *ret);

#endif
