/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A peer closes, stops, becomes another program, or dies while others sleep or
 * flood it: contract P3, P4, L5.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static void trecv_from(struct th_stack *s, void *buf, fi_addr_t src,
		       uint64_t tag, int *ctx)
{
	th_eq(fi_trecv(s->ep, buf, 8, NULL, src, tag, 0, ctx), 0);
}

/* ---- a clean close ---------------------------------------------------- */

static void survives_close(struct th_stack *s, struct th_self *self)
{
	void *buf = calloc(1, 4 * MIB);
	char in[8];
	int ctx[3];

	th_check(buf);
	th_eq(fi_tsend(s->ep, buf, 4 * MIB, NULL, s->peers[1], KS_TAG, &ctx[0]),
	      0);
	trecv_from(s, in, s->peers[1], KS_TAG, &ctx[1]);
	th_barrier(self, "ready");
	th_barrier(self, "closed");
	ks_reset_soon(s, s->txcq, &ctx[0]);
	th_eq(fi_tsend(s->ep, buf, 8, NULL, s->peers[1], KS_TAG, &ctx[2]), 0);
	ks_reset_soon(s, s->txcq, &ctx[2]);
	th_quiet(s, 500);
	th_eq(fi_cancel(&s->ep->fid, &ctx[1]), 0);
	th_eq(th_rx_err(s).err, FI_ECANCELED);
	free(buf);
}

/*
 * A peer that closes ends what was being sent to it, and touches no receive,
 * while its process lives on.
 */
static void contract_P4_closed(struct th_self *self)
{
	struct th_stack s;

	ks_open_all(&s, self);
	ks_one_message(&s, self, 0, 1);
	ks_one_message(&s, self, 1, 0);
	if (self->rank == 0) {
		survives_close(&s, self);
	} else {
		th_barrier(self, "ready");
		th_ok(fi_close(&s.ep->fid));
		s.ep = NULL;
		th_barrier(self, "closed");
	}
	th_barrier(self, "end");
	th_stack_close(&s);
}

/* ---- waits ------------------------------------------------------------ */

/* Dies half a second after the survivor began to wait. */
static void victim_waits(void)
{
	while (!atomic_load(&ks_shared->sleeping))
		th_sleep_us(1000);
	th_sleep_us(500000);
	ks_die();
}

static void sleeper_open(struct th_stack *s, struct th_self *self,
			 enum fi_wait_obj wait)
{
	ks_open_with(s, self, wait);
	ks_one_message(s, self, 0, KS_VICTIM);
	ks_one_message(s, self, KS_VICTIM, 0);
	if (self->rank == KS_VICTIM)
		victim_waits();
}

/* fi_cq_sread() is woken by a death. */
static void contract_P4_wakes_sread(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	uint64_t t;
	char buf[8];
	int ctx;

	sleeper_open(&s, self, FI_WAIT_UNSPEC);
	trecv_from(&s, buf, s.peers[KS_VICTIM], KS_TAG, &ctx);
	atomic_store(&ks_shared->sleeping, 1);
	t = th_now_ns();
	th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, 20000), -FI_EAVAIL);
	th_check(th_now_ns() - t <
		 UINT64_C(1000000) * KS_NOTICE_MS * th_time_scale());
	ks_reset_soon(&s, s.rxcq, &ctx);
	th_stack_close(&s);
}

/* One turn of a client that waits on the CQ's descriptor. */
static void wait_turn(struct th_stack *s, int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct fid *fid = &s->rxcq->fid;

	if (fi_trywait(s->fabric, &fid, 1) == 0)
		th_check(poll(&p, 1, ms) >= 0);
}

/* The wait descriptor of a CQ is readable after a death. */
static void contract_P4_wakes_fd(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	uint64_t t;
	char buf[8];
	int fd, ctx, turns = 0;

	sleeper_open(&s, self, FI_WAIT_FD);
	th_ok(fi_control(&s.rxcq->fid, FI_GETWAIT, &fd));
	trecv_from(&s, buf, s.peers[KS_VICTIM], KS_TAG, &ctx);
	atomic_store(&ks_shared->sleeping, 1);
	t = th_now_ns();
	while (fi_cq_read(s.rxcq, &e, 1) == -FI_EAGAIN) {
		wait_turn(&s, fd, 20000);
		turns++;
	}
	th_check(th_now_ns() - t <
		 UINT64_C(1000000) * KS_NOTICE_MS * th_time_scale());
	th_check(turns < 1000);
	ks_reset_soon(&s, s.rxcq, &ctx);
	th_stack_close(&s);
}

