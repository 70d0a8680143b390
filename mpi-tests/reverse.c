/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A burst of Isend that the receiver takes in reverse order of tags, so that
 * all but one wait unexpected; the memory of both sides stays bounded, also
 * when the burst is far larger than that.
 */
#include "common.h"

#include <unistd.h>

static long rounds = 1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the three bursts" },
	{ 0 },
};

enum {
	BUFFERS = 32,	       /* a send buffer is used by several sends */
	GROWTH_KB = 400 << 10, /* bound for one process */
};

/* Resident memory of this process now, shared memory included. */
static long resident_kb(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	mt_check(f && fscanf(f, "%ld %ld", &pages, &resident) == 2,
		 "cannot read /proc/self/statm");
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void bounded(long base, const char *who)
{
	long grown = resident_kb() - base;

	mt_check(grown < GROWTH_KB, "the %s grew by %ld KiB, over %d", who,
		 grown, GROWTH_KB);
}

static void send_burst(int to, long n, size_t len, long round)
{
	char *buf = mt_alloc(BUFFERS * len);
	MPI_Request *req = mt_alloc((size_t)n * sizeof(*req));
	long base;

	for (int i = 0; i < BUFFERS; i++)
		mt_fill(buf + (size_t)i * len, len,
			mt_seed(mt_rank, i, (long)len, round));
	base = resident_kb();
	for (long tag = 0; tag < n; tag++)
		MPI_Isend(buf + (size_t)(tag % BUFFERS) * len, (int)len,
			  MPI_BYTE, to, (int)tag, MPI_COMM_WORLD, &req[tag]);
	mt_sent((uint64_t)n, (uint64_t)n * len);
	bounded(base, "sender, burst out,");
	MPI_Send(NULL, 0, MPI_BYTE, to, (int)n, MPI_COMM_WORLD);
	MPI_Waitall((int)n, req, MPI_STATUSES_IGNORE);
	bounded(base, "sender, at the end,");
	mt_free(buf);
	mt_free(req);
}

static void recv_burst(int from, long n, size_t len, long round)
{
	char *buf = mt_alloc(len);
	long base = resident_kb();
	MPI_Status st;

	for (long tag = n; tag >= 0; tag--) {
		MPI_Recv(buf, (int)len, MPI_BYTE, from, (int)tag,
			 MPI_COMM_WORLD, &st);
		mt_status(&st, from, (int)tag, tag == n ? 0 : len);
		if (tag == n)
			bounded(base, "receiver, all unexpected,");
		else
			mt_verify(buf, len,
				  mt_seed(from, (int)(tag % BUFFERS), (long)len,
					  round));
	}
	bounded(base, "receiver, at the end,");
	mt_free(buf);
}

/* Odd ranks send to the rank below. */
static void burst(long n, size_t len, long round)
{
	int peer = mt_rank ^ 1;

	if (peer < mt_size && mt_rank & 1)
		send_burst(peer, mt_rounds(n), len, round);
	else if (peer < mt_size)
		recv_burst(peer, mt_rounds(n), len, round);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"reverse: bursts received in reverse order of tags", opts);
	mt_check(mt_size > 1, "needs 2 ranks");
	for (long r = 0; r < rounds; r++) {
		burst(20000, 8, r);
		burst(2000, 512, r);
		burst(500, 100 << 10, r);
		burst(1200 / mt_size, 1 << 20, r);
	}
	return mt_end("reverse");
}
