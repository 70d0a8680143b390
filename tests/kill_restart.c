/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Ends and starts: nothing of a process remains however it ends, the next
 * one starts under the same name, and names that others took do not matter.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

enum { NTURNS = 10, NSQUAT = 64 };

/* ---- random numbers that the test knows ------------------------------- */

static bool fixed_random;	  /* the numbers below are given out */
static unsigned int random_calls; /* how many were */

/* The @n-th number. */
static uint64_t fixed_number(unsigned int n)
{
	return UINT64_C(0x5ec0000000000000) + n;
}

/*
 * In the place of libc's, for the provider as well: its attach socket has a
 * name that nobody can guess, so that nobody can squat it but with this.
 */
ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	uint64_t n;
	size_t i;

	if (!fixed_random)
		return syscall(SYS_getrandom, buf, len, flags);
	n = fixed_number(random_calls++);
	for (i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)(n >> i % 8 * 8);
	return (ssize_t)len;
}

/* ---- services ----------------------------------------------------------- */

/* The service of this test, the same in all its processes. */
static const char *service_name(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "kill-restart-%d", getppid());
	return name;
}

static void server_open(struct th_stack *s, bool enable)
{
	struct th_stack_opts o = { .service = service_name(),
				   .flags = FI_SOURCE,
				   .no_enable = !enable };

	th_stack_open(s, &o);
}

/* Opens a client; returns what the service is called there. */
static fi_addr_t client_open(struct th_stack *s)
{
	struct th_stack_opts o = { .service = service_name() };

	th_stack_open(s, &o);
	th_check(s->info->dest_addr);
	return th_insert(s, s->info->dest_addr);
}

static void send_one(struct th_stack *s, fi_addr_t to)
{
	char buf[8];

	th_fill(buf, sizeof(buf), 1);
	th_tsend(s, to, buf, sizeof(buf), KS_TAG, NULL);
	th_tx_ok(s);
}

static void recv_one(struct th_stack *s)
{
	char buf[8];

	th_trecv(s, buf, sizeof(buf), KS_TAG, 0, NULL);
	ks_expect_message(s, buf, sizeof(buf), 1);
}

static void e1_server(struct th_self *self, bool dies)
{
	struct th_stack s;

	if (!dies)
		th_barrier(self, "second");
	server_open(&s, true);
	recv_one(&s);
	if (dies)
		ks_die();
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/*
 * The first server is killed; the second, of the same name, starts at once
 * and is reached by a new client, while the old client is told.
 */
static void case_E1_same_service(struct th_self *self)
{
	struct th_stack old, new;
	fi_addr_t to;

	if (self->rank) {
		e1_server(self, self->rank == KS_VICTIM);
		return;
	}
	to = client_open(&old);
	send_one(&old, to);
	th_barrier(self, "second");
	ks_send_until_reset(&old, to);
	send_one(&new, client_open(&new));
	th_barrier_progress(self, &new, "end");
	th_stack_close(&new);
	th_stack_close(&old);
}

/* A client that starts before its server waits for it. */
static void case_E13_client_first(struct th_self *self)
{
	struct th_stack s;

	if (self->rank == 0) {
		send_one(&s, client_open(&s));
	} else {
		th_sleep_us(1500000);
		server_open(&s, true);
		recv_one(&s);
	}
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* A name that is in use is refused; once free it can be had. */
static void case_E2_taken_service(struct th_self *self)
{
	struct th_stack s;

	if (self->rank == 0)
		server_open(&s, true);
	th_barrier(self, "taken");
	if (self->rank) {
		server_open(&s, false);
		th_eq(fi_enable(s.ep), -FI_EADDRINUSE);
	}
	th_barrier(self, "refused");
	th_stack_close(&s);
	th_barrier(self, "free");
	if (self->rank) {
		server_open(&s, true);
		th_stack_close(&s);
	}
}

/* ---- squatted names -------------------------------------------------------- */

static void squat(unsigned int n, int type)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	socklen_t len;

	th_check(fd >= 0);
	len = (socklen_t)snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
				  "shrimp-%u-%016" PRIx64, geteuid(),
				  fixed_number(n));
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	th_ok(bind(fd, (struct sockaddr *)&a, len));
}

