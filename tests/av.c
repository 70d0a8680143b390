/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Address vectors, MAP and TABLE: insert, lookup, remove, insert again, and
 * everything that is refused.
 */
#define _GNU_SOURCE
#include "harness.h"

enum { TAG = 121, MANY = 100 };

static const enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE };

static struct fid_av *av_open(struct th_stack *s, enum fi_av_type type)
{
	struct fi_av_attr attr = { .type = type };
	struct fid_av *av;

	th_ok(fi_av_open(s->domain, &attr, &av, s));
	th_ptr_eq(av->fid.context, s);
	th_eq(av->fid.fclass, FI_CLASS_AV);
	return av;
}

/*
 * Many addresses that differ from a real one in their last bytes only, or
 * not at all in a prefix: what a vector must tell apart. They name nobody.
 */
static char *similar_names(const struct th_stack *s, size_t n)
{
	char *names = calloc(n, s->addrlen);
	uint32_t i;

	th_check(names);
	for (i = 0; i < n; i++) {
		memcpy(names + i * s->addrlen, s->addr, s->addrlen);
		memcpy(names + (i + 1) * s->addrlen - sizeof(i), &i, sizeof(i));
	}
	return names;
}

static void put(struct th_stack *s, fi_addr_t to, uint64_t v)
{
	th_post(s, fi_tinject(s->ep, &v, 8, to, TAG));
}

static void get(struct th_stack *s, uint64_t v)
{
	uint64_t rx = ~v;

	th_trecv(s, &rx, 8, TAG, 0, &rx);
	th_rx_ok(s);
	th_eq(rx, v);
}

/* ---- opening --------------------------------------------------------------- */

static void open_attributes(struct th_self *self)
{
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC };
	struct th_stack s;
	struct fid_av *av;

	(void)self;
	th_stack_open(&s, NULL);
	th_ok(fi_av_open(s.domain, &attr, &av, NULL));
	th_check(attr.type == FI_AV_MAP || attr.type == FI_AV_TABLE ||
		 !th_is_shrimp());
	th_ok(fi_close(&av->fid));
	attr = (struct fi_av_attr){ .type = FI_AV_TABLE, .count = 1000000 };
	th_ok(fi_av_open(s.domain, &attr, &av, NULL));
	th_ok(fi_close(&av->fid));
	attr = (struct fi_av_attr){ .type = 4711 };
	th_check(fi_av_open(s.domain, &attr, &av, NULL) < 0);
	th_stack_close(&s);
}

/* ---- insert and lookup --------------------------------------------------------- */

/* Inserted addresses come back from fi_av_lookup(), byte by byte. */
static void insert_lookup(struct th_self *self)
{
	char back[TH_MAX_ADDR], *names;
	fi_addr_t addr[MANY];
	struct th_stack s;
	struct fid_av *av;
	size_t len, i;
	int t;

	(void)self;
	th_stack_open(&s, NULL);
	names = similar_names(&s, MANY);
	for (t = 0; t < 2; t++) {
		av = av_open(&s, types[t]);
		th_eq(fi_av_insert(av, names, MANY, addr, 0, NULL), MANY);
		for (i = 0; i < MANY; i++) {
			if (types[t] == FI_AV_TABLE)
				th_eq(addr[i], i);
			len = sizeof(back);
			th_ok(fi_av_lookup(av, addr[i], back, &len));
			th_eq(len, s.addrlen);
			th_check(!memcmp(back, names + i * s.addrlen, len));
		}
		th_ok(fi_close(&av->fid));
	}
	free(names);
	th_stack_close(&s);
}

/* Too small a buffer: as much as fits, and the length that is needed. */
static void lookup_truncates(struct th_self *self)
{
	struct th_buf back = th_buf_new(5);
	struct th_stack s;
	fi_addr_t addr;
	size_t len = 5;

	(void)self;
	th_stack_open(&s, NULL);
	addr = th_insert(&s, s.addr);
	fi_av_lookup(s.av, addr, back.p, &len);
	th_eq(len, s.addrlen);
	th_check(!memcmp(back.p, s.addr, 5));
	th_buf_free(&back);
	th_stack_close(&s);
}

/* TABLE: indices go on over calls, fi_addr may be NULL. */
static void case_T28_table_null(struct th_self *self)
{
	char back[TH_MAX_ADDR], *names;
	struct th_stack s;
	struct fid_av *av;
	fi_addr_t addr = 99;
	size_t len = sizeof(back);

	(void)self;
	th_stack_open(&s, NULL);
	names = similar_names(&s, 12);
	av = av_open(&s, FI_AV_TABLE);
	th_eq(fi_av_insert(av, names, 5, NULL, 0, NULL), 5);
	th_eq(fi_av_insert(av, names + 5 * s.addrlen, 5, NULL, FI_MORE, NULL),
	      5);
	th_eq(fi_av_insert(av, names + 10 * s.addrlen, 1, &addr, 0, NULL), 1);
	th_eq(addr, 10);
	th_ok(fi_av_lookup(av, 7, back, &len));
	th_check(!memcmp(back, names + 7 * s.addrlen, len));
	th_eq(fi_av_insert(av, names, 0, NULL, 0, NULL), 0);
	th_ok(fi_close(&av->fid));
	free(names);
	th_stack_close(&s);
}

