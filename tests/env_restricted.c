/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Poor surroundings: a tiny or full /dev/shm, no single-copy calls, ordinary
 * users, processes that cannot be looked into, other namespaces. Messages
 * of all sizes go both ways everywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

enum { NOBODY = 65534 };

/* Whether this program has a /dev/shm of its own. */
static bool isolated;

/*
 * Loads the provider, so that a later change of user or root folder does not
 * matter to libfabric.
 */
static void load_provider(void)
{
	struct fi_info *hints = th_hints(NULL), *info;

	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Opens, talks both ways, closes. */
static void talk(struct th_self *self)
{
	struct th_stack s;

	ks_open_all(&s, self);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "talked");
	th_stack_close(&s);
}

/* ---- /dev/shm --------------------------------------------------------------- */

/* Fills /dev/shm to the last byte. */
static void fill_shm(void)
{
	static const char zeros[65536];
	int fd = open("/dev/shm/full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	th_check(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	th_eq(errno, ENOSPC);
	close(fd);
}

static void tiny_shm(unsigned int mib, bool full)
{
	char opts[32];

	if (!isolated) {
		print_message("skipped: no mount namespace permitted\n");
		skip();
	}
	snprintf(opts, sizeof(opts), "size=%um", mib);
	assert_int_equal(mount("shm", "/dev/shm", "tmpfs", 0, opts), 0);
	if (full)
		fill_shm();
	th_run(2, talk, NULL, 30);
	assert_int_equal(probe_entries("/dev/shm", ""), full);
	assert_int_equal(umount("/dev/shm"), 0);
}

static void case_E10_1_mib(void **state)
{
	(void)state;
	tiny_shm(1, false);
}

static void case_E10_16_mib(void **state)
{
	(void)state;
	tiny_shm(16, false);
}

static void case_E10_64_mib(void **state)
{
	(void)state;
	tiny_shm(64, false);
}

static void case_E10_full(void **state)
{
	(void)state;
	tiny_shm(1, true);
}

/* ---- no single copy ------------------------------------------------------------ */

static void forbid_cma(struct th_self *self)
{
	if (!probe_forbid(SYS_process_vm_readv, SYS_process_vm_writev, EPERM))
		th_skip(self, "system call filters are not permitted");
}

static void case_E11_nobody_may(struct th_self *self)
{
	forbid_cma(self);
	talk(self);
}

static void case_E11_one_may(struct th_self *self)
{
	if (self->rank)
		forbid_cma(self);
	talk(self);
}

/* Forbidden only after the peers have met. */
static void case_E11_later(struct th_self *self)
{
	struct th_stack s;

	ks_open_all(&s, self);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	forbid_cma(self);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "talked");
	th_stack_close(&s);
}

/* ---- users and namespaces ---------------------------------------------------------- */

/* Becomes an ordinary user whose processes can be looked into, or not. */
static void become_nobody(struct th_self *self, bool dumpable)
{
	load_provider();
	if (geteuid() == 0)
		th_check(!setgroups(0, NULL) && !setgid(NOBODY) &&
			 !setuid(NOBODY));
	else if (!dumpable)
		th_skip(self, "not root");
	th_ok(prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0));
	/* the change of user cleared it */
	th_ok(prctl(PR_SET_PDEATHSIG, SIGKILL));
}

static void case_E11_ordinary_user(struct th_self *self)
{
	become_nobody(self, true);
	talk(self);
}

/* /proc tells nothing about such a process: the socket does. */
static void case_E11_undumpable(struct th_self *self)
{
	become_nobody(self, false);
	talk(self);
}

static void write_map(const char *path, unsigned int id)
{
	char map[64];
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int n = snprintf(map, sizeof(map), "%u %u 1", id, id);

	th_check(fd >= 0);
	th_eq(write(fd, map, (size_t)n), n);
	close(fd);
}

/* One of two is in a user namespace of its own, under its own name. */
static void case_E11_user_namespace(struct th_self *self)
{
	unsigned int uid = geteuid();

	load_provider();
	if (self->rank) {
		if (unshare(CLONE_NEWUSER))
			th_skip(self, "user namespaces are not permitted");
		write_map("/proc/self/uid_map", uid);
	}
	talk(self);
}

/* ---- the socket ------------------------------------------------------------ */

/* Who did not serve in time is alive: the next send begins anew. */
static void contract_P4_busy_peer(struct th_self *self)
{
	struct th_stack s;

	setenv("FI_SHRIMP_ATTACH", "socket", 1);
	ks_open_all(&s, self);
	if (self->rank == 0) {
		th_tsend(&s, s.peers[1], "message!", 8, KS_TAG, NULL);
		th_eq(th_tx_err(&s).err, FI_ETIMEDOUT);
	}
	th_barrier(self, "timed out");
	ks_one_message(&s, self, 0, 1);
	th_stack_close(&s);
}

/* ------------------------------------------------------------------------- */

static const struct CMUnitTest env_restricted[] = {
	cmocka_unit_test(case_E10_1_mib),
	cmocka_unit_test(case_E10_16_mib),
	cmocka_unit_test(case_E10_64_mib),
	cmocka_unit_test(case_E10_full),
	TH_CASE(case_E11_nobody_may, 2, 30),
	TH_CASE(case_E11_one_may, 2, 30),
	TH_CASE(case_E11_later, 2, 30),
	TH_CASE(case_E11_ordinary_user, 2, 30),
	TH_CASE(case_E11_undumpable, 2, 30),
	TH_CASE(case_E11_user_namespace, 2, 30),
	TH_CASE(contract_P4_busy_peer, 2, 30),
};

int main(int argc, char **argv)
{
	if (th_is_shrimp())
		isolated = probe_isolate(1);
	return th_main(argc, argv, "env_restricted", env_restricted,
		       sizeof(env_restricted) / sizeof(env_restricted[0]));
}
