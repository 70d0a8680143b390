/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The time to match one message does not grow with the number of posted
 * receives or of waiting messages, up to 10^5, also with the masks that MPI
 * libraries use.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <stdio.h>

/*
 * Among 10^5 the entries do not fit in a cache any more: a few misses are
 * allowed besides the ratio. A linear search is far above both.
 */
enum {
	FEW = 1000,
	MANY = 100000,
	BATCH = 500,
	SERIES = 7,
	RATIO = 8,
	CACHE_NS = 1000
};

/* The bits that Open MPI's receives ignore, and an any-source, any-tag mask. */
static const uint64_t mpi_ignore = UINT64_C(0x1000000000000000);

/* How an experiment makes tags and masks of its receives. */
struct masks {
	const char *name; /* for the report */
	uint64_t ignore;  /* of all receives */
	bool mixed;	  /* some receives ignore low bits instead */
};

static const struct masks exact = { "exact", 0, false };
static const struct masks mpi = { "mpi", mpi_ignore, false };
static const struct masks mixed = { "mixed", mpi_ignore, true };

static uint64_t ignore_of(const struct masks *m, uint64_t i)
{
	return m->mixed && i % 10 == 0 ? m->ignore | 0xff : m->ignore;
}

/* Tags are 256 apart so that ignoring low bits meets nobody else. */
static uint64_t tag_of(uint64_t i)
{
	return i << 8;
}

static char rx_byte[1];

static void post(struct th_stack *b, const struct masks *m, uint64_t i)
{
	th_trecv(b, rx_byte, 1, tag_of(i), ignore_of(m, i), rx_byte);
}

static void put(struct th_stack *a, const struct masks *m, uint64_t i)
{
	th_post(a, fi_tinject(a->ep, "x", 1, a->peers[1],
			      tag_of(i) | (i % 2 ? m->ignore : 0)));
}

static int compare(const void *x, const void *y)
{
	double d = *(const double *)x - *(const double *)y;

	return (d > 0) - (d < 0);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return v[n / 2];
}

/*
 * With @n receives posted: messages for receives spread over all of them,
 * each replaced by a new one at once. Nanoseconds per message.
 */
static double time_posted(struct th_stack *a, struct th_stack *b,
			  const struct masks *m, uint64_t n)
{
	double ns[SERIES];
	uint64_t start, i, k, seed = 1;
	int s;

	for (i = 0; i < n; i++)
		post(b, m, i);
	for (s = 0; s < SERIES; s++) {
		start = th_now_ns();
		for (i = 0; i < BATCH; i++) {
			k = th_random(&seed) % n;
			put(a, m, k);
			th_rx_ok(b);
			post(b, m, k);
		}
		ns[s] = (double)(th_now_ns() - start) / BATCH;
	}
	for (i = 0; i < n; i++)
		th_ok(fi_cancel(&b->ep->fid, rx_byte));
	for (i = 0; i < n; i++)
		th_eq(th_rx_err(b).err, FI_ECANCELED);
	return median(ns, SERIES);
}

/* With @n unexpected messages waiting: receives spread over all of them. */
static double time_unexpected(struct th_stack *a, struct th_stack *b,
			      const struct masks *m, uint64_t n)
{
	double ns[SERIES];
	uint64_t start, i, k, seed = 2;
	int s;

	for (i = 0; i < n; i++) {
		put(a, m, i);
		if (i % 32 == 0)
			th_progress(b);
	}
	th_quiet(b, 20);
	/* The index of this class may be built when it first appears. */
	post(b, m, 0);
	th_rx_ok(b);
	put(a, m, 0);
	for (s = 0; s < SERIES; s++) {
		start = th_now_ns();
		for (i = 0; i < BATCH; i++) {
			k = th_random(&seed) % n;
			post(b, m, k);
			th_rx_ok(b);
			put(a, m, k);
		}
		ns[s] = (double)(th_now_ns() - start) / BATCH;
	}
	for (i = 0; i < n; i++) {
		post(b, m, i);
		th_rx_ok(b);
	}
	return median(ns, SERIES);
}

typedef double time_fn(struct th_stack *a, struct th_stack *b,
		       const struct masks *m, uint64_t n);

/* One measurement of both; prints it. True if the time is flat. */
static bool flat_once(time_fn *fn, const struct masks *m, uint64_t many)
{
	struct th_stack a, b;
	double few_ns, many_ns;

	th_pair_open(&a, &b, NULL);
	few_ns = fn(&a, &b, m, FEW);
	many_ns = fn(&a, &b, m, many);
	th_pair_close(&a, &b);
	printf("# %s: %.0f ns per match among %d, %.0f among %lu\n", m->name,
	       few_ns, FEW, many_ns, (unsigned long)many);
	fflush(stdout);
	return many_ns <= RATIO * few_ns + CACHE_NS;
}

