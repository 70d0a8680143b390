/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A process of a group: opens libfabric, meets the others, and does what the
 * driver orders and the others ask until it is told to end.
 */
#include "bench/stress/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/stress/churn.h"
#include "bench/stress/fi.h"
#include "bench/stress/memory.h"
#include "bench/stress/serve.h"
#include "bench/stress/usage.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum {
	MEET_S = 20,	   /* for the others to come */
	SPIN_NS = 3000000, /* after the last question, then it sleeps */
	ATTEMPTS = 1000,   /* to find a cache empty after a flush */
};

bool stress_uffd_there(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_EVENT_UNMAP |
			    UFFD_FEATURE_EVENT_REMAP |
			    UFFD_FEATURE_EVENT_REMOVE,
	};
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	bool there;

	if (fd < 0)
		return false;
	there = !ioctl(fd, UFFDIO_API, &api);
	close(fd);
	return there;
}

/* ---- the start ---- */

static void report(struct stress *s, enum stress_told told, int status)
{
	struct stress_report r = { .told = told,
				   .status = status,
				   .count = s->count };

	memcpy(r.text, s->text, sizeof(r.text));
	/* without a driver there is nobody to tell; the loop sees its end */
	(void)stress_wire_put(s->fd, &r, sizeof(r));
}

static int hello_send(struct stress *s)
{
	struct stress_hello h = {
		.window_addr = s->window.addr + STRESS_GUARD,
		.window_key = s->window.key,
		.name_len = (uint32_t)s->main.name_len,
	};

	memcpy(h.name, s->main.name, sizeof(h.name));
	for (int i = 0; i < s->size; i++)
		if (s->partner[i].fd >= 0 &&
		    stress_wire_put(s->partner[i].fd, &h, sizeof(h)))
			return stress_wrong(s, "process %d has gone", i);
	return 0;
}

static int hello_take(struct stress *s, int rank)
{
	struct stress_partner *p = &s->partner[rank];
	uint64_t deadline = stress_deadline(s, MEET_S);
	unsigned int polls = 0;
	int ret;

	while (!(ret = stress_wire_get(p->fd, &p->hello, sizeof(p->hello)))) {
		stress_relax(s, &polls);
		if (stress_late(deadline))
			return stress_wrong(s, "process %d does not come",
					    rank);
	}
	if (ret < 0)
		return stress_wrong(s, "process %d has gone", rank);
	ret = stress_side_meet(&s->main, p->hello.name, &s->main.peer[rank]);
	return ret ? stress_wrong(s, "fi_av_insert: %s", stress_code(ret)) : 0;
}

static int meet(struct stress *s)
{
	if (hello_send(s))
		return STRESS_FAILED;
	for (int i = 0; i < s->size; i++)
		if (s->partner[i].fd >= 0 && hello_take(s, i))
			return STRESS_FAILED;
	return 0;
}

/* Once for what stays for good, then for the usage that is the start. */
static int fabric_open(struct stress *s, struct stress_usage *start)
{
	int ret = stress_side_open(s, &s->main);

	if (!ret)
		ret = stress_side_close(s, &s->main);
	stress_usage_read(start);
	return ret ? ret : stress_side_open(s, &s->main);
}

static void describe(struct stress *s)
{
	const struct fi_info *i = s->main.info;

	snprintf(s->text, sizeof(s->text), "%s, mr_mode %#x of %#x%s%s%s%s",
		 i->fabric_attr->prov_name,
		 (unsigned int)i->domain_attr->mr_mode, (unsigned int)s->offer,
		 s->main.rma ? "" : ", no RMA",
		 s->main.delivery ? "" : ", no FI_DELIVERY_COMPLETE",
		 s->main.threads ? "" : ", no FI_THREAD_SAFE",
		 s->main.cache ? ", cache calls" : "");
}

/* 0, or the status that ends the process. */
static int begin(struct stress *s, const struct stress_scenario *env,
		 struct stress_usage *start)
{
	int ret = stress_slots_open(s);

	if (!ret && env && env->before)
		ret = env->before();
	if (ret) {
		stress_skip(s, "%s: %s", env ? env->name : "slots",
			    strerror(-ret));
		report(s, STRESS_TOLD_READY, STRESS_SKIP);
		return 1;
	}
	if (fabric_open(s, start)) {
		report(s, STRESS_TOLD_UNUSABLE, STRESS_FAILED);
		return 1;
	}
	if (stress_serve_open(s) || meet(s)) {
		report(s, STRESS_TOLD_UNUSABLE, STRESS_FAILED);
		return 1;
	}
	s->churn = stress_churn_start(s->o->threads, s->o->seed,
				      s->o->slow ? STRESS_CHURN_STAY : 0);
	describe(s);
	report(s, STRESS_TOLD_READY, 0);
	return 0;
}

/* ---- steps ---- */

