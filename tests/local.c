/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Local protection where FI_MR_LOCAL is in force: each call is given each kind
 * of bad descriptor, refuses it, and posts nothing.
 */
#define _GNU_SOURCE
#include "harness.h"
#include "rma_kit.h"

#include <rdma/fi_atomic.h>
#include <sys/mman.h>

enum {
	LEN = 64,	    /* bytes of the buffer under test */
	FIRST = 8,	    /* of the one before it in a list */
	SIZE = 4 * RK_PAGE, /* of what is registered as a whole */
	AT = RK_PAGE,	    /* where the buffer begins */
	KEY = 50,	    /* first of several */
	TAG = 7,
	DATA = 99,
};

#define OUT  (FI_SEND | FI_WRITE)
#define IN   (FI_RECV | FI_READ)
#define BOTH (OUT | IN)

/* Whom a bad descriptor belongs to. */
enum bad {
	BAD_NONE,      /* NULL */
	BAD_ARRAY,     /* no array of them, where the call has one */
	BAD_MADE_UP,   /* a pointer to something */
	BAD_NEXT,      /* one more than a good one, and so on: nobody's */
	BAD_CLOSED,    /* a region that was closed */
	BAD_FOREIGN,   /* a region of another domain, same range */
	BAD_ELSEWHERE, /* a region that has none of it */
	BAD_SHORT,     /* one that lacks the last byte */
	BAD_LATE,      /* one that lacks the first byte */
	BAD_RIGHTS,    /* one with all other local rights */
	BADS,
};

static const int code[BADS] = {
	[BAD_NONE] = -FI_EINVAL,	  [BAD_ARRAY] = -FI_EINVAL,
	[BAD_MADE_UP] = -FI_EKEYREJECTED, [BAD_NEXT] = -FI_EKEYREJECTED,
	[BAD_CLOSED] = -FI_EKEYREJECTED,  [BAD_FOREIGN] = -FI_EKEYREJECTED,
	[BAD_ELSEWHERE] = -FI_EINVAL,	  [BAD_SHORT] = -FI_EINVAL,
	[BAD_LATE] = -FI_EINVAL,	  [BAD_RIGHTS] = -FI_EACCES,
};

/* Two endpoints of two domains. */
struct bed {
	struct th_stack a, b;	/* who calls, who answers */
	unsigned char *p;	/* SIZE bytes of a's */
	unsigned char *q;	/* SIZE bytes of b's */
	struct fid_mr *all;	/* p, both rights */
	struct fid_mr *peer;	/* q, whatever there is; key KEY */
	struct fid_mr *out;	/* p, OUT only */
	struct fid_mr *in;	/* p, IN only */
	struct fid_mr *foreign; /* p, in the other domain */
	struct fid_mr *before;	/* p up to AT */
	struct fid_mr *cut;	/* all but the last byte of the buffer */
	struct fid_mr *late;	/* all but its first */
	void *closed;		/* descriptor of what was closed */
	void *array;		/* not NULL: no arrays of descriptors */
};

static struct fid_mr *reg(struct bed *b, size_t off, size_t len,
			  uint64_t access)
{
	static uint64_t key = KEY;

	return rk_reg(&b->a, b->p + off, len, access, ++key);
}

static void bed_open(struct bed *b, uint64_t op_flags)
{
	struct th_stack_opts o = rk_atomic_opts();
	struct fid_mr *mr;

	*b = (struct bed){ .p = rk_pages(SIZE), .q = rk_pages(SIZE) };
	setenv("FI_SHRIMP_MR_MODE", "local", 1);
	o.mr_mode |= FI_MR_LOCAL;
	o.tx_op_flags = op_flags;
	th_pair_open(&b->a, &b->b, &o);
	th_eq(b->a.info->domain_attr->mr_mode, FI_MR_LOCAL | FI_MR_ALLOCATED);
	b->all = reg(b, 0, SIZE, BOTH);
	b->out = reg(b, 0, SIZE, OUT | RK_RW);
	b->in = reg(b, 0, SIZE, IN | RK_RW);
	b->before = reg(b, 0, AT, BOTH);
	b->cut = reg(b, 0, AT + LEN - 1, BOTH);
	b->late = reg(b, AT + 1, LEN, BOTH);
	mr = reg(b, 0, SIZE, BOTH);
	b->closed = fi_mr_desc(mr);
	th_ok(fi_close(&mr->fid));
	b->foreign = rk_reg(&b->b, b->p, SIZE, BOTH, KEY + 1);
	b->peer = rk_reg(&b->b, b->q, SIZE, RK_ALL, KEY);
}

