/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The model of tests/negative: which bytes a row touches, who does them, in
 * which parts, and where it must end.
 */
#define _GNU_SOURCE
#include "negative.h"

/* ---- the model ---------------------------------------------------------------- */

const struct region *neg_find(const struct bed *b, int target, uint64_t key)
{
	for (int i = 0; i < b->nregions; i++)
		if (b->region[i].key == key && !b->region[i].unknown &&
		    b->region[i].domain == b->t[target].domain)
			return &b->region[i];
	return NULL;
}

static bool lacks_right(const struct row *r, int rights)
{
	bool rd = rights == BOTH || rights == READ_ONLY;
	bool wr = rights == BOTH || rights == WRITE_ONLY;

	if (r->kind == FETCH || r->kind == COMPARE)
		return !rd || !wr;
	return r->kind == READ ? !rd : !wr;
}

/* What the contract says of one access: I2, R6, R7. */
static int judge(const struct bed *b, const struct row *r,
		 const struct fi_rma_iov *v)
{
	const struct region *g = neg_find(b, r->target, v->key);
	uint64_t off;

	if (!g)
		return FI_EKEYREJECTED;
	if (lacks_right(r, g->rights))
		return FI_EACCES;
	off = v->addr - (g->whole ? 0 : g->base);
	return off > g->len || v->len > g->len - off ? FI_EINVAL : 0;
}

size_t neg_spot(const struct region *g, uint64_t off)
{
	if (!g->list)
		return FIRST + off;
	return FIRST + off / PIECE * (PIECE + 24) + off % PIECE;
}

/* True if @v is reached by an address of its owner. */
static bool by_address(const struct bed *b, const struct row *r,
		       const struct fi_rma_iov *v)
{
	return !b->how.device || neg_find(b, r->target, v->key)->whole;
}

/* True if no single CPU instruction does an element of @v. */
static bool is_odd(const struct bed *b, const struct row *r,
		   const struct fi_rma_iov *v)
{
	const struct region *g = neg_find(b, r->target, v->key);
	size_t at = neg_spot(g, v->addr - g->base);

	return at % ELEM || neg_spot(g, v->addr - g->base + ELEM - 1) != at + 7;
}

/* The access that begins with byte @done of @q, at most @most bytes. */
static struct fi_rma_iov access_at(const struct request *q, size_t done,
				   size_t most)
{
	const struct fi_rma_iov *v = q->there;
	struct fi_rma_iov x;

	for (; done >= v->len; v++)
		done -= v->len;
	x = (struct fi_rma_iov){ .addr = v->addr + done,
				 .len = v->len - done,
				 .key = v->key };
	if (x.len > most)
		x.len = most;
	return x;
}

/* Bytes from @done to the end of the local range there. */
static size_t here_room(const struct request *q, size_t done)
{
	const size_t *v = q->here;

	for (; done >= *v; v++)
		done -= *v;
	return *v - done;
}

/* An element of @x lies in two ranges of a key: bytes before it are done. */
static bool split_element(const struct bed *b, const struct row *r,
			  const struct fi_rma_iov *x, size_t *before)
{
	const struct region *g = neg_find(b, r->target, x->key);

	for (*before = 0; *before < x->len; *before += ELEM) {
		uint64_t off = x->addr - g->base + *before;

		if (g->list && off / PIECE != (off + ELEM - 1) / PIECE)
			return true;
	}
	return false;
}

/* What the owner does, in parts, from e->moved on. */
static void predict_owner(const struct bed *b, const struct request *q,
			  struct expect *e)
{
	size_t part = q->row.kind == COMPARE ? PART / 2 : PART, before;

	while (!e->err && e->moved < q->len) {
		e->at = access_at(q, e->moved, part);
		e->err = judge(b, &q->row, &e->at);
		if (e->err)
			return;
		if (is_atomic(&q->row) &&
		    split_element(b, &q->row, &e->at, &before)) {
			e->moved += before;
			e->err = FI_EINVAL;
			return;
		}
		e->moved += e->at.len;
	}
}

/*
 * The first access to an absent page: what is asked for is all that follows of
 * the remote range, and is refused as a whole.
 */