/* CPU time of this process, in milliseconds. */
static long cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* A process that waits for what does not come sleeps. */
static void contract_P3_sleeps(struct th_self *self)
{
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	long cpu;

	ks_open_with(&s, self, FI_WAIT_UNSPEC);
	ks_one_message(&s, self, 0, 1);
	cpu = cpu_ms();
	th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, 1500), -FI_EAGAIN);
	th_check(cpu_ms() - cpu < 75 * (long)th_time_scale());
	th_barrier(self, "end");
	th_stack_close(&s);
}

/* ---- stopped ---------------------------------------------------------- */

enum { NSTOPPED = 300, STOPPED_LEN = 20000, NTALK = 200, TALK_LEN = 100 };

/*
 * Rank 0 and rank 2 answer each other, without steps of the harness and
 * without transmit completions.
 */
static void talk(struct th_stack *s, int rank)
{
	fi_addr_t to = s->peers[rank ? 0 : KS_OTHER];
	char in[TALK_LEN], out[TALK_LEN];
	int i;

	for (i = 0; i < 2 * NTALK; i++) {
		if (i % 2 == !rank) {
			th_trecv(s, in, sizeof(in), KS_TAG, 0, NULL);
			ks_expect_message(s, in, sizeof(in), (uint64_t)i);
		} else {
			th_fill(out, sizeof(out), (uint64_t)i);
			th_post(s, fi_tinject(s->ep, out, sizeof(out), to,
					      KS_TAG));
		}
	}
}

/* Rank 0: sends to the stopped victim, then talks with rank 2. */
static void sends_to_stopped(struct th_stack *s, struct th_self *self)
{
	char *buf = malloc(STOPPED_LEN);
	int i;

	th_check(buf);
	th_fill(buf, STOPPED_LEN, 1);
	for (i = 0; i < NSTOPPED; i++)
		th_tsend(s, s->peers[KS_VICTIM], buf, i % 2 ? STOPPED_LEN : 8,
			 KS_TAG, NULL);
	talk(s, 0);
	th_note(self, "talked", 0);
	for (i = 0; i < NSTOPPED; i++)
		th_tx_ok(s);
	free(buf);
}

static void receives_after_stop(struct th_stack *s)
{
	static char buf[STOPPED_LEN];
	int i;

	for (i = 0; i < NSTOPPED; i++) {
		th_trecv(s, buf, sizeof(buf), KS_TAG, 0, NULL);
		ks_expect_message(s, buf, i % 2 ? STOPPED_LEN : 8, 1);
	}
}

static void stopped_main(struct th_self *self)
{
	struct th_stack s;

	ks_open_all(&s, self);
	th_note(self, "open", 0);
	th_listen(self);
	if (self->rank == 0)
		sends_to_stopped(&s, self);
	else if (self->rank == KS_VICTIM)
		receives_after_stop(&s);
	else
		talk(&s, KS_OTHER);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/*
 * A stopped process delays what it has to do itself, nothing else, and is
 * not taken for dead: its peers talk although its lane is full, and all that
 * was sent to it arrives once it continues, two seconds later.
 */
static void contract_P3_stopped(void **state)
{
	struct th_group *g;
	int i;

	(void)state;
	g = th_group_start(3, stopped_main, NULL, 40);
	for (i = 0; i < 3; i++)
		th_group_wait_note(g, i, "open");
	th_group_kill(g, KS_VICTIM, SIGSTOP);
	th_group_tell(g, 0, 0);
	th_group_tell(g, KS_OTHER, 0);
	th_group_wait_note(g, 0, "talked");
	th_sleep_us(2000000);
	th_group_kill(g, KS_VICTIM, SIGCONT);
	th_group_tell(g, KS_VICTIM, 0);
	th_group_finish(g);
}

/* ---- exec ------------------------------------------------------------- */

/* Waits until process @pid is the program "sleep". */
static void until_exec(pid_t pid)
{
	struct th_deadline dl = th_patience();
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	while (strcmp(comm, "sleep\n") != 0) {
		th_check(!th_expired(&dl));
		th_sleep_us(1000);
		f = fopen(path, "re");
		th_check(f);
		if (!fgets(comm, sizeof(comm), f))
			comm[0] = 0;
		fclose(f);
	}
}

static void exec_main(struct th_self *self)
{
	void *buf = calloc(1, MIB);
	struct th_stack s;
	int ctx[3];
	char in[8];

	th_check(buf);
	ks_open_all(&s, self);
	if (self->rank == KS_VICTIM)
		atomic_store(&ks_shared->pid, (uint32_t)getpid());
	ks_one_message(&s, self, 0, KS_VICTIM);
	if (self->rank == KS_VICTIM) {
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
		th_fail(__FILE__, __LINE__, "exec failed");
	}
	until_exec((pid_t)atomic_load(&ks_shared->pid));
	trecv_from(&s, in, s.peers[KS_VICTIM], KS_TAG, &ctx[0]);
	th_eq(fi_tsend(s.ep, buf, MIB, NULL, s.peers[KS_VICTIM], KS_TAG,
		       &ctx[1]),
	      0);
	ks_reset_soon(&s, s.txcq, &ctx[1]);
	ks_reset_soon(&s, s.rxcq, &ctx[0]);
	th_eq(fi_tsend(s.ep, buf, 8, NULL, s.peers[KS_VICTIM], KS_TAG, &ctx[2]),
	      0);
	ks_reset_soon(&s, s.txcq, &ctx[2]);
	th_stack_close(&s);
	free(buf);
	th_note(self, "done", 0);
}

/* A process that becomes another program is a dead peer although it lives. */
static void contract_L5_exec(void **state)
{
	struct th_group *g;

	(void)state;
	memset(ks_shared, 0, sizeof(*ks_shared));
	g = th_group_start(2, exec_main, NULL, 40);
	th_group_wait_note(g, 0, "done");
	th_group_kill(g, KS_VICTIM, SIGKILL);
	th_group_finish(g);
}

/* ---- a flood ---------------------------------------------------------- */

enum { FLOOD_MAX = 500, FLOOD_MS = 300, FLOOD_BIG = 256 * KIB };

/* What rank 0 posted and what became of it. */
struct flood {
	unsigned long posted; /* sends */
	unsigned long ok;     /* successes */
	unsigned long reset;  /* FI_ECONNRESET */
	char *buf;	      /* FLOOD_BIG bytes */
};

static void flood_take(struct th_stack *s, struct flood *f)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(s->txcq, &e, 1);

	if (ret == -FI_EAVAIL) {
		th_eq(fi_cq_readerr(s->txcq, &err, 0), 1);
		th_eq(err.err, FI_ECONNRESET);
		f->reset++;
	} else if (ret != -FI_EAGAIN) {
		th_eq(ret, 1);
		f->ok++;
	}
}

