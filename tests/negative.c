/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Every way in which a one-sided request can be wrong (contract I2, R6, R7;
 * case M6), as one generated table: key x rights x bounds x target x call, in
 * each mode of keys and addresses, for memory that is mapped, that the kernel
 * reaches, and that its owner has to reach. Right ones are among them.
 *
 * What must come of a request is told by a model of the contract, which knows
 * the regions of each domain: neg_predict(). Checked for each: one completion
 * or none, code, bytes moved, error data, counters and events on both sides,
 * every byte of the memories, and that the next good request works.
 *
 * Limit: 120 s
 */
#define _GNU_SOURCE
#include "negative.h"

#include "env_probe.h"

#include <stdio.h>
#include <unistd.h>

/* ---- names ---- */

static const char *const kind_name[] = { "read", "write", "atomic", "fetch",
					 "compare" };

static const char *const form_name[] = { "",	     "v",	  "msg",
					 "msg of 3", "data",	  "msg+data",
					 "inject",   "injectdata" };

static const char *const key_name[] = {
	"good",		  "good, list",	  "window",	    "on demand",
	"absent",	  "implicit",	  "batch",	    "never made",
	"closed",	  "closed twice", "re-registered",  "other domain",
	"other fabric",	  "other peer",	  "not enabled",    "generation - 1",
	"generation + 1", "no such slot", "unbound window", "rebound window",
	"failed refresh",
};

static const char *const bounds_name[] = {
	"within",	    "all",	  "last bytes",	      "before",
	"over the start",   "behind",	  "over the end",     "far behind",
	"longer",	    "to 2^64",	  "over 2^64",	      "half way",
	"other addressing", "2^39 bytes", "empty at the end", "empty behind",
	"over a seam",
};

static const uint64_t access_of[RIGHTS] = { RK_RW, FI_REMOTE_READ,
					    FI_REMOTE_WRITE,
					    FI_READ | FI_WRITE };

/* Calls @fn for each byte that was done: its number and its place. */
static void each_byte(struct bed *b, const struct request *q, size_t moved,
		      void (*fn)(struct bed *b, size_t i, unsigned char *image))
{
	size_t i = 0;

	for (const struct fi_rma_iov *v = q->there; i < moved; v++) {
		const struct region *g = neg_find(b, q->row.target, v->key);

		for (uint64_t k = 0; k < v->len && i < moved; k++, i++)
			fn(b, i,
			   &g->area->image[neg_spot(g, v->addr - g->base + k)]);
	}
}

/* ---- one request ------------------------------------------------------------------ */

/* Fails: @what of row @r is wrong. */
static void __attribute__((noreturn))
wrong(const struct bed *b, const struct row *r, const char *what, uint64_t is,
      uint64_t want)
{
	th_fail(__FILE__, __LINE__,
		"%s %s (+%u), key %s, rights %d, %s, target %d, %s memory: "
		"%s is %#" PRIx64 ", wanted %#" PRIx64,
		kind_name[r->kind], form_name[r->form], r->shift,
		key_name[r->key], r->rights, bounds_name[r->bounds], r->target,
		b->how.device ? "device" : "private", what, is, want);
}

#define MUST(what, is, want)                                                   \
	do {                                                                   \
		uint64_t is_ = (uint64_t)(is), want_ = (uint64_t)(want);       \
                                                                               \
		if (is_ != want_)                                              \
			wrong(b, &q->row, what, is_, want_);                   \
	} while (0)

/*
 * Byte @i, in the order in which they are done: what comes out is compared
 * with, too, and what goes in is there for those behind it.
 */
static void foresee(struct bed *b, size_t i, unsigned char *image)
{
	b->cmp[i] = *image;
	*image = b->src[i];
}

static void foresee_read(struct bed *b, size_t i, unsigned char *image)
{
	b->cmp[i] = *image;
}