static void squat_all(unsigned int names)
{
	unsigned int n;

	for (n = 0; n < names; n++) {
		squat(n, SOCK_SEQPACKET);
		squat(n, SOCK_STREAM);
	}
}

/* Names that somebody has are passed over; the device can be reached. */
static void case_E2_squatted(struct th_self *self)
{
	struct th_stack s;

	setenv("FI_SHRIMP_ATTACH", "socket", 1);
	if (self->rank == 0) {
		squat_all(3);
		fixed_random = true;
	}
	th_stack_open(&s, NULL);
	fixed_random = false;
	if (self->rank == 0)
		th_check(random_calls > 3);
	th_stack_connect(&s, self);
	ks_one_message(&s, self, 1, 0);
	ks_one_message(&s, self, 0, 1);
	th_stack_close(&s);
}

/* No name is free: an error, and nothing is left open. */
static void case_E2_all_squatted(struct th_self *self)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *hints = th_hints(NULL), *info;
	unsigned int fds;

	(void)self;
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	th_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	squat_all(NSQUAT);
	fds = probe_fds();
	fixed_random = true;
	th_eq(fi_domain(fabric, info, &domain, NULL), -FI_EADDRINUSE);
	fixed_random = false;
	th_eq(probe_maps("memfd:shrimp"), 0);
	th_check(probe_fds() <= fds + 1);
	th_ok(fi_domain(fabric, info, &domain, NULL));
	th_ok(fi_close(&domain->fid));
	th_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- ends ----------------------------------------------------------------------- */

enum ending { CLOSE, EXIT, ABORT, TERM, KILL, NENDINGS };

static const int ending_signal[NENDINGS] = { 0, 0, SIGABRT, SIGTERM, SIGKILL };

static void end_as(enum ending how)
{
	if (how == EXIT)
		_exit(0);
	/* another provider's library may have a handler that writes files */
	signal(SIGABRT, SIG_DFL);
	if (how == ABORT)
		abort();
	kill(getpid(), ending_signal[how]);
	for (;;)
		pause();
}

static void ends_main(struct th_self *self)
{
	enum ending how = *(enum ending *)self->arg;
	struct th_stack s;

	ks_open_all(&s, self);
	ks_one_message(&s, self, 0, 1);
	ks_one_message(&s, self, 1, 0);
	th_barrier(self, "talked");
	if (self->rank && how != CLOSE)
		end_as(how);
	th_stack_close(&s);
}

/* However a process ends, no name of shrimp's remains anywhere. */
static void ends(enum ending how)
{
	unsigned int before = probe_leftovers(), shm;
	struct th_group *g;

	shm = probe_entries("/dev/shm", "");
	g = th_group_start(2, ends_main, &how, 20);
	if (ending_signal[how])
		th_group_expect_death(g, 1, ending_signal[how]);
	th_group_finish(g);
	assert_int_equal(probe_leftovers(), before);
	assert_int_equal(probe_entries("/dev/shm", ""), shm);
}

static void case_E3_close(void **state)
{
	(void)state;
	ends(CLOSE);
}

static void case_E3_exit(void **state)
{
	(void)state;
	ends(EXIT);
}

static void case_E3_abort(void **state)
{
	(void)state;
	ends(ABORT);
}

static void case_E3_sigterm(void **state)
{
	(void)state;
	ends(TERM);
}

static void case_E3_sigkill(void **state)
{
	(void)state;
	ends(KILL);
}

/* ---- incarnations ------------------------------------------------------------------- */

/* Even ranks close their endpoint after their turn, odd ones are killed. */
static bool is_killed(int rank)
{
	return rank % 2;
}

/* Turn @t of the client, which keeps its endpoint; @old is the last server. */
static fi_addr_t client_turn(struct th_self *self, struct th_stack *s, int t,
			     fi_addr_t old)
{
	char all[(NTURNS + 1) * TH_MAX_ADDR];
	fi_addr_t new;

	th_gather(self, "server", s->addr, all, s->addrlen);
	new = th_insert(s, all + (size_t)t * s->addrlen);
	send_one(s, new);
	if (t > 1)
		ks_send_until_reset(s, old);
	recv_one(s);
	th_barrier(self, "ended");
	return new;
}

