/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Counters: live endpoints are read from the tables, closed ones are kept.
 *
 * Exclusion: closed.lock protects the sums of closed endpoints and domains;
 * innermost.
 */
#include "lib/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/fabric.h"
#include "lib/mem.h"
#include "lib/mr_cache.h"
#include "lib/mr_ext.h"
#include "lib/odp.h"
#include "shm/log.h"

/* The order in which struct rnic_stats and fi_shrimp_stats agree. */
_Static_assert(FI_SHRIMP_PATH_MAX == 8, "paths in struct rnic_stats");
_Static_assert(FI_SHRIMP_REACH_MAX == 4, "likewise");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fi_shrimp_stats gone; /* of closed domains */

static void add_traffic(struct fi_shrimp_traffic *t, const rnic_a64 *msgs,
			const rnic_a64 *bytes)
{
	for (int i = 0; i < FI_SHRIMP_PATH_MAX; i++) {
		/* relaxed: statistics */
		t->msgs[i] += rnic_load64_relaxed(&msgs[i]);
		t->bytes[i] += rnic_load64_relaxed(&bytes[i]);
	}
}

static void add_onesided(struct fi_shrimp_stats *t, const struct rnic_stats *s)
{
	for (int i = 0; i < FI_SHRIMP_REACH_MAX; i++) {
		/* relaxed: statistics */
		t->rma_ops[i] += rnic_load64_relaxed(&s->rma_msgs[i]);
		t->rma_bytes[i] += rnic_load64_relaxed(&s->rma_bytes[i]);
		t->atomic_ops[i] += rnic_load64_relaxed(&s->atomics[i]);
	}
	t->served += rnic_load64_relaxed(&s->served);
	t->page_asks += rnic_load64_relaxed(&s->page_asks);
}

static void add_place(struct fi_shrimp_stats *t, const struct rnic_stats *s)
{
	add_traffic(&t->tx, s->tx_msgs, s->tx_bytes);
	add_traffic(&t->rx, s->rx_msgs, s->rx_bytes);
	add_onesided(t, s);
	/* relaxed: statistics */
	t->unexpected_msgs += rnic_load64_relaxed(&s->unexpected);
	t->held_msgs += rnic_load64_relaxed(&s->held);
	t->tx_queued += rnic_load64_relaxed(&s->queued);
	t->tx_eagain += rnic_load64_relaxed(&s->eagain);
	t->peers += rnic_load64_relaxed(&s->peers);
	t->peers_reset += rnic_load64_relaxed(&s->resets);
	t->dropped_msgs += rnic_load64_relaxed(&s->dropped);
	t->doorbells += rnic_load64_relaxed(&s->doorbells);
	t->wakeups += rnic_load64_relaxed(&s->wakeups);
	t->sleeps += rnic_load64_relaxed(&s->sleeps);
	t->attach_proc += rnic_load64_relaxed(&s->attach_proc);
	t->attach_socket += rnic_load64_relaxed(&s->attach_socket);
}

/* What the device itself counts. */
static void add_paging(struct fi_shrimp_stats *t, const struct shrimp_domain *d)
{
	const struct rnic_paging *p =
		(const struct rnic_paging *)((const char *)d->dev.hdr +
					     d->dev.hdr->paging_off);

	/* relaxed: statistics */
	t->page_requests += rnic_load64_relaxed(&p->requests);
	t->page_faults += rnic_load64_relaxed(&p->faults);
	t->page_merged += rnic_load64_relaxed(&p->merged);
	t->pages_prefetched += rnic_load64_relaxed(&p->prefetched);
	t->pages_invalidated += rnic_load64_relaxed(&p->invalidated);
	t->mrs_gone += rnic_load64_relaxed(&p->gone);
	t->mrs_implicit += rnic_load64_relaxed(&p->implicit);
}

