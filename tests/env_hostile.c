/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Peers that mean harm: segments that cannot shrink (contract L2), words and
 * addresses that make no sense (L3), other users (L5).
 *
 * Knows the layout of the segments, as an attacker does.
 *
 * Limit: 300 s
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"
#include "raw_kit.h"
#include "scribble.h"
#include "shm/layout.h"

enum { NOBODY = 65534, PAGE = 4096 };

/* ---- seals -------------------------------------------------------------- */

/* Segment @name cannot shrink and is the user's own; returns a descriptor. */
static int check_sealed(const char *name, int seals)
{
	int fd = probe_segment(getpid(), name, 0, true);
	struct stat st;

	th_check(fd >= 0);
	th_ok(fstat(fd, &st));
	th_eq(st.st_mode & 0777, 0600);
	th_eq(fcntl(fd, F_GET_SEALS) & seals, seals);
	th_eq(ftruncate(fd, st.st_size - PAGE), -1);
	th_eq(errno, EPERM);
	th_eq(ftruncate(fd, 0), -1);
	return fd;
}

/* Nobody can shrink a segment; nobody but the owner can write the tables. */
static void contract_L2_seals(struct th_self *self)
{
	struct th_stack s;
	int fd;

	(void)self;
	th_stack_open(&s, NULL);
	close(check_sealed("shrimp-mailbox", F_SEAL_SHRINK));
	close(check_sealed("shrimp-arena", F_SEAL_SHRINK));
	fd = check_sealed("shrimp-tables", F_SEAL_SHRINK | F_SEAL_GROW |
						   F_SEAL_FUTURE_WRITE |
						   F_SEAL_SEAL);
	th_eq(pwrite(fd, "x", 1, 0), -1);
	th_eq(errno, EPERM);
	th_check(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
		 MAP_FAILED);
	th_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			PAGE),
	      -1);
	close(fd);
	th_stack_close(&s);
}

/* ---- scribbling ------------------------------------------------------------ */

enum {
	SESSIONS = 20,	     /* endpoints that are spoiled, one after another */
	SESSION_MS = 120,    /* life of each */
	NRECVS = 8,	     /* receives posted */
	NSENDS = 8,	     /* sends under way */
	LARGEST = 256 * 1024 /* longest message */
};

/* Name of an operation or receive that some lane of @t speaks of. */
static uint64_t borrowed(const struct sc_target *t, uint64_t *state)
{
	uint64_t r = th_random(state), word = 0;
	off_t lane = (off_t)rnic_lane_off(0, (r >> 24) % 2), at;
	size_t i = (r >> 8) % RNIC_RET_ENTRIES;

	if (r % 3 == 0)
		at = (off_t)(offsetof(struct rnic_lane, desc) +
			     i * sizeof(struct rnic_desc) +
			     offsetof(struct rnic_desc, ext.op));
	else
		at = (off_t)(offsetof(struct rnic_lane, ret) +
			     i * sizeof(struct rnic_ret) +
			     (r % 3 == 1 ? offsetof(struct rnic_ret, op)
					 : offsetof(struct rnic_ret, rx)));
	th_check(pread(t->fd, &word, sizeof(word), lane + at) >= 0);
	return word;
}

/* A field of a descriptor or answer that may be on its way. */
static void scribble_field(const struct sc_target *t, uint64_t *state)
{
	/* kind, flags, len, tag, data, total, chunk, chunk_len, op, heap, va */
	static const uint8_t field[] = {
		4, 5, 6, 8, 16, 24, 32, 36, 40, 48, 56
	};
	static const uint8_t width[] = { 1, 1, 2, 8, 8, 8, 4, 4, 8, 8, 8 };
	uint64_t r = th_random(state), word = sc_nasty(state);
	size_t f = r % sizeof(field), i = (r >> 8) % RNIC_LANE_LINES;
	off_t lane = (off_t)rnic_lane_off((r >> 20) % 2, (r >> 24) % 3);
	off_t at = (off_t)(offsetof(struct rnic_lane, desc) +
			   i * sizeof(struct rnic_desc) + field[f]);

	if (r >> 32 & 1)
		at = (off_t)(offsetof(struct rnic_lane, ret) +
			     i % RNIC_RET_ENTRIES * sizeof(struct rnic_ret) +
			     field[f] % 32);
	if (f == 0 && r >> 33 & 1)
		word = (r >> 40) % RNIC_DESC_KINDS;
	else if (width[f] == 8 && r >> 34 & 1)
		word = borrowed(t, state);
	th_check(pwrite(t->fd, &word, width[f], lane + at) == width[f]);
}

