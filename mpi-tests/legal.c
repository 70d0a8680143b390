/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Programs that MPI promises to end although one receiver does not look at
 * its messages: it waits for somebody else, computes without a call to MPI,
 * or is stopped by a third process. Ranks work in threes: a sender, the slow
 * one, and a helper whose message the slow one waits for.
 *
 * Ranks: 3 8
 */
#include "common.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static long rounds = 3;
static long percent = 100;
static long stopped = 1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ "percent", &percent,
	  "length of the bursts; vader and ofi_rxm hang "
	  "with more than a few" },
	{ "stopped", &stopped,
	  "0: nobody is stopped; btl/ofi ends a send when "
	  "the receiver's process has taken it" },
	{ 0 },
};

enum role { SENDER, SLOW, HELPER, ROLES };

/* How the slow one comes to be slow. */
enum excuse { WAITS, COMPUTES, STOPPED, EXCUSES };

enum tag { TAG_PID = 1, TAG_GO, TAG_DONE, TAG_PASS, TAG_BURST, TAG_BIG };

static const MPI_Comm world = MPI_COMM_WORLD;

/* This rank's three. */
struct trio {
	enum role role;	 /* of this rank */
	int rank[ROLES]; /* in the world */
	pid_t slow_pid;	 /* known to the helper */
};

static void pause_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

static bool trio_open(struct trio *t)
{
	int base = mt_rank - mt_rank % ROLES;
	int pid = (int)getpid();

	if (base + ROLES > mt_size)
		return false;
	t->role = (enum role)(mt_rank % ROLES);
	for (int i = 0; i < ROLES; i++)
		t->rank[i] = base + i;
	if (t->role == SLOW) {
		MPI_Send(&pid, 1, MPI_INT, t->rank[HELPER], TAG_PID, world);
		mt_sent(1, sizeof(pid));
	} else if (t->role == HELPER) {
		MPI_Recv(&pid, 1, MPI_INT, t->rank[SLOW], TAG_PID, world,
			 MPI_STATUS_IGNORE);
	}
	t->slow_pid = pid;
	return true;
}

/* ---- slowness ------------------------------------------------------ */

/* Computes, without a call to MPI, until the helper sends SIGUSR1. */
static void compute_until_told(void)
{
	static const struct timespec now = { 0, 0 };
	uint64_t x = 1;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	while (sigtimedwait(&usr1, NULL, &now) != SIGUSR1)
		for (int i = 0; i < 10000; i++)
			mt_random(&x);
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	mt_check(f, "%s: %m", path);
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	mt_check(p, "%s: no state", path);
	return p[2];
}

static void stop(const struct trio *t)
{
	mt_check(!kill(t->slow_pid, SIGSTOP), "kill(SIGSTOP): %m");
	while (state_of(t->slow_pid) != 'T')
		pause_us(200);
}

static void go_on(const struct trio *t)
{
	mt_check(!kill(t->slow_pid, SIGCONT), "kill(SIGCONT): %m");
}

/* The slow one tells that it has received all: it may be stopped again. */
static void slow_done(const struct trio *t)
{
	MPI_Send(NULL, 0, MPI_BYTE, t->rank[HELPER], TAG_DONE, world);
	mt_sent(1, 0);
}

static void helper_done(const struct trio *t)
{
	MPI_Recv(NULL, 0, MPI_BYTE, t->rank[SLOW], TAG_DONE, world,
		 MPI_STATUS_IGNORE);
}

/* What the helper does to the slow one before the burst and after it. */
static void helper_before(const struct trio *t, enum excuse why)
{
	if (why == STOPPED)
		stop(t);
	MPI_Send(NULL, 0, MPI_BYTE, t->rank[SENDER], TAG_GO, world);
	mt_sent(1, 0);
}

static void helper_after(const struct trio *t, enum excuse why)
{
	if (why == STOPPED)
		go_on(t);
	else if (why == COMPUTES)
		mt_check(!kill(t->slow_pid, SIGUSR1), "kill(SIGUSR1): %m");
}

/* ---- the burst ----------------------------------------------------- */

/* @n messages of @len bytes to the slow one, nothing waited for. */
struct burst {
	long n;	    /* messages */
	size_t len; /* bytes of each */
	long round; /* in the seeds */
};

static uint64_t seed_of(const struct burst *b, int src, int dst, long i)
{
	return mt_seed(src, dst, i, b->round * 1000 + (long)b->len);
}

static void pass(const struct burst *b, int to, void *buf, size_t len)
{
	mt_fill(buf, len, seed_of(b, mt_rank, to, -1));
	MPI_Send(buf, (int)len, MPI_BYTE, to, TAG_PASS, world);
	mt_sent(1, len);
}

static void take_pass(const struct burst *b, int from, void *buf, size_t len)
{
	MPI_Status st;

	MPI_Recv(buf, (int)len, MPI_BYTE, from, TAG_PASS, world, &st);
	mt_status(&st, from, TAG_PASS, len);
	mt_verify(buf, len, seed_of(b, from, mt_rank, -1));
}

/* Isends the burst to the slow one, then a blocking Send to the helper. */
static void sender(const struct trio *t, const struct burst *b)
{
	char *out = mt_alloc((size_t)b->n * b->len), *buf = mt_alloc(b->len);
	MPI_Request *req = mt_alloc((size_t)b->n * sizeof(*req));
	int slow = t->rank[SLOW];

	MPI_Recv(NULL, 0, MPI_BYTE, t->rank[HELPER], TAG_GO, world,
		 MPI_STATUS_IGNORE);
	for (long i = 0; i < b->n; i++) {
		char *p = out + (size_t)i * b->len;

		mt_fill(p, b->len, seed_of(b, mt_rank, slow, i));
		MPI_Isend(p, (int)b->len, MPI_BYTE, slow, TAG_BURST, world,
			  &req[i]);
	}
	mt_sent((uint64_t)b->n, (uint64_t)b->n * b->len);
	pass(b, t->rank[HELPER], buf, b->len);
	MPI_Waitall((int)b->n, req, MPI_STATUSES_IGNORE);
	mt_free(out);
	mt_free(buf);
	mt_free(req);
}

