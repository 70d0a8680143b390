/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA with peers that mean harm (contract L3): an owner that spoils its own
 * tables under an initiator, and a third process that spoils whatever words
 * of mailbox and arena it can write, reader slots and announce lines among
 * them. Data may be wrong, operations may fail, a close may be held up. There
 * is no crash, no access out of bounds, no hang once it is over.
 *
 * Knows the layout of the segments, as an attacker does.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "rma_kit.h"
#include "scribble.h"
#include "shm/layout.h"

enum {
	LEN = 256 << 10,     /* bytes of a region */
	LARGEST = 256 << 10, /* longest operation */
	SESSIONS = 20,	     /* owners or endpoints that are spoiled */
	SESSION_MS = 150,    /* life of each */
	LEAST = 5,	     /* sessions in a quick run */
	DEVICE_KEY = 1,
	PRIVATE_KEY = 2,
	LIST_KEY = 3, /* several ranges of both */
};

static unsigned int sessions(void)
{
	unsigned int n = (unsigned int)th_rounds(SESSIONS);

	return n < LEAST ? LEAST : n;
}

/* The regions that every process here has. */
struct regions {
	struct rk_mem mem[2]; /* device, private */
	struct fid_mr *mr[3]; /* by key - 1 */
};

static void regions_open(struct th_stack *s, struct regions *r)
{
	struct iovec iov[4];

	for (int i = 0; i < 2; i++) {
		r->mem[i] = rk_mem_new(s, i == 0, LEN);
		r->mr[i] = rk_reg(s, r->mem[i].p, LEN, RK_RW, (uint64_t)i + 1);
	}
	for (int i = 0; i < 4; i++)
		iov[i] = (struct iovec){ r->mem[i & 1].p + i * 20000, 10000 };
	th_ok(fi_mr_regv(s->domain, iov, 4, RK_RW, 0, LIST_KEY, 0, &r->mr[2],
			 NULL));
}

static void regions_close(struct regions *r)
{
	for (int i = 0; i < 3; i++)
		th_ok(fi_close(&r->mr[i]->fid));
	for (int i = 0; i < 2; i++)
		rk_mem_free(&r->mem[i]);
}

/* ---- an owner that spoils its tables -------------------------------------------- */

/* Our own tables, where they are mapped for writing. */
static struct sc_target own_tables(void)
{
	struct sc_target t = { .fd = probe_segment(getpid(), "shrimp-tables", 0,
						   false) };
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, off;
	char line[512];

	th_check(f && t.fd >= 0);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "shrimp-tables") &&
		    sscanf(line, "%lx-%*x rw-s %lx", &from, &off) == 2 && !off)
			t.mem = (unsigned char *)from;
	fclose(f);
	th_check(t.mem);
	sc_scan(&t);
	return t;
}

/* Copies the pages of @t out (save) or back. */
static void tables_copy(const struct sc_target *t, unsigned char **copy,
			bool save)
{
	for (int i = 0; i < t->n; i++) {
		size_t len = (size_t)t->ext[i].len;

		if (save)
			copy[i] = malloc(len);
		th_check(copy[i]);
		if (save)
			memcpy(copy[i], t->mem + t->ext[i].off, len);
		else
			memcpy(t->mem + t->ext[i].off, copy[i], len);
	}
}

/* A word of the MPT that means something, in a slot that is used. */
static void scribble_mpt(const struct sc_target *t, const struct rnic_header *h,
			 uint64_t *state)
{
	uint64_t r = th_random(state), word = sc_nasty(state);
	uint64_t slot = r % 4, w = (r >> 8) % 8;
	uint64_t at = h->mpt_off + slot * sizeof(struct rnic_mpt) + w * 8;

	if (w == 1 && r & 1 << 20)
		word = 1 + (r >> 32) % 3;
	if (w == 4 && r & 1 << 21)
		/* a root: depth, kind, space, page */
		word = (r >> 32 << 12) | ((r >> 22) & 0xfff);
	if (w == 5)
		word &= 0x1ff;
	sc_write(t, (off_t)at, &word, 8);
}

/* A word of the index, of its head, or of a page of the translation. */
static void scribble_walk(const struct sc_target *t,
			  const struct rnic_header *h, uint64_t *state)
{
	uint64_t r = th_random(state), word = sc_nasty(state);
	uint64_t at = h->mpt_head_off + (r >> 8) % 2 * 8;

	switch (r % 4) {
	case 0:
		at = h->mtt_off + (r >> 16) % 4096 * 8;
		break;
	case 1:
		at = h->index_off[r >> 8 & 1] + (r >> 16) % 512 * 8;
		break;
	case 2:
		/* a table of any size */
		at = h->mpt_head_off + offsetof(struct rnic_mpt_head, index);
		word = rnic_index_make(r >> 8 & 1, (r >> 16) % 40);
		break;
	default:
		break;
	}
	sc_write(t, (off_t)at, &word, 8);
}

