/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of registration, RMA and atomics share.
 */
#define _GNU_SOURCE
#include "rma_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env_probe.h"

struct th_stack_opts rk_opts(void)
{
	return (struct th_stack_opts){ .caps = FI_MSG | FI_TAGGED | FI_RMA,
				       .mr_mode = FI_MR_ALLOCATED };
}

struct th_stack_opts rk_atomic_opts(void)
{
	struct th_stack_opts o = rk_opts();

	o.caps |= FI_ATOMIC;
	return o;
}

/* ---- memory ------------------------------------------------------------- */

void *rk_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	th_check(p != MAP_FAILED);
	return p;
}

struct rk_mem(rk_mem_new)(struct th_stack *s, bool device, size_t len)
{
	struct rk_mem m = { .domain = s->domain, .len = len };
	void *p;

	if (device) {
		th_ok(fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MEM, 0,
				  (void **)&m.ops, NULL));
		th_ok(m.ops->alloc(&s->domain->fid, len, 0, &p));
	} else {
		p = rk_pages(len);
	}
	m.p = p;
	return m;
}

void rk_mem_free(struct rk_mem *m)
{
	if (m->ops)
		th_ok(m->ops->free(&m->domain->fid, m->p));
	else
		th_eq(munmap(m->p, m->len), 0);
	m->p = NULL;
}

struct fid_mr *(rk_reg)(struct th_stack *s, void *p, size_t len,
			uint64_t access, uint64_t key)
{
	struct fid_mr *mr = NULL;

	th_ok(fi_mr_reg(s->domain, p, len, access, 0, key, 0, &mr, s));
	return mr;
}

struct rk_region(rk_region_new)(struct th_stack *s, bool device, size_t len,
				uint64_t access)
{
	struct rk_region r = { .m = (rk_mem_new)(s, device, len) };

	r.p = r.m.p;
	r.mr = (rk_reg)(s, r.p, len, access, RK_KEY);
	return r;
}

void rk_region_free(struct rk_region *r)
{
	if (r->mr)
		th_ok(fi_close(&r->mr->fid));
	rk_mem_free(&r->m);
}

void(rk_bed_open)(struct rk_bed *t, const struct th_stack_opts *o, bool device,
		  size_t len)
{
	(th_pair_open)(&t->a, &t->b, o);
	t->r = (rk_region_new)(&t->b, device, len, RK_RW);
}

void(rk_bed_close)(struct rk_bed *t)
{
	rk_region_free(&t->r);
	(th_pair_close)(&t->a, &t->b);
}

struct fid_cntr *rk_cntr(struct th_stack *s, enum fi_wait_obj wait,
			 uint64_t flags)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = wait };
	struct fid_cntr *c;

	th_ok(fi_cntr_open(s->domain, &attr, &c, NULL));
	if (flags)
		th_ok(fi_ep_bind(s->ep, &c->fid, flags));
	return c;
}

struct fi_ops_shrimp_mr *rk_mr_ops(struct th_stack *s)
{
	struct fi_ops_shrimp_mr *ops = NULL;

	th_ok(fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_MR, 0, (void **)&ops,
			  NULL));
	th_check(ops->size >= sizeof(*ops));
	return ops;
}

