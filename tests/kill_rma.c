/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Processes do RMA and atomics at each other, register and close, while some
 * are killed at random instants, round after round (contract L1, P4; E5, E6):
 * storms of kill_steps.h.
 *
 * All have the same regions: one of the device's memory and one of private
 * memory, which they close and register again all the time, and a steady one,
 * of which each rank has a slice.
 *
 * 50 rounds; 1000 with SHRIMP_LONG=1; 5 with SHRIMP_QUICK=1 and in sanitizer
 * builds.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include <rdma/fi_atomic.h>
#include <stdatomic.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"
#include "rma_kit.h"

enum {
	LEN = 1 << 20,	  /* of a region that comes and goes */
	SLICE = 4096,	  /* of the steady one, for each rank */
	DEVICE_KEY = 1,	  /* comes and goes */
	PRIVATE_KEY = 2,  /* comes and goes */
	STEADY_KEY = 3,	  /* stays */
	CLOSE_MS = 2000,  /* a close takes at most; the machine may be busy */
	ROUND_MS = 20000, /* a round takes at most */
	FD_SLACK = 8,	  /* descriptors for each victim not yet forgotten */
	MAP_SLACK = 24,	  /* mappings of segments likewise */
	LANE_KIB = 16,	  /* segment of a lane */
	LINGER = 8,	  /* lanes likewise: rounds are shorter than looks */
	TABLE_KIB = 2048, /* tables: slots in quarantine, and their index */
	LATE_KIB = 512,	  /* the same in the second half of a long storm */
	LONG_STORM = 500, /* rounds after which tables have their size */
};

/* What the victims do. */
enum role {
	DO_RMA = 1, /* they write and read at the survivors */
	OWN = 2,    /* they have regions that come and go */
	DO_ALL = DO_RMA | OWN,
};

/* A peer of this round. */
struct mate {
	fi_addr_t addr; /* it */
	int rank;	/* its rank */
	bool mortal;	/* a victim */
	bool dead;	/* known to be */
};

/* A process with its regions. */
struct actor {
	struct th_stack *s;	      /* its endpoint */
	const struct ks_storm *storm; /* how many are there */
	int rank;		      /* its rank */
	unsigned long no;	      /* number of the round */
	uint64_t state;		      /* of the random numbers */
	struct rk_mem mem[3];	      /* by key - 1 */
	struct fid_mr *mr[3];	      /* their regions */
	uint64_t slowest_ns;	      /* close so far */
	int n;			      /* peers */
	struct mate mate[KS_RANKS];   /* the peers */
	unsigned char buf[LEN];	      /* what is moved */
	unsigned char slice[SLICE];   /* what its slices hold */
};

/* ---- regions -------------------------------------------------------------- */

static void regions_open(struct actor *a)
{
	for (int i = 0; i < 3; i++) {
		size_t len = i == 2 ? SLICE * KS_RANKS : LEN;

		a->mem[i] = rk_mem_new(a->s, i != 1, len);
		a->mr[i] =
			rk_reg(a->s, a->mem[i].p, len, RK_RW, (uint64_t)i + 1);
	}
}

static void regions_close(struct actor *a)
{
	for (int i = 0; i < 3; i++) {
		th_ok(fi_close(&a->mr[i]->fid));
		rk_mem_free(&a->mem[i]);
	}
}

/* Closes one of the two, looks that it is ours alone, opens it again. */
static void region_renew(struct actor *a)
{
	uint64_t r = th_random(&a->state), t = th_now_ns();
	unsigned char sentinel = (unsigned char)(0x80 | (r >> 8 & 0x7f));
	unsigned int i = r & 1;

	th_ok(fi_close(&a->mr[i]->fid));
	t = th_now_ns() - t;
	if (t > a->slowest_ns)
		a->slowest_ns = t;
	if (t > UINT64_C(1000000) * CLOSE_MS * th_time_scale())
		th_fail(__FILE__, __LINE__,
			"round %lu: close took %" PRIu64 " ms", a->no,
			t / 1000000);
	memset(a->mem[i].p, sentinel, LEN);
	th_sleep_us(r >> 16 & 63);
	th_verify_byte(a->mem[i].p, LEN, sentinel);
	a->mr[i] = rk_reg(a->s, a->mem[i].p, LEN, RK_RW, i + 1);
}