/* A printable form, with and without enough room. */
static void straddr(struct th_self *self)
{
	char text[512];
	struct th_stack s;
	size_t len = sizeof(text), need;
	const char *p;

	(void)self;
	th_stack_open(&s, NULL);
	p = fi_av_straddr(s.av, s.addr, text, &len);
	th_ptr_eq(p, text);
	need = len;
	th_check(need > 8 && need <= sizeof(text));
	th_check(strlen(text) + 1 == need || !th_is_shrimp());
	memset(text, 'x', sizeof(text));
	len = 6;
	fi_av_straddr(s.av, s.addr, text, &len);
	th_eq(len, need);
	th_check(memchr(text, 0, 6) && text[6] == 'x');
	th_stack_close(&s);
}

/* A range of nodes means nothing on one node. */
static void not_supported(struct th_self *self)
{
	struct th_stack s;
	fi_addr_t addr;

	(void)self;
	th_stack_open(&s, NULL);
	th_eq(fi_av_insertsym(s.av, "localhost", 1, "4711", 1, &addr, 0, NULL),
	      -FI_ENOSYS);
	th_stack_close(&s);
}

/* Garbage is not an address; FI_SYNC_ERR tells which one. */
static void bad_address(struct th_self *self)
{
	char names[3 * TH_MAX_ADDR];
	fi_addr_t addr[3] = { 7, 7, 7 };
	int errs[3] = { 99, 99, 99 };
	struct th_stack s;
	struct fid_av *av;

	(void)self;
	th_stack_open(&s, NULL);
	av = av_open(&s, FI_AV_MAP);
	memcpy(names, s.addr, s.addrlen);
	memset(names + s.addrlen, 0xd5, s.addrlen);
	memcpy(names + 2 * s.addrlen, s.addr, s.addrlen);
	names[3 * s.addrlen - 1] ^= 1;
	th_eq(fi_av_insert(av, names, 3, addr, FI_SYNC_ERR, errs), 2);
	th_check(addr[0] != FI_ADDR_NOTAVAIL);
	th_eq(addr[1], FI_ADDR_NOTAVAIL);
	th_check(addr[2] != FI_ADDR_NOTAVAIL && addr[2] != addr[0]);
	th_check(errs[0] == 0 && errs[1] != 0 && errs[2] == 0);
	th_ok(fi_close(&av->fid));
	th_stack_close(&s);
}

/* ---- remove ------------------------------------------------------------------------ */

/* What is not there cannot be removed; nothing else is harmed. */
static void case_T28_remove_bad(struct th_self *self)
{
	static const fi_addr_t bad[] = {
		1, 4711, 1u << 30, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2
	};
	struct th_stack s;
	struct fid_av *av;
	fi_addr_t addr;
	size_t i, len;
	char back[TH_MAX_ADDR];
	int t;

	(void)self;
	th_stack_open(&s, NULL);
	for (t = 0; t < 2; t++) {
		av = av_open(&s, types[t]);
		addr = 0;
		th_eq(fi_av_remove(av, &addr, 1, 0), -FI_EINVAL);
		th_eq(fi_av_insert(av, s.addr, 1, &addr, 0, NULL), 1);
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			if (bad[i] == addr)
				continue;
			th_eq(fi_av_remove(av, (fi_addr_t *)&bad[i], 1, 0),
			      -FI_EINVAL);
			len = sizeof(back);
			th_eq(fi_av_lookup(av, bad[i], back, &len), -FI_EINVAL);
		}
		th_ok(fi_av_remove(av, &addr, 1, 0));
		th_eq(fi_av_remove(av, &addr, 1, 0), -FI_EINVAL);
		len = sizeof(back);
		th_eq(fi_av_lookup(av, addr, back, &len), -FI_EINVAL);
		th_ok(fi_close(&av->fid));
	}
	th_stack_close(&s);
}

/* Sending to a removed address is refused at the call. */
static void send_to_removed(struct th_self *self)
{
	struct th_stack a, b;
	uint64_t v = 1;

	(void)self;
	th_pair_open(&a, &b, NULL);
	put(&a, a.peers[1], 1);
	get(&b, 1);
	th_ok(fi_av_remove(a.av, &a.peers[1], 1, 0));
	th_eq(fi_tinject(a.ep, &v, 8, a.peers[1], TAG), -FI_EINVAL);
	th_eq(fi_tsend(a.ep, &v, 8, NULL, a.peers[1], TAG, &v), -FI_EINVAL);
	th_quiet(&b, 5);
	th_pair_close(&a, &b);
}

