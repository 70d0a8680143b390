/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * E14: more ranks than cores. The same rounds (a token goes round, then a
 * barrier) among two ranks, while the others sleep, and among all of them.
 *
 * Messages that follow on each other are counted, so that the numbers of ranks
 * can be compared. Measured on two cores: 0.2 to 0.4 us per message with two
 * ranks, 1 to 3 us with five (the rank that it is for gets a core after a yield
 * or two), 2000 us if ranks poll to the end of their time slice. The factor
 * lies between: several times what is measured, a hundredth of the slice. The
 * best of many short tries counts: the machine may do other things, then there
 * are more of them.
 *
 * The list TESTS turns Open MPI's own yield off: ours is meant.
 *
 * Ranks: 5
 */
#include "common.h"

#include <unistd.h>

enum { NAP_US = 2000 }; /* of ranks that have nothing to do */

static long rounds = 25;
static long tries = 15;
static long seconds = 20;
static long factor = 50;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of a try" },
	{ "tries", &tries, "tries at least, the best counts" },
	{ "seconds", &seconds, "more tries for so long, if need be" },
	{ "factor", &factor, "allowed between the times of a message" },
	{ 0 },
};

static void hop_in(MPI_Comm comm, int from, long round)
{
	unsigned char buf[64];
	MPI_Status st;

	MPI_Recv(buf, sizeof(buf), MPI_BYTE, from, 7, comm, &st);
	mt_status(&st, from, 7, sizeof(buf));
	mt_verify(buf, sizeof(buf), mt_seed(from, 0, 64, round));
}

static void hop_out(MPI_Comm comm, int me, int to, long round)
{
	unsigned char buf[64];

	mt_fill(buf, sizeof(buf), mt_seed(me, 0, 64, round));
	MPI_Send(buf, sizeof(buf), MPI_BYTE, to, 7, comm);
	mt_sent(1, sizeof(buf));
}

static void ring(MPI_Comm comm, int me, int n, long round)
{
	if (!me)
		hop_out(comm, me, 1, round);
	hop_in(comm, (me + n - 1) % n, round);
	if (me)
		hop_out(comm, me, (me + 1) % n, round);
}

/* Messages that follow on each other in a round: those of a dissemination. */
static int in_a_row(int n)
{
	int steps = n;

	for (int d = 1; d < n; d *= 2)
		steps++;
	return steps;
}

/* Microseconds per message of a try among the ranks of @comm. */
static double try_once(MPI_Comm comm)
{
	int me, n;
	double t;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	MPI_Barrier(comm);
	t = MPI_Wtime();
	for (long i = 0; i < rounds; i++) {
		ring(comm, me, n, i);
		MPI_Barrier(comm);
	}
	t = MPI_Wtime() - t;
	return t * 1e6 / (double)(rounds * in_a_row(n));
}

/* All meet; whoever waits sleeps, and leaves its core to the others. */
static void meet_asleep(void)
{
	MPI_Request r;
	int done = 0;

	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	while (MPI_Test(&r, &done, MPI_STATUS_IGNORE), !done)
		usleep(NAP_US);
}

/* Rank 0 says whether there is another try. */
static bool go_on(bool on)
{
	int word = on;

	MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return word;
}

/* The best try of the ranks of @comm, which is null elsewhere. */
static double best_of(MPI_Comm comm, double enough)
{
	double best = 1e9, end = MPI_Wtime() + (double)seconds;
	long i = 0;

	do {
		double t = comm == MPI_COMM_NULL ? best : try_once(comm);

		best = t < best ? t : best;
		meet_asleep();
	} while (go_on(++i < tries || (best >= enough && MPI_Wtime() < end)));
	return best;
}

int main(int argc, char **argv)
{
	double few, all;
	MPI_Comm two;

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"oversub: two ranks against more than there are cores", opts);
	mt_check(mt_size > 2, "needs 3 ranks");
	MPI_Comm_split(MPI_COMM_WORLD, mt_rank < 2 ? 0 : MPI_UNDEFINED, 0,
		       &two);
	meet_asleep();
	few = best_of(two, 1e9);
	all = best_of(MPI_COMM_WORLD, few * (double)factor);
	if (!mt_rank)
		printf("per message: %.2f us with 2 ranks, %.2f us with %d\n",
		       few, all, mt_size);
	mt_check(mt_rank || all < few * (double)factor,
		 "%.2f us per message, %.2f us with 2 ranks", all, few);
	if (two != MPI_COMM_NULL)
		MPI_Comm_free(&two);
	return mt_end("oversub");
}
