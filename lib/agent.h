/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The agent: one service thread per domain, which makes progress when the
 * application does not. Started by local events only (contract L4: never
 * before something in this process asked for it).
 */
#ifndef SHRIMP_AGENT_H
#define SHRIMP_AGENT_H

#include "lib/domain.h"

/*
 * Starts the agent of @d if it does not run: an endpoint with FI_PROGRESS_AUTO
 * was enabled, or a grace period is to be waited for. It makes progress of
 * endpoints that it was told to serve only. Takes d->lock. Returns 0,
 * -FI_ENOMEM (also: no thread), -FI_EMFILE.
 */
int shrimp_agent_start(struct shrimp_domain *d);

/*
 * Peers will ask for what only this process can do (shm/exec.h): starts the
 * agent, and has it make progress of all endpoints of @d, now and later. Takes
 * d->lock, and each endpoint's in it. Returns as shrimp_agent_start(), and
 * -FI_EMFILE.
 */
int shrimp_agent_serve(struct shrimp_domain *d);

/*
 * Ends the agent and waits for it. No lock held. Without agent, nothing.
 */
void shrimp_agent_stop(struct shrimp_domain *d);

/* Ends a sleep of the agent. Any thread. */
void shrimp_agent_kick(struct shrimp_domain *d);

/*
 * Makes the agent's sleep end when @fd, of an endpoint, is readable. Closing
 * @fd ends that. Returns 0 (also without agent) or -FI_ENOMEM.
 */
int shrimp_agent_watch(struct shrimp_domain *d, int fd);

#endif /* SHRIMP_AGENT_H */
