/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Device: creation of the segments, endpoint places, recycling of places.
 *
 * Exclusion: open/close of places against each other by d->lock; against
 * claims of peers by the state word (closed before the directory is scanned;
 * the claimer looks at it again after its CAS, both with full fences).
 */
#include "shm/device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/fence.h"
#include "shm/identity.h"
#include "shm/log.h"
#include "shm/sock.h"
#include "shm/topo.h"

enum {
	MPT_SHIFT_MAX = 24,   /* 2^24 regions: the key's slot field */
	MPT_SHIFT_MIN = 16,   /* smallest table tried: above the quarantine */
	SOCK_TRIES = 8,	      /* names tried for the attach socket */
	POOL_SMALL_SHARE = 4, /* 1/4 of the pool is small chunks */
	POOL_MIN = 256 << 10, /* smallest pool, bytes */
};

static uint64_t align_up(uint64_t x, uint64_t a)
{
	return (x + a - 1) / a * a;
}

/*
 * Places the parts of the tables for 2^@shift regions; fills *h. The stride
 * of key caches is set.
 */
static void lay_out_tables(struct rnic_header *h, unsigned int shift)
{
	uint64_t off = RNIC_PAGE;

	h->stats_off = off;
	off += RNIC_EP_MAX * sizeof(struct rnic_stats);
	h->mpt_head_off = off;
	off += sizeof(struct rnic_mpt_head);
	h->paging_off = off;
	off += sizeof(struct rnic_paging);
	h->space_off = off = align_up(off, RNIC_PAGE);
	off += RNIC_SPACES * sizeof(struct rnic_space);
	h->cache_off = off;
	off += RNIC_EP_MAX * RNIC_CTX_PER_EP * h->cache_stride;
	h->mpt_off = off;
	h->mpt_slots = UINT64_C(1) << shift;
	off += h->mpt_slots * sizeof(struct rnic_mpt);
	h->index_slots = 2 * h->mpt_slots;
	for (int i = 0; i < 2; i++) {
		h->index_off[i] = off;
		off += h->index_slots * sizeof(struct rnic_key_entry);
	}
	h->mtt_off = off;
	h->mtt_pages = h->mpt_slots / 16;
	off += h->mtt_pages * sizeof(struct rnic_mtt_page);
	h->tables_size = off;
}

/* Creates and maps the tables, smaller ones if address space is short. */
static int create_tables(struct rnic_device *d, struct rnic_header *h)
{
	unsigned int shift = MPT_SHIFT_MAX;
	void *p;
	int ret;

	for (;; shift -= 4) {
		lay_out_tables(h, shift);
		ret = rnic_segment_create(&d->tables, "shrimp-tables",
					  h->tables_size);
		if (ret)
			return ret;
		ret = rnic_segment_map(&d->tables, 0, h->tables_size,
				       PROT_READ | PROT_WRITE, &p);
		if (!ret)
			break;
		rnic_segment_close(&d->tables);
		if (shift <= MPT_SHIFT_MIN)
			return ret;
	}
	d->hdr = p;
	d->tables_len = h->tables_size;
	/* the binding comes before pages, here and everywhere */
	ret = rnic_numa_bind(&d->numa, p, d->tables_len);
	return ret ? ret : rnic_segment_populate(&d->tables, 0, h->cache_off);
}

/* Tables, mailbox, arena; seals what can be sealed already. */
static int create_segments(struct rnic_device *d, struct rnic_header *h)
{
	int ret = create_tables(d, h);

	if (ret)
		return ret;
	h->mailbox_size = RNIC_MAILBOX_EP0 + RNIC_EP_MAX * RNIC_EP_STRIDE;
	h->arena_size = RNIC_ARENA_USER;
	ret = rnic_segment_create(&d->mailbox, "shrimp-mailbox",
				  h->mailbox_size);
	if (!ret)
		ret = rnic_segment_create(&d->arena, "shrimp-arena",
					  h->arena_size);
	if (!ret)
		ret = rnic_segment_seal(&d->mailbox, F_SEAL_SHRINK);
	if (!ret)
		ret = rnic_segment_seal(&d->arena, F_SEAL_SHRINK);
	if (!ret)
		ret = rnic_segment_populate(&d->mailbox, 0, RNIC_PAGE);
	return ret;
}