/* Bytes that are new each time, and what will become of the memories. */
static void prepare(struct bed *b, const struct request *q,
		    const struct expect *e)
{
	size_t n = q->len < BUF ? q->len : BUF;
	uint64_t x = ++b->n * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < n; i += sizeof(x), x += x << 7 | 1)
		memcpy(b->src + i, &x, sizeof(x));
	memset(b->dst, UNTOUCHED, n + ELEM);
	each_byte(b, q, e->moved, q->row.kind == READ ? foresee_read : foresee);
}

static void check_bytes(struct bed *b, const struct request *q,
			const struct expect *e)
{
	bool reads = q->row.kind != WRITE && q->row.kind != ATOMIC;
	size_t n = q->len < BUF - ELEM ? q->len : BUF - ELEM;

	if (reads)
		MUST("bytes read differ", !!memcmp(b->dst, b->cmp, e->moved),
		     0);
	for (size_t i = reads ? e->moved : 0; i < n + ELEM; i++)
		MUST("byte of the initiator", b->dst[i], UNTOUCHED);
	for (int k = 0; k < 2; k++)
		MUST("memory differs",
		     !!memcmp(b->area[k].m.p, b->area[k].image, AREA), 0);
}

/* The entry that a request with a context has. */
static void check_entry(struct bed *b, const struct request *q,
			const struct expect *e)
{
	struct fi_cq_tagged_entry c = { 0 };
	struct fi_cq_err_entry err = { 0 };
	struct fi_shrimp_access_error d = { 0 };
	uint64_t flags =
		(is_atomic(&q->row) ? FI_ATOMIC : FI_RMA) |
		(q->row.kind == WRITE || q->row.kind == ATOMIC ? FI_WRITE
							       : FI_READ);
	int ret = th_cq_next(&b->a, b->a.txcq, &c, &err);

	MUST("code", ret == 1 ? 0 : err.err, e->err);
	MUST("flags", ret == 1 ? c.flags : err.flags, flags);
	MUST("context", (uintptr_t)(ret == 1 ? c.op_context : err.op_context),
	     (uintptr_t)b);
	if (ret == 1)
		return;
	MUST("moved", err.len, e->moved);
	MUST("not moved", err.olen, q->len - e->moved);
	MUST("size of the error data", err.err_data_size, sizeof(d));
	memcpy(&d, err.err_data, sizeof(d));
	MUST("error data, key", d.key, e->at.key);
	MUST("error data, address", d.addr, e->at.addr);
	MUST("error data, length", d.len, e->at.len);
	MUST("error data, process", d.pid, getpid());
	MUST("error data, code", d.err, e->err);
}

/* Both counters of the initiator, in the end. */
static void check_counters(struct bed *b, const struct request *q,
			   const struct expect *e)
{
	struct th_deadline dl = th_patience();

	*(e->err ? &b->bad : &b->good) += 1;
	while (fi_cntr_read(b->done) + fi_cntr_readerr(b->done) <
	       b->good + b->bad) {
		th_progress(&b->a);
		th_check(!th_expired(&dl));
	}
	MUST("counter", fi_cntr_read(b->done), b->good);
	MUST("error counter", fi_cntr_readerr(b->done), b->bad);
}

/* The target is told of what succeeded and of nothing else. */
static void check_events(struct bed *b, const struct request *q,
			 const struct expect *e)
{
	int t = q->row.target;
	struct fi_cq_tagged_entry c;

	if (!e->err) {
		b->events[t]++;
		th_cntr_reach(&b->t[t], b->told[t], b->events[t]);
	}
	if (!e->err && with_data(&q->row))
		MUST("remote data", th_rx_ok(&b->t[t]).data, DATA);
	MUST("another entry of the target", fi_cq_read(b->t[t].rxcq, &c, 1),
	     -FI_EAGAIN);
	MUST("events", fi_cntr_read(b->told[t]), b->events[t]);
	MUST("another entry", fi_cq_read(b->a.txcq, &c, 1), -FI_EAGAIN);
}