/* Credits and flags of a lane. */
static void scribble_credit(const struct sc_target *t, uint64_t *state)
{
	uint64_t r = th_random(state), word = sc_nasty(state);
	off_t lane = (off_t)rnic_lane_off((r >> 20) % 2, (r >> 24) % 3);
	off_t at = (off_t)(r % offsetof(struct rnic_lane, ret)) & ~(off_t)3;

	th_check(pwrite(t->fd, &word, 4, lane + at) == 4);
}

/* Spoils the mailboxes (even) and arenas (odd) @t for a while. */
static void scribble(struct sc_target *t, int n, unsigned int how,
		     uint64_t *state)
{
	struct th_deadline dl = th_deadline_ms(SESSION_MS);
	unsigned long i;

	for (i = 0; !th_expired(&dl); i++) {
		struct sc_target *one = &t[i % (unsigned int)n];
		bool mailbox = i % 2 == 0;

		if (i % 1024 < (unsigned int)n)
			sc_scan(one);
		if (how % 3 == 1 && mailbox)
			scribble_field(one, state);
		else if (how % 3 == 2 && mailbox)
			scribble_credit(one, state);
		else
			sc_anywhere(one, state);
		if (how % 2)
			th_sleep_us(50);
	}
}

/* Lanes of its own to the victims, with messages that stay unmatched. */
static void scribbler_sends(struct th_stack *s)
{
	static char buf[LARGEST];
	int i;

	for (i = 0; i < 2 * NSENDS; i++)
		th_tsend(s, s->peers[i % 2], buf, i < NSENDS ? 8 : LARGEST, 1,
			 NULL);
}

static void scribbler(struct th_self *self, struct th_stack *s,
		      unsigned int session, uint64_t *state)
{
	static struct sc_target t[4];
	uint32_t pids[3], mine = 0;
	int i;

	th_gather(self, "pids", &mine, pids, sizeof(mine));
	scribbler_sends(s);
	for (i = 0; i < 4; i++) {
		t[i].fd = probe_segment(
			(pid_t)pids[i / 2],
			i % 2 ? "shrimp-arena" : "shrimp-mailbox", 0, true);
		th_check(t[i].fd >= 0);
	}
	th_sleep_us((unsigned int)(th_random(state) % 20000));
	scribble(t, 4, session, state);
	for (i = 0; i < 4; i++)
		close(t[i].fd);
}

/* What a victim has under way. */
struct traffic {
	struct th_buf in[NRECVS];  /* receive buffers */
	struct th_buf out[NSENDS]; /* send buffers */
	bool in_busy[NRECVS];	   /* posted */
	bool out_busy[NSENDS];	   /* posted */
};

static void traffic_init(struct traffic *t)
{
	int i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < NRECVS; i++)
		t->in[i] = th_buf_new(LARGEST);
	for (i = 0; i < NSENDS; i++)
		t->out[i] = th_buf_new(LARGEST);
}

/* Nothing outside the buffers was written. */
static void traffic_fini(struct traffic *t)
{
	int i;

	for (i = 0; i < NRECVS; i++)
		th_buf_free(&t->in[i]);
	for (i = 0; i < NSENDS; i++)
		th_buf_free(&t->out[i]);
}

/* What a one-sided access with data tells its target: of no call of ours. */
static bool is_told(const struct fi_cq_tagged_entry *e)
{
	return !e->op_context && e->flags & FI_REMOTE_CQ_DATA &&
	       e->flags & FI_REMOTE_WRITE;
}

/* Any completion or error; its context tells what is free again. */
static void traffic_take(struct fid_cq *cq, bool *busy, int n)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e = { 0 };
	ssize_t ret = fi_cq_read(cq, &e, 1);
	bool *which = e.op_context;

	if (ret == -FI_EAVAIL) {
		th_eq(fi_cq_readerr(cq, &err, 0), 1);
		which = err.op_context;
	} else if (ret != 1 || is_told(&e)) {
		return;
	}
	th_check(e.len <= LARGEST);
	th_check(which >= busy && which < busy + n && *which);
	*which = false;
}

