/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Steps that the tests of dying peers share.
 */
#include "kill_steps.h"

#include <signal.h>
#include <unistd.h>

#include "env_probe.h"

/* As the file of a check: the failure is shown at the caller's line. */
#define CALLER "harness", 0

struct ks_shared *ks_shared;

void ks_init(void)
{
	ks_shared = probe_shared(sizeof(*ks_shared));
}

void ks_case(void **state)
{
	const struct ks_spec *k = *state;
	struct th_group *g;

	memset(ks_shared, 0, sizeof(*ks_shared));
	g = th_group_start(k->n, k->main, NULL, 40);
	th_group_expect_death(g, KS_VICTIM, SIGKILL);
	th_group_finish(g);
}

void ks_open_with(struct th_stack *s, struct th_self *self,
		  enum fi_wait_obj wait)
{
	struct th_stack_opts o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE |
					   FI_DIRECTED_RECV,
				   .cq_wait = wait };

	th_stack_open(s, &o);
	th_stack_connect(s, self);
}

void ks_open_all(struct th_stack *s, struct th_self *self)
{
	ks_open_with(s, self, FI_WAIT_NONE);
}

void ks_die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

void ks_until_dead(struct th_self *self)
{
	th_barrier(self, "ready");
	if (self->rank == KS_VICTIM)
		ks_die();
	th_barrier(self, "dead");
}

struct fi_cq_err_entry(ks_error_soon)(struct th_stack *s, struct fid_cq *cq)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN) {
		th_progress(s);
		if (th_expired(&dl))
			th_fail(CALLER, "no error entry within 5 s");
	}
	th_eq_at(CALLER, "next entry is an error", ret, -FI_EAVAIL);
	th_eq_at(CALLER, "it can be read", fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

void(ks_reset_soon)(struct th_stack *s, struct fid_cq *cq, void *ctx)
{
	struct fi_cq_err_entry err = (ks_error_soon)(s, cq);

	th_eq_at(CALLER, "error code", err.err, FI_ECONNRESET);
	th_eq_at(CALLER, "context", (intptr_t)err.op_context, (intptr_t)ctx);
}

void(ks_send_until_reset)(struct th_stack *s, fi_addr_t dead)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;

	do {
		if (th_expired(&dl))
			th_fail(CALLER, "sends still succeed after 5 s");
		th_sleep_us(1000);
		th_tsend(s, dead, "message!", 8, KS_TAG, NULL);
	} while ((th_cq_next)(s, s->txcq, &e, &err) == 1);
	th_eq_at(CALLER, "error code", err.err, FI_ECONNRESET);
}

void(ks_dropped_soon)(struct th_stack *s, uint64_t n)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);
	struct fid *fid = &s->fabric->fid;

	while (probe_stats(fid).dropped_msgs < n && !th_expired(&dl))
		th_progress(s);
	th_eq_at(CALLER, "dropped messages",
		 (int64_t)probe_stats(fid).dropped_msgs, (int64_t)n);
}

void(ks_expect_message)(struct th_stack *s, void *buf, size_t len,
			uint64_t seed)
{
	struct fi_cq_tagged_entry e = (th_rx_ok)(s);

	th_eq_at(CALLER, "length", (int64_t)e.len, (int64_t)len);
	th_eq_at(CALLER, "tag", (int64_t)e.tag, KS_TAG);
	(th_verify)(buf, len, seed);
}

void ks_one_message(struct th_stack *s, struct th_self *self, int from, int to)
{
	char buf[8];

	if (self->rank == from) {
		th_fill(buf, sizeof(buf), 1);
		th_tsend(s, s->peers[to], buf, sizeof(buf), KS_TAG, NULL);
		th_tx_ok(s);
	} else if (self->rank == to) {
		th_trecv(s, buf, sizeof(buf), KS_TAG, 0, NULL);
		ks_expect_message(s, buf, sizeof(buf), 1);
	}
	th_barrier_progress(self, s, "one message");
}

static const size_t size_classes[] = {
	0, 8, 40, 41, 1000, 1025, 4096, 30000, 65536, 65537, 1 << 20, 3 << 20,
};
enum { NSIZES = sizeof(size_classes) / sizeof(size_classes[0]) };

void(ks_exchange_sizes)(struct th_stack *s, fi_addr_t peer)
{
	size_t max = size_classes[NSIZES - 1], len, i;
	char *out = malloc(max), *in = malloc(max);

	th_check(out && in);
	for (i = 0; i < NSIZES; i++) {
		len = size_classes[i];
		th_fill(out, len, i);
		th_trecv(s, in, max, KS_TAG, 0, NULL);
		th_tsend(s, peer, out, len, KS_TAG, NULL);
		(ks_expect_message)(s, in, len, i);
		(th_tx_ok)(s);
	}
	free(in);
	free(out);
}

void ks_survivors_go_on(struct th_stack *s, struct th_self *self)
{
	int i;

	for (i = 0; i < 5; i++) {
		ks_one_message(s, self, 0, KS_OTHER);
		ks_one_message(s, self, KS_OTHER, 0);
	}
}