/* A right request, behind one that was refused. */
static void good_one(struct bed *b, int target)
{
	const struct region *g = neg_region(b, false, BOTH, target);
	uint64_t x = b->n;

	th_ok(fi_write(b->a.ep, &x, sizeof(x), NULL, b->to[target], g->base + 8,
		       g->key, &x));
	th_ptr_eq(th_tx_ok(&b->a).op_context, &x);
	memcpy(g->area->image + FIRST + 8, &x, sizeof(x));
	b->good++;
	b->events[target]++;
	th_cntr_reach(&b->t[target], b->told[target], b->events[target]);
}

/* The pages that row @r touches are to come once more. */
static void make_absent(struct bed *b, const struct row *r)
{
	const struct region *g = neg_find(b, TARGET, b->key[r->key][r->rights]);

	if (r->key == ABSENT && g)
		th_ok(fi_mr_refresh(g->mr, NULL, 0, 0));
}

static void try_row(struct bed *b, const struct row *r)
{
	struct request request, *q = &request;
	struct expect e;

	make_absent(b, r);
	neg_build(b, r, q);
	e = neg_predict(b, q);
	prepare(b, q, &e);
	MUST("the call", neg_post(b, q), 0);
	if (!silent(r))
		check_entry(b, q, &e);
	check_counters(b, q, &e);
	check_events(b, q, &e);
	check_bytes(b, q, &e);
	if (!e.err) {
		b->done_by[r->key] += q->there[q->nthere - 1].len > 0;
		return;
	}
	b->wrong++;
	if (e.err == FI_EKEYREJECTED && r->target == TARGET)
		b->by_key[r->key]++;
	good_one(b, r->target);
}

/* ---- the table -------------------------------------------------------------------- */

static bool call_exists(const struct row *r)
{
	switch (r->form) {
	case CQDATA:
	case MSGDATA:
	case INJDATA:
		return r->kind == WRITE;
	case INJECT:
		return r->kind == WRITE || r->kind == ATOMIC;
	default:
		return true;
	}
}

/* With the key of all addresses: who knows what is there. */
static bool is_anywhere(const struct row *r)
{
	switch (r->bounds) {
	case FAR_OFF:
	case HALF_WAY:
	case OTHER:
	case HUGE:
		return true;
	case TO_2_64:
	case WRAPS:
		/* parts of them are addresses, and looked at one by one */
		return is_atomic(r) || r->form == VECTOR;
	default:
		return false;
	}
}

/* No such request can be made, or it is the same as another row. */
static bool is_void(const struct bed *b, const struct row *r)
{
	bool prov = r->key == OLDER || r->key == YOUNGER;
	bool one = r->key == NEVER || r->key == PEER || r->key == FABRIC ||
		   r->key == DOMAIN || r->key == NOT_ENABLED ||
		   r->key == BEYOND || r->key >= UNBOUND;

	if (!call_exists(r) || (prov && !b->how.prov) || (one && r->rights))
		return true;
	/* the calls refuse elements without bytes, or of more than 4096 */
	if (is_atomic(r) && (r->bounds == HUGE || r->bounds == EMPTY_END ||
			     r->bounds == EMPTY_OFF))
		return true;
	if (r->bounds == HUGE && (silent(r) || r->form == VECTOR))
		return true;
	if (r->bounds == SEAM && r->key != GOODLIST)
		return true;
	if (r->key == WINDOW && r->rights == LOCAL)
		return true;
	if (r->key == IMPLICIT && is_anywhere(r))
		return true;
	return r->shift && !is_atomic(r);
}

/*
 * Every how many rows of a class are tried: of what only differs in how the key
 * was made, and of all if time is short, a part, no period of which it has.
 */
static unsigned int stride(enum key key)
{
	bool made = (key > GOODLIST && key < NEVER) || key >= UNBOUND;

	return (th_rounds(10) < 10 ? 13 : 1) * (made && !th_long() ? 5 : 1);
}

static void try_keys(struct bed *b, struct row *r)
{
	for (r->key = 0; r->key < KEYS; r->key++)
		for (r->rights = 0; r->rights < RIGHTS; r->rights++)
			for (r->bounds = 0; r->bounds < BOUNDS; r->bounds++)
				if (!is_void(b, r) &&
				    ++b->row % stride(r->key) == 0)
					try_row(b, r);
}

