/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Small limits of the process: a clean error, or it works; never a signal,
 * never a hang (contract L2). And a core dump that stays small.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

enum {
	MIB = 1024 * 1024,
	CORE_MAX_MIB = 64, /* a core dump is smaller */
	CORE_MAX_MS = 2000 /* and done within */
};

static void limit(int what, rlim_t value)
{
	struct rlimit r;

	th_ok(getrlimit(what, &r));
	r.rlim_cur = value;
	th_ok(setrlimit(what, &r));
}

/* ---- opening step by step ----------------------------------------------- */

static int open_ep(struct th_stack *s)
{
	int ret = fi_endpoint(s->domain, s->info, &s->ep, NULL);

	if (!ret)
		ret = fi_ep_bind(s->ep, &s->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(s->ep, &s->txcq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(s->ep);
}

/* Opens all objects; returns the first error. */
static int open_all(struct th_stack *s)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
				 .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av = { .type = FI_AV_MAP };
	struct fi_info *hints = th_hints(NULL);
	int ret;

	memset(s, 0, sizeof(*s));
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info);
	fi_freeinfo(hints);
	if (!ret)
		ret = fi_fabric(s->info->fabric_attr, &s->fabric, NULL);
	if (!ret)
		ret = fi_domain(s->fabric, s->info, &s->domain, NULL);
	if (!ret)
		ret = fi_av_open(s->domain, &av, &s->av, NULL);
	if (!ret)
		ret = fi_cq_open(s->domain, &cq, &s->txcq, NULL);
	return ret ? ret : open_ep(s);
}

static void close_fid(struct fid *fid)
{
	if (fid)
		th_ok(fi_close(fid));
}

/* Closes what open_all() has opened, all of it or a part. */
static void close_all(struct th_stack *s)
{
	close_fid(s->ep ? &s->ep->fid : NULL);
	close_fid(s->txcq ? &s->txcq->fid : NULL);
	close_fid(s->av ? &s->av->fid : NULL);
	close_fid(s->domain ? &s->domain->fid : NULL);
	close_fid(s->fabric ? &s->fabric->fid : NULL);
	if (s->info)
		fi_freeinfo(s->info);
}

/* Opens and closes once, so that what is made once per process is there. */
static void warm_up(void)
{
	struct th_stack s;

	th_eq(open_all(&s), 0);
	close_all(&s);
}

/* ---- size of files -------------------------------------------------------- */

/* No SIGXFSZ: the limit is looked at before a segment gets its size. */
static void contract_L2_file_size(struct th_self *self)
{
	struct probe_stderr e;
	static char text[65536];
	struct th_stack s;
	int ret;

	(void)self;
	e = probe_stderr_begin();
	limit(RLIMIT_FSIZE, MIB);
	ret = open_all(&s);
	probe_stderr_end(&e, text, sizeof(text));
	th_eq(ret, -EFBIG);
	th_check(s.fabric && !s.domain);
	probe_expect(text, "ulimit -f");
	close_all(&s);
	th_eq(probe_maps("memfd:shrimp"), 0);
}

/* ---- descriptors ------------------------------------------------------------- */

/* With few descriptors each open call fails cleanly or works. */
static void env_open_files(struct th_self *self)
{
	unsigned int fds, extra, failed = 0;
	struct th_stack s;
	int ret = -1;

	(void)self;
	warm_up();
	fds = probe_fds();
	for (extra = 0; extra < 64; extra++) {
		limit(RLIMIT_NOFILE, fds + extra);
		ret = open_all(&s);
		if (ret)
			th_eq(ret, -FI_EMFILE);
		failed += !!ret;
		close_all(&s);
		limit(RLIMIT_NOFILE, 1024);
		th_check(probe_fds() <= fds);
	}
	th_eq(ret, 0);
	th_check(failed >= 3);
}

enum { NPEERS = 30 };

/* Sends to all with few descriptors left: each arrives or says FI_EMFILE. */
static unsigned int send_to_all(struct th_stack *s, unsigned int extra)
{
	unsigned int i, ok = 0;
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;

	limit(RLIMIT_NOFILE, probe_fds() + extra);
	for (i = 1; i <= NPEERS; i++) {
		th_eq(fi_tsend(s->ep, "message!", 8, NULL, s->peers[i], KS_TAG,
			       NULL),
		      0);
		if (th_cq_next(s, s->txcq, &e, &err) == 1)
			ok++;
		else
			th_eq(err.err, FI_EMFILE);
	}
	limit(RLIMIT_NOFILE, 1024);
	return ok;
}

static void few_descriptors(struct th_self *self, unsigned int extra, bool all)
{
	struct th_stack s;
	char buf[8];

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0 && all)
		th_eq(send_to_all(&s, extra), NPEERS);
	else if (self->rank == 0)
		send_to_all(&s, extra);
	else if (all)
		th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, NULL);
	if (self->rank && all)
		th_rx_ok(&s);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* Two descriptors for each peer are plenty. */
static void env_descriptors_enough(struct th_self *self)
{
	few_descriptors(self, 2 * NPEERS, true);
}

static void env_descriptors_few(struct th_self *self)
{
	few_descriptors(self, 10, false);
}

