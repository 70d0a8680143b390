/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the parts of shrimp-bench cache share: sb_cache_hit.c times hits,
 * sb_cache_cost.c misses, evictions, invalidations and registrations,
 * sb_cache_use.c what programs would see.
 *
 * One thread, unless said otherwise.
 */
#ifndef BENCH_SB_CACHE_H
#define BENCH_SB_CACHE_H

#include "bench/sb_options.h"
#include "bench/sb_side.h"

/** Settings of the provider that a domain may have for itself. */
enum sb_cache_var {
	SB_CACHE_MODE,	  /* FI_SHRIMP_MR_CACHE */
	SB_CACHE_ENTRIES, /* FI_SHRIMP_MR_CACHE_ENTRIES */
	SB_CACHE_KEEP,	  /* FI_SHRIMP_MR_CACHE_PIN */
	SB_CACHE_PIN,	  /* FI_SHRIMP_PIN */
	SB_CACHE_KEYS,	  /* FI_SHRIMP_MR_MODE; set by sb_cache_open() */
	SB_CACHE_VARS
};

/** Their values; NULL: as the environment says. */
struct sb_cache_set {
	const char *value[SB_CACHE_VARS];
};

/** A side with a cache; zeroed: closed. */
struct sb_cache {
	struct sb_side s;		   /* keys are the provider's */
	struct fi_ops_shrimp_cache *ops;   /* NULL: not offered */
	struct fi_ops_shrimp_stats *stats; /* of its domain */
	bool watches;			   /* it keeps private memory */
};

/** Whatever a program needs of a buffer, of its own or for peers. */
#define SB_CACHE_LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

/*
 * Opens a side with settings @set; the environment is as before when it
 * returns. Its monitor runs where the calling thread may run now. Returns 0 or
 * a negative code with nothing to do but sb_cache_close().
 */
int sb_cache_open(struct sb_cache *c, const struct sb_cache_set *set);

/* Closes all; zeroed memory is accepted. */
void sb_cache_close(struct sb_cache *c);

/* What it has counted. Any thread. Returns 0 or a negative code. */
int sb_cache_count(const struct sb_cache *c, struct fi_shrimp_stats *st);

/* Acquires and releases a region. Any thread. Returns 0 or negative. */
static inline int sb_cache_touch(const struct sb_cache *c, void *p, size_t len,
				 uint64_t access)
{
	struct fid_mr *mr;
	int ret = c->ops->acquire(&c->s.domain->fid, p, len, access, &mr);

	return ret ? sb_fail("acquire", ret) : c->ops->release(mr);
}

/* Registers and closes it instead. Any thread. Returns 0 or negative. */
int sb_cache_reg(const struct sb_cache *c, void *p, size_t len,
		 uint64_t access);

/** Pieces of private memory with a page between two of them; zeroed: none. */
struct sb_pieces {
	char *p;       /* the first */
	size_t len;    /* bytes of each, pages */
	size_t stride; /* from one to the next */
	size_t n;      /* how many */
	size_t whole;  /* bytes of the mapping */
};

/* Maps @n pieces, their pages there if @touch. Returns 0 or negative. */
int sb_pieces_map(struct sb_pieces *m, size_t n, size_t len, bool touch);

/* Unmaps them; zeroed memory is accepted. */
void sb_pieces_unmap(struct sb_pieces *m);

/* Piece @i. */
static inline char *sb_piece(const struct sb_pieces *m, size_t i)
{
	return m->p + i * m->stride;
}

/* Rows of hits, alone and while another thread unmaps. Returns 0 or < 0. */
int sb_cache_hits(const struct sb_options *o, struct sb_out *out);

/* Rows of what else the cache does. Returns 0 or a negative code. */
int sb_cache_costs(const struct sb_options *o, struct sb_out *out);

/** The processes of the last rows, forked before libfabric is called. */
struct sb_cache_users;

/*
 * Forks them. Returns NULL if that failed; said on stderr. Partner:
 * sb_cache_users_end().
 */
struct sb_cache_users *sb_cache_users_start(const struct sb_options *o);

/* Ends them. Accepts NULL. Returns 0 or -ECHILD. */
int sb_cache_users_end(struct sb_cache_users *u);

/* Rows of hit rates and times by pattern and limit. Returns 0 or negative. */
int sb_cache_use(const struct sb_options *o, struct sb_out *out,
		 struct sb_cache_users *u);

#endif