static size_t traffic_len(uint64_t *state)
{
	static const size_t most[] = { 41, 1025, 65537, LARGEST + 1 };
	uint64_t r = th_random(state);

	return (size_t)(r >> 8) % most[r % 4];
}

static void traffic_turn(struct th_stack *s, struct traffic *t, fi_addr_t to,
			 uint64_t *state)
{
	int i;

	for (i = 0; i < NRECVS; i++)
		if (!t->in_busy[i] &&
		    !fi_trecv(s->ep, t->in[i].p, LARGEST, NULL, FI_ADDR_UNSPEC,
			      0, UINT64_MAX, &t->in_busy[i]))
			t->in_busy[i] = true;
	for (i = 0; i < NSENDS; i++)
		if (!t->out_busy[i] &&
		    !fi_tsend(s->ep, t->out[i].p, traffic_len(state), NULL, to,
			      0, &t->out_busy[i]))
			t->out_busy[i] = true;
	traffic_take(s->txcq, t->out_busy, NSENDS);
	traffic_take(s->rxcq, t->in_busy, NRECVS);
}

/* Talks with the other victim whatever happens, then closes. */
static void scribbled(struct th_self *self, struct th_stack *s,
		      unsigned int session, uint64_t *state)
{
	struct th_deadline dl = th_deadline_ms(SESSION_MS + 30);
	uint32_t pids[3], mine = (uint32_t)getpid();
	fi_addr_t to = s->peers[1 - self->rank];
	static struct traffic t;

	traffic_init(&t);
	th_gather(self, "pids", &mine, pids, sizeof(mine));
	while (!th_expired(&dl)) {
		traffic_turn(s, &t, to, state);
		if (session % 4 > 1)
			th_sleep_us(200);
	}
	th_stack_close(s);
	traffic_fini(&t);
}

static void scribble_session(struct th_self *self, unsigned int session,
			     uint64_t *state)
{
	char all[3 * TH_MAX_ADDR];
	struct th_stack s;
	int i;

	th_stack_open(&s, NULL);
	th_gather(self, "names", s.addr, all, s.addrlen);
	s.peers = calloc(3, sizeof(*s.peers));
	th_check(s.peers);
	for (i = 0; i < 3; i++)
		s.peers[i] = th_insert(&s, all + (size_t)i * s.addrlen);
	if (self->rank < 2) {
		scribbled(self, &s, session, state);
	} else {
		scribbler(self, &s, session, state);
		th_stack_close(&s);
	}
}

/*
 * Rank 2 overwrites the mailboxes and arenas of ranks 0 and 1 while they
 * talk. They may get errors and wrong data; they may not crash, hang, or
 * write outside their buffers, and a new endpoint works.
 */
