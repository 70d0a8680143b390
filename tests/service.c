/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Finding each other by name on one node: a server that asked fi_getinfo()
 * for (node, service, FI_SOURCE), clients that ask for (node, service, 0),
 * and nothing exchanged besides.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <stdio.h>
#include <unistd.h>

#include "env_probe.h"

enum { TAG = 171 };

/* A service name of this test run only. */
static const char *service_name(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "%d", 20000 + getppid() % 20000);
	return name;
}

static struct th_stack_opts server_opts(const char *node)
{
	return (struct th_stack_opts){ .node = node,
				       .service = service_name(),
				       .flags = FI_SOURCE };
}

static struct th_stack_opts client_opts(const char *node)
{
	return (struct th_stack_opts){ .node = node,
				       .service = service_name() };
}

/* What a client tells the server, so that it can answer. */
struct hello {
	char name[TH_MAX_ADDR]; /* address of the client */
	uint64_t value;		/* to be sent back */
};

static void serve(struct th_stack *s, int clients)
{
	struct hello h;
	fi_addr_t to;

	for (; clients; clients--) {
		th_trecv(s, &h, sizeof(h), TAG, 0, &h);
		th_eq(th_rx_ok(s).len, sizeof(h));
		to = th_insert(s, h.name);
		th_post(s, fi_tinject(s->ep, &h.value, 8, to, TAG));
	}
}

/* Opens, calls the server by its name, checks the answer. */
static void call_server(const char *node, uint64_t value)
{
	struct th_stack_opts o = client_opts(node);
	struct hello h = { .value = value };
	struct th_stack s;
	uint64_t back = 0;
	fi_addr_t to;

	th_stack_open(&s, &o);
	th_check(s.info->dest_addr && s.info->dest_addrlen == s.addrlen);
	to = th_insert(&s, s.info->dest_addr);
	memcpy(h.name, s.addr, sizeof(h.name));
	th_trecv(&s, &back, 8, TAG, 0, &back);
	th_tsend(&s, to, &h, sizeof(h), TAG, &h);
	th_tx_ok(&s);
	th_rx_ok(&s);
	th_eq(back, value);
	th_stack_close(&s);
}

static void meet(struct th_self *self, const char *server_node,
		 const char *client_node)
{
	struct th_stack_opts o = server_opts(server_node);
	struct th_stack s;

	if (self->rank == 0) {
		th_stack_open(&s, &o);
		th_barrier(self, "open");
		serve(&s, self->size - 1);
		th_stack_close(&s);
	} else {
		th_barrier(self, "open");
		call_server(client_node, (uint64_t)self->rank + 1000);
	}
}

static void by_localhost(struct th_self *self)
{
	meet(self, NULL, "localhost");
}

static void by_address(struct th_self *self)
{
	meet(self, "127.0.0.1", "127.0.0.1");
}

static void by_hostname(struct th_self *self)
{
	char host[256] = "";

	th_eq(gethostname(host, sizeof(host) - 1), 0);
	meet(self, NULL, host);
}

/* fi_av_insertsvc() is another way to name the server. */
static void by_insertsvc(struct th_self *self)
{
	struct th_stack_opts o = server_opts(NULL);
	struct th_stack s;
	fi_addr_t to = FI_ADDR_NOTAVAIL;
	struct hello h = { .value = 5 };
	uint64_t back;

	if (self->rank == 0) {
		th_stack_open(&s, &o);
		th_barrier(self, "open");
		serve(&s, 1);
		th_stack_close(&s);
		return;
	}
	th_barrier(self, "open");
	th_stack_open(&s, NULL);
	th_eq(fi_av_insertsvc(s.av, "localhost", service_name(), &to, 0, NULL),
	      1);
	th_check(fi_av_insertsvc(s.av, "192.0.2.1", service_name(), &to, 0,
				 NULL) < 1);
	th_eq(fi_av_insertsvc(s.av, "localhost", service_name(), &to, 0, NULL),
	      1);
	memcpy(h.name, s.addr, sizeof(h.name));
	th_trecv(&s, &back, 8, TAG, 0, &back);
	th_tsend(&s, to, &h, sizeof(h), TAG, &h);
	th_tx_ok(&s);
	th_rx_ok(&s);
	th_eq(back, 5);
	th_stack_close(&s);
}

/* The client is there first: its message waits for the server. */
static void client_first(struct th_self *self)
{
	struct th_stack_opts o = server_opts(NULL);
	struct th_stack s;

	if (self->rank == 0) {
		th_barrier(self, "start");
		th_sleep_us(1000000);
		th_stack_open(&s, &o);
		serve(&s, self->size - 1);
		th_stack_close(&s);
	} else {
		th_barrier(self, "start");
		call_server("localhost", 7);
	}
}

