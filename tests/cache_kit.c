/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the tests of the registration cache share.
 */
#define _GNU_SOURCE
#include "cache_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env_probe.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

struct ck_how ck_off = { .cache = "off" };
struct ck_how ck_local_uffd = { .cache = "local", .monitor = "uffd" };
struct ck_how ck_local_notify = { .cache = "local", .monitor = "notify" };
struct ck_how ck_local_off = { .cache = "local", .monitor = "off" };
struct ck_how ck_all_uffd = { .cache = "all", .monitor = "uffd" };
struct ck_how ck_all_notify = { .cache = "all", .monitor = "notify" };
struct ck_how ck_all_off = { .cache = "all", .monitor = "off" };
struct ck_how ck_all_keep = { .cache = "all",
			      .monitor = "uffd",
			      .pin = "keep" };
struct ck_how ck_local_keep = { .cache = "local",
				.monitor = "uffd",
				.pin = "keep" };

/* ---- settings ------------------------------------------------------------- */

bool ck_can_watch(void)
{
	const uint64_t need = UFFD_FEATURE_EVENT_UNMAP |
			      UFFD_FEATURE_EVENT_REMOVE |
			      UFFD_FEATURE_EVENT_REMAP;
	struct uffdio_api api = { .api = UFFD_API, .features = need };
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	bool ok;

	if (fd < 0)
		return false;
	ok = !ioctl(fd, UFFDIO_API, &api) &&
	     api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	close(fd);
	return ok;
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

void ck_set(struct th_self *self)
{
	const struct ck_how *h = self->arg;

	if (h->monitor && !strcmp(h->monitor, "uffd") && !ck_can_watch())
		th_skip(self, "no userfaultfd that tells of unmapping");
	set("FI_SHRIMP_MR_CACHE", h->cache);
	set("FI_SHRIMP_MR_CACHE_MONITOR", h->monitor);
	set("FI_SHRIMP_MR_CACHE_PIN", h->pin);
	set("FI_SHRIMP_MR_CACHE_ENTRIES", h->entries);
	set("FI_SHRIMP_MONITOR", h->regions);
}

struct ck ck_of(struct th_self *self, struct th_stack *s)
{
	struct ck c = { .how = self->arg, .s = s };

	th_ok(fi_open_ops(&s->domain->fid, FI_SHRIMP_OPS_CACHE, 0,
			  (void **)&c.ops, NULL));
	th_check(c.ops->size >= sizeof(*c.ops));
	return c;
}

struct fi_shrimp_stats ck_stats(const struct ck *c)
{
	return probe_stats(&c->s->domain->fid);
}

/* ---- memory that changes --------------------------------------------------- */

static bool told(const struct ck *c)
{
	return c->how->monitor && !strcmp(c->how->monitor, "notify");
}

void ck_begin(const struct ck *c, const void *p, size_t len)
{
	if (told(c))
		th_ok(c->ops->unmap_begin(&c->s->domain->fid, p, len));
}

void ck_end(const struct ck *c, const void *p, size_t len)
{
	if (told(c))
		th_ok(c->ops->unmap_end(&c->s->domain->fid, p, len));
}

void ck_unmap(const struct ck *c, void *p, size_t len)
{
	ck_begin(c, p, len);
	th_eq(munmap(p, len), 0);
	ck_end(c, p, len);
}

/* Apart: the compiler would object to the address being told afterwards. */
static __attribute__((noinline)) void give_back(void *p)
{
	free(p);
}

void ck_free(const struct ck *c, void *p, size_t len)
{
	ck_begin(c, p, len);
	give_back(p);
	ck_end(c, p, len);
}

int ck_give_up(const struct ck *c, void *p, size_t len)
{
	int ret;

	ck_begin(c, p, len);
	ret = madvise(p, len, MADV_DONTNEED) ? -errno : 0;
	ck_end(c, p, len);
	return ret;
}

static void *map(void *want, size_t len, int fd, size_t off, int flags)
{
	void *p = mmap(
		want, len, PROT_READ | PROT_WRITE,
		flags | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), fd,
		(off_t)off);

	th_ptr_eq(p, want);
	return p;
}

/*
 * A sanitizer's threads map memory at any time, also where there was some a
 * moment ago: there it is one call.
 */
void ck_replace(const struct ck *c, void *p, size_t len, int fd, size_t off)
{
	int flags = MAP_FIXED;

	ck_begin(c, p, len);
	if (!th_sanitized()) {
		flags = MAP_FIXED_NOREPLACE;
		th_eq(munmap(p, len), 0);
	}
	map(p, len, fd, off, flags);
	ck_end(c, p, len);
}

void ck_map_over(const struct ck *c, void *p, size_t len, int fd, size_t off)
{
	ck_begin(c, p, len);
	map(p, len, fd, off, MAP_FIXED);
	ck_end(c, p, len);
}

void *ck_map_at(void *want, size_t len, int fd)
{
	return map(want, len, fd, 0, MAP_FIXED_NOREPLACE);
}

void ck_overflow(struct th_stack *s)
{
	const uint64_t key = UINT64_C(1) << 50;
	struct fid_mr *mr;

	for (int i = 0; i < 2; i++) {
		/* in a mapping of its own, and never unmapped */
		mr = rk_reg(s, rk_pages(2 * RK_PAGE), RK_PAGE, RK_RW, key);
		th_ok(fi_close(&mr->fid));
	}
}

/* ---- locked memory ---------------------------------------------------------- */

/* Bytes of @a to @b that are from @start to @end. */
static size_t common(uintptr_t a, uintptr_t b, uintptr_t start, uintptr_t end)
{
	uintptr_t lo = a > start ? a : start, hi = b < end ? b : end;

	return hi > lo ? hi - lo : 0;
}

size_t ck_locked(const void *p, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	uintptr_t a, b, start = 0, end = 0;
	size_t sum = 0;
	char line[512];

	th_check(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &a, &b) == 2) {
			start = a;
			end = b;
		} else if (!strncmp(line, "VmFlags:", 8) &&
			   strstr(line, " lo")) {
			sum += common((uintptr_t)p, (uintptr_t)p + len, start,
				      end);
		}
	}
	fclose(f);
	return sum;
}

/* ---- a bed ------------------------------------------------------------------- */

void ck_bed_open(struct ck_bed *b, struct th_self *self, const char *mode)
{
	struct th_stack_opts o = rk_opts();

	ck_set(self);
	if (mode) {
		setenv("FI_SHRIMP_MR_MODE", mode, 1);
		o.mr_mode |= FI_MR_PROV_KEY;
		if (strstr(mode, "virt_addr"))
			o.mr_mode |= FI_MR_VIRT_ADDR;
	}
	o.threading = FI_THREAD_SAFE;
	th_pair_open(&b->a, &b->b, &o);
	b->c = ck_of(self, &b->b);
	b->mr = rk_mr_ops(&b->b);
	b->dom = &b->b.domain->fid;
}

void ck_bed_close(struct ck_bed *b)
{
	th_pair_close(&b->a, &b->b);
}

void ck_touch(struct ck_bed *b, void *p, size_t len, uint64_t access)
{
	struct fid_mr *mr = rk_reg(&b->b, p, len, access, RK_KEY);

	th_ok(fi_close(&mr->fid));
}

/* ---- tests -------------------------------------------------------------------- */

void ck_case(void **state)
{
	const struct ck_spec *t = *state;

	th_run(t->n, t->main, t->how, t->seconds);
}