static int write_mailbox_header(struct rnic_device *d,
				const struct rnic_header *h)
{
	struct rnic_mailbox_header mh = {
		.magic = RNIC_MAGIC_MAILBOX,
		.incarnation = h->incarnation,
	};
	ssize_t n = pwrite(d->mailbox.fd, &mh, sizeof(mh), 0);

	if (n == sizeof(mh))
		return 0;
	rnic_log(RNIC_LOG_WARN, "mailbox header: %s",
		 n < 0 ? strerror(errno) : "short write");
	return -EIO;
}

static uint64_t pool_size(const struct rnic_device_cfg *cfg)
{
	uint64_t bytes = cfg->pool_bytes;

	if (!bytes)
		bytes = 2 * (uint64_t)rnic_topo_get()->l2_bytes;
	if (bytes < POOL_MIN)
		bytes = POOL_MIN;
	if (bytes > RNIC_POOL_MAX)
		bytes = RNIC_POOL_MAX;
	return align_up(bytes, POOL_SMALL_SHARE * RNIC_POOL_LARGE);
}

/*
 * Listens on the attach socket. A name that somebody squats costs a new
 * incarnation, not the device.
 */
static int open_socket(struct rnic_device *d, struct rnic_header *h)
{
	char name[64];
	int fd = -EADDRINUSE;

	for (int i = 0; i < SOCK_TRIES && fd == -EADDRINUSE; i++) {
		int ret = rnic_random(&h->incarnation, sizeof(h->incarnation));

		if (ret)
			return ret;
		snprintf(name, sizeof(name), "shrimp-%u-%016" PRIx64, h->uid,
			 h->incarnation);
		fd = rnic_sock_listen(name);
	}
	d->sock = fd;
	return fd < 0 ? fd : 0;
}

static int fill_header(struct rnic_device *d, struct rnic_header *h,
		       const struct rnic_device_cfg *cfg)
{
	int ret = rnic_identity_self(&h->identity);

	if (!ret)
		ret = rnic_identity_ns(&h->ns);
	if (ret)
		return ret;
	h->version = RNIC_VERSION;
	h->pid = (uint32_t)getpid();
	h->uid = geteuid();
	h->mailbox_fd = d->mailbox.fd;
	h->arena_fd = d->arena.fd;
	h->mailbox_ino = d->mailbox.ino;
	h->arena_ino = d->arena.ino;
	h->lane_lines = RNIC_LANE_LINES;
	h->ring_bytes = RNIC_RING_BYTES;
	h->pool_bytes = pool_size(cfg);
	h->pool_large_off = h->pool_bytes / POOL_SMALL_SHARE;
	h->heap_bytes = cfg->heap_bytes;
	d->fenced = cfg->membarrier && rnic_fence_available() &&
		    !rnic_fence_register();
	if (d->fenced)
		h->features |= RNIC_FEAT_MEMBARRIER;
	return open_socket(d, h);
}

/* Copies the finished header into the tables, magic last, and seals them. */
static int publish_header(struct rnic_device *d, const struct rnic_header *h)
{
	int ret = write_mailbox_header(d, h);

	if (ret)
		return ret;
	*d->hdr = *h;
	rnic_compiler_barrier();
	d->hdr->magic = RNIC_MAGIC_TABLES;
	return rnic_segment_seal(&d->tables, F_SEAL_SHRINK | F_SEAL_GROW |
						     F_SEAL_FUTURE_WRITE |
						     F_SEAL_SEAL);
}

int rnic_device_open(struct rnic_device *d, const struct rnic_device_cfg *cfg)
{
	struct rnic_header h = { 0 };
	uint64_t seed;
	int ret;

	*d = (struct rnic_device){
		.tables.fd = -1,
		.mailbox.fd = -1,
		.arena.fd = -1,
		.sock = -1,
	};
	d->watched.dev = d;
	pthread_mutex_init(&d->lock, NULL);
	rnic_grace_init(&d->grace);
	for (unsigned int i = 0; i < RNIC_EP_MAX; i++)
		d->pipe[i] = -1;
	ret = rnic_numa_init(&d->numa, cfg->numa.mode, cfg->numa.home);
	if (!ret)
		ret = rnic_keycache_check(&cfg->keys);
	if (!ret) {
		d->keys = cfg->keys;
		h.cache_stride = rnic_keycache_bytes(&cfg->keys);
		ret = create_segments(d, &h);
	}
	if (!ret)
		ret = fill_header(d, &h, cfg);
	if (!ret)
		ret = rnic_random(&seed, sizeof(seed));
	if (!ret)
		ret = publish_header(d, &h);
	if (ret) {
		rnic_device_close(d);
		return ret;
	}
	for (unsigned int i = 0; i < RNIC_EP_MAX; i++)
		d->gen[i] = (uint32_t)(seed >> (i % 32));
	rnic_arena_init(&d->user, &d->arena, &d->numa);
	rnic_spaces_init(&d->spaces, (char *)d->hdr + h.space_off, &d->arena);
	return 0;
}