static void try_all(struct bed *b)
{
	struct row r = { 0 };

	for (r.target = 0; r.target < TARGETS; r.target++)
		for (r.kind = 0; r.kind < KINDS; r.kind++)
			for (r.form = 0; r.form < FORMS; r.form++)
				for (r.shift = 0; r.shift < 8; r.shift += 4)
					try_keys(b, &r);
}

/* ---- opening ------------------------------------------------------------------------ */

static struct fid_cntr *cntr_new(struct th_stack *s, uint64_t flags)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *c;

	th_ok(fi_cntr_open(s->domain, &attr, &c, s));
	th_ok(fi_ep_bind(s->ep, &c->fid, flags));
	th_stack_enable(s);
	return c;
}

static void open_stacks(struct bed *b)
{
	struct th_stack_opts o = rk_atomic_opts();

	o.caps |= FI_RMA_EVENT;
	o.no_enable = true;
	o.mr_mode |= (b->how.virt ? FI_MR_VIRT_ADDR : 0) |
		     (b->how.prov ? FI_MR_PROV_KEY : 0);
	th_stack_open(&b->a, &o);
	b->done = cntr_new(&b->a, FI_READ | FI_WRITE);
	for (int i = 0; i < TARGETS; i++) {
		o.domain_of = i == SAME_DOMAIN ? &b->t[TARGET] : NULL;
		th_stack_open(&b->t[i], &o);
		b->told[i] = cntr_new(&b->t[i], RK_RW);
		b->to[i] = th_insert(&b->a, b->t[i].addr);
		b->t[i].buddy = i + 1 < TARGETS ? &b->t[i + 1] : &b->a;
	}
	b->a.buddy = &b->t[0];
	o.domain_of = NULL;
	o.no_enable = false;
	th_stack_open(&b->f, &o);
	th_eq(b->a.info->domain_attr->mr_mode, o.mr_mode);
}

/* Registers @list or one range at the start of @g->area. */
static struct fid_mr *reg(struct bed *b, struct th_stack *s, struct region *g,
			  uint64_t flags)
{
	unsigned char *p = g->area->m.p + FIRST;
	struct iovec v[PIECES] = { { p, LEN } };
	struct fid_mr *mr = NULL;

	for (int i = 0; g->list && i < PIECES; i++)
		v[i] = (struct iovec){ p + i * (PIECE + 24), PIECE };
	th_ok(fi_mr_regv(s->domain, v, g->list ? PIECES : 1,
			 access_of[g->rights], 0, b->next_key++, flags, &mr,
			 NULL));
	return mr;
}

/* A region that stays, for the model: its key is to come. */
static struct region *known(struct bed *b, struct th_stack *s, bool list,
			    int rights)
{
	struct region *g = &b->region[b->nregions++];

	*g = (struct region){
		.domain = s->domain,
		.area = &b->area[s->domain != b->t[TARGET].domain],
		.rights = rights,
		.len = list ? PIECES * PIECE : LEN,
		.list = list,
	};
	th_check(b->nregions < 64);
	g->base = b->how.virt ? (uintptr_t)g->area->m.p + FIRST : 0;
	/* a key of the user's for what no peer may use */
	g->unknown = rights == LOCAL && !b->how.prov;
	return g;
}

/* The key of one that is made by reg() with @flags. */
static uint64_t live_flags(struct bed *b, struct th_stack *s, bool list,
			   int rights, uint64_t flags)
{
	struct region *g = known(b, s, list, rights);

	g->mr = reg(b, s, g, flags);
	g->key = fi_mr_key(g->mr);
	return g->key;
}

static uint64_t live(struct bed *b, struct th_stack *s, bool list, int rights)
{
	return live_flags(b, s, list, rights, 0);
}

/* ---- keys that are made in other ways ---- */