static void bed_close(struct bed *b)
{
	struct fid_mr *mr[] = { b->all,	   b->out, b->in,   b->foreign,
				b->before, b->cut, b->late, b->peer };

	for (size_t i = 0; i < sizeof(mr) / sizeof(*mr); i++)
		th_ok(fi_close(&mr[i]->fid));
	th_pair_close(&b->a, &b->b);
	th_eq(munmap(b->p, SIZE), 0);
	th_eq(munmap(b->q, SIZE), 0);
}

/* ---- the calls ------------------------------------------------------------------- */

/* The buffer under test; the others of a call are good. */
struct use {
	unsigned char *p; /* at AT */
	size_t len;	  /* LEN or 0 */
	void *desc;	  /* as given */
	bool no_array;	  /* the list's are NULL */
};

/* A list of two: a good buffer, and that of @u. */
struct list {
	struct iovec iov[2];
	struct fi_ioc ioc[2]; /* of bytes */
	void *d[2];
	void **desc; /* d, or NULL */
	size_t len;  /* bytes */
};

static struct list *list_of(struct bed *b, const struct use *u)
{
	static struct list l;

	l = (struct list){ .iov = { { b->p, FIRST }, { u->p, u->len } },
			   .ioc = { { b->p, FIRST }, { u->p, u->len } },
			   .d = { fi_mr_desc(b->all), u->desc },
			   .desc = u->no_array ? NULL : l.d,
			   .len = FIRST + u->len };
	return &l;
}

static fi_addr_t peer(struct bed *b)
{
	return b->a.peers[1];
}

static ssize_t do_send(struct bed *b, const struct use *u)
{
	return fi_send(b->a.ep, u->p, u->len, u->desc, peer(b), b);
}

static ssize_t do_sendv(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return fi_sendv(b->a.ep, l->iov, l->desc, 2, peer(b), b);
}

static struct fi_msg msg_of(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return (struct fi_msg){ .msg_iov = l->iov,
				.desc = l->desc,
				.iov_count = 2,
				.addr = peer(b),
				.context = b };
}

