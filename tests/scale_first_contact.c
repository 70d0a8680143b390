/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Many processes on few cores: all of them start at random times and first
 * of all talk to everybody, as soon as a name is known. Nobody hangs, and
 * the memory stays within the budget of a touched pair.
 *
 * SHRIMP_QUICK=1 and sanitizer builds use a tenth of the processes.
 *
 * Limit: 400 s
 */
#include <stdatomic.h>
#include <stdio.h>

#include "env_probe.h"
#include "harness.h"

enum {
	MAX_N = 300,	    /* processes of the largest test */
	SHORT_N = 200,	    /* and of it in a short run */
	E13_N = 200,	    /* processes of case E13 */
	E13_FEW = 60,	    /* and in a short run, which has the test above */
	E13_STARTS = 1,	    /* starts of case E13 */
	UNTOUCHED_N = 60,   /* processes of which few pairs talk */
	NEIGHBOURS = 3,	    /* peers that each of them talks to */
	SECONDS = 120,	    /* time limit of a start */
	DELAY_US = 2000000, /* start delay, at most */
	LEN_MAX = 500,	    /* longest message: within the lane */
	NRECVS = 16,	    /* receives posted */
	LANE_KIB = 16,	    /* budget of a lane, segment */
	PAIR_PTE_KIB = 1,   /* and page tables */
	PTE_SLACK_KIB = 16  /* what else a process maps meanwhile */
};

/* The names of all, as they become known. */
struct names {
	_Atomic uint32_t ready[MAX_N]; /* name is there */
	char addr[MAX_N][TH_MAX_ADDR]; /* name */
};

static struct names *names;

/* A run of a test. */
struct plan {
	int n;		       /* processes */
	int reach;	       /* each sends to so many that follow it */
	unsigned int delay_us; /* random start delay, at most */
	uint64_t seed;	       /* of the delays */
};

/* Memory of this process that contacts may cost. */
struct memory {
	uint64_t segments; /* KiB in mailboxes, tables and arenas */
	uint64_t pte;	   /* KiB of page tables */
};

static struct memory memory_now(void)
{
	return (struct memory){
		.segments = probe_segment_kib("shrimp-mailbox") +
			    probe_segment_kib("shrimp-tables") +
			    probe_segment_kib("shrimp-arena"),
		.pte = probe_status("VmPTE"),
	};
}

/* What a process knows about its talks. */
struct talks {
	struct th_stack *s;	  /* its endpoint */
	const struct plan *plan;  /* who talks to whom */
	int rank;		  /* its rank */
	int sent;		  /* messages sent */
	int ended;		  /* sends completed */
	int received;		  /* messages received */
	bool to[MAX_N];		  /* sent to */
	bool from[MAX_N];	  /* received from */
	char in[NRECVS][LEN_MAX]; /* receive buffers */
	char out[LEN_MAX];	  /* what is sent */
};

/* Length of the message from @from to @to. */
static size_t talk_len(int from, int to)
{
	return (from + to) % 16 ? 8 : LEN_MAX;
}

static void post(struct talks *t, char *buf)
{
	th_trecv(t->s, buf, LEN_MAX, 0, UINT64_MAX, buf);
}

/* Sends to peer @to if that is due and its name is known. */
static void greet(struct talks *t, int to)
{
	fi_addr_t addr;

	if (t->to[to] || !atomic_load(&names->ready[to]))
		return;
	t->to[to] = true;
	t->sent++;
	addr = th_insert(t->s, names->addr[to]);
	th_tsend(t->s, addr, t->out, talk_len(t->rank, to), (uint64_t)t->rank,
		 NULL);
}

static void greet_known(struct talks *t)
{
	int i;

	for (i = 1; i <= t->plan->reach; i++)
		greet(t, (t->rank + i) % t->plan->n);
}

static void take_sent(struct talks *t)
{
	struct fi_cq_tagged_entry e[16];
	ssize_t n = fi_cq_read(t->s->txcq, e, 16);

	if (n == -FI_EAGAIN)
		return;
	th_check(n > 0);
	t->ended += (int)n;
}

static void take_received(struct talks *t)
{
	struct fi_cq_tagged_entry e;
	ssize_t n = fi_cq_read(t->s->rxcq, &e, 1);

	if (n == -FI_EAGAIN)
		return;
	th_eq(n, 1);
	th_check(e.tag < (uint64_t)t->plan->n && !t->from[e.tag]);
	th_eq(e.len, talk_len((int)e.tag, t->rank));
	th_verify(e.op_context, e.len, e.tag);
	t->from[e.tag] = true;
	t->received++;
	post(t, e.op_context);
}

static void talk_to_all(struct talks *t)
{
	struct th_deadline dl = th_deadline_ms(SECONDS * 1000);
	unsigned long turn;

	for (turn = 0;
	     t->ended < t->plan->reach || t->received < t->plan->reach;
	     turn++) {
		if (t->sent < t->plan->reach && turn % 16 == 0)
			greet_known(t);
		take_sent(t);
		take_received(t);
		if (turn % 1024 == 0 && th_expired(&dl))
			th_fail(__FILE__, __LINE__,
				"of %d: %d sent, %d ended, %d received",
				t->plan->reach, t->sent, t->ended, t->received);
	}
}