static uint64_t implicit(struct bed *b, int rights)
{
	struct region *g = known(b, &b->t[TARGET], false, rights);

	g->base = (uintptr_t)g->area->m.p + FIRST;
	g->len = SIZE_MAX;
	g->whole = true;
	th_ok(fi_mr_reg(g->domain, NULL, SIZE_MAX, access_of[rights], 0,
			b->next_key++, 0, &g->mr, NULL));
	g->key = fi_mr_key(g->mr);
	return g->key;
}

/* The second of a batch of two over the same memory. */
static uint64_t batch(struct bed *b, int rights)
{
	struct region *g[2];
	struct fi_mr_attr attr[2] = { { 0 } };
	struct fid_mr *mr[2];
	struct iovec v;

	for (int i = 0; i < 2; i++) {
		g[i] = known(b, &b->t[TARGET], false, rights);
		v = (struct iovec){ g[i]->area->m.p + FIRST, LEN };
		attr[i].mr_iov = &v;
		attr[i].iov_count = 1;
		attr[i].access = access_of[rights];
		attr[i].requested_key = b->next_key++;
	}
	th_ok(rk_mr_ops(&b->t[TARGET])
		      ->reg_batch(&g[0]->domain->fid, attr, 2, 0, mr));
	for (int i = 0; i < 2; i++) {
		g[i]->mr = mr[i];
		g[i]->key = fi_mr_key(mr[i]);
	}
	return g[1]->key;
}

/* Closed by close_all(), the last one first. */
static struct fid_mr *hold(struct bed *b, struct fid_mr *mr)
{
	th_check(b->nheld < (int)(sizeof(b->held) / sizeof(*b->held)));
	b->held[b->nheld++] = mr;
	return mr;
}

/*
 * Two windows onto the same bytes of a region that has all rights and is longer
 * on both sides: one was invalidated, one is bound for the second time.
 */
static void windows(struct bed *b, int rights)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(&b->t[TARGET]);
	struct fid *domain = &b->t[TARGET].domain->fid;
	struct fi_shrimp_mr_part part = { .off = SHORT, .len = LEN };
	struct region *g = known(b, &b->t[TARGET], false, rights);
	struct fid_mr *w;

	part.mr = hold(b, rk_reg(&b->t[TARGET], g->area->m.p + FIRST - SHORT,
				 LEN + 2 * SHORT, RK_ALL, b->next_key++));
	th_ok(ops->window(domain, NULL, &w));
	hold(b, w);
	th_ok(ops->bind_window(w, &part, access_of[rights], b->next_key++));
	b->key[UNBOUND][rights] = fi_mr_key(w);
	th_ok(ops->invalidate_window(w));
	/* closed with the regions, which is before the other one goes */
	th_ok(ops->window(domain, NULL, &g->mr));
	for (int i = 0; i < 2; i++) {
		b->key[REBOUND][rights] = g->key;
		th_ok(ops->bind_window(g->mr, &part, access_of[rights],
				       b->next_key++));
		g->key = fi_mr_key(g->mr);
	}
	b->key[WINDOW][rights] = g->key;
}

/* The memory goes, and the refresh cannot find it. */
static uint64_t suspended(struct bed *b)
{
	unsigned char *p = rk_pages(RK_PAGE);
	struct fid_mr *mr = hold(
		b, rk_reg(&b->t[TARGET], p, RK_PAGE, RK_ALL, b->next_key++));

	rk_take_away(p, RK_PAGE);
	th_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_EFAULT);
	return fi_mr_key(mr);
}

/* A region on demand all of which is present, as it may be used. */
static uint64_t present(struct bed *b, int rights)
{
	uint64_t key = live_flags(b, &b->t[TARGET], false, rights,
				  FI_SHRIMP_ON_DEMAND);
	uint32_t how = access_of[rights] & FI_REMOTE_WRITE
			       ? FI_SHRIMP_PREFETCH_WRITE
			       : FI_SHRIMP_PREFETCH_READ;

	if (rights != LOCAL)
		th_ok(rk_mr_ops(&b->t[TARGET])
			      ->advise(b->region[b->nregions - 1].mr, 0, LEN,
				       how));
	return key;
}