/* ---- operations ------------------------------------------------------------- */

/* Moves what @at names; returns 0 or what the completion says. */
static int move(struct actor *a, struct mate *m, bool write, void *buf,
		struct fi_rma_iov at)
{
	struct fid_ep *ep = a->s->ep;
	struct rk_outcome e;
	ssize_t ret;

	for (;;) {
		if (write)
			ret = fi_write(ep, buf, at.len, NULL, m->addr, at.addr,
				       at.key, m);
		else
			ret = fi_read(ep, buf, at.len, NULL, m->addr, at.addr,
				      at.key, m);
		if (ret != -FI_EAGAIN)
			break;
		th_progress(a->s);
	}
	th_ok(ret);
	e = rk_end(a->s);
	th_ptr_eq(e.context, m);
	return e.err;
}

/* An error that may come; notes deaths. */
static void check_error(struct actor *a, struct mate *m, uint64_t key, int err)
{
	if (err == FI_ECONNRESET && m->mortal) {
		m->dead = true;
		return;
	}
	if (err == FI_EKEYREJECTED && (key != STEADY_KEY || m->mortal))
		return;
	if (err)
		th_fail(__FILE__, __LINE__,
			"round %lu: %s rank %d, key %" PRIu64 ": %s", a->no,
			m->mortal ? "mortal" : "immortal", m->rank, key,
			fi_strerror(err));
}

/* Short ones as likely as long ones. */
static size_t random_len(uint64_t r)
{
	return (size_t)(r >> 8) % ((LEN >> (r % 20)) + 1);
}

static void random_op(struct actor *a, struct mate *m)
{
	uint64_t r = th_random(&a->state);
	struct fi_rma_iov at = { .len = random_len(r),
				 .key = 1 + (r >> 32) % 2 };

	at.addr = LEN - at.len;
	check_error(a, m, at.key, move(a, m, r >> 40 & 1, a->buf, at));
}

/* The call that @r picks, on an element at @addr. */
static ssize_t atomic_call(struct actor *a, struct mate *m, uint64_t r,
			   uint64_t addr, uint64_t key)
{
	static const enum fi_datatype types[] = { FI_UINT64, FI_UINT8,
						  FI_LONG_DOUBLE_COMPLEX };
	enum fi_datatype type = types[r >> 48 & 1 ? 0 : (r >> 49) % 3];
	struct fid_ep *ep = a->s->ep;
	unsigned char *x = a->buf;

	if (r >> 52 & 1)
		return fi_atomic(ep, x, 1, NULL, m->addr, addr, key, type,
				 FI_SUM, m);
	if (r >> 53 & 1)
		return fi_fetch_atomic(ep, x, 1, NULL, x + 64, NULL, m->addr,
				       addr, key, type, FI_SUM, m);
	return fi_compare_atomic(ep, x, 1, NULL, x + 64, NULL, x + 128, NULL,
				 m->addr, addr, key, type, FI_CSWAP, m);
}

/* Native or not, by the initiator or by the owner. */
static void atomic_op(struct actor *a, struct mate *m)
{
	uint64_t r = th_random(&a->state);
	uint64_t key = 1 + (r >> 32) % 2;
	uint64_t addr =
		r % (LEN - 64) & (r >> 33 & 3 ? ~UINT64_C(15) : UINT64_MAX);
	struct rk_outcome e;
	ssize_t ret;

	while ((ret = atomic_call(a, m, r, addr, key)) == -FI_EAGAIN)
		th_progress(a->s);
	th_ok(ret);
	e = rk_end(a->s);
	th_ptr_eq(e.context, m);
	check_error(a, m, key, e.err);
}