static ssize_t do_sendmsg(struct bed *b, const struct use *u)
{
	struct fi_msg m = msg_of(b, u);

	return fi_sendmsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t do_senddata(struct bed *b, const struct use *u)
{
	return fi_senddata(b->a.ep, u->p, u->len, u->desc, DATA, peer(b), b);
}

static ssize_t do_recv(struct bed *b, const struct use *u)
{
	return fi_recv(b->a.ep, u->p, u->len, u->desc, peer(b), b);
}

static ssize_t do_recvv(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return fi_recvv(b->a.ep, l->iov, l->desc, 2, peer(b), b);
}

static ssize_t do_recvmsg(struct bed *b, const struct use *u)
{
	struct fi_msg m = msg_of(b, u);

	return fi_recvmsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t do_tsend(struct bed *b, const struct use *u)
{
	return fi_tsend(b->a.ep, u->p, u->len, u->desc, peer(b), TAG, b);
}

static ssize_t do_tsendv(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return fi_tsendv(b->a.ep, l->iov, l->desc, 2, peer(b), TAG, b);
}

static struct fi_msg_tagged tagged_of(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return (struct fi_msg_tagged){ .msg_iov = l->iov,
				       .desc = l->desc,
				       .iov_count = 2,
				       .addr = peer(b),
				       .tag = TAG,
				       .context = b };
}

static ssize_t do_tsendmsg(struct bed *b, const struct use *u)
{
	struct fi_msg_tagged m = tagged_of(b, u);

	return fi_tsendmsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t do_tsenddata(struct bed *b, const struct use *u)
{
	return fi_tsenddata(b->a.ep, u->p, u->len, u->desc, DATA, peer(b), TAG,
			    b);
}

static ssize_t do_trecv(struct bed *b, const struct use *u)
{
	return fi_trecv(b->a.ep, u->p, u->len, u->desc, peer(b), TAG, 0, b);
}

static ssize_t do_trecvv(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return fi_trecvv(b->a.ep, l->iov, l->desc, 2, peer(b), TAG, 0, b);
}

static ssize_t do_trecvmsg(struct bed *b, const struct use *u)
{
	struct fi_msg_tagged m = tagged_of(b, u);

	return fi_trecvmsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t do_read(struct bed *b, const struct use *u)
{
	return fi_read(b->a.ep, u->p, u->len, u->desc, peer(b), 0, KEY, b);
}

static ssize_t do_readv(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return fi_readv(b->a.ep, l->iov, l->desc, 2, peer(b), 0, KEY, b);
}

static struct fi_msg_rma rma_of(struct bed *b, const struct use *u)
{
	static struct fi_rma_iov there;
	struct list *l = list_of(b, u);

	there = (struct fi_rma_iov){ .len = l->len, .key = KEY };
	return (struct fi_msg_rma){ .msg_iov = l->iov,
				    .desc = l->desc,
				    .iov_count = 2,
				    .addr = peer(b),
				    .rma_iov = &there,
				    .rma_iov_count = 1,
				    .context = b };
}

static ssize_t do_readmsg(struct bed *b, const struct use *u)
{
	struct fi_msg_rma m = rma_of(b, u);

	return fi_readmsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t do_write(struct bed *b, const struct use *u)
{
	return fi_write(b->a.ep, u->p, u->len, u->desc, peer(b), 0, KEY, b);
}

static ssize_t do_writev(struct bed *b, const struct use *u)
{
	struct list *l = list_of(b, u);

	return fi_writev(b->a.ep, l->iov, l->desc, 2, peer(b), 0, KEY, b);
}

static ssize_t do_writemsg(struct bed *b, const struct use *u)
{
	struct fi_msg_rma m = rma_of(b, u);

	return fi_writemsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t do_writedata(struct bed *b, const struct use *u)
{
	return fi_writedata(b->a.ep, u->p, u->len, u->desc, DATA, peer(b), 0,
			    KEY, b);
}

/* ---- atomics: bytes; the buffer is one of up to three lists ---------------------- */

/* The others of a call: good, as long as that of @u. */
static struct use good(struct bed *b, const struct use *u, size_t page)
{
	return (struct use){ .p = b->p + page * RK_PAGE,
			     .len = u->len,
			     .desc = fi_mr_desc(b->all) };
}

static struct list list_copy(struct bed *b, const struct use *u)
{
	struct list l = *list_of(b, u);

	return l;
}

/* The list's descriptors: of the list, which may have been moved. */
static void **desc_of(struct list *l)
{
	return l->desc ? l->d : NULL;
}

static struct fi_msg_atomic atomic_of(struct bed *b, struct list *l,
				      enum fi_op op)
{
	static struct fi_rma_ioc there;

	there = (struct fi_rma_ioc){ .count = l->len, .key = KEY };
	return (struct fi_msg_atomic){ .msg_iov = l->ioc,
				       .desc = desc_of(l),
				       .iov_count = 2,
				       .addr = peer(b),
				       .rma_iov = &there,
				       .rma_iov_count = 1,
				       .datatype = FI_UINT8,
				       .op = op,
				       .context = b };
}

static ssize_t do_atomic(struct bed *b, const struct use *u)
{
	return fi_atomic(b->a.ep, u->p, u->len, u->desc, peer(b), 0, KEY,
			 FI_UINT8, FI_SUM, b);
}

static ssize_t do_atomicv(struct bed *b, const struct use *u)
{
	struct list l = list_copy(b, u);

	return fi_atomicv(b->a.ep, l.ioc, desc_of(&l), 2, peer(b), 0, KEY,
			  FI_UINT8, FI_SUM, b);
}

static ssize_t do_atomicmsg(struct bed *b, const struct use *u)
{
	struct list l = list_copy(b, u);
	struct fi_msg_atomic m = atomic_of(b, &l, FI_SUM);

	return fi_atomicmsg(b->a.ep, &m, FI_COMPLETION);
}

static ssize_t fetch(struct bed *b, const struct use *x, const struct use *r)
{
	return fi_fetch_atomic(b->a.ep, x->p, x->len, x->desc, r->p, r->desc,
			       peer(b), 0, KEY, FI_UINT8, FI_SUM, b);
}

static ssize_t fetchv(struct bed *b, const struct use *x, const struct use *r)
{
	struct list lx = list_copy(b, x), lr = list_copy(b, r);

	return fi_fetch_atomicv(b->a.ep, lx.ioc, desc_of(&lx), 2, lr.ioc,
				desc_of(&lr), 2, peer(b), 0, KEY, FI_UINT8,
				FI_SUM, b);
}

static ssize_t fetchmsg(struct bed *b, const struct use *x, const struct use *r)
{
	struct list lx = list_copy(b, x), lr = list_copy(b, r);
	struct fi_msg_atomic m = atomic_of(b, &lx, FI_SUM);

	return fi_fetch_atomicmsg(b->a.ep, &m, lr.ioc, desc_of(&lr), 2,
				  FI_COMPLETION);
}

/* Each of them with the buffer as operand, and as result. */
#define FETCH(fn)                                                              \
	static ssize_t fn##_operand(struct bed *b, const struct use *u)        \
	{                                                                      \
		struct use r = good(b, u, 2);                                  \
                                                                               \
		return fn(b, u, &r);                                           \
	}                                                                      \
	static ssize_t fn##_result(struct bed *b, const struct use *u)         \
	{                                                                      \
		struct use x = good(b, u, 2);                                  \
                                                                               \
		return fn(b, &x, u);                                           \
	}

FETCH(fetch)
FETCH(fetchv)
FETCH(fetchmsg)

/* FI_ATOMIC_READ looks at no operand: its descriptor may be anything. */
static ssize_t atomic_read(struct bed *b, const struct use *u)
{
	return fi_fetch_atomic(b->a.ep, b, u->len, b, u->p, u->desc, peer(b), 0,
			       KEY, FI_UINT8, FI_ATOMIC_READ, b);
}

static ssize_t comp(struct bed *b, const struct use *x, const struct use *c,
		    const struct use *r)
{
	return fi_compare_atomic(b->a.ep, x->p, x->len, x->desc, c->p, c->desc,
				 r->p, r->desc, peer(b), 0, KEY, FI_UINT8,
				 FI_CSWAP, b);
}

static ssize_t compv(struct bed *b, const struct use *x, const struct use *c,
		     const struct use *r)
{
	struct list lx = list_copy(b, x), lc = list_copy(b, c),
		    lr = list_copy(b, r);

	return fi_compare_atomicv(b->a.ep, lx.ioc, desc_of(&lx), 2, lc.ioc,
				  desc_of(&lc), 2, lr.ioc, desc_of(&lr), 2,
				  peer(b), 0, KEY, FI_UINT8, FI_CSWAP, b);
}

static ssize_t compmsg(struct bed *b, const struct use *x, const struct use *c,
		       const struct use *r)
{
	struct list lx = list_copy(b, x), lc = list_copy(b, c),
		    lr = list_copy(b, r);
	struct fi_msg_atomic m = atomic_of(b, &lx, FI_CSWAP);

	return fi_compare_atomicmsg(b->a.ep, &m, lc.ioc, desc_of(&lc), 2,
				    lr.ioc, desc_of(&lr), 2, FI_COMPLETION);
}

/* Each of them with the buffer in each of the three places. */
#define COMPARE(fn)                                                            \
	static ssize_t fn##_operand(struct bed *b, const struct use *u)        \
	{                                                                      \
		struct use c = good(b, u, 2), r = good(b, u, 3);               \
                                                                               \
		return fn(b, u, &c, &r);                                       \
	}                                                                      \
	static ssize_t fn##_compare(struct bed *b, const struct use *u)        \
	{                                                                      \
		struct use x = good(b, u, 2), r = good(b, u, 3);               \
                                                                               \
		return fn(b, &x, u, &r);                                       \
	}                                                                      \
	static ssize_t fn##_result(struct bed *b, const struct use *u)         \
	{                                                                      \
		struct use x = good(b, u, 2), c = good(b, u, 3);               \
                                                                               \
		return fn(b, &x, &c, u);                                       \
	}

COMPARE(comp)
COMPARE(compv)
COMPARE(compmsg)

/* ---- each of them with all descriptors ------------------------------------------- */

/* How a good call ends. */
enum end {
	END_SEND,  /* the peer has received */
	END_TSEND, /* the peer has received TAG */
	END_RECV,  /* once the peer has sent */
	END_TRECV, /* once the peer has sent TAG */
	END_DATA,  /* here, and with remote CQ data */
	END_HERE,  /* here */
};

struct call {
	const char *name;
	ssize_t (*fn)(struct bed *b, const struct use *u);
	enum end end;
	bool in;    /* the buffer is written to */
	bool list;  /* it has arrays */
	bool never; /* no call of no bytes */
};

static void *bad_desc(const struct bed *b, const struct call *c, enum bad bad)
{
	uintptr_t d = (uintptr_t)fi_mr_desc(b->all);

	switch (bad) {
	case BAD_MADE_UP:
		return b->p;
	case BAD_NEXT:
		return (void *)(d + (UINT64_C(1) << 40));
	case BAD_CLOSED:
		return b->closed;
	case BAD_FOREIGN:
		return fi_mr_desc(b->foreign);
	case BAD_ELSEWHERE:
		return fi_mr_desc(b->before);
	case BAD_SHORT:
		return fi_mr_desc(b->cut);
	case BAD_LATE:
		return fi_mr_desc(b->late);
	case BAD_RIGHTS:
		return fi_mr_desc(c->in ? b->out : b->in);
	default:
		return NULL;
	}
}

/* A good call, which comes to its end. */
static void works(struct bed *b, const struct call *c, const struct use *u)
{
	void *d = fi_mr_desc(b->peer);
	size_t len = c->list ? FIRST + u->len : u->len;

	if (c->end == END_SEND)
		th_ok(fi_recv(b->b.ep, b->q, SIZE, d, b->b.peers[0], b));
	if (c->end == END_TSEND)
		th_ok(fi_trecv(b->b.ep, b->q, SIZE, d, b->b.peers[0], TAG, 0,
			       b));
	th_ok(c->fn(b, u));
	if (c->end == END_RECV)
		th_ok(fi_inject(b->b.ep, b->q, len, b->b.peers[0]));
	if (c->end == END_TRECV)
		th_ok(fi_tinject(b->b.ep, b->q, len, b->b.peers[0], TAG));
	if (c->end == END_RECV || c->end == END_TRECV)
		th_eq(th_rx_ok(&b->a).len, len);
	else
		th_tx_ok(&b->a);
	if (c->end == END_SEND || c->end == END_TSEND)
		th_eq(th_rx_ok(&b->b).len, len);
	if (c->end == END_DATA)
		th_eq(th_rx_ok(&b->b).data, DATA);
}

static void refuses(struct bed *b, const struct call *c)
{
	struct use u = { .p = b->p + AT, .len = LEN };

	for (int bad = 0; bad < BADS; bad++) {
		ssize_t ret;

		if (bad == BAD_ARRAY && !c->list)
			continue;
		u.desc = bad_desc(b, c, (enum bad)bad);
		u.no_array = bad == BAD_ARRAY;
		ret = c->fn(b, &u);
		if (ret != code[bad])
			th_fail(__FILE__, __LINE__, "%s, kind %d: %zd, not %d",
				c->name, bad, ret, code[bad]);
	}
}

static void try_all(const struct call *c, size_t n)
{
	struct bed b;

	bed_open(&b, 0);
	for (size_t i = 0; i < n; i++) {
		struct use u = { .p = b.p + AT, .len = LEN };

		refuses(&b, &c[i]);
		u.desc = fi_mr_desc(b.all);
		works(&b, &c[i], &u);
		/* the rights that it needs, and no more */
		u.desc = fi_mr_desc(c[i].in ? b.in : b.out);
		works(&b, &c[i], &u);
		if (c[i].never)
			continue;
		u.len = 0;
		works(&b, &c[i], &u);
		u.desc = NULL;
		works(&b, &c[i], &u);
		u.desc = b.closed;
		works(&b, &c[i], &u);
	}
	th_quiet(&b.a, 10);
	th_quiet(&b.b, 10);
	bed_close(&b);
}

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void contract_R6_local_msg(struct th_self *self)
{
	static const struct call calls[] = {
		{ "send", do_send, END_SEND, false, false, false },
		{ "sendv", do_sendv, END_SEND, false, true, false },
		{ "sendmsg", do_sendmsg, END_SEND, false, true, false },
		{ "senddata", do_senddata, END_SEND, false, false, false },
		{ "recv", do_recv, END_RECV, true, false, false },
		{ "recvv", do_recvv, END_RECV, true, true, false },
		{ "recvmsg", do_recvmsg, END_RECV, true, true, false },
	};

	(void)self;
	try_all(calls, COUNT(calls));
}

static void contract_R6_local_tagged(struct th_self *self)
{
	static const struct call calls[] = {
		{ "tsend", do_tsend, END_TSEND, false, false, false },
		{ "tsendv", do_tsendv, END_TSEND, false, true, false },
		{ "tsendmsg", do_tsendmsg, END_TSEND, false, true, false },
		{ "tsenddata", do_tsenddata, END_TSEND, false, false, false },
		{ "trecv", do_trecv, END_TRECV, true, false, false },
		{ "trecvv", do_trecvv, END_TRECV, true, true, false },
		{ "trecvmsg", do_trecvmsg, END_TRECV, true, true, false },
	};

	(void)self;
	try_all(calls, COUNT(calls));
}

static void contract_R6_local_rma(struct th_self *self)
{
	static const struct call calls[] = {
		{ "read", do_read, END_HERE, true, false, false },
		{ "readv", do_readv, END_HERE, true, true, false },
		{ "readmsg", do_readmsg, END_HERE, true, true, false },
		{ "write", do_write, END_HERE, false, false, false },
		{ "writev", do_writev, END_HERE, false, true, false },
		{ "writemsg", do_writemsg, END_HERE, false, true, false },
		{ "writedata", do_writedata, END_DATA, false, false, false },
	};

	(void)self;
	try_all(calls, COUNT(calls));
}

static void contract_R6_local_atomic(struct th_self *self)
{
	static const struct call calls[] = {
		{ "atomic", do_atomic, END_HERE, false, false, true },
		{ "atomicv", do_atomicv, END_HERE, false, true, false },
		{ "atomicmsg", do_atomicmsg, END_HERE, false, true, false },
	};

	(void)self;
	try_all(calls, COUNT(calls));
}

static void contract_R6_local_fetch(struct th_self *self)
{
	static const struct call calls[] = {
		{ "fetch, operand", fetch_operand, END_HERE, false, false,
		  true },
		{ "fetch, result", fetch_result, END_HERE, true, false, true },
		{ "fetchv, operand", fetchv_operand, END_HERE, false, true,
		  false },
		{ "fetchv, result", fetchv_result, END_HERE, true, true,
		  false },
		{ "fetchmsg, operand", fetchmsg_operand, END_HERE, false, true,
		  false },
		{ "fetchmsg, result", fetchmsg_result, END_HERE, true, true,
		  false },
		{ "read", atomic_read, END_HERE, true, false, true },
	};

	(void)self;
	try_all(calls, COUNT(calls));
}

static void contract_R6_local_compare(struct th_self *self)
{
	static const struct call calls[] = {
		{ "comp, operand", comp_operand, END_HERE, false, false, true },
		{ "comp, compare", comp_compare, END_HERE, false, false, true },
		{ "comp, result", comp_result, END_HERE, true, false, true },
		{ "compv, operand", compv_operand, END_HERE, false, true,
		  false },
		{ "compv, compare", compv_compare, END_HERE, false, true,
		  false },
		{ "compv, result", compv_result, END_HERE, true, true, false },
		{ "compmsg, operand", compmsg_operand, END_HERE, false, true,
		  false },
		{ "compmsg, compare", compmsg_compare, END_HERE, false, true,
		  false },
		{ "compmsg, result", compmsg_result, END_HERE, true, true,
		  false },
	};

	(void)self;
	try_all(calls, COUNT(calls));
}

/* ---- what needs none, what is left to the call ----------------------------------- */

/* Injected by the call, by a flag, or by the endpoint's default. */
static void inject(struct bed *b, bool by_default)
{
	const struct use u = { .p = b->p + AT, .len = LEN, .no_array = true };
	struct fi_msg m = msg_of(b, &u);
	struct fi_msg_tagged t = tagged_of(b, &u);
	struct fi_msg_rma r = rma_of(b, &u);
	struct list l = list_copy(b, &u), res = list_copy(b, &u);
	struct fi_msg_atomic x = atomic_of(b, &l, FI_SUM);

	if (by_default) {
		th_ok(do_send(b, &u));
		th_ok(do_sendv(b, &u));
		th_ok(do_tsend(b, &u));
		th_ok(do_writev(b, &u));
		th_ok(do_atomic(b, &u));
		th_eq(do_recv(b, &u), -FI_EINVAL);
		th_eq(do_read(b, &u), -FI_EINVAL);
		th_eq(do_sendmsg(b, &u), -FI_EINVAL);
		return;
	}
	th_ok(fi_sendmsg(b->a.ep, &m, FI_INJECT));
	th_ok(fi_inject(b->a.ep, u.p, LEN, peer(b)));
	th_ok(fi_injectdata(b->a.ep, u.p, LEN, DATA, peer(b)));
	th_ok(fi_tsendmsg(b->a.ep, &t, FI_INJECT));
	th_ok(fi_tinject(b->a.ep, u.p, LEN, peer(b), TAG));
	th_ok(fi_tinjectdata(b->a.ep, u.p, LEN, DATA, peer(b), TAG));
	th_ok(fi_writemsg(b->a.ep, &r, FI_INJECT));
	th_ok(fi_inject_write(b->a.ep, u.p, LEN, peer(b), 0, KEY));
	th_ok(fi_atomicmsg(b->a.ep, &x, FI_INJECT));
	th_ok(fi_inject_atomic(b->a.ep, u.p, LEN, peer(b), 0, KEY, FI_UINT8,
			       FI_SUM));
	/* what comes back is not injected */
	th_eq(fi_fetch_atomicmsg(b->a.ep, &x, res.ioc, NULL, 2, FI_INJECT),
	      -FI_EINVAL);
	res.d[1] = res.d[0];
	th_ok(fi_fetch_atomicmsg(b->a.ep, &x, res.ioc, res.d, 2, FI_INJECT));
}

static void contract_R6_local_inject(struct th_self *self)
{
	struct bed b;

	(void)self;
	bed_open(&b, 0);
	inject(&b, false);
	for (int i = 0; i < 5; i++)
		th_tx_ok(&b.a);
	th_quiet(&b.a, 10);
	bed_close(&b);
	bed_open(&b, FI_INJECT);
	inject(&b, true);
	for (int i = 0; i < 5; i++)
		th_tx_ok(&b.a);
	th_quiet(&b.a, 10);
	bed_close(&b);
}

/* Peeks, claims and discards have a buffer or not. */
static void contract_R6_local_peek(struct th_self *self)
{
	struct fi_msg_tagged m = { .tag = TAG };
	struct use u;
	struct bed b;

	(void)self;
	bed_open(&b, 0);
	m.addr = peer(&b);
	m.context = &b;
	u = (struct use){ .p = b.p + AT, .len = LEN };
	for (int i = 0; i < 3; i++)
		th_ok(fi_tinject(b.b.ep, b.q, LEN, b.b.peers[0], TAG));
	while (fi_trecvmsg(b.a.ep, &m, FI_PEEK | FI_COMPLETION) ||
	       th_cq_next(&b.a, b.a.rxcq, &(struct fi_cq_tagged_entry){ 0 },
			  &(struct fi_cq_err_entry){ 0 }) != 1)
		;
	th_ok(fi_trecvmsg(b.a.ep, &m, FI_PEEK | FI_DISCARD | FI_COMPLETION));
	th_rx_ok(&b.a);
	th_ok(fi_trecvmsg(b.a.ep, &m, FI_PEEK | FI_CLAIM | FI_COMPLETION));
	th_rx_ok(&b.a);
	/* what goes by it is not touched, whatever it says */
	m = tagged_of(&b, &u);
	th_ok(fi_trecvmsg(b.a.ep, &m, FI_CLAIM | FI_DISCARD | FI_COMPLETION));
	th_rx_ok(&b.a);
	th_eq(fi_trecvmsg(b.a.ep, &m, FI_PEEK), -FI_EINVAL);
	th_eq(fi_trecvmsg(b.a.ep, &m, FI_CLAIM), -FI_EINVAL);
	u.desc = fi_mr_desc(b.in);
	m = tagged_of(&b, &u);
	th_ok(fi_trecvmsg(b.a.ep, &m, FI_PEEK | FI_CLAIM | FI_COMPLETION));
	th_rx_ok(&b.a);
	th_ok(fi_trecvmsg(b.a.ep, &m, FI_CLAIM | FI_COMPLETION));
	th_rx_ok(&b.a);
	bed_close(&b);
}

/* Elements are as long as their type; what is wrong anyhow is the call's. */
static void contract_R6_local_elements(struct th_self *self)
{
	struct fid_mr *mr;
	struct iovec many[17] = { { NULL, 0 } };
	struct bed b;
	void *d;

	(void)self;
	bed_open(&b, 0);
	mr = reg(&b, AT, 8 * sizeof(uint64_t), BOTH);
	d = fi_mr_desc(mr);
	th_ok(fi_atomic(b.a.ep, b.p + AT, 8, d, peer(&b), 0, KEY, FI_UINT64,
			FI_SUM, &b));
	th_tx_ok(&b.a);
	th_eq(fi_atomic(b.a.ep, b.p + AT, 9, d, peer(&b), 0, KEY, FI_UINT64,
			FI_SUM, &b),
	      -FI_EINVAL);
	th_ok(fi_atomic(b.a.ep, b.p + AT, 16, d, peer(&b), 0, KEY, FI_UINT32,
			FI_SUM, &b));
	th_tx_ok(&b.a);
	th_eq(fi_atomic(b.a.ep, b.p + AT, 1, NULL, peer(&b), 0, KEY,
			(enum fi_datatype)1000, FI_SUM, &b),
	      -FI_EOPNOTSUPP);
	th_eq(fi_atomic(b.a.ep, b.p + AT, SIZE_MAX / 2, NULL, peer(&b), 0, KEY,
			FI_UINT64, FI_SUM, &b),
	      -FI_EINVAL);
	th_eq(fi_sendv(b.a.ep, many, NULL, 17, peer(&b), &b), -FI_EINVAL);
	th_eq(fi_sendv(b.a.ep, NULL, NULL, 1, peer(&b), &b), -FI_EINVAL);
	th_eq(fi_send(b.a.ep, b.p, SIZE_MAX, d, peer(&b), &b), -FI_EINVAL);
	th_quiet(&b.a, 10);
	th_ok(fi_close(&mr->fid));
	bed_close(&b);
}

static const struct CMUnitTest local_tests[] = {
	TH_CASE(contract_R6_local_msg, 1, 20),
	TH_CASE(contract_R6_local_tagged, 1, 20),
	TH_CASE(contract_R6_local_rma, 1, 20),
	TH_CASE(contract_R6_local_atomic, 1, 20),
	TH_CASE(contract_R6_local_fetch, 1, 20),
	TH_CASE(contract_R6_local_compare, 1, 20),
	TH_CASE(contract_R6_local_inject, 1, 20),
	TH_CASE(contract_R6_local_peek, 1, 20),
	TH_CASE(contract_R6_local_elements, 1, 20),
};

TH_MAIN(local_tests)
