/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * An endpoint remembers what the source of its last receive was, and a queue
 * where its last success came from: neither may outlive what it stands for.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "kill_steps.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TAG = 7, LEN = 64 };

static const struct th_stack_opts directed = { .caps = FI_MSG | FI_TAGGED |
						       FI_SOURCE |
						       FI_DIRECTED_RECV };

static char rx[4][LEN]; /* where receives go, and their contexts */

static void want(struct th_stack *s, int i, fi_addr_t src)
{
	th_eq(fi_trecv(s->ep, rx[i], LEN, NULL, src, TAG, 0, rx[i]), 0);
}

static void put(struct th_stack *s, fi_addr_t to, uint64_t seed)
{
	char buf[LEN];

	th_fill(buf, LEN, seed);
	th_post(s, fi_tinject(s->ep, buf, LEN, to, TAG));
}

/* The next entry: receive @i got message @seed, from @src. */
static void got(struct th_stack *s, int i, uint64_t seed, fi_addr_t src)
{
	fi_addr_t from = 0;
	struct fi_cq_tagged_entry e = th_rx_from(s, &from);

	th_ptr_eq(e.op_context, rx[i]);
	th_eq(e.len, LEN);
	th_verify(rx[i], LEN, seed);
	th_eq(from, src);
}

/* ---- address vector ---------------------------------------------------------- */

/* @b remembers @from: two receives name it, then two messages come. */
static void remember(struct th_stack *b, struct th_stack *from, fi_addr_t src)
{
	for (int i = 0; i < 2; i++)
		want(b, i, src);
	for (int i = 0; i < 2; i++)
		put(from, from->peers[1], (uint64_t)i + 1);
	for (int i = 0; i < 2; i++)
		got(b, i, (uint64_t)i + 1, src);
}

/*
 * The address of a becomes that of c: receives that name it are for c's
 * messages; a's have no name until it is inserted again.
 */
static void replace(struct th_stack *a, struct th_stack *b, struct th_stack *c,
		    bool first)
{
	fi_addr_t old = b->peers[0], name = old;

	th_eq(fi_av_remove(b->av, &old, 1, 0), 0);
	th_eq(fi_trecv(b->ep, rx[0], LEN, NULL, old, TAG, 0, rx[0]),
	      -FI_EINVAL);
	name = th_insert(b, c->addr);
	if (first && th_is_shrimp())
		th_eq(name, old);
	want(b, 0, name);
	put(a, a->peers[1], 11);
	th_quiet(b, 5);
	put(c, c->peers[1], 12);
	got(b, 0, 12, name);
	want(b, 1, FI_ADDR_UNSPEC);
	got(b, 1, 11, FI_ADDR_NOTAVAIL);
	b->peers[0] = th_insert(b, a->addr);
	remember(b, a, b->peers[0]);
	remember(b, c, name);
	th_eq(fi_av_remove(b->av, &name, 1, 0), 0);
}

static void quick_av_replaced(struct th_self *self)
{
	struct th_stack a, b, c;

	(void)self;
	th_pair_open(&a, &b, &directed);
	th_stack_open(&c, &directed);
	c.peers = calloc(2, sizeof(*c.peers));
	th_check(c.peers);
	c.peers[1] = th_insert(&c, b.addr);
	for (int i = 0; i < 20; i++) {
		remember(&b, &a, b.peers[0]);
		replace(&a, &b, &c, !i);
	}
	th_pair_close(&a, &b);
	th_stack_close(&c);
}

/* ---- a service that moves ------------------------------------------------------ */

static const char *service_name(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "%d", 40000 + getpid() % 20000);
	return name;
}

static void open_service(struct th_stack *s, const struct th_stack *client)
{
	struct th_stack_opts o = directed;

	o.service = service_name();
	o.flags = FI_SOURCE;
	th_stack_open(s, &o);
	s->peers = calloc(2, sizeof(*s->peers));
	th_check(s->peers);
	s->peers[1] = th_insert(s, client->addr);
}