/*
 * A receiver without a single descriptor to spare takes no sender for dead:
 * what was sent arrives, at the latest when there are descriptors again.
 */
static void env_descriptors_receiver(struct th_self *self)
{
	struct th_stack s;
	char buf[8];
	int i;

	th_stack_open(&s, NULL);
	th_stack_connect(&s, self);
	if (self->rank == 0)
		limit(RLIMIT_NOFILE, probe_fds());
	th_barrier(self, "no descriptor");
	if (self->rank)
		th_tsend(&s, s.peers[0], "message!", 8, KS_TAG, NULL);
	if (self->rank == 0)
		th_quiet(&s, 700);
	th_barrier_progress(self, &s, "sent");
	limit(RLIMIT_NOFILE, 1024);
	for (i = 0; i < NPEERS && self->rank == 0; i++) {
		th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, NULL);
		th_rx_ok(&s);
	}
	if (self->rank)
		th_tx_ok(&s);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* What failed for want of descriptors is tried again when they are there. */
static void env_descriptors_again(struct th_self *self)
{
	struct th_stack s;
	int i;

	ks_open_all(&s, self);
	if (self->rank == 0) {
		limit(RLIMIT_NOFILE, probe_fds());
		for (i = 0; i < 2; i++) {
			th_tsend(&s, s.peers[1], "message!", 8, KS_TAG, NULL);
			th_eq(th_tx_err(&s).err, FI_EMFILE);
		}
		limit(RLIMIT_NOFILE, 1024);
	}
	th_barrier(self, "again");
	ks_one_message(&s, self, 0, 1);
	th_stack_close(&s);
}

/* ---- threads ---------------------------------------------------------------------- */

static rlim_t address_space(void);

/*
 * A region that needs the agent when no thread can be had: an error that tells
 * nobody to try again for ever, nothing left, and later it works.
 */
static void env_no_thread(struct th_self *self)
{
	static unsigned char buf[4096];
	struct fid_mr *mr;
	struct th_stack s;

	(void)self;
	if (th_sanitized())
		th_skip(self, "address space is not limited here");
	th_stack_open(&s, NULL);
	/* room for all but a stack */
	limit(RLIMIT_AS, address_space() + MIB);
	for (int i = 0; i < 3; i++)
		th_eq(fi_mr_reg(s.domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0,
				1, 0, &mr, NULL),
		      -FI_ENOMEM);
	limit(RLIMIT_AS, RLIM_INFINITY);
	th_ok(fi_mr_reg(s.domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0, 1, 0,
			&mr, NULL));
	th_ok(fi_close(&mr->fid));
	th_stack_close(&s);
}

/* Without a thread for its agent an endpoint is not enabled; later it is. */
static void env_no_thread_enable(struct th_self *self)
{
	char service[32];
	const struct th_stack_opts o = { .progress = FI_PROGRESS_AUTO,
					 .service = service,
					 .flags = FI_SOURCE,
					 .no_enable = true };
	struct th_stack s;

	(void)self;
	if (th_sanitized())
		th_skip(self, "address space is not limited here");
	snprintf(service, sizeof(service), "%d", 20000 + getppid() % 20000);
	th_stack_open(&s, &o);
	limit(RLIMIT_AS, address_space() + MIB);
	for (int i = 0; i < 2; i++)
		th_eq(fi_enable(s.ep), -FI_ENOMEM);
	limit(RLIMIT_AS, RLIM_INFINITY);
	th_stack_enable(&s);
	th_stack_close(&s);
}

/* ---- address space -------------------------------------------------------------- */

/* Bytes of address space in use. */
static rlim_t address_space(void)
{
	return (rlim_t)probe_status("VmSize") * 1024;
}

/* Too little address space is -FI_ENOMEM; with enough it works. */
static void env_address_space(struct th_self *self)
{
	struct th_stack s;
	rlim_t used, extra;
	int ret = -1;

	if (th_sanitized())
		th_skip(self, "sanitizers use all of the address space");
	warm_up();
	used = address_space();
	for (extra = MIB; extra <= (rlim_t)MIB << 17; extra *= 2) {
		limit(RLIMIT_AS, used + extra);
		ret = open_all(&s);
		if (ret)
			th_eq(ret, -FI_ENOMEM);
		close_all(&s);
		limit(RLIMIT_AS, RLIM_INFINITY);
		th_eq(probe_maps("memfd:shrimp"), 0);
	}
	th_eq(ret, 0);
}

/* ---- memory of segments ------------------------------------------------------------ */

/* From here on no segment of this process gets a page. */
static void no_more_pages(struct th_self *self)
{
	if (!probe_forbid(SYS_fallocate, -1, ENOSPC))
		th_skip(self, "system call filters are not permitted");
}

/* No page for a device: an error of an open call. */
static void contract_L2_no_space_open(struct th_self *self)
{
	unsigned int fds;
	struct th_stack s;

	warm_up();
	fds = probe_fds();
	no_more_pages(self);
	th_eq(open_all(&s), -FI_ENOSPC);
	close_all(&s);
	th_check(probe_fds() <= fds);
	th_eq(probe_maps("memfd:shrimp"), 0);
}