/* Our slice at @m holds what we wrote. */
static void steady_op(struct actor *a, struct mate *m)
{
	struct fi_rma_iov at = { (uint64_t)a->rank * SLICE, SLICE, STEADY_KEY };
	int err;

	memset(a->slice, (int)(th_random(&a->state) & 0xff), SLICE);
	err = move(a, m, true, a->slice, at);
	if (!err)
		err = move(a, m, false, a->buf, at);
	if (!err)
		th_eq(memcmp(a->slice, a->buf, SLICE), 0);
	memset(a->buf, a->rank, SLICE);
	check_error(a, m, STEADY_KEY, err);
}

static void turn(struct actor *a, bool rma, bool own)
{
	for (int i = 0; rma && i < a->n; i++) {
		if (a->mate[i].dead)
			continue;
		random_op(a, &a->mate[i]);
		if (!a->mate[i].dead)
			atomic_op(a, &a->mate[i]);
		if (!a->mate[i].dead)
			steady_op(a, &a->mate[i]);
	}
	if (own)
		region_renew(a);
	th_progress(a->s);
}

static void meet(struct actor *a, const char *all)
{
	a->n = 0;
	for (int i = 0; i < a->storm->survivors + a->storm->victims; i++) {
		if (!ks_is_peer(a->s, all, i, a->rank))
			continue;
		a->mate[a->n++] = (struct mate){
			.addr = th_insert(a->s,
					  all + (size_t)i * a->s->addrlen),
			.rank = i,
			.mortal = i >= a->storm->survivors,
		};
	}
}

/* ---- survivors ----------------------------------------------------------------- */

static bool victims_gone(const struct actor *a)
{
	for (int i = 0; i < a->n; i++)
		if (a->mate[i].mortal && !a->mate[i].dead)
			return false;
	return true;
}

/* What is done at the dead ends in error, at once. */
static void check_dead(struct actor *a)
{
	for (int i = 0; i < a->n; i++) {
		struct mate *m = &a->mate[i];

		if (!m->dead)
			continue;
		for (uint64_t key = 1; key <= STEADY_KEY; key++)
			th_eq(move(a, m, key & 1, a->buf,
				   (struct fi_rma_iov){ 0, 8, key }),
			      FI_ECONNRESET);
		th_eq(fi_av_remove(a->s->av, &m->addr, 1, 0), 0);
	}
}

static void survive(struct actor *a)
{
	struct th_deadline dl = th_deadline_ms(ROUND_MS);

	for (bool gone = false; !gone; gone = victims_gone(a)) {
		turn(a, true, true);
		if (th_expired(&dl))
			th_fail(__FILE__, __LINE__, "round %lu: not noticed",
				a->no);
	}
	if (a->n)
		ks_check_notice(a->storm);
	check_dead(a);
	/* life goes on */
	for (int i = 0; i < 5; i++)
		turn(a, true, true);
}

/* What must not grow from round to round. */
struct footprint {
	size_t locked;	      /* bytes pinned */
	unsigned int fds;     /* open descriptors */
	unsigned int maps;    /* mappings of segments */
	uint64_t mailbox_kib; /* lanes and their claims */
	uint64_t tables_kib;  /* slots, index, translations */
	uint64_t tables_most; /* what those may come to */
};

static struct footprint footprint(void)
{
	uint64_t tables = probe_segment_kib("shrimp-tables");

	return (struct footprint){ rk_locked(),
				   probe_fds(),
				   probe_maps("memfd:shrimp"),
				   probe_segment_kib("shrimp-mailbox"),
				   tables,
				   tables + TABLE_KIB };
}

static void check_footprint(const struct footprint *b, int victims,
			    unsigned long round)
{
	struct footprint f = footprint();

	th_eq(f.locked, b->locked);
	if (f.fds <= b->fds + FD_SLACK * (unsigned int)victims &&
	    f.maps <= b->maps + MAP_SLACK &&
	    f.mailbox_kib <=
		    b->mailbox_kib + LINGER * (uint64_t)victims * LANE_KIB &&
	    f.tables_kib <= b->tables_most)
		return;
	th_fail(__FILE__, __LINE__,
		"round %lu: %u descriptors, %u mappings, %" PRIu64
		" KiB of mailbox, %" PRIu64 " of tables; were %u, %u, %" PRIu64
		", %" PRIu64,
		round, f.fds, f.maps, f.mailbox_kib, f.tables_kib, b->fds,
		b->maps, b->mailbox_kib, b->tables_kib);
}