/* Unmaps what the owner sees of place @i. d->lock held, or no other user. */
static void view_drop(struct rnic_device *d, unsigned int i)
{
	/* relaxed: nobody is left there for the monitor to wait for */
	rnic_store64_relaxed(&d->used[i / 64],
			     rnic_load64_relaxed(&d->used[i / 64]) &
				     ~(UINT64_C(1) << i % 64));
	if (d->view[i]) {
		rnic_segment_unmap(d->view[i]->head, RNIC_EP_STRIDE);
		free(d->view[i]);
	}
	d->view[i] = NULL;
}

void rnic_device_close(struct rnic_device *d)
{
	rnic_arena_fini(&d->user);
	rnic_spaces_fini(&d->spaces);
	for (unsigned int i = 0; i < RNIC_EP_MAX; i++)
		view_drop(d, i);
	if (d->hdr) {
		rnic_segment_unmap(d->hdr, d->tables_len);
		d->hdr = NULL;
	}
	rnic_device_forked(d);
	rnic_grace_fini(&d->grace);
	pthread_mutex_destroy(&d->lock);
}

void rnic_device_forked(struct rnic_device *d)
{
	rnic_segment_close(&d->tables);
	rnic_segment_close(&d->mailbox);
	rnic_segment_close(&d->arena);
	rnic_spaces_forked(&d->spaces);
	if (d->sock >= 0)
		close(d->sock);
	d->sock = -1;
}

int rnic_claim_identity(uint64_t claim, uint64_t *identity)
{
	uint32_t pid = rnic_claim_pid(claim);
	int ret = rnic_identity_of(pid, identity);

	if (ret)
		return ret;
	return rnic_claim_make(pid, *identity) == claim ? 0 : -ESRCH;
}

/* True if the sender behind @claim is gone for good. */
static bool claimer_dead(uint64_t claim)
{
	uint64_t identity;

	return rnic_claim_identity(claim, &identity) == -ESRCH;
}

/* The sender that claimed lane @l of place @i has closed it, or is dead. */
static bool lane_left(const struct rnic_device *d, unsigned int i,
		      unsigned int l, uint64_t claim)
{
	uint64_t at =
		rnic_lane_off(i, l) + offsetof(struct rnic_lane, tx_state);
	uint32_t state = RNIC_TX_NONE;

	if (pread(d->mailbox.fd, &state, sizeof(state), (off_t)at) < 0)
		return false;
	return state == RNIC_TX_CLOSED || claimer_dead(claim);
}

enum { CLAIMS = 512 }; /* claim words read at a time */

/*
 * Looks whether all senders have left the closed place @i, and empties it.
 * A lane's page is touched only if its claimer has populated it, which
 * tx_state, read through the descriptor, tells without a fault.
 */
static bool place_reap(struct rnic_device *d, unsigned int i)
{
	uint64_t at = rnic_head_off(i) + offsetof(struct rnic_ep_head, claim);
	uint64_t claim[CLAIMS];

	for (unsigned int l = 0; l < RNIC_LANE_MAX; l++) {
		if (!(l % CLAIMS) &&
		    pread(d->mailbox.fd, claim, sizeof(claim),
			  (off_t)(at + l * sizeof(*claim))) != sizeof(claim))
			return false;
		if (claim[l % CLAIMS] && !lane_left(d, i, l, claim[l % CLAIMS]))
			return false;
	}
	/* the grace period looks at a place through its view only */
	view_drop(d, i);
	return !rnic_segment_discard(&d->mailbox, rnic_head_off(i),
				     RNIC_EP_STRIDE) &&
	       !rnic_segment_discard(&d->arena, i * RNIC_ARENA_EP_STRIDE,
				     RNIC_ARENA_EP_STRIDE);
}