static int judge_request(const struct bed *b, const struct request *q,
			 const struct expect *e, bool *absent)
{
	struct fi_rma_iov all = access_at(q, e->moved, SIZE_MAX);

	if (!*absent || all.key != b->key[ABSENT][q->row.rights])
		return 0;
	*absent = false;
	return judge(b, &q->row, &all);
}

struct expect neg_predict(const struct bed *b, const struct request *q)
{
	bool atomic = is_atomic(&q->row), absent = q->row.key == ABSENT;
	struct expect e = { 0 };

	while (e.moved < q->len) {
		e.at = access_at(q, e.moved,
				 atomic ? ELEM : here_room(q, e.moved));
		e.err = judge(b, &q->row, &e.at);
		if (!e.err)
			e.err = judge_request(b, q, &e, &absent);
		if (e.err)
			return e;
		if ((by_address(b, &q->row, &e.at) &&
		     (atomic || b->how.no_cma)) ||
		    (atomic && is_odd(b, &q->row, &e.at))) {
			predict_owner(b, q, &e);
			return e;
		}
		e.moved += e.at.len;
	}
	return e;
}

/* ---- building requests --------------------------------------------------------- */

const struct region *neg_region(const struct bed *b, bool list, int rights,
				int target)
{
	for (int i = 0; i < b->nregions; i++)
		if (b->region[i].list == list &&
		    b->region[i].rights == rights &&
		    b->region[i].domain == b->t[target].domain)
			return &b->region[i];
	return NULL;
}

/* Address, and bytes in *@len, of what a row of region @g touches. */
static uint64_t range_of(const struct region *g, enum bounds how, bool virt,
			 uint64_t *len)
{
	const uint64_t n = SHORT, end = g->base + g->len;
	const uint64_t other = virt ? 0 : (uintptr_t)g->area->m.p + FIRST;
	const struct {
		uint64_t addr, len;
	} range[BOUNDS] = {
		[WITHIN] = { g->base + 512, n },
		[ALL] = { g->base, g->len },
		[LAST] = { end - n, n },
		[BEFORE] = { g->base - n, n },
		[OVER_START] = { g->base - n / 2, n },
		[BEHIND] = { end, n },
		[OVER_END] = { end - n / 2, n },
		[FAR_OFF] = { end + 2 * RK_PAGE, n },
		[LONGER] = { g->base, g->len + ELEM },
		[TO_2_64] = { -n, n },
		[WRAPS] = { -(n / 2), n },
		[HALF_WAY] = { g->base + (UINT64_C(1) << 63), n },
		[OTHER] = { other, n },
		[HUGE] = { g->base, UINT64_C(1) << 39 },
		[EMPTY_END] = { end, 0 },
		[EMPTY_OFF] = { end + 2 * RK_PAGE, 0 },
		[SEAM] = { g->base + PIECE - n / 2, n },
	};

	*len = range[how].len;
	return range[how].addr;
}

/* The local side: one range, or three of different lengths. */
static void split_here(struct request *q)
{
	q->nhere = 1;
	q->here[0] = q->len;
	if (q->row.form != VECTOR || q->len < SHORT)
		return;
	q->nhere = 3;
	q->here[0] = ELEM;
	q->here[1] = 3 * ELEM;
	q->here[2] = q->len - 4 * ELEM;
}

/* In a list of three the first two are right. */
void neg_build(const struct bed *b, const struct row *r, struct request *q)
{
	const struct region *ok = neg_region(b, false, BOTH, r->target);
	const struct region *g =
		neg_region(b, r->key == GOODLIST, r->rights, TARGET);
	struct fi_rma_iov v = { .key = b->key[r->key][r->rights] };
	struct region whole = *g;

	whole.base = (uintptr_t)g->area->m.p + FIRST;
	if (r->key == IMPLICIT)
		g = &whole;
	v.addr = range_of(g, r->bounds, b->how.virt, &v.len) + r->shift;
	*q = (struct request){ .row = *r };
	if (r->form == LIST) {
		q->there[0] = (struct fi_rma_iov){ ok->base + 16, 16, ok->key };
		q->there[1] = (struct fi_rma_iov){ ok->base + 48, 24, ok->key };
		q->nthere = 2;
		q->len = 40;
	}
	q->there[q->nthere++] = v;
	q->len += v.len;
	split_here(q);
}