static void contract_L3_scribble(struct th_self *self)
{
	uint64_t state = 77 + (uint64_t)self->rank;
	unsigned int i, n = (unsigned int)th_rounds(SESSIONS);
	struct th_stack s;

	setenv("FI_SHRIMP_LINGER", "0.1", 1);
	n = n < 6 ? 6 : n;
	for (i = 0; i < n; i++) {
		scribble_session(self, i, &state);
		th_barrier(self, "session");
	}
	ks_open_all(&s, self);
	if (self->rank < 2)
		ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ---- answers -------------------------------------------------------------- */

enum {
	HELD_LEN = 128 << 10, /* bytes of a message that is held */
	HELD_LINES = HELD_LEN / RNIC_POOL_LARGE,
	HELD_SENDS = 2,	 /* the first ones in the lane */
	NO_SUCH_CODE = 3 /* see enum rnic_ret_code */
};

/* The receiver's end of lane 0 of this process, at offset @lane of @fd. */
struct liar {
	int fd;	       /* the mailbox */
	off_t lane;    /* its lane */
	uint64_t said; /* answers written */
};

static uint64_t liar_read(const struct liar *l, size_t at, size_t size)
{
	uint64_t word = 0;

	th_eq(pread(l->fd, &word, size, l->lane + (off_t)at), size);
	return word;
}

static void liar_write(const struct liar *l, size_t at, uint64_t word,
		       size_t size)
{
	th_eq(pwrite(l->fd, &word, size, l->lane + (off_t)at), size);
}

/* Waits until the sender has written @n descriptors. */
static void liar_await(const struct liar *l, uint32_t n)
{
	size_t at = offsetof(struct rnic_lane, desc) +
		    (n - 1) % RNIC_LANE_LINES * sizeof(struct rnic_desc);

	while ((uint32_t)liar_read(l, at, 8) != n)
		th_sleep_us(1000);
}

/* Answers operation @op, and waits until the sender has seen it. */
static void liar_say(struct liar *l, unsigned int code, uint64_t op)
{
	size_t at = offsetof(struct rnic_lane, ret) +
		    l->said * sizeof(struct rnic_ret);

	liar_write(l, at + offsetof(struct rnic_ret, op), op, 8);
	liar_write(l, at + offsetof(struct rnic_ret, len), HELD_LEN, 8);
	liar_write(l, at, ++l->said << 32 | code, 8);
	while (liar_read(l, offsetof(struct rnic_lane, ret_taken), 4) !=
	       l->said)
		th_sleep_us(1000);
}

/*
 * A code that there is not, for a message whose bytes are under way: what the
 * sender keeps of it must last until they are credited.
 */
static void lie(const struct th_stack *s)
{
	struct rnic_addr me;
	struct liar l = { .fd = probe_segment(getpid(), "shrimp-mailbox", 0,
					      true) };
	uint64_t op;

	th_check(l.fd >= 0);
	memcpy(&me, s->addr, sizeof(me));
	l.lane = (off_t)rnic_lane_off(me.ep, 0);
	liar_await(&l, HELD_SENDS);
	op = liar_read(&l,
		       offsetof(struct rnic_lane, desc) +
			       offsetof(struct rnic_desc, ext.op),
		       8);
	liar_say(&l, RNIC_RET_GO, op);
	liar_await(&l, HELD_SENDS + HELD_LINES);
	liar_say(&l, NO_SUCH_CODE, op);
	liar_write(&l, offsetof(struct rnic_lane, credit.desc_taken),
		   HELD_SENDS + HELD_LINES, 4);
	close(l.fd);
}

/* Rank 1 makes no progress: what the sender hears is what is written here. */
static void contract_L3_unknown_answer(struct th_self *self)
{
	char all[2 * TH_MAX_ADDR];
	struct th_stack s;
	fi_addr_t to;
	char *buf = calloc(HELD_SENDS, HELD_LEN);
	int i;

	th_check(buf);
	th_stack_open(&s, NULL);
	th_gather(self, "names", s.addr, all, s.addrlen);
	if (self->rank) {
		lie(&s);
		th_barrier(self, "lied");
		th_stack_close(&s);
		free(buf);
		return;
	}
	to = th_insert(&s, all + s.addrlen);
	for (i = 0; i < HELD_SENDS; i++)
		th_tsend(&s, to, buf + (size_t)i * HELD_LEN, HELD_LEN, 1,
			 buf + i);
	th_barrier_progress(self, &s, "lied");
	th_ptr_eq(th_tx_ok(&s).op_context, buf);
	/* the other one was not answered, and its receiver closes */
	th_ptr_eq(th_tx_err(&s).op_context, buf + 1);
	th_quiet(&s, 50);
	th_stack_close(&s);
	free(buf);
}

/* ---- a lane of nonsense -------------------------------------------------- */

/* Rank 1 claims a lane at rank 0 and writes a descriptor of no known kind. */
static void nonsense(struct th_self *self, struct th_stack *s,
		     struct raw_lane *r)
{
	const struct rnic_desc none = { .ext = { .total = 1 } };
	char all[3 * TH_MAX_ADDR];

	th_gather(self, "names", s->addr, all, s->addrlen);
	if (self->rank == 1) {
		raw_open(r, s->addr, all);
		raw_put(r, &none, RNIC_DESC_KINDS, 0);
		raw_expect_closed(r);
	}
	th_barrier_progress(self, s, "closed");
}

/*
 * The lane is closed for who wrote it, and not for rank 2, who gets it next:
 * nothing of the one before is in it.
 */
static void contract_L3_lane_handed_on(struct th_self *self)
{
	struct raw_lane r;
	struct th_stack s;
	char buf[8];

	ks_open_all(&s, self);
	nonsense(self, &s, &r);
	if (self->rank == 1)
		raw_give_back(&r);
	th_barrier_progress(self, &s, "free");
	if (self->rank == 2) {
		th_fill(buf, sizeof(buf), 4);
		th_tsend(&s, s.peers[0], buf, sizeof(buf), KS_TAG, NULL);
		th_tx_ok(&s);
	} else if (self->rank == 0) {
		th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, NULL);
		ks_expect_message(&s, buf, sizeof(buf), 4);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* Who wrote nonsense, and lives, does not keep rank 0 awake. */
static void contract_P3_nonsense_wakes_nobody(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct raw_lane r;
	struct th_stack s;
	uint64_t sleeps;

	ks_open_with(&s, self, FI_WAIT_UNSPEC);
	nonsense(self, &s, &r);
	if (self->rank == 0) {
		sleeps = probe_stats(&s.fabric->fid).sleeps;
		th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, 1000), -FI_EAGAIN);
		sleeps = probe_stats(&s.fabric->fid).sleeps - sleeps;
		th_check(sleeps > 0 && sleeps < 100);
	}
	th_barrier(self, "slept");
	if (self->rank == 1)
		raw_give_back(&r);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ---- addresses ---------------------------------------------------------------- */

/* A message to @addr ends: with an error code, or 0 if it arrived. */
static int send_to(struct th_stack *s, const void *addr)
{
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;

	if (fi_av_insert(s->av, addr, 1, &to, 0, NULL) != 1)
		return EINVAL;
	if (fi_tsend(s->ep, "message!", 8, NULL, to, KS_TAG, s))
		return EINVAL;
	return th_cq_next(s, s->txcq, &e, &err) == 1 ? 0 : err.err;
}

/* Each byte of the peer's address in turn is wrong; then all of it. */
static void damaged(struct th_stack *s, const char *addr)
{
	char bad[TH_MAX_ADDR];
	uint64_t state = 1;
	size_t i, j;

	for (i = 0; i < s->addrlen; i++) {
		memcpy(bad, addr, s->addrlen);
		bad[i] ^= 1;
		send_to(s, bad);
		bad[i] ^= 0x7f;
		send_to(s, bad);
	}
	for (i = 0; i < 200; i++) {
		memcpy(bad, addr, s->addrlen);
		for (j = i % 2 ? 8 : 0; j < s->addrlen; j++)
			bad[j] = (char)th_random(&state);
		th_check(send_to(s, bad) != 0);
	}
	memset(bad, 0, s->addrlen);
	th_check(send_to(s, bad) != 0);
	memset(bad, 0xff, s->addrlen);
	th_check(send_to(s, bad) != 0);
}

/* Damaged addresses end in errors; the true one still works. */
static void contract_L3_addresses(struct th_self *self)
{
	char all[2 * TH_MAX_ADDR];
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_gather(self, "names", s.addr, all, s.addrlen);
	if (self->rank == 0) {
		damaged(&s, all + s.addrlen);
		th_eq(send_to(&s, all + s.addrlen), 0);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* A peer whose shrimp has another layout is refused, in words. */
static void contract_L3_version(struct th_self *self)
{
	char want[32];
	static char text[65536];
	char all[2 * TH_MAX_ADDR];
	struct rnic_addr addr;
	struct probe_stderr e;
	struct th_stack s;

	e = probe_stderr_begin();
	th_stack_open(&s, NULL);
	th_gather(self, "names", s.addr, all, s.addrlen);
	if (self->rank == 0) {
		memcpy(&addr, all + s.addrlen, sizeof(addr));
		th_eq(addr.version, RNIC_VERSION);
		addr.version++;
		th_eq(send_to(&s, &addr), EPROTONOSUPPORT);
	}
	probe_stderr_end(&e, text, sizeof(text));
	if (self->rank == 0) {
		snprintf(want, sizeof(want), "version %d", RNIC_VERSION + 1);
		probe_expect(text, want);
		snprintf(want, sizeof(want), "version %d", RNIC_VERSION);
		probe_expect(text, want);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ---- other users ------------------------------------------------------------------ */

/* Rank 1 becomes somebody else, whose processes can be looked into. */
static void other_user(struct th_self *self)
{
	struct fi_info *hints = th_hints(NULL), *info;

	if (geteuid() != 0)
		th_skip(self, "only root can be two users");
	/* loads the provider while its file can still be read */
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	if (self->rank != 1)
		return;
	th_check(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	th_ok(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	th_ok(prctl(PR_SET_PDEATHSIG, SIGKILL));
}

static void other_user_open(struct th_self *self, struct th_stack *s,
			    struct rnic_addr addr[2])
{
	other_user(self);
	th_stack_open(s, NULL);
	th_eq(s->addrlen, sizeof(addr[0]));
	th_gather(self, "names", s->addr, addr, s->addrlen);
}

/* Both directions are refused, with a message that names both users. */
static void contract_L5_other_user(struct th_self *self)
{
	static char text[65536];
	struct rnic_addr addr[2];
	struct probe_stderr e;
	struct th_stack s;

	e = probe_stderr_begin();
	other_user_open(self, &s, addr);
	th_eq(send_to(&s, &addr[1 - self->rank]), FI_EACCES);
	probe_stderr_end(&e, text, sizeof(text));
	probe_expect(text, "user 65534");
	probe_expect(text, "user 0");
	th_quiet(&s, 200);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* An address that lies about its user does not help. */
static void forged_user(struct th_self *self, const char *attach)
{
	struct rnic_addr addr[2];
	struct th_stack s;
	int err;

	setenv("FI_SHRIMP_ATTACH", attach, 1);
	other_user_open(self, &s, addr);
	if (self->rank) {
		addr[0].uid = geteuid();
		err = send_to(&s, &addr[0]);
		th_check(err == FI_EACCES || err == FI_ECONNRESET);
		th_eq(probe_segment((pid_t)addr[0].pid, "shrimp-mailbox", 0,
				    true),
		      -1);
	}
	th_barrier_progress(self, &s, "end");
	th_eq(probe_stats(&s.fabric->fid).rx.msgs[FI_SHRIMP_PATH_INLINE], 0);
	th_stack_close(&s);
}

static void contract_L5_forged_user_proc(struct th_self *self)
{
	forged_user(self, "proc");
}

static void contract_L5_forged_user_socket(struct th_self *self)
{
	forged_user(self, "socket");
}

static int connect_to(const struct rnic_addr *a)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t len;

	th_check(fd >= 0);
	len = (socklen_t)snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1,
				  "shrimp-%u-%016" PRIx64, a->uid,
				  a->incarnation);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	th_ok(connect(fd, (struct sockaddr *)&un, len));
	return fd;
}

/* The attach socket gives nothing to another user, whatever he asks. */
static void contract_L5_socket(struct th_self *self)
{
	struct timeval tv = { 5, 0 };
	struct rnic_addr addr[2];
	uint32_t req[4], reply[16];
	struct th_stack s;
	int fd;

	other_user_open(self, &s, addr);
	if (self->rank) {
		fd = connect_to(&addr[0]);
		req[0] = RNIC_MAGIC_ADDR;
		req[1] = RNIC_VERSION;
		req[2] = addr[0].ep;
		req[3] = addr[0].ep_gen;
		send(fd, req, sizeof(req), MSG_NOSIGNAL);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
		errno = 0;
		th_check(recv(fd, reply, sizeof(reply), 0) <= 0);
		th_check(errno != EAGAIN);
		close(fd);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ------------------------------------------------------------------------- */

static const struct CMUnitTest env_hostile[] = {
	TH_CASE(contract_L2_seals, 1, 10),
	TH_CASE(contract_L3_scribble, 3, 120),
	TH_CASE(contract_L3_unknown_answer, 2, 20),

	TH_CASE(contract_L3_lane_handed_on, 3, 20),
	TH_CASE(contract_P3_nonsense_wakes_nobody, 2, 20),
	TH_CASE(contract_L3_addresses, 2, 60),
	TH_CASE(contract_L3_version, 2, 20),
	TH_CASE(contract_L5_other_user, 2, 20),
	TH_CASE(contract_L5_forged_user_proc, 2, 20),
	TH_CASE(contract_L5_forged_user_socket, 2, 20),
	TH_CASE(contract_L5_socket, 2, 20),
};

TH_MAIN(env_hostile)
