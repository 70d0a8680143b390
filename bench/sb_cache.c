/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-bench cache: the registration cache.
 */
#define _GNU_SOURCE
#include "bench/sb_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/sb_proc.h"
#include "bench/sb_subs.h"

/* ---- a side with settings of its own ---- */

static const char *const var_name[SB_CACHE_VARS] = {
	[SB_CACHE_MODE] = "FI_SHRIMP_MR_CACHE",
	[SB_CACHE_ENTRIES] = "FI_SHRIMP_MR_CACHE_ENTRIES",
	[SB_CACHE_KEEP] = "FI_SHRIMP_MR_CACHE_PIN",
	[SB_CACHE_PIN] = "FI_SHRIMP_PIN",
	[SB_CACHE_KEYS] = "FI_SHRIMP_MR_MODE",
};

/* Sets what @set names; @old: what was there. */
static int vars_set(const struct sb_cache_set *set, char *old[SB_CACHE_VARS])
{
	for (int i = 0; i < SB_CACHE_VARS; i++) {
		const char *was = getenv(var_name[i]);

		old[i] = NULL;
		if (!set->value[i])
			continue;
		old[i] = was ? strdup(was) : NULL;
		if ((was && !old[i]) || setenv(var_name[i], set->value[i], 1))
			return -ENOMEM;
	}
	return 0;
}

static void vars_reset(const struct sb_cache_set *set, char *old[SB_CACHE_VARS])
{
	for (int i = 0; i < SB_CACHE_VARS; i++) {
		if (set->value[i] && !old[i])
			unsetenv(var_name[i]);
		else if (set->value[i])
			setenv(var_name[i], old[i], 1);
		free(old[i]);
	}
}

/* Whether private memory is kept; the first time starts the monitor. */
static int probe(struct sb_cache *c)
{
	struct fi_shrimp_stats st;
	struct sb_pieces m;
	int ret = sb_pieces_map(&m, 1, SB_PAGE, true);

	if (!ret)
		ret = sb_cache_touch(c, m.p, m.len, SB_CACHE_LOCAL);
	if (!ret)
		ret = sb_cache_count(c, &st);
	c->watches = !ret && st.cache_entries;
	if (!ret)
		ret = c->ops->flush(&c->s.domain->fid);
	sb_pieces_unmap(&m);
	return ret;
}

static int open_ops(struct sb_cache *c)
{
	struct fid *fid = &c->s.domain->fid;
	int ret = fi_open_ops(fid, FI_SHRIMP_OPS_STATS, 0, (void **)&c->stats,
			      NULL);

	if (ret)
		return sb_fail("opening the statistics", ret);
	if (fi_open_ops(fid, FI_SHRIMP_OPS_CACHE, 0, (void **)&c->ops, NULL)) {
		c->ops = NULL;
		return 0;
	}
	return probe(c);
}

int sb_cache_open(struct sb_cache *c, const struct sb_cache_set *set)
{
	char *old[SB_CACHE_VARS] = { NULL };
	struct sb_cache_set all = *set;
	int ret;

	/* acquire for peers wants it */
	all.value[SB_CACHE_KEYS] = "prov_key";
	ret = vars_set(&all, old);
	if (!ret)
		ret = sb_side_open_as(&c->s, FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	vars_reset(&all, old);
	return ret ? ret : open_ops(c);
}

void sb_cache_close(struct sb_cache *c)
{
	sb_side_close(&c->s);
	memset(c, 0, sizeof(*c));
}

int sb_cache_count(const struct sb_cache *c, struct fi_shrimp_stats *st)
{
	int ret;

	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	ret = c->stats->read(&c->s.domain->fid, st);
	return ret ? sb_fail("statistics", ret) : 0;
}

int sb_cache_reg(const struct sb_cache *c, void *p, size_t len, uint64_t access)
{
	struct fid_mr *mr;
	int ret = fi_mr_reg(c->s.domain, p, len, access, 0, 0, 0, &mr, NULL);

	if (ret)
		return sb_fail("fi_mr_reg", ret);
	ret = fi_close(&mr->fid);
	return ret ? sb_fail("fi_close", ret) : 0;
}

/* ---- memory ---- */

int sb_pieces_map(struct sb_pieces *m, size_t n, size_t len, bool touch)
{
	char *around;
	int ret;

	*m = (struct sb_pieces){ .len = len, .stride = len + SB_PAGE, .n = n };
	m->whole = n * m->stride;
	/* a page that is not there on each side: a mapping of its own */
	around = mmap(NULL, m->whole + 2 * SB_PAGE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (around == MAP_FAILED)
		return sb_fail("memory", -errno);
	m->p = mmap(around + SB_PAGE, m->whole, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED |
			    (touch ? MAP_POPULATE : 0),
		    -1, 0);
	if (m->p != MAP_FAILED)
		return 0;
	ret = sb_fail("memory", -errno);
	munmap(around, m->whole + 2 * SB_PAGE);
	memset(m, 0, sizeof(*m));
	return ret;
}

void sb_pieces_unmap(struct sb_pieces *m)
{
	if (m->p)
		munmap(m->p - SB_PAGE, m->whole + 2 * SB_PAGE);
	memset(m, 0, sizeof(*m));
}

/* ---- the subcommand ---- */

/* 0, or 1: not offered, and said. */
static int is_offered(struct sb_out *out)
{
	struct sb_side s = { .info = NULL };
	void *ops;
	int ret = sb_side_open(&s);

	if (!ret &&
	    fi_open_ops(&s.domain->fid, FI_SHRIMP_OPS_CACHE, 0, &ops, NULL)) {
		sb_out_note(out, "registration cache: not offered by this "
				 "provider");
		ret = 1;
	}
	sb_side_close(&s);
	return ret;
}

static int cache_run(const struct sb_options *o, struct sb_out *out)
{
	struct sb_cache_users *u = sb_cache_users_start(o);
	int ret = u ? is_offered(out) : -ENOMEM, end;

	if (!ret)
		ret = sb_cache_hits(o, out);
	sb_cpus_all();
	if (!ret)
		ret = sb_cache_costs(o, out);
	if (!ret)
		ret = sb_cache_use(o, out, u);
	end = sb_cache_users_end(u);
	return ret < 0 ? ret : end;
}

const struct sb_bench sb_bench_cache = {
	.name = "cache",
	.about = "find registrations in the cache",
	.help = "Hits (acquire and release) of private memory, of the device's "
		"and of a sealed\nmemfd, with 1, 100 and 10,000 entries, by "
		"several threads; the same while another\nthread maps and unmaps "
		"memory, watched or not. Floor: two locked adds, the ioctl\nthat "
		"asks the kernel; beside the other thread, if there is one. "
		"Misses and their\nparts, beside fi_mr_reg without cache and "
		"pin; evictions; munmap and madvise of\nwhat is cached, beside "
		"memory that is not; fi_mr_reg and fi_close by setting.\nThen "
		"programs, a process for each limit (entries): hit rate, and "
		"time of a message\nbeside the program without registration; "
		"acquired, or registered and closed.\n--plot draws the hit "
		"rates.\n",
	.threads = 2,
	.axes = { .title = "Hit rate of the registration cache",
		  .x = "entries",
		  .y = "percent",
		  .log_x = true,
		  .y_step = 25,
		  .y_most = 100 },
	.run = cache_run,
};