/* The turn of a server: it answers one message and ends. */
static void server_turn(struct th_self *self)
{
	char all[(NTURNS + 1) * TH_MAX_ADDR];
	struct th_stack s;

	th_stack_open(&s, NULL);
	th_gather(self, "server", s.addr, all, s.addrlen);
	recv_one(&s);
	send_one(&s, th_insert(&s, all));
	if (is_killed(self->rank))
		ks_die();
	th_stack_close(&s);
	th_barrier(self, "ended");
}

/* A turn of another. */
static void idle_turn(struct th_self *self, size_t len)
{
	static const char none[TH_MAX_ADDR];
	char all[(NTURNS + 1) * TH_MAX_ADDR];

	th_gather(self, "server", none, all, len);
	th_barrier(self, "ended");
}

/* How long names are; all agree before the first turn. */
static size_t name_length(void)
{
	struct th_stack s;
	size_t len;

	th_stack_open(&s, NULL);
	len = s.addrlen;
	th_stack_close(&s);
	return len;
}

static void restarted_main(struct th_self *self)
{
	fi_addr_t old = FI_ADDR_UNSPEC;
	size_t len = name_length();
	struct th_stack s;
	int t;

	if (self->rank == 0)
		th_stack_open(&s, NULL);
	for (t = 1; t < self->size; t++) {
		if (self->rank == 0)
			old = client_turn(self, &s, t, old);
		else if (self->rank == t)
			server_turn(self);
		else
			idle_turn(self, len);
	}
	if (self->rank == 0)
		th_stack_close(&s);
}

/*
 * Ten servers one after the other, half of them killed: one client with one
 * endpoint reaches each of them, and none that has ended.
 */
static void case_E8_restarted(void **state)
{
	struct th_group *g =
		th_group_start(NTURNS + 1, restarted_main, NULL, 40);
	int i;

	(void)state;
	for (i = 1; i <= NTURNS; i++)
		if (is_killed(i))
			th_group_expect_death(g, i, SIGKILL);
	th_group_finish(g);
}

static void service_server(struct th_self *self)
{
	struct th_stack s;

	if (self->rank != KS_VICTIM)
		th_barrier(self, "dead");
	server_open(&s, true);
	recv_one(&s);
	if (self->rank == KS_VICTIM)
		ks_die();
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/*
 * A server is restarted under its service name: a client that removes the
 * name and inserts it again reaches the new incarnation.
 */
static void case_E8_service(struct th_self *self)
{
	struct th_stack s;
	fi_addr_t to;

	if (self->rank) {
		service_server(self);
		return;
	}
	to = client_open(&s);
	send_one(&s, to);
	th_barrier(self, "dead");
	ks_send_until_reset(&s, to);
	th_eq(fi_av_remove(s.av, &to, 1, 0), 0);
	send_one(&s, th_insert(&s, s.info->dest_addr));
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ------------------------------------------------------------------------- */

static const struct CMUnitTest kill_restart[] = {
	KS_CASE(case_E1_same_service, 3),
	TH_CASE(case_E2_taken_service, 2, 20),
	TH_CASE(case_E2_squatted, 2, 20),
	TH_CASE(case_E2_all_squatted, 1, 20),
	cmocka_unit_test(case_E3_close),
	cmocka_unit_test(case_E3_exit),
	cmocka_unit_test(case_E3_abort),
	cmocka_unit_test(case_E3_sigterm),
	cmocka_unit_test(case_E3_sigkill),
	cmocka_unit_test(case_E8_restarted),
	KS_CASE(case_E8_service, 3),
	TH_CASE(case_E13_client_first, 2, 20),
};

int main(int argc, char **argv)
{
	if (th_is_shrimp())
		probe_isolate(64);
	ks_init();
	return th_main(argc, argv, "kill_restart", kill_restart,
		       sizeof(kill_restart) / sizeof(kill_restart[0]));
}