static void make_other_keys(struct bed *b, int rights)
{
	b->key[DEMAND][rights] = present(b, rights);
	b->key[ABSENT][rights] = live_flags(b, &b->t[TARGET], false, rights,
					    FI_SHRIMP_ON_DEMAND);
	b->key[IMPLICIT][rights] = implicit(b, rights);
	b->key[BATCH][rights] = batch(b, rights);
	if (rights != LOCAL)
		windows(b, rights);
	if (!rights)
		b->key[SUSPENDED][0] = suspended(b);
}

/* The key of a region that was closed. */
static uint64_t closed(struct bed *b, int rights)
{
	struct region g = { .area = &b->area[0], .rights = rights };
	struct fid_mr *mr = reg(b, &b->t[TARGET], &g, 0);
	uint64_t key = fi_mr_key(mr);

	th_ok(fi_close(&mr->fid));
	return key;
}

static void make_keys(struct bed *b, int rights)
{
	uint64_t gen = UINT64_C(1) << 24, key;

	b->key[GOOD][rights] = key = live(b, &b->t[TARGET], false, rights);
	b->key[GOODLIST][rights] = live(b, &b->t[TARGET], true, rights);
	b->key[OLDER][rights] = key - gen;
	b->key[YOUNGER][rights] = key + gen;
	b->key[BEYOND][rights] = key | (gen - 1);
	b->key[NEVER][rights] = b->how.prov ? key ^ UINT64_C(0xabcdef) << 40
					    : UINT64_C(0xabcdef1234);
	b->key[CLOSED][rights] = closed(b, rights);
	b->key[AGAIN][rights] = closed(b, rights);
	if (!b->how.prov) {
		b->next_key = b->key[AGAIN][rights];
		th_eq(closed(b, rights), b->key[AGAIN][rights]);
	}
	b->key[REREGISTERED][rights] = closed(b, rights);
	live(b, &b->t[TARGET], false, rights);
	make_other_keys(b, rights);
}

/*
 * A key of @s, of a slot that the target does not have, if it is the
 * provider's: others were made before.
 */
static uint64_t foreign(struct bed *b, struct th_stack *s)
{
	struct region g = { .area = &b->area[1] };

	for (int i = 0; i < GROW; i++) {
		struct fid_mr *mr = reg(b, s, &g, 0);

		th_ok(fi_close(&mr->fid));
	}
	return live(b, s, false, BOTH);
}

/* Memory and keys; @b->t[TARGET] has the ones that are right. */
static void fill(struct bed *b, struct th_self *self)
{
	struct region g = { .area = &b->area[0] };
	uint64_t mine = 0, all[2];

	for (int i = 0; i < 2; i++) {
		b->area[i].m = rk_mem_new(&b->t[i ? OTHER_DOMAIN : TARGET],
					  b->how.device, AREA);
		th_fill(b->area[i].m.p, AREA, (uint64_t)i);
		memcpy(b->area[i].image, b->area[i].m.p, AREA);
	}
	b->next_key = self->rank ? 100000 : 1000;
	for (int i = 0; i < RIGHTS && !self->rank; i++)
		make_keys(b, i);
	b->key[DOMAIN][0] = foreign(b, &b->t[OTHER_DOMAIN]);
	b->key[FABRIC][0] = foreign(b, &b->f);
	mine = foreign(b, &b->f);
	th_gather(self, "keys", &mine, all, sizeof(mine));
	b->key[PEER][0] = all[1];
	b->idle = reg(b, &b->t[TARGET], &g, FI_RMA_EVENT);
	b->key[NOT_ENABLED][0] = fi_mr_key(b->idle);
}