/*
 * Both sleep as soon as they may: the server until a message comes, the
 * client until its first send is done, which begins with finding the server.
 */
static void both_sleep(struct th_self *self)
{
	struct th_stack_opts o =
		self->rank ? client_opts("localhost") : server_opts(NULL);
	struct fi_cq_tagged_entry e;
	struct th_stack s;
	uint64_t value = 11;
	fi_addr_t to;

	setenv("FI_SHRIMP_SPIN", "1", 1);
	o.cq_wait = FI_WAIT_UNSPEC;
	if (self->rank)
		th_barrier(self, "open");
	th_stack_open(&s, &o);
	if (!self->rank) {
		th_trecv(&s, &value, 8, TAG, 0, &value);
		th_barrier(self, "open");
		th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, 10000), 1);
		th_eq(value, 12);
	} else {
		value = 12;
		to = th_insert(&s, s.info->dest_addr);
		th_tsend(&s, to, &value, 8, TAG, &value);
		th_eq(fi_cq_sread(s.txcq, &e, 1, NULL, 10000), 1);
	}
	th_ptr_eq(e.op_context, &value);
	th_stack_close(&s);
}

/*
 * The call that finds the server may be the last before a sleep: the message
 * that waited for it has to leave, since nobody will wake its sender.
 */
static void no_sleep_before_the_first(struct th_self *self)
{
	struct th_stack_opts o =
		self->rank ? client_opts("localhost") : server_opts(NULL);
	struct th_stack s;
	struct fid *fids[1];
	uint64_t value = 13;

	o.cq_wait = FI_WAIT_FD;
	if (self->rank)
		th_barrier(self, "open");
	th_stack_open(&s, &o);
	if (!self->rank) {
		th_trecv(&s, &value, 8, TAG, 0, &value);
		th_barrier(self, "open");
		th_rx_ok(&s);
		th_stack_close(&s);
		return;
	}
	fids[0] = &s.txcq->fid;
	th_tsend(&s, th_insert(&s, s.info->dest_addr), &value, 8, TAG, &value);
	while (!probe_stats(&s.fabric->fid).peers) {
		th_eq(fi_trywait(s.fabric, fids, 1), -FI_EAGAIN);
		fi_cq_read(s.txcq, NULL, 0);
	}
	/* time for the server to look at the lane and find it empty */
	th_sleep_us(100000);
	th_eq(fi_trywait(s.fabric, fids, 1), -FI_EAGAIN);
	th_tx_ok(&s);
	th_stack_close(&s);
}

/* Three messages to @to, which is @s itself: they wait for its name. */
static void call_own_name(struct th_stack *s, fi_addr_t to)
{
	uint64_t tx[2] = { 1, 3 }, mid = 2, rx[3] = { 0 };

	th_tsend(s, to, &tx[0], 8, TAG, &tx[0]);
	th_post(s, fi_tinject(s->ep, &mid, 8, to, TAG));
	mid = 0;
	th_tsend(s, to, &tx[1], 8, TAG, &tx[1]);
	for (int i = 0; i < 2; i++)
		th_ptr_eq(th_tx_ok(s).op_context, &tx[i]);
	for (uint64_t i = 0; i < 3; i++) {
		th_trecv(s, &rx[i], 8, TAG, 0, &rx[i]);
		th_ptr_eq(th_rx_ok(s).op_context, &rx[i]);
		th_eq(rx[i], i + 1);
	}
}

/*
 * An endpoint calls itself by its service's name: what waited for the name
 * arrives, in order, injects with the bytes that they had; before it has sent
 * to its own address and after that.
 */
static void calls_itself(struct th_self *self)
{
	struct th_stack_opts o = server_opts(NULL);
	uint64_t tx = 4, rx = 0;
	struct th_stack s;
	int known;

	(void)self;
	for (known = 0; known < 2; known++) {
		th_stack_open(&s, &o);
		if (known) {
			th_trecv(&s, &rx, 8, TAG + 1, 0, &rx);
			th_post(&s, fi_tinject(s.ep, &tx, 8,
					       th_insert(&s, s.addr), TAG + 1));
			th_rx_ok(&s);
		}
		call_own_name(&s, th_insert(&s, s.info->src_addr));
		th_stack_close(&s);
	}
}