static void flood_post(struct th_stack *s, struct flood *f)
{
	size_t len = f->posted % 50 ? f->posted * 7 % KIB : FLOOD_BIG;

	th_eq(fi_tsend(s->ep, f->buf, len, NULL, s->peers[KS_VICTIM], KS_TAG,
		       f),
	      0);
	f->posted++;
}

/* A receive that cannot match is cancelled while the flood goes on. */
static void flood_cancel(struct th_stack *s)
{
	char in[8];
	int ctx;

	trecv_from(s, in, s->peers[KS_VICTIM], KS_TAG + 1, &ctx);
	th_eq(fi_cancel(&s->ep->fid, &ctx), 0);
	th_eq(th_rx_err(s).err, FI_ECANCELED);
}

static void flood(struct th_stack *s)
{
	struct flood f = { .buf = calloc(1, FLOOD_BIG) };
	struct th_deadline dl = th_deadline_ms(FLOOD_MS + KS_NOTICE_MS);

	th_check(f.buf);
	while (!f.reset) {
		if (f.posted - f.ok < FLOOD_MAX)
			flood_post(s, &f);
		if (f.posted == FLOOD_MAX)
			flood_cancel(s);
		flood_take(s, &f);
		th_check(!th_expired(&dl));
	}
	while (f.ok + f.reset < f.posted) {
		flood_take(s, &f);
		th_check(!th_expired(&dl));
	}
	th_quiet(s, 100);
	free(f.buf);
}

/* Receives for a while, then dies in the middle of it. */
static void flooded(struct th_stack *s)
{
	struct th_deadline dl = th_deadline_ms(FLOOD_MS);
	static char buf[FLOOD_BIG];

	while (!th_expired(&dl)) {
		th_trecv(s, buf, sizeof(buf), KS_TAG, 0, NULL);
		th_rx_ok(s);
	}
	ks_die();
}

static void case_E5_flood(struct th_self *self)
{
	struct th_stack s;

	ks_open_all(&s, self);
	th_barrier(self, "open");
	if (self->rank == 0)
		flood(&s);
	else if (self->rank == KS_VICTIM)
		flooded(&s);
	ks_survivors_go_on(&s, self);
	th_stack_close(&s);
}
static const struct CMUnitTest kill_life[] = {
	KS_CASE(contract_P4_wakes_sread, 2),
	KS_CASE(contract_P4_wakes_fd, 2),
	KS_CASE(case_E5_flood, 3),
	TH_CASE(contract_P4_closed, 2, 30),
	TH_CASE(contract_P3_sleeps, 2, 20),
	cmocka_unit_test(contract_P3_stopped),
	cmocka_unit_test(contract_L5_exec),
};

int main(int argc, char **argv)
{
	ks_init();
	return th_main(argc, argv, "kill_life", kill_life,
		       sizeof(kill_life) / sizeof(kill_life[0]));
}