static void close_all(struct bed *b)
{
	th_ok(fi_close(&b->idle->fid));
	for (int i = 0; i < b->nregions; i++)
		th_ok(fi_close(&b->region[i].mr->fid));
	while (b->nheld)
		th_ok(fi_close(&b->held[--b->nheld]->fid));
	for (int i = 0; i < 2; i++)
		rk_mem_free(&b->area[i].m);
	/* an endpoint goes before what it is bound to */
	th_ok(fi_close(&b->a.ep->fid));
	b->a.ep = NULL;
	th_ok(fi_close(&b->done->fid));
	th_stack_close(&b->a);
	for (int i = TARGETS; i--;) {
		th_ok(fi_close(&b->t[i].ep->fid));
		b->t[i].ep = NULL;
		th_ok(fi_close(&b->told[i]->fid));
		th_stack_close(&b->t[i]);
	}
	th_stack_close(&b->f);
}

/* Nothing comes late, and each class of keys has been refused. */
static void check_all(struct bed *b)
{
	th_quiet(&b->a, 2);
	for (int i = 0; i < TARGETS; i++) {
		th_quiet(&b->t[i], 2);
		th_eq(fi_cntr_read(b->told[i]), b->events[i]);
	}
	for (int k = 0; k < NEVER; k++)
		th_check(b->done_by[k]);
	/* each of them has paid for its page */
	th_check(probe_stats(&b->t[TARGET].domain->fid).page_faults >=
		 b->done_by[ABSENT]);
	for (int k = NEVER; k < KEYS; k++)
		if (b->how.prov || (k != OLDER && k != YOUNGER))
			th_check(b->by_key[k]);
	printf("# %" PRIu64 " requests, %" PRIu64 " of them refused\n", b->n,
	       b->wrong);
}

static void table_main(struct th_self *self)
{
	static struct bed bed;
	struct bed *b = &bed;

	b->how = *(const struct setting *)self->arg;
	if (b->how.virt || b->how.prov)
		setenv("FI_SHRIMP_MR_MODE",
		       !b->how.prov   ? "virt_addr"
		       : !b->how.virt ? "prov_key"
				      : "virt_addr,prov_key",
		       1);
	if (b->how.no_cma)
		setenv("FI_SHRIMP_CMA", "off", 1);
	open_stacks(b);
	fill(b, self);
	if (!self->rank) {
		try_all(b);
		check_all(b);
	}
	th_barrier(self, "tried");
	close_all(b);
}

/* ---- refused by the call ------------------------------------------------------------- */

/* Lengths that cannot be, of lists of up to two ranges. */
static const struct {
	const char *what;  /* is wrong */
	size_t here[2];	   /* local lengths */
	size_t nhere;	   /* local ranges */
	uint64_t there[2]; /* remote lengths */
	size_t nthere;	   /* remote ranges */
} lists[] = {
	{ "remote sum wraps", { 8 }, 1, { UINT64_MAX - 7, 16 }, 2 },
	{ "local sum wraps", { SIZE_MAX - 7, 16 }, 2, { 8 }, 1 },
	{ "both wrap", { SIZE_MAX, 9 }, 2, { UINT64_MAX, 9 }, 2 },
	{ "remote is longer", { 8 }, 1, { 16 }, 1 },
	{ "local is longer", { 8, 8 }, 2, { 8 }, 1 },
	{ "longer than any", { SIZE_MAX / 2 }, 1, { SIZE_MAX / 2 }, 1 },
	{ "too many here", { 8 }, 1000, { 8 }, 1 },
	{ "too many there", { 8 }, 1, { 8 }, 1000 },
};

static void refuse_rma(struct th_stack *a, size_t i, uint64_t key)
{
	static char buf[64];
	struct iovec v[2] = { { buf, lists[i].here[0] },
			      { buf, lists[i].here[1] } };
	struct fi_rma_iov there[2] = { { 0, lists[i].there[0], key },
				       { 64, lists[i].there[1], key } };
	struct fi_msg_rma m = { .msg_iov = v,
				.iov_count = lists[i].nhere,
				.rma_iov = there,
				.rma_iov_count = lists[i].nthere,
				.addr = a->peers[1] };

	if (fi_readmsg(a->ep, &m, FI_COMPLETION) != -FI_EINVAL ||
	    fi_writemsg(a->ep, &m, FI_COMPLETION) != -FI_EINVAL ||
	    fi_writemsg(a->ep, &m, FI_INJECT) != -FI_EINVAL)
		th_fail(__FILE__, __LINE__, "%s: not refused", lists[i].what);
}

