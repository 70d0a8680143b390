/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One side of a pair over provider shrimp.
 */
#include "bench/sb_side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/sb_proc.h"

enum {
	POLLS = 1 << 12, /* empty polls between two looks at the clock */
	STUCK_S = 10,	 /* nothing for so long: something is wrong */
};

int sb_fail(const char *what, long code)
{
	fprintf(stderr, "shrimp-bench: %s: %s\n", what,
		fi_strerror((int)-code));
	return (int)code;
}

static int find(struct sb_side *s, int mr_mode)
{
	struct fi_info *h = fi_allocinfo();
	int ret;

	if (!h)
		return -FI_ENOMEM;
	h->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	h->ep_attr->type = FI_EP_RDM;
	h->fabric_attr->prov_name = strdup("shrimp");
	h->domain_attr->mr_mode = mr_mode;
	ret = fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, h, &s->info);
	fi_freeinfo(h);
	return ret ? sb_fail("no provider shrimp; is FI_PROVIDER_PATH set?",
			     ret)
		   : 0;
}

int sb_ep_open(struct sb_side *s, struct sb_ep *e)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	int ret = fi_cq_open(s->domain, &cq, &e->cq, NULL);

	if (!ret)
		ret = fi_endpoint(s->domain, s->info, &e->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(e->ep, &s->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(e->ep);
	return ret ? sb_fail("opening an endpoint", ret) : 0;
}

void sb_ep_close(struct sb_ep *e)
{
	if (e->ep)
		fi_close(&e->ep->fid);
	if (e->cq)
		fi_close(&e->cq->fid);
	memset(e, 0, sizeof(*e));
}

int sb_side_open(struct sb_side *s)
{
	return sb_side_open_as(s, FI_MR_ALLOCATED);
}

int sb_side_open_as(struct sb_side *s, int mr_mode)
{
	struct fi_av_attr av = { .type = FI_AV_MAP };
	int ret = find(s, mr_mode);

	if (ret)
		return ret;
	ret = fi_fabric(s->info->fabric_attr, &s->fabric, NULL);
	if (!ret)
		ret = fi_domain(s->fabric, s->info, &s->domain, NULL);
	if (!ret)
		ret = fi_av_open(s->domain, &av, &s->av, NULL);
	if (!ret)
		ret = fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MEM, 0,
				  (void **)&s->mem, NULL);
	if (ret)
		return sb_fail("opening the domain", ret);
	if (fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MR, 0, (void **)&s->mr,
			NULL))
		s->mr = NULL;
	return sb_ep_open(s, &s->main);
}

void sb_side_close(struct sb_side *s)
{
	sb_ep_close(&s->main);
	if (s->av)
		fi_close(&s->av->fid);
	if (s->domain)
		fi_close(&s->domain->fid);
	if (s->fabric)
		fi_close(&s->fabric->fid);
	if (s->info)
		fi_freeinfo(s->info);
	memset(s, 0, sizeof(*s));
}

int sb_side_meet(struct sb_side *s, int fd, uint64_t addr,
		 struct sb_hello *peer)
{
	struct sb_hello own = { .pid = getpid(), .addr = addr };
	size_t len = sizeof(own.name);
	int ret = fi_getname(&s->main.ep->fid, own.name, &len);

	if (!ret)
		ret = sb_proc_put(fd, &own, sizeof(own));
	if (!ret)
		ret = sb_proc_get(fd, peer, sizeof(*peer));
	if (ret)
		return sb_fail("meeting the other process", ret);
	if (fi_av_insert(s->av, peer->name, 1, &s->main.peer, 0, NULL) != 1)
		return sb_fail("the address of the other process", -FI_EINVAL);
	return 0;
}

static int error_read(struct sb_ep *e)
{
	struct fi_cq_err_entry err = { .err = 0 };
	ssize_t n = fi_cq_readerr(e->cq, &err, 0);

	if (n != 1)
		return sb_fail("fi_cq_readerr", n ? n : -FI_EIO);
	e->failed = err.err;
	return 1;
}

/* Up to @most completions; returns how many, or a negative code. */
static int some_read(struct sb_ep *e, unsigned int most)
{
	struct fi_cq_entry entry[16];
	ssize_t n = fi_cq_read(e->cq, entry, most < 16 ? most : 16);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL)
		return error_read(e);
	return n < 0 ? sb_fail("fi_cq_read", n) : (int)n;
}

int sb_ep_wait(struct sb_ep *e, unsigned int n)
{
	uint64_t until = 0;
	unsigned int polls = 0;
	int got;

	for (e->failed = 0; n; n -= (unsigned int)got) {
		got = some_read(e, n);
		if (got < 0)
			return got;
		if (!got && ++polls % POLLS)
			continue;
		if (got || !until)
			until = bench_clock_ns() + STUCK_S * 1000000000ull;
		else if (bench_clock_ns() > until)
			return sb_fail("no completion", -FI_ETIMEDOUT);
	}
	return 0;
}

/* ---- memory ---- */

int sb_mem_new(struct sb_side *s, struct sb_mem *m, bool device, size_t len)
{
	int ret = 0;

	*m = (struct sb_mem){ .len = len, .device = device };
	if (device) {
		ret = s->mem->alloc(&s->domain->fid, len, 0, (void **)&m->p);
		if (ret)
			m->p = NULL;
		return ret ? sb_fail("memory of the device", ret) : 0;
	}
	m->p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (m->p != MAP_FAILED)
		return 0;
	m->p = NULL;
	return sb_fail("memory", -errno);
}

int sb_mem_give(struct sb_side *s, struct sb_mem *m, uint64_t key)
{
	int ret = fi_mr_reg(s->domain, m->p, m->len, SB_REMOTE, 0, key, 0,
			    &m->mr, NULL);

	return ret ? sb_fail("fi_mr_reg", ret) : 0;
}

void sb_mem_free(struct sb_side *s, struct sb_mem *m)
{
	if (m->mr)
		fi_close(&m->mr->fid);
	if (m->p && m->device)
		s->mem->free(&s->domain->fid, m->p);
	else if (m->p)
		munmap(m->p, m->len);
	memset(m, 0, sizeof(*m));
}
