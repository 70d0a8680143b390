/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A process that uses keys of the parent's.
 *
 * Orders go through words of shared memory, so that a peer that is busy sees
 * them between two operations; one that sleeps is woken through its socket.
 * The parent gives up after 10 seconds without an answer.
 */
#define _GNU_SOURCE
#include "bench/sb_peer.h"

#include <errno.h>
#include <poll.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/clock.h"
#include "shm/atomic.h"

enum {
	BUF = 16 << 20, /* bytes read at a time, at most */
	WAIT_S = 10,	/* for an answer, at most */
};

/* Orders and answers. */
struct sb_peer_block {
	rnic_a64 order; /* parent: number of the last order */
	rnic_a64 mode;	/* parent: what is done by itself */
	rnic_a64 key;	/* parent: of @mode */
	rnic_a64 len;	/* parent: likewise */
	rnic_a64 touch; /* parent: key to be read once; 0: none */
	rnic_a64 copy;	/* parent: bytes to be copied once; 0: none */
	char pad[16];
	rnic_a64 done;	   /* peer: the last order that it has obeyed */
	rnic_a64 failures; /* peer: operations in error */
	rnic_a64 ns;	   /* peer: time of the last copy */
	alignas(SB_PAGE) char from[BUF]; /* parent: what is copied */
};

/* The peer's own. */
struct self {
	struct sb_peer_block *b; /* shared */
	struct sb_side s;	 /* its side */
	char *buf;		 /* BUF bytes */
	size_t at;		 /* of the next copy */
	uint64_t mode;		 /* of the last order */
	int fd;			 /* to the parent */
};

/* ---- the peer ---- */

/* Reads @len bytes of @key; an error is counted. */
static int read_once(struct self *p, uint64_t key, size_t len)
{
	ssize_t ret;

	do {
		ret = fi_read(p->s.main.ep, p->buf, len < BUF ? len : BUF, NULL,
			      p->s.main.peer, 0, key, NULL);
	} while (ret == -FI_EAGAIN);
	if (ret)
		return sb_fail("fi_read", ret);
	ret = sb_ep_wait(&p->s.main, 1);
	if (p->s.main.failed)
		/* relaxed: statistics of the peer's own */
		rnic_store64_relaxed(&p->b->failures,
				     rnic_load64_relaxed(&p->b->failures) + 1);
	return (int)ret;
}

/* Copies @len bytes of the parent's, and says how long that took. */
static int copy_once(struct self *p, size_t len)
{
	uint64_t t;

	if (len > BUF)
		return -EINVAL;
	/* once, so that the pages are there when a copy is timed */
	if (!p->at)
		memcpy(p->buf, p->b->from, BUF);
	if (len > BUF - p->at)
		p->at = 0;
	t = bench_clock_ns();
	memcpy(p->buf + p->at, p->b->from + p->at, len);
	__asm__ __volatile__("" ::: "memory");
	/* relaxed: P3 publishes it */
	rnic_store64_relaxed(&p->b->ns, bench_clock_ns() - t);
	p->at += len;
	return 0;
}