/* Takes the helper's message first, and only then the burst. */
static void slow(const struct trio *t, const struct burst *b, enum excuse why)
{
	char *buf = mt_alloc(b->len);
	MPI_Status st;

	if (why == COMPUTES)
		compute_until_told();
	take_pass(b, t->rank[HELPER], buf, b->len);
	for (long i = 0; i < b->n; i++) {
		MPI_Recv(buf, (int)b->len, MPI_BYTE, t->rank[SENDER],
			 MPI_ANY_TAG, world, &st);
		mt_status(&st, t->rank[SENDER], TAG_BURST, b->len);
		mt_verify(buf, b->len, seed_of(b, t->rank[SENDER], mt_rank, i));
	}
	slow_done(t);
	mt_free(buf);
}

/* Hears from the sender that the burst is out, and tells the slow one. */
static void helper(const struct trio *t, const struct burst *b, enum excuse why)
{
	char *buf = mt_alloc(b->len);

	helper_before(t, why);
	take_pass(b, t->rank[SENDER], buf, b->len);
	helper_after(t, why);
	pass(b, t->rank[SLOW], buf, b->len);
	helper_done(t);
	mt_free(buf);
}

static void run_burst(const struct trio *t, const struct burst *b,
		      enum excuse why)
{
	if (t->role == SENDER)
		sender(t, b);
	else if (t->role == SLOW)
		slow(t, b, why);
	else
		helper(t, b, why);
}

/* ---- one large blocking send to a stopped process ------------------ */

static void large_to_stopped(const struct trio *t, size_t len, long round)
{
	char *buf = mt_alloc(len);

	if (t->role == SENDER) {
		MPI_Recv(NULL, 0, MPI_BYTE, t->rank[HELPER], TAG_GO, world,
			 MPI_STATUS_IGNORE);
		mt_fill(buf, len, mt_seed(0, 1, TAG_BIG, round));
		MPI_Send(buf, (int)len, MPI_BYTE, t->rank[SLOW], TAG_BIG,
			 world);
		mt_sent(1, len);
	} else if (t->role == SLOW) {
		MPI_Recv(buf, (int)len, MPI_BYTE, t->rank[SENDER], TAG_BIG,
			 world, MPI_STATUS_IGNORE);
		mt_verify(buf, len, mt_seed(0, 1, TAG_BIG, round));
		slow_done(t);
	} else {
		helper_before(t, STOPPED);
		pause_us(50000);
		helper_after(t, STOPPED);
		helper_done(t);
	}
	mt_free(buf);
}

/* ---- stopped and continued again and again while messages flow ----- */

static void ping(const struct trio *t, size_t len, long i)
{
	int peer = t->rank[t->role == SENDER ? SLOW : SENDER];
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Status st;

	mt_fill(out, len, mt_seed(mt_rank, peer, TAG_BIG, i));
	MPI_Sendrecv(out, (int)len, MPI_BYTE, peer, TAG_BIG, in, (int)len,
		     MPI_BYTE, peer, TAG_BIG, world, &st);
	mt_status(&st, peer, TAG_BIG, len);
	mt_verify(in, len, mt_seed(peer, mt_rank, TAG_BIG, i));
	mt_sent(1, len);
	mt_free(in);
	mt_free(out);
}

static void flicker(const struct trio *t, long n)
{
	static const size_t list[] = { 8, 1000, 40, 20000, 300000, 0, 4097 };
	uint64_t draw = 1;
	int done = 0;
	MPI_Request req;

	if (t->role != HELPER) {
		for (long i = 0; i < n; i++)
			ping(t, list[i % 7], i);
		if (t->role == SENDER)
			MPI_Send(NULL, 0, MPI_BYTE, t->rank[HELPER], TAG_GO,
				 world);
		return;
	}
	MPI_Irecv(NULL, 0, MPI_BYTE, t->rank[SENDER], TAG_GO, world, &req);
	while (!done) {
		stop(t);
		pause_us((long)(mt_random(&draw) % 1000));
		go_on(t);
		pause_us((long)(mt_random(&draw) % 2000));
		MPI_Test(&req, &done, MPI_STATUS_IGNORE);
	}
}

static void one_round(const struct trio *t, long round)
{
	static const struct burst list[] = {
		{ 64, 32768, 0 },
		{ 30000, 64, 0 },
		{ 8000, 4096, 0 },
		{ 100, 200000, 0 },
	};

	for (int why = 0; why < (stopped ? EXCUSES : STOPPED); why++)
		for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
			struct burst b = list[i];

			b.round = round;
			b.n = (b.n * percent + 99) / 100;
			run_burst(t, &b, (enum excuse)why);
		}
	large_to_stopped(t, 3000001, round);
	flicker(t, mt_rounds(1000));
}

int main(int argc, char **argv)
{
	struct trio t = { 0 };
	sigset_t usr1;
	bool mine;

	/* Before MPI starts threads: they must not take the signal. */
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"legal: a receiver that does not look (3 ranks or more)", opts);
	mt_check(mt_size >= ROLES, "needs 3 ranks");
	mine = trio_open(&t);
	for (long r = 0; mine && r < mt_rounds(rounds); r++)
		one_round(&t, r);
	return mt_end("legal");
}