static int needs_check(struct stress *s)
{
	unsigned int needs = s->of->needs;

	if (needs & STRESS_RMA && !s->main.rma)
		return stress_skip(s, "the provider has no RMA");
	if (needs & STRESS_SHRIMP && !stress_is_shrimp(s))
		return stress_skip(s, "only shrimp promises that");
	if (needs & STRESS_UFFD && !stress_uffd_there())
		return stress_skip(s, "userfaultfd(2) gives no events");
	return 0;
}

static int act_begin(struct stress *s, const struct stress_order *o)
{
	int ret;

	s->of = stress_scenarios[o->scenario];
	s->act = o->act;
	s->state = NULL;
	stress_say(s, "act %u: %s", o->act, s->of->name);
	ret = needs_check(s);
	if (!ret && s->of->setup)
		ret = s->of->setup(s, &s->state);
	return ret;
}

static void act_end(struct stress *s)
{
	s->status = 0;
	s->text[0] = 0;
	if (s->of && s->of->teardown)
		s->of->teardown(s, s->state);
	stress_files_close(s);
	s->of = NULL;
	s->state = NULL;
}

static void step_run(struct stress *s, const struct stress_order *o)
{
	char text[STRESS_TEXT];
	int ret = 0;

	s->number = o->number;
	s->chance = o->seed;
	s->streams = 0;
	s->status = 0;
	s->text[0] = 0;
	s->flow = -1;
	memset(&s->count, 0, sizeof(s->count));
	if (!s->of)
		ret = act_begin(s, o);
	if (!ret)
		ret = s->of->step(s, s->state);
	if (s->flow >= 0 && stress_flow_end(s, NULL))
		ret = STRESS_FAILED;
	if (!stress_churn_fine(s->churn, text, sizeof(text)))
		stress_wrong(s, "%s", text);
	if (s->status == STRESS_FAILED)
		ret = STRESS_FAILED;
	report(s, STRESS_TOLD_DONE, ret);
}

/* ---- the end ---- */

/* Nothing of the registration cache is in use any more. */
static int cache_check(struct stress *s)
{
	struct fi_shrimp_stats st;

	if (!stress_counters(s, &st))
		return 0;
	for (int i = 0; i < ATTEMPTS; i++) {
		unsigned int polls = 0;

		s->main.cache->flush(&s->main.domain->fid);
		if (!stress_counters(s, &st) ||
		    (!st.cache_entries && !st.cache_bytes && !st.cache_pinned))
			return 0;
		stress_relax(s, &polls);
	}
	return stress_wrong(s,
			    "after a flush the cache has %lu ranges, %lu "
			    "bytes, %lu of them locked",
			    (unsigned long)st.cache_entries,
			    (unsigned long)st.cache_bytes,
			    (unsigned long)st.cache_pinned);
}

static void flush(struct stress *s)
{
	stress_flush(s);
	report(s, STRESS_TOLD_DONE, 0);
}

static int end(struct stress *s, const struct stress_usage *start)
{
	struct stress_usage now;
	char text[STRESS_TEXT];

	s->status = 0;
	s->text[0] = 0;
	stress_files_close(s);
	stress_churn_stop(s->churn);
	s->churn = NULL;
	stress_second_close(s);
	stress_serve_close(s);
	cache_check(s);
	if (stress_side_close(s, &s->main)) {
		snprintf(text, sizeof(text), "%s", s->text);
		stress_wrong(s, "%s", text);
	}
	stress_usage_read(&now);
	if (stress_usage_left(start, &now, s->o->slow, text, sizeof(text)))
		stress_wrong(s, "%s", text);
	report(s, STRESS_TOLD_DONE, s->status);
	return s->status ? 1 : 0;
}

/* ---- the loop ---- */

/* Sleeps until there is something to do, at most a millisecond. */
static void doze(struct stress *s)
{
	struct pollfd fds[STRESS_RANKS + 1];
	nfds_t n = 0;

	fds[n++] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
	for (int i = 0; i < s->size; i++)
		if (s->partner[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = s->partner[i].fd,
						    .events = POLLIN };
	poll(fds, n, 1);
}

static void order_do(struct stress *s, const struct stress_order *o)
{
	if (o->call == STRESS_CALL_STEP) {
		step_run(s, o);
	} else if (o->call == STRESS_CALL_FLUSH) {
		flush(s);
	} else if (o->call == STRESS_CALL_CLOSE) {
		act_end(s);
		report(s, STRESS_TOLD_DONE, s->status);
	}
}

int stress_peer_run(struct stress *s, const struct stress_scenario *env)
{
	struct stress_usage start;
	struct stress_order o;
	unsigned int polls = 0;
	uint64_t last;
	int ret;

	s->flow = -1;
	if (begin(s, env, &start))
		return 1;
	last = bench_clock_ns();
	while ((ret = stress_wire_get(s->fd, &o, sizeof(o))) >= 0) {
		if (ret && o.call == STRESS_CALL_END)
			return end(s, &start);
		if (ret)
			order_do(s, &o);
		if (ret || stress_serve(s))
			last = bench_clock_ns();
		stress_relax(s, &polls);
		if (bench_clock_ns() - last > SPIN_NS)
			doze(s);
	}
	return 1;
}