/* The client sends to the service, whose endpoint answers twice. */
static void call_service(struct th_stack *c, struct th_stack *s, fi_addr_t to)
{
	char buf[LEN];

	c->buddy = s;
	s->buddy = c;
	th_trecv(s, buf, LEN, TAG, 0, buf);
	put(c, to, 21);
	th_ptr_eq(th_rx_ok(s).op_context, buf);
	remember(c, s, to);
	c->buddy = s->buddy = NULL;
}

/* Sends until the end of the old endpoint is known. */
static void until_reset(struct th_stack *c, fi_addr_t to)
{
	struct th_deadline dl = th_patience();
	ssize_t ret;

	while ((ret = fi_tinject(c->ep, "x", 1, to, TAG + 1)) == 0) {
		th_check(!th_expired(&dl));
		th_progress(c);
	}
	th_eq(ret, -FI_ECONNRESET);
}

/*
 * The endpoint behind a service closes, while its process lives, and another
 * one offers the service: receives that name it are for the new one.
 */
static void quick_service_moved(struct th_self *self)
{
	struct th_stack client, server;
	fi_addr_t to = FI_ADDR_NOTAVAIL;

	(void)self;
	th_stack_open(&client, &directed);
	th_eq(fi_av_insertsvc(client.av, "localhost", service_name(), &to, 0,
			      NULL),
	      1);
	for (int i = 0; i < 5; i++) {
		open_service(&server, &client);
		call_service(&client, &server, to);
		th_stack_close(&server);
		until_reset(&client, to);
	}
	th_stack_close(&client);
}

/* ---- death --------------------------------------------------------------- */

/*
 * A source that dies after it was remembered: the receives that name it end,
 * those posted before its death, and those posted after it.
 */
static void contract_P4_remembered_source(struct th_self *self)
{
	struct th_stack s;
	fi_addr_t victim;

	ks_open_all(&s, self);
	victim = s.peers[KS_VICTIM];
	if (self->rank == KS_VICTIM)
		for (uint64_t i = 1; i <= 2; i++)
			put(&s, s.peers[0], i);
	th_barrier(self, "sent");
	if (self->rank == 0) {
		for (int i = 0; i < 3; i++)
			want(&s, i, victim);
		got(&s, 0, 1, victim);
		got(&s, 1, 2, victim);
	}
	ks_until_dead(self);
	want(&s, 3, victim);
	ks_reset_soon(&s, s.rxcq, rx[2]);
	ks_reset_soon(&s, s.rxcq, rx[3]);
	for (int i = 0; i < 3; i++) {
		want(&s, i, victim);
		ks_reset_soon(&s, s.rxcq, rx[i]);
	}
	th_stack_close(&s);
}

/* ---- fork ---------------------------------------------------------------- */

/* The status of a child that reads @cq once, which it must be refused. */
static int read_in_child(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[4];
	int status = -1;
	pid_t pid = fork();

	th_check(pid >= 0);
	if (!pid)
		_exit(fi_cq_read(cq, e, 4) != -FI_EOPBADSTATE);
	th_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* A fork just after a success: the child must not look where it came from. */
static void contract_L6_read_after_success(struct th_self *self)
{
	struct fi_cq_tagged_entry e[4];
	struct th_stack a, b;

	(void)self;
	th_pair_open(&a, &b, &directed);
	for (int i = 0; i < 3; i++) {
		ssize_t n;

		want(&b, i, b.peers[0]);
		put(&a, a.peers[1], 31);
		while ((n = fi_cq_read(b.rxcq, e, 4)) == -FI_EAGAIN)
			;
		th_eq(n, 1);
		th_eq(read_in_child(b.rxcq), 0);
	}
	th_pair_close(&a, &b);
}

static const struct CMUnitTest quick_source_tests[] = {
	TH_CASE(quick_av_replaced, 1, 20),
	TH_CASE(quick_service_moved, 1, 30),
	KS_CASE(contract_P4_remembered_source, 2),
	TH_CASE(contract_L6_read_after_success, 1, 20),
};

int main(int argc, char **argv)
{
	ks_init();
	return th_main(argc, argv, "quick_source", quick_source_tests,
		       sizeof(quick_source_tests) /
			       sizeof(quick_source_tests[0]));
}