int rk_file_new(size_t len)
{
	int fd = memfd_create("rk-file", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	th_check(fd >= 0);
	th_eq(ftruncate(fd, (off_t)len), 0);
	th_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

unsigned char *rk_file_map(int fd, size_t len, void *at)
{
	void *p = mmap(at, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	th_check(p != MAP_FAILED);
	return p;
}

/* ---- completions --------------------------------------------------------- */

static struct rk_outcome end_of(int ret, const struct fi_cq_tagged_entry *e,
				const struct fi_cq_err_entry *err)
{
	struct rk_outcome end = { .context = e->op_context, .flags = e->flags };

	if (ret == 1)
		return end;
	end.err = err->err;
	end.context = err->op_context;
	end.flags = err->flags;
	end.moved = err->len;
	end.told = err->err_data && err->err_data_size >= sizeof(end.data);
	if (end.told)
		memcpy(&end.data, err->err_data, sizeof(end.data));
	th_check(end.err > 0);
	return end;
}

struct rk_outcome(rk_end)(struct th_stack *s)
{
	struct fi_cq_tagged_entry e = { 0 };
	struct fi_cq_err_entry err = { 0 };
	int ret = (th_cq_next)(s, s->txcq, &e, &err);

	return end_of(ret, &e, &err);
}

bool rk_end_now(struct th_stack *s, struct rk_outcome *end)
{
	struct fi_cq_tagged_entry e = { 0 };
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(s->txcq, &e, 1);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret != 1) {
		th_eq(ret, -FI_EAVAIL);
		th_eq(fi_cq_readerr(s->txcq, &err, 0), 1);
	}
	*end = end_of((int)ret, &e, &err);
	return true;
}

int rk_write_at(struct th_stack *s, uint64_t key, uint64_t addr, size_t len,
		unsigned char byte)
{
	static unsigned char buf[64 << 10];

	th_check(len <= sizeof(buf));
	memset(buf, byte, len);
	th_ok(fi_write(s->ep, buf, len, NULL, s->peers[1], addr, key, buf));
	return (rk_end)(s).err;
}

void(rk_done)(struct th_stack *s, uint64_t flag, const void *ctx)
{
	struct rk_outcome e = (rk_end)(s);

	th_eq(e.err, 0);
	th_eq(e.flags, FI_RMA | flag);
	th_ptr_eq(e.context, ctx);
}

void(rk_refused)(struct th_stack *s, int err, uint64_t key, uint64_t addr,
		 uint64_t len)
{
	struct rk_outcome e = (rk_end)(s);

	th_eq(e.err, err);
	th_check(e.told);
	th_eq(e.data.key, key);
	th_eq(e.data.addr, addr);
	th_eq(e.data.len, len);
	if (s->buddy)
		th_eq(e.data.pid, getpid());
	th_eq(e.data.err, err);
}

/* ---- a peer that stops inside an access ------------------------------ */

size_t rk_big(void)
{
	return th_sanitized() ? 8 << 20 : 32 << 20;
}

void rk_stream(struct th_self *self, struct th_stack *s, uint64_t key)
{
	unsigned char *buf = malloc(rk_big());
	struct rk_outcome e;

	th_check(buf);
	memset(buf, 1, rk_big());
	th_barrier(self, "registered");
	th_note(self, "streams", 1);
	do {
		th_ok(fi_write(s->ep, buf, rk_big(), NULL, s->peers[0], 0, key,
			       s));
		e = rk_end(s);
	} while (!e.err);
	th_eq(e.err, FI_EKEYREJECTED);
	/* it has done whatever it will do */
	th_barrier(self, "rejected");
	free(buf);
}

void rk_stop_stream(struct th_group *g)
{
	th_group_wait_note(g, 1, "streams");
	th_group_serve(g, 20);
	th_group_kill(g, 1, SIGSTOP);
	th_group_serve(g, 20);
	th_group_tell(g, 0, 1);
}

/* ---- numbers -------------------------------------------------------------- */

unsigned int rk_ms(unsigned int secs)
{
	const char *quick = getenv("SHRIMP_QUICK");

	if (th_long())
		return secs * 10000;
	if (th_sanitized() || (quick && atoi(quick)))
		return secs * 100;
	return secs * 1000;
}

size_t rk_locked(void)
{
	return (size_t)probe_status("VmLck") << 10;
}

static void map_over(void *p, size_t len, int prot)
{
	th_ptr_eq(mmap(p, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0),
		  p);
}

void rk_take_away(void *p, size_t len)
{
	map_over(p, len, PROT_NONE);
}

void rk_map_again(void *p, size_t len)
{
	map_over(p, len, PROT_READ | PROT_WRITE);
}
