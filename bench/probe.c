/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The raw probe. Two rings of 64 lines, one for each direction, in memory that
 * a parent shares with its child.
 *
 * Exclusion: each ring has one writer and one reader, no lock. A line holds
 * nothing but its sequence word, so the word is its own payload: the release
 * store R1 pairs with the acquire load A1 and publishes nothing else.
 *
 * If either side dies: the child is killed by the kernel with its parent; the
 * parent gives up after 30 seconds without an answer.
 */
#include "bench/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/stats.h"

enum {
	RING_LINES = 64,
	PART_ROUNDS = 500,    /* round trips between two looks at the clock */
	SPIN_LOOKS = 1 << 20, /* empty looks between two looks at the clock */
	STUCK_S = 30,	      /* no answer for so long: the child is gone */
};

static const uint64_t STOP = UINT64_MAX;

/* One line, written by one side and read by the other. */
struct line {
	alignas(64) _Atomic uint64_t seq; /* number of the message, or STOP */
};

/* What the two processes share. */
struct rings {
	struct line ping[RING_LINES]; /* written by the parent */
	struct line pong[RING_LINES]; /* written by the child */
};

static void line_put(struct line *ring, uint64_t slot, uint64_t seq)
{
	/* R1: publishes the sequence word itself; pairs with A1. */
	atomic_store_explicit(&ring[slot % RING_LINES].seq, seq,
			      memory_order_release);
}

static uint64_t line_get(struct line *ring, uint64_t slot)
{
	/* A1: pairs with R1. */
	return atomic_load_explicit(&ring[slot % RING_LINES].seq,
				    memory_order_acquire);
}

static void child_answer(struct rings *rings)
{
	uint64_t seq;
	uint64_t seen;

	for (seq = 1;; seq++) {
		do {
			seen = line_get(rings->ping, seq);
		} while (seen != seq && seen != STOP);
		if (seen == STOP)
			return;
		line_put(rings->pong, seq, seq);
	}
}

static _Noreturn void child_main(struct rings *rings, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	child_answer(rings);
	_exit(0);
}

static int answer_wait(struct rings *rings, uint64_t seq)
{
	uint64_t give_up = 0;
	unsigned int looks = 0;

	while (line_get(rings->pong, seq) != seq) {
		if (++looks % SPIN_LOOKS)
			continue;
		if (!give_up)
			give_up = bench_clock_ns() + STUCK_S * 1000000000ull;
		else if (bench_clock_ns() > give_up)
			return -ETIMEDOUT;
	}
	return 0;
}

static int part_run(struct rings *rings, uint64_t *seq)
{
	int i;

	for (i = 0; i < PART_ROUNDS; i++) {
		++*seq;
		line_put(rings->ping, *seq, *seq);
		if (answer_wait(rings, *seq))
			return -ETIMEDOUT;
	}
	return 0;
}

static int parent_measure(struct rings *rings, struct bench_stats *stats,
			  unsigned int duration_ms)
{
	uint64_t seq = 0;
	uint64_t begin;
	uint64_t last;
	uint64_t now;

	if (part_run(rings, &seq))
		return -ETIMEDOUT;
	begin = last = bench_clock_ns();
	do {
		if (part_run(rings, &seq))
			return -ETIMEDOUT;
		now = bench_clock_ns();
		bench_stats_add(stats, (double)(now - last) / 2 / PART_ROUNDS);
		last = now;
	} while (now - begin < duration_ms * 1000000ull);
	line_put(rings->ping, seq + 1, STOP);
	return 0;
}

static int child_reap(pid_t child, int rc)
{
	int status;

	if (rc)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!rc && status)
		rc = -ECHILD;
	return rc;
}

static int pair_run(struct rings *rings, struct bench_stats *stats,
		    const struct bench_pin *pin, unsigned int duration_ms)
{
	pid_t parent = getpid();
	pid_t child;
	int rc;

	rc = bench_pin_self(pin->cpu[1]); /* the child inherits this */
	if (rc)
		return rc;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		child_main(rings, parent);
	rc = bench_pin_self(pin->cpu[0]);
	if (!rc)
		rc = parent_measure(rings, stats, duration_ms);
	return child_reap(child, rc);
}

int bench_probe_run(struct bench_probe *probe, const struct bench_pin *pin,
		    unsigned int duration_ms)
{
	struct bench_stats stats = { .n = 0 };
	struct rings *rings;
	int rc;

	if (pin->cpu[0] < 0 || pin->cpu[0] == pin->cpu[1] || !duration_ms)
		return -EINVAL;
	rings = mmap(NULL, sizeof(*rings), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rings == MAP_FAILED)
		return -errno;
	rc = pair_run(rings, &stats, pin, duration_ms);
	munmap(rings, sizeof(*rings));
	if (rc)
		return rc;
	probe->median_ns = bench_stats_quantile(&stats, 0.5);
	probe->min_ns = bench_stats_quantile(&stats, 0);
	probe->n = stats.n;
	return 0;
}

const char *bench_probe_class(double half_ns)
{
	return half_ns <= BENCH_PROBE_NEAR_NS ? "near" : "far";
}