/* Takes a free place, round robin so that a place rests after its use. */
static int place_take(struct rnic_device *d)
{
	int got = -ENOSPC;

	pthread_mutex_lock(&d->lock);
	for (unsigned int n = 0; n < RNIC_EP_MAX && got < 0; n++) {
		unsigned int i = (d->next + n) % RNIC_EP_MAX;

		if (d->place[i] == RNIC_PLACE_LEFT && place_reap(d, i))
			d->place[i] = RNIC_PLACE_FREE;
		if (d->place[i] != RNIC_PLACE_FREE)
			continue;
		d->place[i] = RNIC_PLACE_OPEN;
		d->gen[i]++;
		d->next = i + 1;
		got = (int)i;
	}
	pthread_mutex_unlock(&d->lock);
	return got;
}

bool rnic_device_rests(struct rnic_device *d)
{
	bool rests = false;

	pthread_mutex_lock(&d->lock);
	for (unsigned int i = 0; i < RNIC_EP_MAX && !rests; i++)
		rests = d->place[i] == RNIC_PLACE_LEFT;
	pthread_mutex_unlock(&d->lock);
	return rests;
}

static void place_leave(struct rnic_device *d, unsigned int i, bool keep)
{
	pthread_mutex_lock(&d->lock);
	d->pipe[i] = -1;
	if (keep)
		d->place[i] = RNIC_PLACE_KEPT;
	else
		d->place[i] =
			place_reap(d, i) ? RNIC_PLACE_FREE : RNIC_PLACE_LEFT;
	pthread_mutex_unlock(&d->lock);
}

static int open_pipe(struct rnic_place *p)
{
	struct stat st;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) || fstat(fds[1], &st)) {
		rnic_log(RNIC_LOG_WARN, "wake pipe: %s", strerror(errno));
		return -errno;
	}
	p->wake_rd = fds[0];
	p->wake_wr = fds[1];
	rnic_store32_relaxed(&p->head->pipe_fd, (uint32_t)fds[1]);
	rnic_store64_relaxed(&p->head->pipe_ino, st.st_ino);
	pthread_mutex_lock(&p->dev->lock);
	p->dev->pipe[p->index] = fds[1];
	pthread_mutex_unlock(&p->dev->lock);
	return 0;
}

/*
 * Maps @len bytes at @off of @s, binds them, and only then gives the first
 * @present their pages.
 */
static int map_bound(const struct rnic_device *d, const struct rnic_segment *s,
		     uint64_t off, uint64_t len, uint64_t present, void **out)
{
	void *mem;
	int ret = rnic_segment_map(s, off, len, PROT_READ | PROT_WRITE, &mem);

	if (ret)
		return ret;
	ret = rnic_numa_bind(&d->numa, mem, len);
	if (!ret && present)
		ret = rnic_segment_populate(s, off, present);
	if (ret)
		rnic_segment_unmap(mem, len);
	else
		*out = mem;
	return ret;
}

static int map_place(struct rnic_place *p)
{
	struct rnic_device *d = p->dev;
	struct rnic_view *v = calloc(1, sizeof(*v));
	void *mem;
	int ret =
		v ? map_bound(d, &d->mailbox, rnic_head_off(p->index),
			      RNIC_EP_STRIDE, sizeof(struct rnic_ep_head), &mem)
		  : -ENOMEM;

	if (ret) {
		free(v);
		return ret;
	}
	v->head = mem;
	pthread_mutex_lock(&d->lock);
	d->view[p->index] = v;
	if (p->index >= d->view_end)
		d->view_end = p->index + 1;
	/* full barrier: before a lane can be claimed here */
	rnic_or64_seqcst(&d->used[p->index / 64], UINT64_C(1) << p->index % 64);
	pthread_mutex_unlock(&d->lock);
	p->head = mem;
	p->lanes = (struct rnic_lane *)((char *)mem + RNIC_HEAD_SIZE);
	p->stats = (struct rnic_stats *)((char *)d->hdr + d->hdr->stats_off) +
		   p->index;
	memset(p->stats, 0, sizeof(*p->stats));
	return 0;
}

int rnic_place_open(struct rnic_device *d, struct rnic_place *p)
{
	int ret = place_take(d);

	if (ret < 0)
		return ret;
	*p = (struct rnic_place){ .dev = d,
				  .index = (unsigned int)ret,
				  .gen = d->gen[ret],
				  .wake_rd = -1,
				  .wake_wr = -1 };
	ret = map_place(p);
	if (!ret)
		ret = open_pipe(p);
	if (ret) {
		rnic_place_close(p);
		return ret;
	}
	/* D2: publishes the head; pairs with the load in check_state(). */
	rnic_store64_release(&p->head->state,
			     (uint64_t)p->gen << 32 | RNIC_EP_OPEN);
	return 0;
}