/* A round; mates of the round before are forgotten. */
static void survivor_round(struct th_self *self, struct actor *a)
{
	char all[KS_RANKS * TH_MAX_ADDR];

	ks_addresses(self, a->s->addr, a->s->addrlen, all);
	meet(a, all);
	survive(a);
	th_barrier_progress(self, a->s, "round");
	for (int i = 0; i < a->n; i++)
		if (!a->mate[i].dead)
			th_eq(fi_av_remove(a->s->av, &a->mate[i].addr, 1, 0),
			      0);
}

static void survivor(struct th_self *self, const struct ks_storm *storm)
{
	static struct actor a;
	struct th_stack_opts o = rk_atomic_opts();
	unsigned long warm = storm->rounds < 10 ? 2 : 5;
	char all[KS_RANKS * TH_MAX_ADDR];
	struct footprint base = { 0 };
	struct th_stack s;

	th_stack_open(&s, &o);
	ks_addresses(self, s.addr, s.addrlen, all);
	a.s = &s;
	a.storm = storm;
	a.rank = self->rank;
	a.state = (uint64_t)self->rank;
	regions_open(&a);
	for (a.no = 1; a.no <= storm->rounds; a.no++) {
		survivor_round(self, &a);
		if (a.no == warm)
			base = footprint();
		else if (a.no == storm->rounds / 2 && a.no >= LONG_STORM)
			base.tables_most = footprint().tables_kib + LATE_KIB;
		else if (a.no > warm)
			check_footprint(&base, storm->victims, a.no);
	}
	regions_close(&a);
	th_stack_close(&s);
	th_eq(probe_maps("memfd:shrimp"), 0);
	th_eq(rk_locked(), 0);
}

/* ---- victims ---------------------------------------------------------------------- */

/* Opens, tells its address through @fd, learns the others', acts for ever. */
static void victim(int fd, const struct ks_storm *storm, int rank,
		   unsigned long no)
{
	static struct actor a;
	struct th_stack_opts o = rk_atomic_opts();
	char all[KS_RANKS * TH_MAX_ADDR];
	struct th_stack s;

	th_stack_open(&s, &o);
	a.s = &s;
	a.storm = storm;
	a.rank = rank;
	a.no = no;
	a.state = no * KS_RANKS + (uint64_t)rank;
	regions_open(&a);
	ks_victim_meet(fd, storm, &s, all);
	meet(&a, all);
	for (;;)
		turn(&a, storm->role & DO_RMA, storm->role & OWN);
}

/* ---- tests ------------------------------------------------------------------------- */

/* Rounds of a smaller one. */
static unsigned long few_rounds(void)
{
	unsigned long n = ks_storm_rounds() / 5;

	return n < 3 ? 3 : n;
}

static void storm(int survivors, int victims, unsigned long rounds,
		  enum role role)
{
	struct ks_storm storm = { .survivors = survivors,
				  .victims = victims,
				  .rounds = rounds,
				  .life_bits = 18,
				  .role = role,
				  .survive = survivor,
				  .victim = victim };

	ks_storm_run(&storm);
}

static void contract_L1_rma_storm(void **state)
{
	(void)state;
	storm(2, 2, ks_storm_rounds(), DO_ALL);
}

/* Clients die while they write and read at one server. */
static void case_E6_initiators_killed(void **state)
{
	(void)state;
	storm(1, 3, few_rounds(), DO_RMA);
}

/* Targets die while others write and read there. */
static void case_E5_targets_killed(void **state)
{
	(void)state;
	storm(2, 1, few_rounds(), OWN);
}

static const struct CMUnitTest kill_rma[] = {
	cmocka_unit_test(case_E5_targets_killed),
	cmocka_unit_test(case_E6_initiators_killed),
	cmocka_unit_test(contract_L1_rma_storm),
};

int main(int argc, char **argv)
{
	if (th_is_shrimp())
		probe_isolate(64);
	ks_init();
	return th_main(argc, argv, "kill_rma", kill_rma,
		       sizeof(kill_rma) / sizeof(kill_rma[0]));
}
