/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Of tests/negative: what a request is made of, what it is made to, what must
 * come of it. All of it is for one thread of one process.
 */
#ifndef SHRIMP_TESTS_NEGATIVE_H
#define SHRIMP_TESTS_NEGATIVE_H

#include "harness.h"
#include "rma_kit.h"

#include <rdma/fi_atomic.h>

enum {
	LEN = 2048,	    /* bytes of a region */
	FIRST = RK_PAGE,    /* where it begins in its memory */
	AREA = 3 * RK_PAGE, /* the memory: as much on both sides */
	PIECES = 3,	    /* ranges of a list region */
	PIECE = 1000,	    /* bytes of each */
	SHORT = 64,	    /* usual length of an access */
	ELEM = 8,	    /* bytes of an element */
	PART = 1024,	    /* what an owner does at a time */
	BUF = 4 * RK_PAGE,  /* of the initiator */
	UNTOUCHED = 0x77,   /* in its buffers */
	GROW = 60,	    /* keys of others before the one that is tried */
	DATA = 5,	    /* remote CQ data */
};

/* ---- what a request is made of ---------------------------------------------- */

enum kind { READ, WRITE, ATOMIC, FETCH, COMPARE, KINDS };
enum form { PLAIN, VECTOR, MSG, LIST, CQDATA, MSGDATA, INJECT, INJDATA, FORMS };

enum key {
	GOOD,	      /* of a region of one range */
	GOODLIST,     /* of one of several */
	WINDOW,	      /* of a window, bound anew, onto a part of a region */
	DEMAND,	      /* of a region on demand */
	ABSENT,	      /* of one whose pages are absent each time */
	IMPLICIT,     /* of the whole address space */
	BATCH,	      /* of a region of a batch */
	NEVER,	      /* never made */
	CLOSED,	      /* of a region that was closed */
	AGAIN,	      /* closed, made, closed: a user's key; else a slot's */
	REREGISTERED, /* closed, and the memory registered anew */
	DOMAIN,	      /* of another domain of the target's process */
	FABRIC,	      /* of a device of another fabric object */
	PEER,	      /* of another process */
	NOT_ENABLED,  /* of a region that was not enabled */
	OLDER,	      /* a provider's, one generation below */
	YOUNGER,      /* one above */
	BEYOND,	      /* names a slot that there is not */
	UNBOUND,      /* of a window that was invalidated */
	REBOUND,      /* the one that a window had before it was bound anew */
	SUSPENDED,    /* of a region whose refresh failed */
	KEYS
};

enum { BOTH, READ_ONLY, WRITE_ONLY, LOCAL, RIGHTS };

enum bounds {
	WITHIN,
	ALL,
	LAST,	    /* the last bytes */
	BEFORE,	    /* the bytes before the first */
	OVER_START, /* from before it into it */
	BEHIND,	    /* the bytes behind the last */
	OVER_END,   /* across the end */
	FAR_OFF,    /* pages behind */
	LONGER,	    /* all of it and more */
	TO_2_64,    /* the last bytes of all */
	WRAPS,	    /* beyond them */
	HALF_WAY,   /* 2^63 further */
	OTHER,	    /* an offset where an address is due, or the reverse */
	HUGE,	    /* 2^39 bytes */
	EMPTY_END,  /* no byte, behind the last one: right */
	EMPTY_OFF,  /* no byte, pages behind: touches nothing, so right */
	SEAM,	    /* where two ranges of a list meet */
	BOUNDS
};

enum { TARGET, SAME_DOMAIN, OTHER_DOMAIN, TARGETS };

/* A row of the table. */
struct row {
	enum kind kind;	    /* of operation */
	enum form form;	    /* of call */
	enum key key;	    /* class of key */
	int rights;	    /* of its region */
	enum bounds bounds; /* what is touched */
	int target;	    /* who is asked */
	unsigned int shift; /* of atomics: address, to be native or not */
};

