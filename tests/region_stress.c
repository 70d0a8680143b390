/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Lookups race with everything that an owner does to its keys: publish, close,
 * change of the pages (refresh), change of range and rights (rebind), several
 * closes at once (contract R2, R5, I1, I4, I5, K2, R6, I2).
 *
 * The device's own functions, without a libfabric call: so a lookup takes some
 * 20 ns, and a run has many of them. The memory that keys name are cells, which
 * all processes map. Each word of a cell says what it belongs to (the stamp):
 * which entry of the board, in which binding, in which translation. What a
 * reader has resolved must fit what it finds there, for as long as it is
 * inside; it leaves marks if it may write. What an owner has taken back it
 * overwrites at once, and looks later whether somebody has been there.
 *
 *	torn translation   range, rights and place are not those of the stamp
 *	late read          the words are no stamp any more, or change
 *	late write         a mark in a cell that was taken back
 *	wrong region       the stamp is of another entry than the key
 *	stale key          a key is found that another has followed
 *	mixed binding      an operation of two chunks went on in another one
 *
 * 20 s; 1 s with SHRIMP_QUICK=1 and in sanitizer builds, ten minutes with
 * SHRIMP_LONG=1, which then has at least 10^9 lookups; or as long as
 * SHRIMP_STRESS_SECONDS says. tests/rma_stress.c and tests/region_race.c do the
 * same with RMA.
 *
 * Limit: 120 s
 */
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "env_probe.h"
#include "shm/grace.h"
#include "shm/reach_kit.h"

enum {
	SECONDS = 20,	    /* plain */
	LONG_SECONDS = 600, /* with SHRIMP_LONG=1 */
	PROCESSES = 2,	    /* of readers */
	THREADS = 2,	    /* readers in each; and of the owner */
	READERS = PROCESSES * THREADS,
	ENTRIES = 64,	 /* of the board: keys alive at a time */
	CELLS = 4,	 /* of each entry: what its key can name */
	WORDS = 16,	 /* stamps in a cell that are looked at */
	BURST = 32,	 /* lookups of a key in a row */
	SWITCH_MS = 200, /* between many threads and few */
	YIELD = 16,	 /* bursts in a row */
	OLD = 64,	 /* keys that a reader remembers */

};

#define GONE_STAMP UINT64_C(0x5a5a5a5a5a5a5a5a)
#define GOAL	   UINT64_C(1000000000) /* lookups of a long run */

/*
 * Shapes of a region: up to two ranges, and rights. A stamp names its shape,
 * so that a reader can tell what it must have resolved.
 */
