/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One rank kills itself by SIGKILL at a random moment, in MPI_Init or amid
 * traffic of all kinds. The others can only go on until mpirun ends them;
 * whoever is left after half a minute says so. killed.sh checks the rest.
 *
 * The victim writes the time of its death, in seconds of the real-time
 * clock, to the file named by SHRIMP_TEST_KILLED.
 */
#include "common.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static long seed = 1;

static const struct mt_opt opts[] = {
	{ "seed", &seed, "chooses the victim, the moment and the traffic" },
	{ 0 },
};

enum { LEN = 300000, WINDOW = 16, PATIENCE_S = 30 };

static long delay_us;

static void note_death(void)
{
	const char *path = getenv("SHRIMP_TEST_KILLED");
	struct timespec now;
	char line[64];
	int fd, n;

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	clock_gettime(CLOCK_REALTIME, &now);
	n = snprintf(line, sizeof(line), "%ld.%09ld\n", (long)now.tv_sec,
		     now.tv_nsec);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		perror(path);
	close(fd);
}

static void *die(void *arg)
{
	struct timespec t = { delay_us / 1000000, delay_us % 1000000 * 1000 };

	nanosleep(&t, NULL);
	note_death();
	kill(getpid(), SIGKILL);
	return arg;
}

static void arm(uint64_t limit_us, uint64_t *draw)
{
	pthread_t id;

	delay_us = (long)(mt_random(draw) % limit_us);
	mt_check(!pthread_create(&id, NULL, die, NULL), "pthread_create");
}

/* ---- traffic ------------------------------------------------------- */

static void large(char *in, char *out, long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;

	mt_fill(out, LEN, mt_seed(mt_rank, to, 1, round));
	MPI_Sendrecv(out, LEN, MPI_BYTE, to, 1, in, LEN, MPI_BYTE, from, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	mt_verify(in, LEN, mt_seed(from, mt_rank, 1, round));
	mt_sent(1, LEN);
}

static void storm(char *in, char *out, long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;
	MPI_Request req[2 * WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		size_t len = 64u << i % 7;

		mt_fill(out + i * 4096, len, mt_seed(mt_rank, to, i, round));
		MPI_Irecv(in + i * 4096, 4096, MPI_BYTE, from, i,
			  MPI_COMM_WORLD, &req[i]);
		MPI_Issend(out + i * 4096, (int)len, MPI_BYTE, to, i,
			   MPI_COMM_WORLD, &req[WINDOW + i]);
		mt_sent(1, len);
	}
	MPI_Waitall(2 * WINDOW, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < WINDOW; i++)
		mt_verify(in + i * 4096, 64u << i % 7,
			  mt_seed(from, mt_rank, i, round));
}

static void collective(char *in, char *out, long round)
{
	int len = LEN / mt_size / 10;

	for (int r = 0; r < mt_size; r++)
		mt_fill(out + r * len, (size_t)len,
			mt_seed(mt_rank, r, 3, round));
	MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < mt_size; r++)
		mt_verify(in + r * len, (size_t)len,
			  mt_seed(r, mt_rank, 3, round));
	mt_sent(1, (uint64_t)len * (uint64_t)(mt_size - 1));
}

static void traffic(char *in, char *out, long round)
{
	static void (*const kind[])(char *, char *, long) = { large, storm,
							      collective };

	kind[mt_seed(0, 0, seed, round) % 3](in, out, round);
}

int main(int argc, char **argv)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	const char *size = getenv("OMPI_COMM_WORLD_SIZE");
	uint64_t draw;
	char *in, *out;
	bool victim, early;
	time_t end;

	/* The options are wanted before MPI_Init, and read again by it. */
	if (argc == 3 && !strcmp(argv[1], "--seed"))
		seed = strtol(argv[2], NULL, 0);
	draw = (uint64_t)seed;
	early = mt_random(&draw) % 5 == 0;
	victim = rank && size &&
		 mt_random(&draw) % strtoul(size, NULL, 10) ==
			 strtoul(rank, NULL, 10);
	if (victim && early)
		arm(300000, &draw);
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"killed: one rank kills itself (run by killed.sh)", opts);
	in = mt_alloc(LEN);
	out = mt_alloc(LEN);
	for (long r = 0; r < 5; r++)
		traffic(in, out, r);
	mt_passed();
	if (!mt_rank)
		printf("traffic passed the checks\n");
	fflush(stdout);
	if (victim && !early)
		arm(300000, &draw);
	end = time(NULL) + PATIENCE_S;
	for (long r = 5; time(NULL) < end; r++)
		traffic(in, out, r);
	mt_check(false, "still here, nobody was killed");
}