void rnic_place_close(struct rnic_place *p)
{
	struct rnic_device *d = p->dev;

	if (!d)
		return;
	if (p->head) {
		/* D3: after rx_closed of known lanes; see check_state() */
		rnic_store64_release(&p->head->state,
				     (uint64_t)p->gen << 32 | RNIC_EP_CLOSED);
		/* state before the scan; pairs with the claimer's CAS */
		rnic_fence_full();
	}
	if (p->pool)
		rnic_segment_unmap(p->pool, d->hdr->pool_bytes);
	if (p->heap)
		rnic_segment_unmap(p->heap, d->hdr->heap_bytes);
	if (p->wake_rd >= 0)
		close(p->wake_rd);
	if (p->wake_wr >= 0)
		close(p->wake_wr);
	place_leave(d, p->index, p->keep);
	p->dev = NULL;
}

static int map_arena(struct rnic_place *p, uint64_t off, uint64_t len,
		     uint64_t present, uint8_t **out)
{
	void *mem;
	int ret = map_bound(p->dev, &p->dev->arena,
			    p->index * RNIC_ARENA_EP_STRIDE + off, len, present,
			    &mem);

	if (!ret)
		*out = mem;
	return ret;
}

int rnic_place_pool(struct rnic_place *p)
{
	uint64_t len = p->dev->hdr->pool_bytes;

	return p->pool ? 0 : map_arena(p, 0, len, len, &p->pool);
}

int rnic_place_heap(struct rnic_place *p)
{
	uint64_t len = p->dev->hdr->heap_bytes;

	return p->heap ? 0 : map_arena(p, RNIC_HEAP_OFF, len, 0, &p->heap);
}

int rnic_place_heap_populate(void *arg, uint64_t off, uint64_t len)
{
	struct rnic_place *p = arg;

	return rnic_segment_populate(
		&p->dev->arena,
		p->index * RNIC_ARENA_EP_STRIDE + RNIC_HEAP_OFF + off, len);
}

void rnic_place_addr(const struct rnic_place *p, struct rnic_addr *a)
{
	const struct rnic_header *h = p->dev->hdr;

	*a = (struct rnic_addr){
		.magic = RNIC_MAGIC_ADDR,
		.version = RNIC_VERSION,
		.kind = RNIC_ADDR_ENDPOINT,
		.ep = (uint16_t)p->index,
		.uid = h->uid,
		.pid = h->pid,
	};
	a->ep_gen = p->gen;
	a->tables_fd = (uint32_t)p->dev->tables.fd;
	a->incarnation = h->incarnation;
	a->identity = h->identity;
	a->ns = h->ns;
	a->dev = p->dev->tables.dev;
	a->ino = p->dev->tables.ino;
}

void rnic_place_free_lane(struct rnic_place *p, unsigned int lane)
{
	struct rnic_lane *l = &p->lanes[lane];
	/* relaxed: own word */
	uint32_t taken = rnic_load32_relaxed(&l->credit.desc_taken);

	/*
	 * No place waits for this number in the next round: see lane.h, L1.
	 * relaxed, all: the claim's 0 publishes them (D1)
	 */
	for (unsigned int i = 0; i < RNIC_LANE_LINES; i++)
		rnic_store64_relaxed(&l->desc[i].head, taken);
	rnic_store32_relaxed(&l->flag.hot, 0);
	rnic_store32_relaxed(&l->flag.over_budget, 0);
	rnic_store32_relaxed(&l->flag.mapped, 0);
	rnic_store32_relaxed(&l->flag.rx_closed, 0);
	rnic_store32_relaxed(&l->tx_parked, 0);
	for (unsigned int c = 0; c < RNIC_CTX_PER_EP; c++)
		/* a sender that died inside: the next one is not, yet */
		rnic_store64_relaxed(&l->reader[c].seq,
				     (rnic_load64_relaxed(&l->reader[c].seq) +
				      1) & ~UINT64_C(1));
	rnic_store32_relaxed(&l->tx_state, RNIC_TX_NONE);
	/* D1, see the header */
	rnic_store64_release(&p->head->claim[lane], 0);
}

void rnic_place_drain_pipe(const struct rnic_place *p)
{
	char buf[64];

	while (read(p->wake_rd, buf, sizeof(buf)) == sizeof(buf))
		;
}