/* For ever; what it spoils is mended now and then, so that keys work. */
static void spoil_tables(uint64_t *state, bool header)
{
	static unsigned char *copy[SC_MAX_EXTENTS];
	struct sc_target t = own_tables();
	struct rnic_header h;

	memcpy(&h, t.mem, sizeof(h));
	tables_copy(&t, copy, true);
	for (unsigned long i = 1;; i++) {
		uint64_t r = th_random(state);

		if (r % 3 == 0)
			scribble_mpt(&t, &h, state);
		else if (r % 3 == 1)
			scribble_walk(&t, &h, state);
		else
			sc_anywhere(&t, state);
		if (!header)
			memcpy(t.mem, &h, sizeof(h));
		if (i % 32 == 0)
			tables_copy(&t, copy, false);
		if (i % 8 == 0)
			th_sleep_us((unsigned int)(r >> 32) % 50);
	}
}

/* An owner: tells its address through @fd, then does as @session says. */
static void owner(int fd, unsigned int session, unsigned int last)
{
	struct th_stack_opts o = rk_opts();
	uint64_t state = session;
	struct regions r;
	struct th_stack s;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	th_stack_open(&s, &o);
	regions_open(&s, &r);
	th_eq(send(fd, s.addr, s.addrlen, MSG_NOSIGNAL), s.addrlen);
	if (session < last)
		spoil_tables(&state, session % 4 == 3);
	for (;;)
		pause();
}