/* Adds @s to @t: both are sums of 64-bit words behind the size field. */
static void add_sums(struct fi_shrimp_stats *t, const struct fi_shrimp_stats *s)
{
	const uint64_t *from = (const uint64_t *)&s->tx;
	uint64_t *to = (uint64_t *)&t->tx;
	size_t n = (sizeof(*t) - offsetof(struct fi_shrimp_stats, tx)) /
		   sizeof(*to);

	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

static void add_domain(struct shrimp_domain *d, void *arg)
{
	struct fi_shrimp_stats *t = arg;
	struct shrimp_ep *ep;

	shrimp_domain_lock(d);
	pthread_mutex_lock(&lock);
	add_sums(t, &d->closed);
	pthread_mutex_unlock(&lock);
	cds_list_for_each_entry (ep, &d->eps, in_dom)
		add_place(t, ep->stats);
	add_paging(t, d);
	shrimp_mr_cache_stats(d, t);
	shrimp_domain_unlock(d);
}

void shrimp_stats_close_ep(struct shrimp_domain *d, const struct rnic_stats *s)
{
	pthread_mutex_lock(&lock);
	add_place(&d->closed, s);
	pthread_mutex_unlock(&lock);
}

/* A child of a fork has its parent's object, and nothing of the device. */
static bool is_inherited(const struct fid *fid)
{
	if (fid->fclass == FI_CLASS_DOMAIN)
		return ((const struct shrimp_domain *)fid)->inherited;
	return fid->fclass == FI_CLASS_FABRIC &&
	       ((const struct shrimp_fabric *)fid)->inherited;
}

static int stats_read(struct fid *fid, struct fi_shrimp_stats *stats)
{
	struct fi_shrimp_stats t = { 0 };
	size_t n;

	if (!fid || !stats || stats->size < sizeof(stats->size))
		return -FI_EINVAL;
	if (is_inherited(fid))
		return -FI_EOPBADSTATE;
	if (fid->fclass == FI_CLASS_FABRIC) {
		pthread_mutex_lock(&lock);
		t = gone;
		pthread_mutex_unlock(&lock);
		shrimp_domain_each(add_domain, &t);
	} else if (fid->fclass == FI_CLASS_DOMAIN) {
		add_domain((struct shrimp_domain *)fid, &t);
	} else {
		return -FI_EINVAL;
	}
	n = stats->size < sizeof(t) ? stats->size : sizeof(t);
	t.size = n;
	memcpy(stats, &t, n);
	return 0;
}

const struct fi_ops_shrimp_stats shrimp_stats_ops = {
	.size = sizeof(struct fi_ops_shrimp_stats),
	.read = stats_read,
};

int shrimp_stats_ops_open(struct fid *fid, const char *name, uint64_t flags,
			  void **ops)
{
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (is_inherited(fid))
		return -FI_EOPBADSTATE;
	if (fid->fclass == FI_CLASS_DOMAIN &&
	    !strcmp(name, FI_SHRIMP_OPS_MEM)) {
		*ops = (void *)(uintptr_t)&shrimp_mem_ops;
		return 0;
	}
	if (fid->fclass == FI_CLASS_DOMAIN && !strcmp(name, FI_SHRIMP_OPS_MR)) {
		*ops = (void *)(uintptr_t)&shrimp_mr_ext_ops;
		return 0;
	}
	if (fid->fclass == FI_CLASS_DOMAIN &&
	    !strcmp(name, FI_SHRIMP_OPS_CACHE)) {
		*ops = (void *)(uintptr_t)&shrimp_cache_ops;
		return 0;
	}
	if (strcmp(name, FI_SHRIMP_OPS_STATS))
		return -FI_ENOSYS;
	*ops = (void *)(uintptr_t)&shrimp_stats_ops;
	return 0;
}

/* ---- FI_SHRIMP_STATS ---- */

/* Appends @len bytes in one write, so that lines of processes stay whole. */
static void append(const struct shrimp_domain *d, const char *line, size_t len)
{
	int fd = open(d->set->stats_file,
		      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, line, len) != (ssize_t)len)
		rnic_log(RNIC_LOG_WARN, "FI_SHRIMP_STATS=%s: %s",
			 d->set->stats_file, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void shrimp_stats_opened(const struct shrimp_domain *d)
{
	char line[128];
	int n;

	if (!d->set->stats_file)
		return;
	n = snprintf(line, sizeof(line),
		     "shrimp-open=1 pid=%d id=%016" PRIx64 "\n", getpid(),
		     d->dev.hdr->incarnation);
	append(d, line, (size_t)n);
}

static size_t print_traffic(char *to, size_t room, const char *dir,
			    const struct fi_shrimp_traffic *t)
{
	static const char *const name[] = { "inline", "ring", "pool", "stream",
					    "heap",   "cma",  "self" };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		n += (size_t)snprintf(
			to + n, room - n,
			" %s_msgs_%s=%" PRIu64 " %s_bytes_%s=%" PRIu64, dir,
			name[i], t->msgs[i], dir, name[i], t->bytes[i]);
	return n;
}

/* RMA and atomics, by how they got to the memory. */
static size_t print_reach(char *to, size_t room,
			  const struct fi_shrimp_stats *t)
{
	static const char *const name[] = { "mapped", "cma", "owner" };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		n += (size_t)snprintf(
			to + n, room - n,
			" rma_ops_%s=%" PRIu64 " rma_bytes_%s=%" PRIu64
			" atomic_ops_%s=%" PRIu64,
			name[i], t->rma_ops[i], name[i], t->rma_bytes[i],
			name[i], t->atomic_ops[i]);
	return n;
}

/* Registration on demand. */
static size_t print_paging(char *to, size_t room,
			   const struct fi_shrimp_stats *t)
{
	return (size_t)snprintf(
		to, room,
		" page_asks=%" PRIu64 " page_requests=%" PRIu64
		" page_faults=%" PRIu64 " page_merged=%" PRIu64
		" pages_prefetched=%" PRIu64 " pages_invalidated=%" PRIu64
		" mrs_gone=%" PRIu64 " mrs_implicit=%" PRIu64,
		t->page_asks, t->page_requests, t->page_faults, t->page_merged,
		t->pages_prefetched, t->pages_invalidated, t->mrs_gone,
		t->mrs_implicit);
}

/* Registration cache. */
static size_t print_cache(char *to, size_t room,
			  const struct fi_shrimp_stats *t)
{
	return (size_t)snprintf(
		to, room,
		" cache_hits=%" PRIu64 " cache_misses=%" PRIu64
		" cache_uncached=%" PRIu64 " cache_evictions=%" PRIu64
		" cache_unmapped=%" PRIu64 " cache_moved=%" PRIu64
		" cache_discarded=%" PRIu64 " cache_told=%" PRIu64
		" cache_lost=%" PRIu64 " cache_merged=%" PRIu64,
		t->cache_hits, t->cache_misses, t->cache_uncached,
		t->cache_evictions, t->cache_unmapped, t->cache_moved,
		t->cache_discarded, t->cache_told, t->cache_lost,
		t->cache_merged);
}

static void write_line(const struct shrimp_domain *d,
		       const struct fi_shrimp_stats *t)
{
	char line[4096];
	size_t n = (size_t)snprintf(line, sizeof(line),
				    "shrimp-stats=1 pid=%d id=%016" PRIx64,
				    getpid(), d->dev.hdr->incarnation);

	n += print_traffic(line + n, sizeof(line) - n, "tx", &t->tx);
	n += print_traffic(line + n, sizeof(line) - n, "rx", &t->rx);
	n += print_reach(line + n, sizeof(line) - n, t);
	n += print_paging(line + n, sizeof(line) - n, t);
	n += print_cache(line + n, sizeof(line) - n, t);
	n += (size_t)snprintf(
		line + n, sizeof(line) - n,
		" unexpected_msgs=%" PRIu64 " held_msgs=%" PRIu64
		" tx_queued=%" PRIu64 " tx_eagain=%" PRIu64 " peers=%" PRIu64
		" peers_reset=%" PRIu64 " dropped_msgs=%" PRIu64
		" doorbells=%" PRIu64 " wakeups=%" PRIu64 " sleeps=%" PRIu64
		" attach_proc=%" PRIu64 " attach_socket=%" PRIu64
		" served=%" PRIu64 "\n",
		t->unexpected_msgs, t->held_msgs, t->tx_queued, t->tx_eagain,
		t->peers, t->peers_reset, t->dropped_msgs, t->doorbells,
		t->wakeups, t->sleeps, t->attach_proc, t->attach_socket,
		t->served);
	append(d, line, n);
}

void shrimp_stats_retire(struct shrimp_domain *d)
{
	struct fi_shrimp_stats t;

	pthread_mutex_lock(&lock);
	add_paging(&d->closed, d);
	shrimp_mr_cache_stats(d, &d->closed);
	add_sums(&gone, &d->closed);
	t = d->closed;
	pthread_mutex_unlock(&lock);
	if (d->set->stats_file)
		write_line(d, &t);
}