static void talks_init(struct talks *t, struct th_stack *s,
		       struct th_self *self)
{
	int i;

	memset(t, 0, sizeof(*t));
	t->s = s;
	t->plan = self->arg;
	t->rank = self->rank;
	th_fill(t->out, LEN_MAX, (uint64_t)self->rank);
	for (i = 0; i < NRECVS; i++)
		post(t, t->in[i]);
}

static void random_delay(const struct plan *p, int rank)
{
	uint64_t state = p->seed * MAX_N + (uint64_t)rank;

	if (p->delay_us)
		th_sleep_us((unsigned int)(th_random(&state) % p->delay_us));
}

static void check_memory(const struct memory *before, int rank, int touched)
{
	struct memory now = memory_now();
	uint64_t segments = now.segments - before->segments;
	uint64_t pte = now.pte - before->pte;
	double lanes = touched, pairs = 2.0 * touched;

	if (rank == 0)
		printf("%d lanes in, %d out: segments %" PRIu64 " KiB, then "
		       "+%" PRIu64 " (%.2f per lane in), page tables %" PRIu64
		       " KiB, then +%" PRIu64 " (%.3f per lane)\n",
		       touched, touched, before->segments, segments,
		       (double)segments / lanes, before->pte, pte,
		       (double)pte / pairs);
	if (!th_is_shrimp())
		return;
	th_check(segments > 0);
	th_check(segments <= (uint64_t)touched * LANE_KIB);
	/* a sanitizer has page tables of its own */
	if (th_sanitized())
		return;
	th_check(pte <= (uint64_t)touched * PAIR_PTE_KIB + PTE_SLACK_KIB);
}

static void contact_main(struct th_self *self)
{
	const struct plan *p = self->arg;
	static struct talks t;
	struct memory before;
	struct th_stack s;

	random_delay(p, self->rank);
	th_stack_open(&s, NULL);
	before = memory_now();
	talks_init(&t, &s, self);
	memcpy(names->addr[self->rank], s.addr, s.addrlen);
	atomic_store(&names->ready[self->rank], 1);
	talk_to_all(&t);
	th_barrier_progress(self, &s, "all have met");
	check_memory(&before, self->rank, p->reach);
	th_stack_close(&s);
}

static void run_plan(const struct plan *p)
{
	uint64_t t = th_now_ns();

	memset(names, 0, sizeof(*names));
	th_run(p->n, contact_main, (void *)(uintptr_t)p, SECONDS);
	print_message("%d processes, each to %d: %.1f s\n", p->n, p->reach,
		      (double)(th_now_ns() - t) * 1e-9);
}

/* A tenth of the processes where the machine or the time is short. */
static int fewer(int n)
{
	const char *quick = getenv("SHRIMP_QUICK");

	return th_sanitized() || (quick && atoi(quick)) ? n / 10 : n;
}

/* ---- tests ---------------------------------------------------------------- */

static void case_E13_first_contact(void **state)
{
	unsigned long i, starts = th_long() ? 100 * E13_STARTS : E13_STARTS;
	struct plan p = { .n = fewer(th_long() ? E13_N : E13_FEW),
			  .delay_us = DELAY_US };

	(void)state;
	p.reach = p.n - 1;
	for (i = 0; i < starts; i++) {
		p.seed = i + 1;
		/* every other time they start at once */
		p.delay_us = i % 2 ? 0 : DELAY_US;
		run_plan(&p);
	}
}

static void scale_first_contact(void **state)
{
	struct plan p = { .n = fewer(th_long() ? MAX_N : SHORT_N),
			  .delay_us = DELAY_US,
			  .seed = 99 };

	(void)state;
	p.reach = p.n - 1;
	run_plan(&p);
}

/* Knows all names, talks to few: the others cost nothing. */
static void untouched_main(struct th_self *self)
{
	const struct plan *p = self->arg;
	struct memory opened, inserted;
	static struct talks t;
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_barrier(self, "all are open");
	opened = memory_now();
	th_stack_connect(&s, self);
	inserted = memory_now();
	th_eq(inserted.segments, opened.segments);
	if (!th_sanitized())
		th_check(inserted.pte <= opened.pte + 8);
	th_barrier(self, "all are known");
	talks_init(&t, &s, self);
	memcpy(names->addr[self->rank], s.addr, s.addrlen);
	atomic_store(&names->ready[self->rank], 1);
	talk_to_all(&t);
	th_barrier_progress(self, &s, "few have met");
	check_memory(&opened, self->rank, p->reach);
	th_stack_close(&s);
}

static void scale_untouched(void **state)
{
	struct plan p = { .n = UNTOUCHED_N, .reach = NEIGHBOURS };

	(void)state;
	memset(names, 0, sizeof(*names));
	th_run(p.n, untouched_main, &p, 60);
}

static const struct CMUnitTest scale_tests[] = {
	cmocka_unit_test(scale_untouched),
	cmocka_unit_test(scale_first_contact),
	cmocka_unit_test(case_E13_first_contact),
};

int main(int argc, char **argv)
{
	names = probe_shared(sizeof(*names));
	return th_main(argc, argv, "scale_first_contact", scale_tests,
		       sizeof(scale_tests) / sizeof(scale_tests[0]));
}
