/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The machine as far as the device cares: cores, caches, NUMA nodes. Read
 * once per process with hwloc. What is done about nodes is in numa.h.
 */
#ifndef RNIC_TOPO_H
#define RNIC_TOPO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	RNIC_TOPO_NODES = 1024,			  /* nodes a mask can name */
	RNIC_TOPO_BITS = sizeof(long) * CHAR_BIT, /* of a word of it */
	RNIC_TOPO_WORDS = RNIC_TOPO_NODES / RNIC_TOPO_BITS, /* its words */
};

struct rnic_topo {
	unsigned int cores; /* CPUs this process may run on */
	size_t l2_bytes;    /* size of an L2 cache */
	int node;	    /* NUMA node the process ran on when it was read */
	int nnodes;	    /* NUMA nodes with memory it may use */
	bool real;	    /* it describes this machine */
	unsigned long nodes[RNIC_TOPO_WORDS]; /* these nodes, a bit each */
};

/*
 * The topology, read at the first call (some milliseconds), constant
 * afterwards. Any thread. Never NULL: what cannot be found out has a
 * reasonable value and a log line.
 */
const struct rnic_topo *rnic_topo_get(void);

/*
 * Reads a topology into *@t, for rnic_topo_get(), and for tests
 * with @synthetic, a description as hwloc(7) has it; NULL: this machine. No
 * error, as above. Any thread.
 */
void rnic_topo_read(struct rnic_topo *t, const char *synthetic);

/* The node of the CPU that runs this thread at the moment. */
int rnic_topo_node_here(void);

/* True if memory of node @node may be used. */
static inline bool rnic_topo_has_node(const struct rnic_topo *t, int node)
{
	return node >= 0 && node < RNIC_TOPO_NODES &&
	       t->nodes[(unsigned int)node / RNIC_TOPO_BITS] >>
			       (unsigned int)node % RNIC_TOPO_BITS &
		       1;
}

/* Writes the nodes of @t to @buf of @room bytes, as "0-3,8"; cut if long. */
void rnic_topo_nodes_text(const struct rnic_topo *t, char *buf, size_t room);

#endif /* RNIC_TOPO_H */