/* Starts the owners one by one; each dies of whatever, at the latest of us. */
static void keeper(struct th_self *self)
{
	char addr[TH_MAX_ADDR] = { 0 }, all[2 * TH_MAX_ADDR];
	uint64_t len = 0, lens[2];

	for (unsigned int i = 0; i <= sessions(); i++) {
		int fds[2], status;
		ssize_t n;
		pid_t pid;

		th_ok(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
		pid = fork();
		th_check(pid >= 0);
		if (!pid)
			owner(fds[1], i, sessions());
		n = recv(fds[0], addr, sizeof(addr), 0);
		th_check(n > 0);
		len = (uint64_t)n;
		th_gather(self, "length", &len, lens, sizeof(len));
		th_gather(self, "address", addr, all, len);
		th_barrier(self, "session");
		kill(pid, SIGKILL);
		th_eq(waitpid(pid, &status, 0), pid);
		close(fds[0]);
		close(fds[1]);
	}
}

/* An address, or length, that need not be good. */
static uint64_t any_addr(uint64_t *state)
{
	uint64_t r = th_random(state);

	return r % 4 ? (r >> 8) % LEN : sc_nasty(state);
}

/* Codes that the contract knows. */
static void check_code(int err)
{
	static const int codes[] = { 0,		FI_EKEYREJECTED,
				     FI_EACCES, FI_EINVAL,
				     FI_EFAULT, FI_ECONNRESET,
				     FI_ENOMEM, 71 /* EPROTO */,
				     93 /* EPROTONOSUPPORT */ };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (err == codes[i])
			return;
	th_fail(__FILE__, __LINE__, "an operation ended with %d (%s)", err,
		fi_strerror(err));
}

/* One operation; returns its code. */
static int victim_op(struct th_stack *s, fi_addr_t to, unsigned char *buf,
		     uint64_t *state)
{
	uint64_t r = th_random(state), key = 1 + (r >> 8) % 3;
	size_t len = 1 + (size_t)(r >> 16) % (LARGEST >> (r >> 40) % 18);
	uint64_t addr = any_addr(state);
	struct rk_outcome e;
	ssize_t ret;

	if (r >> 60 == 0)
		key = sc_nasty(state);
	if (r & 1)
		ret = fi_write(s->ep, buf, len, NULL, to, addr, key, s);
	else
		ret = fi_read(s->ep, buf, len, NULL, to, addr, key, s);
	if (ret == -FI_EAGAIN)
		return 0;
	th_ok(ret);
	e = rk_end(s);
	th_ptr_eq(e.context, s);
	th_check(e.moved <= len);
	check_code(e.err);
	return e.err;
}

/* An operation on an owner that means well. */
static void check_healthy(struct th_stack *s, fi_addr_t to)
{
	unsigned char in[64] = { 1, 2, 3 }, out[64];

	for (uint64_t key = 1; key <= 3; key++) {
		th_ok(fi_write(s->ep, in, 64, NULL, to, 64, key, s));
		rk_done(s, FI_WRITE, s);
		th_ok(fi_read(s->ep, out, 64, NULL, to, 64, key, s));
		rk_done(s, FI_READ, s);
		th_eq(memcmp(in, out, 64), 0);
	}
}

static void initiator(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	uint64_t state = 5, len = 0, lens[2], good = 0, bad = 0;
	struct th_buf b = th_buf_new(LARGEST);
	char none[TH_MAX_ADDR] = { 0 }, all[2 * TH_MAX_ADDR];
	struct th_stack s;
	fi_addr_t to;

	th_stack_open(&s, &o);
	for (unsigned int i = 0; i <= sessions(); i++) {
		struct th_deadline dl;

		th_gather(self, "length", &len, lens, sizeof(len));
		th_gather(self, "address", none, all, lens[1]);
		to = th_insert(&s, all + lens[1]);
		dl = th_deadline_ms(SESSION_MS);
		while (i < sessions() && !th_expired(&dl)) {
			if (victim_op(&s, to, b.p, &state))
				bad++;
			else
				good++;
		}
		if (i == sessions())
			check_healthy(&s, to);
		th_buf_check(&b);
		th_barrier_progress(self, &s, "session");
		th_eq(fi_av_remove(s.av, &to, 1, 0), 0);
	}
	/* both were tried */
	th_check(good && bad);
	th_stack_close(&s);
	th_buf_free(&b);
}

static void contract_L3_own_tables(struct th_self *self)
{
	if (self->rank)
		keeper(self);
	else
		initiator(self);
}

/* ---- a third one that spoils mailboxes and arenas -------------------------------------- */

enum { NBUFS = 4 };

/* What the three know of each other. */
struct shared {
	_Atomic unsigned int closed[2]; /* sessions that a victim ended */
};

static struct shared *shared;

/* A reader slot, or an announce line, of a victim's lane. */
static void scribble_reader(const struct sc_target *t, uint64_t *state)
{
	uint64_t r = th_random(state), word = sc_nasty(state);
	off_t lane = (off_t)rnic_lane_off((r >> 20) % 2, (r >> 24) % 3);
	off_t at = lane + (off_t)offsetof(struct rnic_lane, reader);

	if (r & 1)
		at += (off_t)(r >> 8) % RNIC_CTX_PER_EP * RNIC_LINE;
	else
		at = lane + (off_t)offsetof(struct rnic_lane, announce) +
		     (off_t)((r >> 8) % (RNIC_FILTER_BITS / 64)) * 8;
	sc_write(t, at, &word, 8);
}

/*
 * Makes all reader slots move on, for ever even: nothing holds up a close any
 * more.
 */
static void settle(const struct sc_target *t, uint64_t n)
{
	uint64_t even = n << 1;

	for (unsigned int i = 0; i < 6; i++)
		for (unsigned int c = 0; c < RNIC_CTX_PER_EP; c++)
			sc_write(t,
				 (off_t)(rnic_lane_off(i % 2, i / 2) +
					 offsetof(struct rnic_lane, reader) +
					 c * RNIC_LINE),
				 &even, 8);
}

static void spoil_segments(struct sc_target *t, unsigned int how,
			   uint64_t *state)
{
	struct th_deadline dl = th_deadline_ms(SESSION_MS);

	for (unsigned long i = 0; !th_expired(&dl); i++) {
		/* mailboxes are even, arenas odd */
		struct sc_target *one = &t[i % 4];

		if (i % 1024 < 4)
			sc_scan(one);
		if (i % 2 == 0 && how % 2 == 0)
			scribble_reader(one, state);
		else
			sc_anywhere(one, state);
		if (how % 3 == 0)
			th_sleep_us(50);
	}
}

/* Spoils, then mends what a close waits for, until both have closed. */
static void spoiler(struct th_self *self, struct th_stack *s,
		    unsigned int session, uint64_t *state)
{
	static struct sc_target t[4];
	uint32_t pids[3], mine = 0;

	th_gather(self, "pids", &mine, pids, sizeof(mine));
	/* lanes of its own to both */
	for (int i = 0; i < 2; i++)
		victim_op(s, s->peers[i], (unsigned char[LARGEST]){ 0 }, state);
	for (int i = 0; i < 4; i++) {
		t[i].fd = probe_segment(
			(pid_t)pids[i / 2],
			i % 2 ? "shrimp-arena" : "shrimp-mailbox", 0, true);
		th_check(t[i].fd >= 0);
	}
	spoil_segments(t, session, state);
	for (uint64_t n = 1; atomic_load(&shared->closed[0]) <= session ||
			     atomic_load(&shared->closed[1]) <= session;
	     n++) {
		settle(&t[0], n);
		settle(&t[2], n);
		th_sleep_us(1000);
	}
	for (int i = 0; i < 4; i++)
		close(t[i].fd);
}

/* What a victim has under way. */
struct traffic {
	struct th_buf buf[NBUFS]; /* of operations */
	bool busy[NBUFS];	  /* under way */
};

static void traffic_post(struct th_stack *s, struct traffic *t, fi_addr_t to,
			 uint64_t *state)
{
	for (int i = 0; i < NBUFS; i++) {
		uint64_t r = th_random(state), key = 1 + (r >> 8) % 3;
		size_t len =
			1 + (size_t)(r >> 16) % (LARGEST >> (r >> 40) % 18);
		ssize_t ret;

		if (t->busy[i])
			continue;
		if (r & 1)
			ret = fi_write(s->ep, t->buf[i].p, len, NULL, to,
				       LEN - len, key, &t->busy[i]);
		else
			ret = fi_read(s->ep, t->buf[i].p, len, NULL, to,
				      LEN - len, key, &t->busy[i]);
		t->busy[i] = !ret;
	}
}

static void traffic_take(struct th_stack *s, struct traffic *t)
{
	struct rk_outcome e;
	bool *which;

	while (rk_end_now(s, &e)) {
		which = e.context;
		th_check(which >= t->busy && which < t->busy + NBUFS && *which);
		*which = false;
		check_code(e.err);
	}
	fi_cq_read(s->rxcq, NULL, 0);
}

/* Works with the other victim whatever happens, then closes. */
static void victim(struct th_self *self, struct th_stack *s,
		   unsigned int session, uint64_t *state)
{
	struct th_deadline dl = th_deadline_ms(SESSION_MS + 30);
	uint32_t pids[3], mine = (uint32_t)getpid();
	struct traffic t = { .busy = { false } };
	struct regions r;

	for (int i = 0; i < NBUFS; i++)
		t.buf[i] = th_buf_new(LARGEST);
	regions_open(s, &r);
	th_gather(self, "pids", &mine, pids, sizeof(mine));
	for (unsigned int n = 0; !th_expired(&dl); n++) {
		traffic_post(s, &t, s->peers[1 - self->rank], state);
		traffic_take(s, &t);
		if (n % 16)
			continue;
		th_ok(fi_close(&r.mr[n / 16 % 2]->fid));
		r.mr[n / 16 % 2] = rk_reg(s, r.mem[n / 16 % 2].p, LEN, RK_RW,
					  n / 16 % 2 + 1);
	}
	regions_close(&r);
	th_stack_close(s);
	atomic_store(&shared->closed[self->rank], session + 1);
	for (int i = 0; i < NBUFS; i++)
		th_buf_free(&t.buf[i]);
}

static void spoilt_session(struct th_self *self, unsigned int session,
			   uint64_t *state)
{
	struct th_stack_opts o = rk_opts();
	struct th_stack s;

	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	if (self->rank < 2) {
		victim(self, &s, session, state);
	} else {
		spoiler(self, &s, session, state);
		th_stack_close(&s);
	}
}

static void contract_L3_rma_scribble(struct th_self *self)
{
	struct th_stack_opts o = rk_opts();
	uint64_t state = 77 + (uint64_t)self->rank;
	struct regions r;
	struct th_stack s;

	setenv("FI_SHRIMP_LINGER", "0.1", 1);
	for (unsigned int i = 0; i < sessions(); i++) {
		spoilt_session(self, i, &state);
		th_barrier(self, "session");
	}
	th_stack_open(&s, &o);
	th_stack_connect(&s, self);
	regions_open(&s, &r);
	th_barrier_progress(self, &s, "registered");
	if (self->rank < 2)
		check_healthy(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "end");
	regions_close(&r);
	th_stack_close(&s);
}

static const struct CMUnitTest rma_hostile[] = {
	TH_CASE(contract_L3_own_tables, 2, 120),
	TH_CASE(contract_L3_rma_scribble, 3, 120),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "rma_hostile", rma_hostile,
		       sizeof(rma_hostile) / sizeof(rma_hostile[0]));
}
