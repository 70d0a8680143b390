/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Which two cores a benchmark runs on. No state of its own.
 */
#ifndef BENCH_PIN_H
#define BENCH_PIN_H

/** The two cores of a pair; -1 means "not pinned". */
struct bench_pin {
	int cpu[2]; /* core of the leader, core of the follower */
};

/**
 * bench_pin_default() - the first two cores this process may run on.
 * @pin: filled in; both entries are the same core if there is only one.
 *
 * A process that was bound to a single core (mpirun does that) looks at all
 * the cores it could be given. Changes the binding of the calling thread for a
 * moment. Returns 0, or a negative errno value.
 */
int bench_pin_default(struct bench_pin *pin);

/**
 * bench_pin_parse() - read "A,B" (two core numbers) or "none".
 * @pin: filled in on success only.
 * @text: what the user wrote.
 *
 * Any thread. Returns 0, or -EINVAL if @text is neither.
 */
int bench_pin_parse(struct bench_pin *pin, const char *text);

/**
 * bench_pin_self() - bind the calling thread to one core.
 * @cpu: the core; negative: leave the thread where it may run now.
 *
 * Returns 0, or a negative errno value after saying on stderr which core was
 * refused.
 */
int bench_pin_self(int cpu);

#endif