/* An access at the target. */
struct request {
	struct row row;		    /* where it comes from */
	struct fi_rma_iov there[3]; /* remote ranges */
	size_t nthere;		    /* their number */
	size_t here[3];		    /* lengths of the local ones */
	size_t nhere;		    /* their number */
	size_t len;		    /* bytes of all */
};

/* What must come of it. */
struct expect {
	int err;	      /* code or 0 */
	size_t moved;	      /* bytes that were done */
	struct fi_rma_iov at; /* the access that failed */
};

/* ---- what requests are made to ---------------------------------------------- */

/* Memory of one domain, as it is and as it must be. */
struct area {
	struct rk_mem m;	   /* AREA bytes */
	unsigned char image[AREA]; /* what must be in it */
};

/* A live region, for the model. */
struct region {
	struct fid_domain *domain; /* whose */
	bool unknown;		   /* its key is not published */
	struct area *area;	   /* where it lies */
	uint64_t key;		   /* its key */
	uint64_t base;		   /* how its first byte is addressed */
	uint64_t len;		   /* bytes */
	int rights;		   /* index of access_of[] */
	bool list;		   /* of PIECES ranges */
	bool whole;	   /* of all addresses; @base is that of FIRST */
	struct fid_mr *mr; /* the object */
};

/* How a test runs. */
struct setting {
	bool device; /* memory of the device, else private */
	bool virt;   /* addresses, else offsets */
	bool prov;   /* keys of the provider, else the user's */
	bool no_cma; /* the owner does what is not mapped */
};

/* All there is. Private to one process, one thread. */
struct bed {
	struct setting how;		/* modes */
	struct th_stack a;		/* the initiator */
	struct th_stack t[TARGETS];	/* who is asked */
	struct th_stack f;		/* in another fabric object */
	fi_addr_t to[TARGETS];		/* @t for @a */
	struct fid_cntr *done;		/* of @a: all it does */
	struct fid_cntr *told[TARGETS]; /* remote operations at @t */
	struct area area[2];		/* of t[0] and t[1], of t[2] */
	struct region region[64];	/* live ones */
	int nregions;			/* of them */
	struct fid_mr *idle;		/* the region that is not enabled */
	struct fid_mr *held[16];	/* windows, then what they are onto */
	int nheld;			/* their number */
	uint64_t key[KEYS][RIGHTS];	/* to try */
	uint64_t next_key;		/* a user's */
	unsigned char src[BUF];		/* written */
	unsigned char dst[BUF];		/* read, or the result */
	unsigned char cmp[BUF];		/* compared with */
	uint64_t row;			/* of the table, so far */
	uint64_t n;			/* requests so far */
	uint64_t wrong;			/* that were refused */
	uint64_t by_key[KEYS];		/* refused for the key, by class */
	uint64_t done_by[KEYS];		/* that moved bytes by it, by class */
	uint64_t good, bad;		/* as @done must count */
	uint64_t events[TARGETS];	/* as @told must */
};

/* True for fi_atomic(3). */
static inline bool is_atomic(const struct row *r)
{
	return r->kind >= ATOMIC;
}

/* True for calls without context. */
static inline bool silent(const struct row *r)
{
	return r->form == INJECT || r->form == INJDATA;
}

/* True if the target gets DATA. */
static inline bool with_data(const struct row *r)
{
	return r->form == CQDATA || r->form == MSGDATA || r->form == INJDATA;
}

/* The region that the domain of @target knows by @key, or NULL. */
const struct region *neg_find(const struct bed *b, int target, uint64_t key);

/* Where byte @off of @g lies in its area. */
size_t neg_spot(const struct region *g, uint64_t off);

/* What the contract says of @q. */
struct expect neg_predict(const struct bed *b, const struct request *q);

/* A region of the domain of @target, of several ranges or one, or NULL. */
const struct region *neg_region(const struct bed *b, bool list, int rights,
				int target);

/* The request of row @r. */
void neg_build(const struct bed *b, const struct row *r, struct request *q);

/* Makes the call; what the call returned. */
ssize_t neg_post(struct bed *b, const struct request *q);

#endif /* SHRIMP_TESTS_NEGATIVE_H */