static const struct shape {
	uint64_t len[2]; /* of each range; 0: there is none */
	uint32_t rights; /* of peers */
} shapes[] = {
	{ { 512 }, RNIC_REMOTE_READ },
	{ { 1000 }, RNIC_REMOTE_READ | RNIC_REMOTE_WRITE },
	{ { 4096 }, RNIC_REMOTE_WRITE },
	{ { 2048 }, RNIC_REMOTE_READ | RNIC_REMOTE_WRITE },
	{ { 1000, 3000 }, RNIC_REMOTE_READ },
	{ { 64, 4096 }, RNIC_REMOTE_READ | RNIC_REMOTE_WRITE },
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

/* What a word of a cell says. */
struct stamp {
	unsigned int entry;   /* of the board */
	unsigned int shape;   /* index of shapes[] */
	unsigned int part;    /* which of its ranges */
	unsigned int binding; /* changes with the shape, and with the key */
	unsigned int turn;    /* changes with the pages */
};

static uint64_t stamp_make(const struct stamp *s)
{
	return (uint64_t)(s->entry + 1) << 48 | (uint64_t)s->shape << 44 |
	       (uint64_t)s->part << 43 |
	       (uint64_t)(s->binding & 0xfffff) << 20 | (s->turn & 0xfffff);
}

static struct stamp stamp_of(uint64_t x)
{
	return (struct stamp){ .entry = (unsigned int)(x >> 48) - 1,
			       .shape = x >> 44 & 15,
			       .part = x >> 43 & 1,
			       .binding = x >> 20 & 0xfffff,
			       .turn = x & 0xfffff };
}

/* Memory that a key names: a page in space 0. */
struct cell {
	rnic_a64 word[WORDS];	/* stamps; written by the owner */
	rnic_a64 mark[READERS]; /* written by readers, if they may */
};

/* What all processes of the test see. */
struct shared {
	rnic_a32 over;		   /* time is up */
	rnic_a32 few;		   /* one reader and one thread of the owner */
	rnic_a64 key[ENTRIES];	   /* the latest, published last */
	rnic_a64 found[READERS];   /* lookups by how they ended */
	rnic_a64 refused[READERS]; /* unknown keys */
	rnic_a64 stale[READERS];   /* old keys, all of them refused */
	rnic_a64 second[READERS];  /* second chunks that went on */
	rnic_a64 ended[READERS];   /* and that did not */
	rnic_a64 closes[THREADS];  /* by the owner */
	rnic_a64 changes[THREADS]; /* likewise */
	struct cell cell[ENTRIES * CELLS]; /* the memory */
};

static struct shared *shared;

static uint64_t total(const rnic_a64 *count, int n)
{
	uint64_t sum = 0;

	/* relaxed: statistics */
	while (n--)
		sum += rnic_load64_relaxed(&count[n]);
	return sum;
}

/*
 * True if thread @number is to go on: all of them in turn with one alone on
 * either side, since the more there are the fewer run at the same time.
 */
static bool go_on(unsigned int number)
{
	/* relaxed, both: sooner or later */
	while (number && rnic_load32_relaxed(&shared->few) &&
	       !rnic_load32_relaxed(&shared->over))
		th_sleep_us(1000);
	return !rnic_load32_relaxed(&shared->over);
}

/* ---- the owner ---------------------------------------------------------------- */

/* An entry of the board, as its thread knows it. */
struct entry {
	unsigned int number;  /* its own */
	bool live;	      /* it has a key */
	bool user;	      /* which the test has chosen */
	struct stamp s;	      /* what its cells say; part 0 */
	unsigned int cell[2]; /* of each range, of the entry's own */
	uint64_t root;	      /* of its translation */
	uint64_t key;	      /* its key */
	uint32_t slot;	      /* its place in the table */
};

/* A thread of the owner; it has every second entry. */
struct keeper {
	struct kit_owner *o;		       /* the device */
	unsigned int number;		       /* of the thread */
	struct entry entry[ENTRIES / THREADS]; /* its own */
	uint64_t state;			       /* of the random numbers */
};

static struct cell *cell_at(const struct entry *e, unsigned int i)
{
	return &shared->cell[e->number * CELLS + e->cell[i]];
}

static bool is_list(const struct entry *e)
{
	return shapes[e->s.shape].len[1] != 0;
}

/* Nobody has written to a cell that is not in use. */
static void check_marks(const struct cell *c)
{
	for (int i = 0; i < READERS; i++)
		if (rnic_load64_relaxed(&c->mark[i]) != GONE_STAMP)
			th_fail(__FILE__, __LINE__,
				"late write: reader %d left %#" PRIx64, i,
				rnic_load64_relaxed(&c->mark[i]));
}

/* All of @c says @x. Nobody is inside, or nobody knows it yet. */
static void scribble(struct cell *c, uint64_t x)
{
	for (int i = 0; i < WORDS; i++)
		/* relaxed: published with the region */
		rnic_store64_relaxed(&c->word[i], x);
	for (int i = 0; i < READERS; i++)
		rnic_store64_relaxed(&c->mark[i], GONE_STAMP);
}

/* Takes the memory of @e back. */
static void take_back(struct entry *e)
{
	for (unsigned int i = 0; i <= is_list(e); i++)
		scribble(cell_at(e, i), GONE_STAMP);
}

/* Chooses other cells for @e, and stamps them. */
static void give(struct keeper *k, struct entry *e)
{
	unsigned int first = (unsigned int)(th_random(&k->state) >> 7) % CELLS;

	for (unsigned int i = 0; i <= is_list(e); i++) {
		struct stamp s = e->s;

		s.part = i;
		e->cell[i] = (first + 2 * i) % CELLS;
		check_marks(cell_at(e, i));
		scribble(cell_at(e, i), stamp_make(&s));
	}
}

static uint64_t root_of(const struct entry *e, unsigned int i)
{
	return rnic_mtt_root_make(
		0, rnic_mtt_leaf_space(0, e->number * CELLS + e->cell[i]));
}

/* The region that @e is now; its translation is complete. */
static struct rnic_region region_of(struct keeper *k, struct entry *e)
{
	const struct shape *f = &shapes[e->s.shape];
	struct rnic_mtt_range range[2] = { { f->len[0], 0, root_of(e, 0) },
					   { f->len[1], 0, root_of(e, 1) } };
	struct rnic_region r = { .length = f->len[0] + f->len[1],
				 .rights = f->rights | RNIC_MR_OFFSET |
					   RNIC_MR_GIVEN };

	e->root = range[0].root;
	if (is_list(e)) {
		r.rights |= RNIC_MR_LIST;
		th_ok(rnic_mtt_list_make(&k->o->mtt, range, 2, &e->root));
	}
	r.mtt = e->root;
	return r;
}

static void open_entry(struct keeper *k, struct entry *e)
{
	struct rnic_region r;

	e->s.shape = (unsigned int)(th_random(&k->state) >> 9) % SHAPES;
	e->s.binding++;
	e->user = e->number % 4 < 2;
	e->key = UINT64_C(0xabc0000000000000) + e->number;
	give(k, e);
	r = region_of(k, e);
	th_ok(rnic_mpt_publish(&k->o->mpt, &r, e->user, &e->key, &e->slot));
	/* release: readers find a key of this region */
	rnic_store64_release(&shared->key[e->number], e->key);
	e->live = true;
}

static bool ended(void *arg, uint64_t grace)
{
	return rnic_grace_ended(arg, grace);
}

/* Nobody finds @e any more, and whoever did is out. */
static void withdraw(struct keeper *k, struct entry *e)
{
	rnic_mpt_invalidate(&k->o->mpt, e->slot);
	th_ok(rnic_grace_fence(&k->o->dev, e->slot));
	take_back(e);
}

static void free_tables(struct keeper *k, struct entry *e)
{
	if (is_list(e))
		rnic_mtt_list_free(&k->o->mtt, e->root,
				   rnic_grace_now(&k->o->dev));
	rnic_mtt_reap(&k->o->mtt, ended, &k->o->dev);
}

static void close_entry(struct keeper *k, struct entry *e)
{
	withdraw(k, e);
	rnic_mpt_retire(&k->o->mpt, e->slot, rnic_grace_now(&k->o->dev));
	free_tables(k, e);
	e->live = false;
	rnic_count64(&shared->closes[k->number], 1);
}

/* New pages; with @rebind another shape, too. The key stays. */
static void change_entry(struct keeper *k, struct entry *e, bool rebind)
{
	struct rnic_region r;

	withdraw(k, e);
	free_tables(k, e);
	e->s.turn++;
	if (rebind) {
		e->s.shape = (e->s.shape + 1) % SHAPES;
		e->s.binding++;
	}
	give(k, e);
	r = region_of(k, e);
	th_ok(rnic_mpt_change(&k->o->mpt, e->slot, &r));
	rnic_count64(&shared->changes[k->number], 1);
}

/* Several regions go at once: all invalid, then all fenced. */
static void close_batch(struct keeper *k, unsigned int first)
{
	enum { N = 4 };
	struct entry *e[N];

	for (unsigned int i = 0; i < N; i++) {
		e[i] = &k->entry[(first + i) % (ENTRIES / THREADS)];
		if (e[i]->live)
			rnic_mpt_invalidate(&k->o->mpt, e[i]->slot);
	}
	for (unsigned int i = 0; i < N; i++) {
		if (!e[i]->live)
			continue;
		th_ok(rnic_grace_fence(&k->o->dev, e[i]->slot));
		take_back(e[i]);
		rnic_mpt_retire(&k->o->mpt, e[i]->slot,
				rnic_grace_now(&k->o->dev));
		free_tables(k, e[i]);
		e[i]->live = false;
		rnic_count64(&shared->closes[k->number], 1);
	}
}

static void keep_turn(struct keeper *k)
{
	uint64_t r = th_random(&k->state);
	unsigned int i = r % (ENTRIES / THREADS);
	struct entry *e = &k->entry[i];

	if (!e->live)
		open_entry(k, e);
	else if ((r >> 16) % 8 < 3)
		close_entry(k, e);
	else if ((r >> 16) % 8 < 7)
		change_entry(k, e, (r >> 16) % 8 < 5);
	else
		close_batch(k, i);
	/* in a row, with a little between, and with a lot */
	for (uint64_t n = r >> 32 & 3 ? 0 : r >> 40 & 4095; n; n--)
		rnic_cpu_relax();
	if ((r >> 24) % 64 == 0)
		sched_yield();
}

static void *keep(void *arg)
{
	struct keeper *k = arg;

	for (unsigned int i = 0; i < ENTRIES / THREADS; i++)
		k->entry[i].number = k->entry[i].s.entry =
			i * THREADS + k->number;
	while (go_on(k->number))
		keep_turn(k);
	for (unsigned int i = 0; i < ENTRIES / THREADS; i++)
		if (k->entry[i].live)
			close_entry(k, &k->entry[i]);
	return NULL;
}

/* ---- readers -------------------------------------------------------------------- */

/* A lookup, and what came of it. */
struct look {
	unsigned int entry; /* of the board */
	struct rnic_want w; /* what is looked for */
	int ret;	    /* how it ended */
	struct rnic_xlat x; /* what was found */
	uint64_t stamp;	    /* and what that says */
};

/* A reader: one thread with a lane of its own. */
struct reader {
	struct kit_reader d;	/* its context */
	unsigned int number;	/* its own */
	uint64_t state;		/* of the random numbers */
	uint64_t seen[ENTRIES]; /* last key of each entry */
	uint64_t old[OLD];	/* keys that others have followed */
	unsigned int nold;	/* their number so far */
	struct look last;	/* the first chunk of an operation */
};

static void __attribute__((noreturn))
wrong(const struct look *l, const char *what)
{
	struct stamp s = stamp_of(l->stamp);

	th_fail(__FILE__, __LINE__,
		"%s: entry %u, key %#" PRIx64 ", bytes %" PRIu64 " + %" PRIu64
		", rights %#x: result %d, cell %" PRIu64 " + %" PRIu64
		", %" PRIu64 " bytes, rights %#x, stamp %#" PRIx64
		" (entry %u, shape %u, part %u)",
		what, l->entry, l->w.key, l->w.addr, l->w.len, l->w.rights,
		l->ret, l->x.entry >> 12, l->x.addr_in, l->x.contiguous,
		l->x.rights, l->stamp, s.entry, s.shape, s.part);
}

/* The cell that was found, of the entry that was meant. */
static struct cell *cell_found(const struct look *l)
{
	uint64_t page = l->x.entry >> 12;

	if (page / CELLS != l->entry)
		wrong(l, "wrong region");
	return &shared->cell[page];
}

/* Bytes, rights and place are those of the shape. */
static void check_shape(const struct look *l)
{
	struct stamp s = stamp_of(l->stamp);
	const struct shape *f;
	uint64_t off = l->w.addr, room;

	if (s.entry != l->entry || s.shape >= SHAPES)
		wrong(l, l->stamp == GONE_STAMP ? "late read" : "wrong region");
	f = &shapes[s.shape];
	if ((off >= f->len[0]) != s.part)
		wrong(l, "torn translation: another range");
	off -= s.part ? f->len[0] : 0;
	room = f->len[s.part] - off;
	if (off >= f->len[s.part] || l->x.addr_in != off ||
	    l->x.contiguous != (l->w.len < room ? l->w.len : room))
		wrong(l, "torn translation: another place");
	if ((l->x.rights & (RNIC_REMOTE_READ | RNIC_REMOTE_WRITE)) != f->rights)
		wrong(l, "torn translation: other rights");
	if (l->w.rights & ~f->rights)
		wrong(l, "a right that it has not");
	if (l->w.addr + l->w.len > f->len[0] + f->len[1])
		wrong(l, "bytes that it has not");
}

/* Inside: reads, and writes if that is what was looked for. */
static void use(const struct reader *r, struct look *l)
{
	struct cell *c = cell_found(l);

	/* relaxed: published with the region that was found */
	l->stamp = rnic_load64_relaxed(&c->word[0]);
	check_shape(l);
	for (unsigned int i = 1; i < WORDS; i += 5)
		if (rnic_load64_relaxed(&c->word[i]) != l->stamp)
			wrong(l, "late read");
	/* relaxed: ordered by the end of the section */
	if (l->w.rights & RNIC_REMOTE_WRITE)
		rnic_store64_relaxed(&c->mark[r->number], l->stamp);
	if (rnic_load64_relaxed(&c->word[WORDS - 1]) != l->stamp)
		wrong(l, "late read");
}

/* A lookup in a section of its own. */
static int look(struct reader *r, struct look *l)
{
	struct rnic_target *t = &r->d.x.target;
	int ret;

	rnic_enter(t);
	ret = rnic_resolve(&r->d.c, t, &l->w, &l->x);
	l->ret = ret;
	if (!ret)
		use(r, l);
	rnic_leave(t);
	return ret;
}

/* Rights and bounds that some shapes have. */
static void vary(struct reader *r, struct look *l)
{
	static const uint32_t rights[] = { RNIC_REMOTE_READ, RNIC_REMOTE_WRITE,
					   RNIC_REMOTE_READ |
						   RNIC_REMOTE_WRITE };
	uint64_t x = th_random(&r->state);

	l->w.rights = rights[x % 3];
	l->w.len = 1 + (x >> 8) % 64;
	l->w.addr = (x >> 16) % 8 ? (x >> 24) % 448 : (x >> 24) % 4500;
}

/* The second chunk of an operation, in what the first has found. */
static void look_again(struct reader *r, const struct look *before)
{
	struct look l = *before;
	int ret;

	l.w.first = &before->x;
	ret = look(r, &l);
	/* relaxed, all counters: of this reader, others read statistics */
	if (ret) {
		rnic_count64(&shared->ended[r->number], 1);
		if (ret != -ESTALE && ret != -ENOKEY && ret != -EACCES &&
		    ret != -ERANGE)
			wrong(&l, "the second chunk");
		return;
	}
	rnic_count64(&shared->second[r->number], 1);
	if (l.stamp >> 20 != before->stamp >> 20)
		wrong(&l, "mixed binding");
}

/* A key that another has followed, of the provider: it is gone for good. */
static void look_old(struct reader *r, unsigned int entry)
{
	struct look l = { .entry = entry };

	if (!r->nold)
		return;
	l.w.key =
		r->old[th_random(&r->state) % (r->nold < OLD ? r->nold : OLD)];
	l.w.len = 1;
	rnic_enter(&r->d.x.target);
	if (rnic_resolve(&r->d.c, &r->d.x.target, &l.w, &l.x) != -ENOKEY)
		wrong(&l, "stale key");
	rnic_leave(&r->d.x.target);
	rnic_count64(&shared->stale[r->number], 1);
}

/* The latest key of @entry; one that it had before is old. */
static uint64_t key_of(struct reader *r, unsigned int entry)
{
	/* acquire: what was found by an older key is closed */
	uint64_t key = rnic_load64_acquire(&shared->key[entry]);

	if (key != r->seen[entry] && r->seen[entry])
		r->old[r->nold++ % OLD] = r->seen[entry];
	r->seen[entry] = key;
	return key;
}

/* A key some times in a row, then two chunks, then an old key. */
static void burst(struct reader *r, unsigned int entry)
{
	struct look l = { .entry = entry };
	uint64_t found = 0;
	int ret = -ENOKEY;

	l.w.key = key_of(r, entry);
	vary(r, &l);
	for (int i = 0; i < BURST; i++) {
		ret = look(r, &l);
		if (ret)
			break;
		found++;
		l.w.addr ^= i & 1;
	}
	rnic_count64(&shared->found[r->number], found);
	if (ret && ret != -ENOKEY && ret != -EACCES && ret != -ERANGE)
		wrong(&l, "an error that cannot be");
	if (ret)
		rnic_count64(&shared->refused[r->number], 1);
	else
		look_again(r, &l);
	r->last = ret ? (struct look){ .stamp = 0 } : l;
	if (found % 4 == 0)
		look_old(r, entry);
}

static void *read_on(void *arg)
{
	struct reader *r = arg;

	for (unsigned int i = 1; i % YIELD || go_on(r->number); i++) {
		burst(r, (unsigned int)(th_random(&r->state) >> 5) % ENTRIES);
		if (i % YIELD)
			continue;
		/* who loses its CPU here holds up nobody */
		sched_yield();
		if (r->last.stamp)
			look_again(r, &r->last);
	}
	return NULL;
}

/* ---- processes -------------------------------------------------------------------- */

static uint64_t run_ns(void)
{
	const char *quick = getenv("SHRIMP_QUICK");
	const char *given = getenv("SHRIMP_STRESS_SECONDS");
	uint64_t s = UINT64_C(1000000000);

	if (given && atoi(given) > 0)
		return (uint64_t)atoi(given) * s;
	if (th_long())
		return LONG_SECONDS * s;
	return th_sanitized() || (quick && atoi(quick)) ? s : SECONDS * s;
}

static uint64_t lookups(void)
{
	return total(shared->found, READERS) + total(shared->refused, READERS) +
	       total(shared->stale, READERS) + total(shared->second, READERS) +
	       total(shared->ended, READERS);
}

static void tell(double seconds)
{
	printf("# %.0f s: %" PRIu64 " lookups (%" PRIu64 " found, %" PRIu64
	       " refused, %" PRIu64 " with old keys, %" PRIu64
	       " second chunks, %" PRIu64 " of them ended), %" PRIu64
	       " closes, %" PRIu64 " changes\n",
	       seconds, lookups(), total(shared->found, READERS),
	       total(shared->refused, READERS), total(shared->stale, READERS),
	       total(shared->second, READERS) + total(shared->ended, READERS),
	       total(shared->ended, READERS), total(shared->closes, THREADS),
	       total(shared->changes, THREADS));
	fflush(stdout);
}

/* Something of everything has happened; a busy machine may need longer. */
static bool was_enough(void)
{
	bool goal = th_long() && !getenv("SHRIMP_STRESS_SECONDS");

	return (!goal || lookups() >= GOAL) &&
	       total(shared->found, READERS) > 1000 &&
	       total(shared->refused, READERS) &&
	       total(shared->stale, READERS) &&
	       total(shared->second, READERS) &&
	       total(shared->closes, THREADS) &&
	       total(shared->changes, THREADS);
}

static void watch(void)
{
	uint64_t begun = th_now_ns(), end = begun + run_ns(), told = begun;
	bool few = false;
	struct th_deadline dl =
		th_deadline_ms((unsigned int)(run_ns() / 500000 + 20000));

	while (th_now_ns() < end || (!was_enough() && !th_expired(&dl))) {
		th_sleep_us(SWITCH_MS * 1000);
		rnic_store32_relaxed(&shared->few, !few);
		few = !few;
		if (th_now_ns() < told + UINT64_C(60000000000))
			continue;
		told = th_now_ns();
		tell((double)(told - begun) / 1e9);
	}
	tell((double)(th_now_ns() - begun) / 1e9);
	rnic_store32_release(&shared->over, 1);
}

static void own(struct th_self *self)
{
	static struct kit_owner o;
	static struct keeper k[THREADS];
	struct rnic_addr all[1 + PROCESSES];
	pthread_t th[THREADS];

	for (int i = 0; i < ENTRIES * CELLS; i++)
		scribble(&shared->cell[i], GONE_STAMP);
	kit_owner_open(&o, true);
	th_gather(self, "address", &o.addr, all, sizeof(o.addr));
	th_barrier(self, "attached");
	for (unsigned int i = 0; i < THREADS; i++) {
		k[i].o = &o;
		k[i].number = i;
		k[i].state = th_now_ns() + i;
		th_eq(pthread_create(&th[i], NULL, keep, &k[i]), 0);
	}
	watch();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	for (int i = 0; i < ENTRIES * CELLS; i++)
		check_marks(&shared->cell[i]);
	th_barrier(self, "over");
	kit_owner_close(&o);
}

static void look_up(struct th_self *self)
{
	static struct reader r[THREADS];
	struct rnic_addr all[1 + PROCESSES] = { 0 };
	pthread_t th[THREADS];

	th_gather(self, "address", &all[self->rank], all, sizeof(*all));
	for (unsigned int i = 0; i < THREADS; i++) {
		r[i].number = ((unsigned int)self->rank - 1) * THREADS + i;
		r[i].state = th_now_ns() + r[i].number;
		th_eq(kit_reader_open(&r[i].d, &all[0]), 0);
	}
	th_barrier(self, "attached");
	for (unsigned int i = 0; i < THREADS; i++)
		th_eq(pthread_create(&th[i], NULL, read_on, &r[i]), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	th_barrier(self, "over");
	for (unsigned int i = 0; i < THREADS; i++)
		kit_reader_close(&r[i].d);
}

static void lookups_main(struct th_self *self)
{
	if (self->rank)
		look_up(self);
	else
		own(self);
}

static void contract_I1_lookups(void **state)
{
	(void)state;
	th_run(1 + PROCESSES, lookups_main, NULL, 60 + SECONDS);
	th_check(was_enough());
}

static const struct CMUnitTest region_stress[] = {
	cmocka_unit_test(contract_I1_lookups),
};

int main(int argc, char **argv)
{
	shared = probe_shared(sizeof(*shared));
	return th_main(argc, argv, "region_stress", region_stress,
		       sizeof(region_stress) / sizeof(region_stress[0]));
}