/* Insert, send, remove, insert again, many times, of both types. */
static void reinsert_rounds(enum fi_av_type type)
{
	struct th_stack_opts o = { .av_type = type };
	unsigned long i, n = th_rounds(10000);
	struct th_stack a, b;

	th_pair_open(&a, &b, &o);
	for (i = 0; i < n; i++) {
		put(&a, a.peers[1], i);
		get(&b, i);
		th_ok(fi_av_remove(a.av, &a.peers[1], 1, 0));
		a.peers[1] = th_insert(&a, b.addr);
		if (i % 16)
			continue;
		th_ok(fi_av_remove(b.av, &b.peers[0], 1, 0));
		b.peers[0] = th_insert(&b, a.addr);
		put(&b, b.peers[0], i);
		get(&a, i);
	}
	th_pair_close(&a, &b);
}

static void case_T28_reinsert(struct th_self *self)
{
	(void)self;
	reinsert_rounds(FI_AV_MAP);
	reinsert_rounds(FI_AV_TABLE);
}

/*
 * Names of which one is nearly another: removing one leaves the others, and
 * traffic with the real one goes on.
 */
static void case_T28_similar_names(struct th_self *self)
{
	char back[TH_MAX_ADDR], *names;
	fi_addr_t addr[MANY];
	struct th_stack a, b;
	size_t len, i;
	int t;

	(void)self;
	for (t = 0; t < 2; t++) {
		struct th_stack_opts o = { .av_type = types[t] };

		th_pair_open(&a, &b, &o);
		names = similar_names(&b, MANY);
		th_eq(fi_av_insert(a.av, names, MANY, addr, 0, NULL), MANY);
		for (i = 0; i < MANY; i += 3)
			th_ok(fi_av_remove(a.av, &addr[i], 1, 0));
		for (i = 0; i < MANY; i++) {
			len = sizeof(back);
			if (i % 3 == 0) {
				th_eq(fi_av_lookup(a.av, addr[i], back, &len),
				      -FI_EINVAL);
				continue;
			}
			th_ok(fi_av_lookup(a.av, addr[i], back, &len));
			th_check(!memcmp(back, names + i * b.addrlen, len));
		}
		put(&a, a.peers[1], 5);
		get(&b, 5);
		put(&b, b.peers[0], 6);
		get(&a, 6);
		free(names);
		th_pair_close(&a, &b);
	}
}

/*
 * While a message to it is under way, an address may be removed and inserted
 * again; the message still arrives.
 */
static void remove_under_way(struct th_self *self)
{
	enum { LEN = 1 << 20 };
	unsigned char *tx = malloc(LEN), *rx = malloc(LEN);
	struct th_stack a, b;

	(void)self;
	th_check(tx && rx);
	th_pair_open(&a, &b, NULL);
	th_fill(tx, LEN, 1);
	th_tsend(&a, a.peers[1], tx, LEN, TAG + 1, tx);
	put(&a, a.peers[1], 3);
	th_ok(fi_av_remove(a.av, &a.peers[1], 1, 0));
	get(&b, 3);
	a.peers[1] = th_insert(&a, b.addr);
	th_trecv(&b, rx, LEN, TAG + 1, 0, rx);
	th_eq(th_rx_ok(&b).len, LEN);
	th_verify(rx, LEN, 1);
	th_tx_ok(&a);
	free(tx);
	free(rx);
	th_pair_close(&a, &b);
}

/* ---- sharing -------------------------------------------------------------------------- */

/* Two endpoints on one AV; it can be closed when both are. */
static void shared_by_two(struct th_self *self)
{
	struct fid_ep *ep;
	struct th_stack a, b;
	uint64_t v = 9;

	(void)self;
	th_pair_open(&a, &b, NULL);
	th_ok(fi_endpoint(a.domain, a.info, &ep, NULL));
	th_ok(fi_ep_bind(ep, &a.av->fid, 0));
	th_ok(fi_ep_bind(ep, &a.txcq->fid, FI_TRANSMIT | FI_RECV));
	th_ok(fi_enable(ep));
	th_post(&a, fi_tinject(ep, &v, 8, a.peers[1], TAG));
	get(&b, 9);
	put(&a, a.peers[1], 8);
	get(&b, 8);
	th_ok(fi_close(&a.ep->fid));
	a.ep = NULL;
	th_eq(fi_close(&a.av->fid), -FI_EBUSY);
	th_ok(fi_close(&ep->fid));
	th_pair_close(&a, &b);
}

static const struct CMUnitTest av_tests[] = {
	TH_CASE(open_attributes, 1, 10),
	TH_CASE(insert_lookup, 1, 10),
	TH_CASE(lookup_truncates, 1, 10),
	TH_CASE(case_T28_table_null, 1, 10),
	TH_CASE(straddr, 1, 10),
	TH_CASE(not_supported, 1, 10),
	TH_CASE(bad_address, 1, 10),
	TH_CASE(case_T28_remove_bad, 1, 10),
	TH_CASE(send_to_removed, 1, 10),
	TH_CASE(case_T28_reinsert, 1, 20),
	TH_CASE(case_T28_similar_names, 1, 10),
	TH_CASE(remove_under_way, 1, 10),
	TH_CASE(shared_by_two, 1, 10),
};

TH_MAIN(av_tests)