/* The machine may be disturbed: one good measurement of three is enough. */
static void flat(time_fn *fn, const struct masks *m)
{
	uint64_t many = th_rounds(MANY) < MANY ? MANY / 10 : MANY;
	int i;

	for (i = 0; i < 3; i++)
		if (flat_once(fn, m, many))
			return;
	th_fail(__FILE__, __LINE__, "%s: not flat", m->name);
}

static void posted_exact(struct th_self *self)
{
	(void)self;
	flat(time_posted, &exact);
}

static void posted_mpi_mask(struct th_self *self)
{
	(void)self;
	flat(time_posted, &mpi);
}

static void posted_mixed_masks(struct th_self *self)
{
	(void)self;
	flat(time_posted, &mixed);
}

static void unexpected_exact(struct th_self *self)
{
	(void)self;
	flat(time_unexpected, &exact);
}

static void unexpected_mpi_mask(struct th_self *self)
{
	(void)self;
	flat(time_unexpected, &mpi);
}

static void unexpected_mixed_masks(struct th_self *self)
{
	(void)self;
	flat(time_unexpected, &mixed);
}

/* Peeking for what is not there, with very many others waiting. */
static double time_peek(struct th_stack *a, struct th_stack *b,
			const struct masks *m, uint64_t n)
{
	struct fi_msg_tagged peek = { .addr = FI_ADDR_UNSPEC,
				      .ignore = m->ignore,
				      .context = b };
	double ns[SERIES];
	uint64_t start, i;
	int s;

	for (i = 0; i < n; i++) {
		put(a, m, i);
		if (i % 32 == 0)
			th_progress(b);
	}
	th_quiet(b, 20);
	for (s = 0; s < SERIES; s++) {
		start = th_now_ns();
		for (i = 0; i < BATCH; i++) {
			peek.tag = tag_of(n + i);
			th_post(b, fi_trecvmsg(b->ep, &peek, FI_PEEK));
			th_eq(th_rx_err(b).err, FI_ENOMSG);
		}
		ns[s] = (double)(th_now_ns() - start) / BATCH;
	}
	for (i = 0; i < n; i++) {
		post(b, m, i);
		th_rx_ok(b);
	}
	return median(ns, SERIES);
}

static void peek_mpi_mask(struct th_self *self)
{
	(void)self;
	flat(time_peek, &mpi);
}

/* Cancelling one of very many. */
static double time_cancel(struct th_stack *a, struct th_stack *b,
			  const struct masks *m, uint64_t n)
{
	double ns[SERIES];
	char *ctx = calloc(n, 1);
	uint64_t start, i, k, seed = 4;
	int s;

	(void)a;
	th_check(ctx);
	for (i = 0; i < n; i++)
		th_trecv(b, rx_byte, 1, tag_of(i), ignore_of(m, i), &ctx[i]);
	for (s = 0; s < SERIES; s++) {
		start = th_now_ns();
		for (i = 0; i < 50; i++) {
			k = th_random(&seed) % n;
			th_ok(fi_cancel(&b->ep->fid, &ctx[k]));
			th_ptr_eq(th_rx_err(b).op_context, &ctx[k]);
			th_trecv(b, rx_byte, 1, tag_of(k), ignore_of(m, k),
				 &ctx[k]);
		}
		ns[s] = (double)(th_now_ns() - start) / 50;
	}
	for (i = 0; i < n; i++)
		th_ok(fi_cancel(&b->ep->fid, &ctx[i]));
	for (i = 0; i < n; i++)
		th_rx_err(b);
	free(ctx);
	return median(ns, SERIES);
}

/*
 * Cancel may search, but not for ever: the time is printed, and must stay
 * below a millisecond among 10^4.
 */
static void cancel_among_many(struct th_self *self)
{
	struct th_stack a, b;
	double ns;

	(void)self;
	th_pair_open(&a, &b, NULL);
	ns = time_cancel(&a, &b, &mpi, FEW);
	printf("# cancel: %.0f ns among %d\n", ns, FEW);
	ns = time_cancel(&a, &b, &mpi, MANY / 10);
	printf("# cancel: %.0f ns among %d\n", ns, MANY / 10);
	fflush(stdout);
	if (!th_sanitized())
		th_check(ns < 1000000);
	th_pair_close(&a, &b);
}

static const struct CMUnitTest matching_tests[] = {
	TH_CASE(posted_exact, 1, 40),
	TH_CASE(posted_mpi_mask, 1, 40),
	TH_CASE(posted_mixed_masks, 1, 40),
	TH_CASE(unexpected_exact, 1, 40),
	TH_CASE(unexpected_mpi_mask, 1, 40),
	TH_CASE(unexpected_mixed_masks, 1, 40),
	TH_CASE(peek_mpi_mask, 1, 40),
	TH_CASE(cancel_among_many, 1, 40),
};

TH_MAIN(matching_tests)