/* Nobody serves: the send ends in an error after some seconds. */
static void nobody_serves(struct th_self *self)
{
	struct th_stack_opts o = client_opts("localhost");
	struct fi_cq_err_entry err;
	struct th_stack s;
	uint64_t start, tx = 1;
	fi_addr_t to;

	(void)self;
	th_stack_open(&s, &o);
	to = th_insert(&s, s.info->dest_addr);
	start = th_now_ns();
	th_tsend(&s, to, &tx, 8, TAG, &tx);
	err = th_tx_err(&s);
	th_ptr_eq(err.op_context, &tx);
	th_check(err.err > 0);
	th_check(th_now_ns() - start >= UINT64_C(2000000000));
	th_stack_close(&s);
}

/* ---- one server per service ---------------------------------------------------- */

static void server_refused(const char *node)
{
	struct th_stack_opts o = server_opts(node);
	struct th_stack s;
	int ret;

	o.no_enable = true;
	th_stack_open(&s, &o);
	ret = fi_enable(s.ep);
	th_eq(ret, -FI_EADDRINUSE);
	th_stack_close(&s);
}

/*
 * A second server is refused while the first lives, in another process and
 * in the same; then the name is free again, after a close and after an exit.
 */
static void two_servers(struct th_self *self)
{
	struct th_stack_opts o = server_opts(NULL);
	struct th_stack s;

	if (self->rank == 0) {
		th_stack_open(&s, &o);
		server_refused(NULL);
		server_refused("localhost");
		th_barrier(self, "open");
		th_barrier(self, "refused");
		th_stack_close(&s);
		th_barrier(self, "closed");
		th_barrier(self, "reopened");
		th_stack_open(&s, &o);
		th_stack_close(&s);
		return;
	}
	th_barrier(self, "open");
	server_refused(NULL);
	th_barrier(self, "refused");
	th_barrier(self, "closed");
	th_stack_open(&s, &o);
	th_stack_close(&s);
	th_barrier(self, "reopened");
}

/* Two services of one user do not meet. */
static void other_service(struct th_self *self)
{
	struct th_stack_opts o = server_opts(NULL);
	char other[64];
	struct th_stack a, b;

	(void)self;
	snprintf(other, sizeof(other), "%s0", service_name());
	th_stack_open(&a, &o);
	o.service = other;
	th_stack_open(&b, &o);
	th_check(memcmp(a.addr, b.addr, a.addrlen));
	th_stack_close(&b);
	th_stack_close(&a);
}

/* ---- fi_getinfo() alone ------------------------------------------------------------ */

static int ask(const char *node, const char *service, uint64_t flags,
	       struct fi_info **info)
{
	struct fi_info *h = th_hints(NULL);
	int ret;

	*info = NULL;
	ret = fi_getinfo(FI_VERSION(1, 17), node, service, flags, h, info);
	fi_freeinfo(h);
	return ret;
}

/* The source address is set on one side, the destination on the other. */
static void what_getinfo_gives(struct th_self *self)
{
	struct fi_info *info;

	(void)self;
	th_ok(ask(NULL, service_name(), FI_SOURCE, &info));
	th_check(info->src_addr && info->src_addrlen > 0);
	th_check(!info->dest_addr);
	fi_freeinfo(info);
	th_ok(ask("localhost", service_name(), 0, &info));
	th_check(info->dest_addr && info->dest_addrlen > 0);
	fi_freeinfo(info);
}

/* A node that is not this one is out of reach. */
static void foreign_node(struct th_self *self)
{
	struct fi_info *info;

	(void)self;
	th_eq(ask("192.0.2.1", service_name(), 0, &info), -FI_ENODATA);
	th_eq(ask("192.0.2.1", service_name(), FI_SOURCE, &info), -FI_ENODATA);
	th_check(!info);
}

/* A service name that fits in no address. */
static void long_service(struct th_self *self)
{
	struct fi_info *info;
	char name[2000];

	(void)self;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	th_check(ask("localhost", name, 0, &info) < 0);
	th_check(ask(NULL, name, FI_SOURCE, &info) < 0);
}

static const struct CMUnitTest service_tests[] = {
	TH_CASE(by_localhost, 2, 20),
	TH_CASE(by_address, 4, 20),
	TH_CASE(by_hostname, 3, 20),
	TH_CASE(by_insertsvc, 2, 20),
	TH_CASE(calls_itself, 1, 20),
	TH_CASE(client_first, 3, 20),
	TH_CASE(nobody_serves, 1, 30),
	TH_CASE(both_sleep, 2, 30),
	TH_CASE(no_sleep_before_the_first, 2, 30),
	TH_CASE(two_servers, 2, 20),
	TH_CASE(other_service, 1, 10),
	TH_CASE(what_getinfo_gives, 1, 10),
	TH_CASE(foreign_node, 1, 10),
	TH_CASE(long_service, 1, 10),
};

TH_MAIN(service_tests)