/* The same numbers as counts of elements; and one that wraps as bytes. */
static void refuse_atomic(struct th_stack *a, size_t i, uint64_t key)
{
	static char buf[64];
	size_t wraps = (SIZE_MAX >> 3) + 1;
	struct fi_ioc v[2] = { { buf, lists[i].here[0] },
			       { buf, lists[i].here[1] } };
	struct fi_rma_ioc there[2] = { { 0, lists[i].there[0], key },
				       { 64, lists[i].there[1], key } };
	struct fi_msg_atomic m = { .msg_iov = v,
				   .iov_count = lists[i].nhere,
				   .rma_iov = there,
				   .rma_iov_count = lists[i].nthere,
				   .addr = a->peers[1],
				   .datatype = FI_UINT64,
				   .op = FI_SUM };

	th_eq(fi_atomicmsg(a->ep, &m, FI_COMPLETION), -FI_EINVAL);
	th_eq(fi_atomic(a->ep, buf, wraps, NULL, m.addr, 0, key, FI_UINT64,
			FI_SUM, buf),
	      -FI_EINVAL);
	th_eq(fi_inject_atomic(a->ep, buf, 0, m.addr, 0, key, FI_UINT64,
			       FI_SUM),
	      -FI_EINVAL);
}

static void contract_I2_at_the_call(struct th_self *self)
{
	struct th_stack_opts o = rk_atomic_opts();
	struct th_stack a, b;
	uint64_t x = 1;
	struct rk_mem m;
	struct fid_mr *mr;

	(void)self;
	th_pair_open(&a, &b, &o);
	m = rk_mem_new(&b, true, RK_PAGE);
	mr = rk_reg(&b, m.p, RK_PAGE, RK_RW, RK_KEY);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		refuse_rma(&a, i, RK_KEY);
		refuse_atomic(&a, i, RK_KEY);
	}
	th_quiet(&a, 5);
	th_quiet(&b, 5);
	th_verify_byte(m.p, RK_PAGE, 0);
	th_ok(fi_write(a.ep, &x, 8, NULL, a.peers[1], 0, RK_KEY, &x));
	rk_done(&a, FI_WRITE, &x);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&m);
	th_pair_close(&a, &b);
}

/* ---- tests ---------------------------------------------------------------------- */

static void table(void **state)
{
	th_run(2, table_main, *state, 60);
}

#define TABLE(name, ...)                                                       \
	{                                                                      \
#name, table, NULL, NULL, &(struct setting)                    \
		{                                                              \
			__VA_ARGS__                                            \
		}                                                              \
	}

static const struct CMUnitTest negative[] = {
	TH_CASE(contract_I2_at_the_call, 1, 30),
	TABLE(contract_I2_offsets_user_mapped, .device = true),
	TABLE(contract_I2_offsets_user_kernel, .device = false),
	TABLE(contract_I2_offsets_user_owner, .no_cma = true),
	TABLE(contract_I2_offsets_provider_mapped, .prov = true,
	      .device = true),
	TABLE(contract_I2_offsets_provider_kernel, .prov = true),
	TABLE(contract_I2_offsets_provider_owner, .prov = true, .no_cma = true),
	TABLE(contract_I2_virtual_user_mapped, .virt = true, .device = true),
	TABLE(contract_I2_virtual_user_kernel, .virt = true),
	TABLE(contract_I2_virtual_user_owner, .virt = true, .no_cma = true),
	TABLE(contract_I2_virtual_provider_mapped, .virt = true, .prov = true,
	      .device = true),
	TABLE(contract_I2_virtual_provider_kernel, .virt = true, .prov = true),
	TABLE(contract_I2_virtual_provider_owner, .virt = true, .prov = true,
	      .no_cma = true),
};

TH_MAIN(negative)