/* No page for a lane: an error of the send; receiving goes on. */
static void contract_L2_no_space_lane(struct th_self *self)
{
	struct th_stack s;

	ks_open_all(&s, self);
	if (self->rank == 0) {
		no_more_pages(self);
		th_tsend(&s, s.peers[1], "message!", 8, KS_TAG, NULL);
		th_eq(th_tx_err(&s).err, FI_ENOSPC);
	}
	th_barrier(self, "failed");
	ks_one_message(&s, self, 1, 0);
	th_stack_close(&s);
}

/*
 * No page for the chunk pool: larger messages find another way or end in an
 * error, small ones go on.
 */
static void contract_L2_no_space_pool(struct th_self *self)
{
	static const size_t len[] = { 2000, 30000, 3 * MIB };
	static char buf[3 * MIB];
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	struct th_stack s;
	size_t i;

	ks_open_all(&s, self);
	ks_one_message(&s, self, 0, 1);
	if (self->rank == 0)
		no_more_pages(self);
	for (i = 0; i < 3 && self->rank; i++)
		th_trecv(&s, buf, sizeof(buf), KS_TAG + 1, 0, NULL);
	for (i = 0; i < 3 && !self->rank; i++) {
		th_tsend(&s, s.peers[1], buf, len[i], KS_TAG + 1, NULL);
		th_progress(&s);
	}
	for (i = 0; i < 3 && !self->rank; i++)
		if (th_cq_next(&s, s.txcq, &e, &err) != 1)
			th_check(err.err == FI_ENOSPC || err.err == FI_ENOMEM);
	th_barrier_progress(self, &s, "large ones ended");
	if (!self->rank)
		ks_one_message(&s, self, 0, 1);
	else
		th_barrier_progress(self, &s, "one message");
	th_stack_close(&s);
}

/* ---- core dumps ------------------------------------------------------------------- */

static char core_dir[] = "/tmp/kernel-core-XXXXXX";

/* True if the kernel writes a core file into the working folder. */
static bool cores_are_local(void)
{
	char pattern[128] = "";
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "re");

	if (!f)
		return false;
	if (!fgets(pattern, sizeof(pattern), f))
		pattern[0] = 0;
	fclose(f);
	return strncmp(pattern, "core", 4) == 0;
}

static void core_main(struct th_self *self)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };
	struct th_stack s;

	if (self->rank && (setrlimit(RLIMIT_CORE, &r) || chdir(core_dir)))
		th_skip(self, "core dumps are not permitted");
	ks_open_all(&s, self);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "talked");
	if (self->rank) {
		/* another provider's library may have a handler */
		signal(SIGABRT, SIG_DFL);
		th_note(self, "abort", 0);
		abort();
	}
	th_barrier(self, "dumped");
	th_stack_close(&s);
}

/* Size in MiB of what is in the core folder, which is emptied and removed. */
static unsigned long core_size(void)
{
	unsigned long mib = 0;
	char cmd[128], line[64];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "du -sm --apparent-size %s; rm -rf %s",
		 core_dir, core_dir);
	f = popen(cmd, "re");
	assert_non_null(f);
	if (fgets(line, sizeof(line), f))
		mib = strtoul(line, NULL, 10);
	pclose(f);
	return mib;
}

/* A core dump has neither our sparse segments nor those of peers in it. */
static void env_core_small(void **state)
{
	struct th_group *g;
	unsigned long mib;
	uint64_t t;

	(void)state;
	if (th_sanitized() || !cores_are_local())
		skip();
	assert_non_null(mkdtemp(core_dir));
	g = th_group_start(2, core_main, NULL, 30);
	th_group_expect_death(g, 1, SIGABRT);
	th_group_wait_note(g, 1, "abort");
	t = th_now_ns();
	while (th_group_pid(g, 1) && th_group_pump(g, 10))
		;
	t = (th_now_ns() - t) / 1000000;
	th_group_finish(g);
	mib = core_size();
	print_message("core dump: %lu MiB in %lu ms\n", mib, (unsigned long)t);
	assert_in_range(mib, 1, CORE_MAX_MIB);
	assert_in_range(t, 0, CORE_MAX_MS);
}

static const struct CMUnitTest env_limits[] = {
	TH_CASE(contract_L2_file_size, 1, 10),
	TH_CASE(env_open_files, 1, 20),
	TH_CASE(env_descriptors_enough, NPEERS + 1, 30),
	TH_CASE(env_descriptors_few, NPEERS + 1, 30),
	TH_CASE(env_descriptors_receiver, NPEERS + 1, 30),
	TH_CASE(env_descriptors_again, 2, 20),
	TH_CASE(env_no_thread, 1, 20),
	TH_CASE(env_no_thread_enable, 1, 20),
	TH_CASE(env_address_space, 1, 20),
	TH_CASE(contract_L2_no_space_open, 1, 20),
	TH_CASE(contract_L2_no_space_lane, 2, 20),
	TH_CASE(contract_L2_no_space_pool, 2, 20),
	cmocka_unit_test(env_core_small),
};

TH_MAIN(env_limits)