/* Sleeps until the parent has an order, or is gone: *@gone. */
static int doze(struct self *p, bool *gone)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };
	char c;

	alarm(SB_PROC_LIMIT_S);
	if (poll(&fd, 1, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	*gone = read(p->fd, &c, 1) < 1;
	return 0;
}

/* What the mode says, once; nothing if it is to sleep. */
static int mode_do(struct self *p)
{
	/* relaxed: behind P1 */
	uint64_t key = rnic_load64_relaxed(&p->b->key);
	uint64_t len = rnic_load64_relaxed(&p->b->len);

	if (p->mode == SB_PEER_SLEEP)
		return 0;
	return read_once(p, key, p->mode == SB_PEER_LOOK ? 8 : len);
}

static int order_do(struct self *p)
{
	/* relaxed: behind P1 */
	uint64_t touch = rnic_load64_relaxed(&p->b->touch);
	uint64_t copy = rnic_load64_relaxed(&p->b->copy);

	/*
	 * Not as it is at any later time: a parent who believes us awake sends
	 * nothing that would end a sleep
	 */
	p->mode = rnic_load64_relaxed(&p->b->mode);
	if (copy)
		return copy_once(p, copy);
	return touch ? read_once(p, touch, 8) : mode_do(p);
}

/* Until the parent is gone: orders, and what the mode says. */
static int obey(struct self *p)
{
	uint64_t last = 0;
	bool gone = false;
	int ret = 0;

	while (!ret && !gone) {
		/* P1: the words of the order; pairs with P2 */
		uint64_t order = rnic_load64_acquire(&p->b->order);

		if (order != last) {
			ret = order_do(p);
			last = order;
			/* P3: it has been done; pairs with P4 */
			rnic_store64_release(&p->b->done, order);
		} else if (p->mode == SB_PEER_SLEEP) {
			ret = doze(p, &gone);
		} else {
			ret = mode_do(p);
		}
	}
	return ret;
}

static int peer_main(int fd, void *arg)
{
	struct self *p = calloc(1, sizeof(*p));
	struct sb_hello hello;
	char c;
	int ret;

	/* the parent may have failed before it had anything for us */
	if (!p || sb_proc_get(fd, &c, 1))
		return p ? 0 : -ENOMEM;
	p->b = arg;
	p->fd = fd;
	p->buf = malloc(BUF);
	ret = p->buf ? sb_side_open(&p->s) : -ENOMEM;
	if (!ret)
		ret = sb_side_meet(&p->s, fd, 0, &hello);
	if (!ret)
		ret = obey(p);
	sb_side_close(&p->s);
	free(p->buf);
	free(p);
	return ret;
}

/* ---- the parent ---- */

int sb_peer_start(struct sb_peer *p, int cpu)
{
	int ret;

	p->block = mmap(NULL, sizeof(*p->block), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->block == MAP_FAILED) {
		p->block = NULL;
		return sb_fail("shared memory", -errno);
	}
	ret = sb_proc_start(&p->proc, peer_main, p->block, cpu);
	return ret ? sb_fail("fork", ret) : 0;
}

int sb_peer_meet(struct sb_peer *p, struct sb_side *s)
{
	struct sb_hello hello;
	int ret = sb_proc_put(p->proc.fd, "", 1);

	return ret ? sb_fail("the peer", ret)
		   : sb_side_meet(s, p->proc.fd, 0, &hello);
}

/* Publishes what was written, wakes, waits until it has been obeyed. */
static int order_give(struct sb_peer *p)
{
	struct sb_peer_block *b = p->block;
	/* relaxed: the parent's own word */
	uint64_t order = rnic_load64_relaxed(&b->order) + 1;
	uint64_t until = bench_clock_ns() + WAIT_S * 1000000000ull;
	unsigned int looks = 0;

	/* P2: the words of the order; pairs with P1 */
	rnic_store64_release(&b->order, order);
	if (p->mode == SB_PEER_SLEEP && sb_proc_put(p->proc.fd, "", 1))
		return sb_fail("the peer", -EPIPE);
	/* P4: pairs with P3; a peer that has died is found by the clock */
	while (rnic_load64_acquire(&b->done) != order) {
		if (++looks % 64)
			rnic_cpu_relax();
		else if (bench_clock_ns() > until)
			return sb_fail("the peer", -ETIMEDOUT);
		else
			usleep(1);
	}
	return 0;
}

int sb_peer_touch(struct sb_peer *p, uint64_t key)
{
	int ret;

	/* relaxed: P2 publishes it */
	rnic_store64_relaxed(&p->block->touch, key);
	ret = order_give(p);
	rnic_store64_relaxed(&p->block->touch, 0);
	return ret;
}

int sb_peer_copy(struct sb_peer *p, size_t len, uint64_t *ns)
{
	int ret;

	if (!p->written)
		memset(p->block->from, 1, BUF);
	p->written = true;
	/* relaxed: P2 publishes it */
	rnic_store64_relaxed(&p->block->copy, len);
	ret = order_give(p);
	rnic_store64_relaxed(&p->block->copy, 0);
	/* relaxed: written before P3 */
	*ns = rnic_load64_relaxed(&p->block->ns);
	return ret;
}

int sb_peer_mode(struct sb_peer *p, enum sb_peer_mode mode, uint64_t key,
		 size_t len)
{
	int ret;

	/* relaxed: P2 publishes them; a peer in between mixes two modes */
	rnic_store64_relaxed(&p->block->key, key);
	rnic_store64_relaxed(&p->block->len, len);
	rnic_store64_relaxed(&p->block->mode, mode);
	ret = order_give(p);
	p->mode = mode;
	return ret;
}

uint64_t sb_peer_failures(struct sb_peer *p)
{
	/* relaxed: statistics */
	return rnic_load64_relaxed(&p->block->failures);
}

int sb_peer_end(struct sb_peer *p)
{
	int ret;

	if (p->block) {
		/* a busy peer looks at its socket then; nobody waits */
		rnic_store64_relaxed(&p->block->mode, SB_PEER_SLEEP);
		/* P2, relaxed: the parent's own word */
		rnic_store64_release(&p->block->order,
				     rnic_load64_relaxed(&p->block->order) + 1);
	}
	ret = sb_proc_end(&p->proc);
	if (p->block)
		munmap(p->block, sizeof(*p->block));
	p->block = NULL;
	return ret;
}
