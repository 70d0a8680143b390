/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Steps that the tests of dying peers share.
 */
#include "kill_steps.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env_probe.h"

/* As the file of a check: the failure is shown at the caller's line. */
#define CALLER "harness", 0

struct ks_shared *ks_shared;

void ks_init(void)
{
	ks_shared = probe_shared(sizeof(*ks_shared));
}

void ks_case(void **state)
{
	const struct ks_spec *k = *state;
	struct th_group *g;

	memset(ks_shared, 0, sizeof(*ks_shared));
	g = th_group_start(k->n, k->main, NULL, 40);
	th_group_expect_death(g, KS_VICTIM, SIGKILL);
	th_group_finish(g);
}

void ks_open_with(struct th_stack *s, struct th_self *self,
		  enum fi_wait_obj wait)
{
	struct th_stack_opts o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE |
					   FI_DIRECTED_RECV,
				   .cq_wait = wait };

	th_stack_open(s, &o);
	th_stack_connect(s, self);
}

void ks_open_all(struct th_stack *s, struct th_self *self)
{
	ks_open_with(s, self, FI_WAIT_NONE);
}

void ks_die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

void ks_until_dead(struct th_self *self)
{
	th_barrier(self, "ready");
	if (self->rank == KS_VICTIM)
		ks_die();
	th_barrier(self, "dead");
}

struct fi_cq_err_entry(ks_error_soon)(struct th_stack *s, struct fid_cq *cq)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN) {
		th_progress(s);
		if (th_expired(&dl))
			th_fail(CALLER, "no error entry within 5 s");
	}
	th_eq_at(CALLER, "next entry is an error", ret, -FI_EAVAIL);
	th_eq_at(CALLER, "it can be read", fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

void(ks_reset_soon)(struct th_stack *s, struct fid_cq *cq, void *ctx)
{
	struct fi_cq_err_entry err = (ks_error_soon)(s, cq);

	th_eq_at(CALLER, "error code", err.err, FI_ECONNRESET);
	th_eq_at(CALLER, "context", (intptr_t)err.op_context, (intptr_t)ctx);
}

void(ks_send_until_reset)(struct th_stack *s, fi_addr_t dead)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;

	do {
		if (th_expired(&dl))
			th_fail(CALLER, "sends still succeed after 5 s");
		th_sleep_us(1000);
		th_tsend(s, dead, "message!", 8, KS_TAG, NULL);
	} while ((th_cq_next)(s, s->txcq, &e, &err) == 1);
	th_eq_at(CALLER, "error code", err.err, FI_ECONNRESET);
}

void(ks_dropped_soon)(struct th_stack *s, uint64_t n)
{
	struct th_deadline dl = th_deadline_ms(KS_NOTICE_MS);
	struct fid *fid = &s->fabric->fid;

	while (probe_stats(fid).dropped_msgs < n && !th_expired(&dl))
		th_progress(s);
	th_eq_at(CALLER, "dropped messages",
		 (int64_t)probe_stats(fid).dropped_msgs, (int64_t)n);
}

void(ks_expect_message)(struct th_stack *s, void *buf, size_t len,
			uint64_t seed)
{
	struct fi_cq_tagged_entry e = (th_rx_ok)(s);

	th_eq_at(CALLER, "length", (int64_t)e.len, (int64_t)len);
	th_eq_at(CALLER, "tag", (int64_t)e.tag, KS_TAG);
	(th_verify)(buf, len, seed);
}

void ks_one_message(struct th_stack *s, struct th_self *self, int from, int to)
{
	char buf[8];

	if (self->rank == from) {
		th_fill(buf, sizeof(buf), 1);
		th_tsend(s, s->peers[to], buf, sizeof(buf), KS_TAG, NULL);
		th_tx_ok(s);
	} else if (self->rank == to) {
		th_trecv(s, buf, sizeof(buf), KS_TAG, 0, NULL);
		ks_expect_message(s, buf, sizeof(buf), 1);
	}
	th_barrier_progress(self, s, "one message");
}

static const size_t size_classes[] = {
	0, 8, 40, 41, 1000, 1025, 4096, 30000, 65536, 65537, 1 << 20, 3 << 20,
};
enum { NSIZES = sizeof(size_classes) / sizeof(size_classes[0]) };

void(ks_exchange_sizes)(struct th_stack *s, fi_addr_t peer)
{
	size_t max = size_classes[NSIZES - 1], len, i;
	char *out = malloc(max), *in = malloc(max);

	th_check(out && in);
	for (i = 0; i < NSIZES; i++) {
		len = size_classes[i];
		th_fill(out, len, i);
		th_trecv(s, in, max, KS_TAG, 0, NULL);
		th_tsend(s, peer, out, len, KS_TAG, NULL);
		(ks_expect_message)(s, in, len, i);
		(th_tx_ok)(s);
	}
	free(in);
	free(out);
}

void ks_survivors_go_on(struct th_stack *s, struct th_self *self)
{
	int i;

	for (i = 0; i < 5; i++) {
		ks_one_message(s, self, 0, KS_OTHER);
		ks_one_message(s, self, KS_OTHER, 0);
	}
}

/* ---- storms --------------------------------------------------------- */

void ks_addresses(struct th_self *self, const char *addr, size_t len, char *all)
{
	th_gather(self, "addresses", addr, all, len);
}

bool ks_is_peer(const struct th_stack *s, const char *all, int i, int rank)
{
	static const char none[TH_MAX_ADDR];

	return i != rank &&
	       memcmp(all + (size_t)i * s->addrlen, none, s->addrlen) != 0;
}

void ks_victim_meet(int fd, const struct ks_storm *storm,
		    const struct th_stack *s, char *all)
{
	size_t len = s->addrlen * (size_t)(storm->survivors + storm->victims);

	th_eq(send(fd, s->addr, s->addrlen, MSG_NOSIGNAL), s->addrlen);
	th_eq(recv(fd, all, len, 0), len);
}

void ks_check_notice(const struct ks_storm *storm)
{
	uint64_t last = 0, now = th_now_ns();

	for (int i = storm->survivors; i < KS_RANKS; i++) {
		uint64_t at = atomic_load(&ks_shared->killed_ns[i]);

		last = at > last ? at : last;
	}
	th_check(now <
		 last + UINT64_C(1000000) * KS_NOTICE_MS * th_time_scale());
}

/* A victim as its manager sees it. */
struct prey {
	pid_t pid;		/* process */
	int fd;			/* socket to it */
	char addr[TH_MAX_ADDR]; /* its name, zeros if it has none */
	size_t len;		/* bytes of a name; 0: not known yet */
};

static void prey_start(struct prey *p, const struct ks_storm *storm, int rank,
		       unsigned long no)
{
	int fds[2];

	atomic_store(&ks_shared->killed_ns[rank], 0);
	th_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	p->pid = fork();
	th_check(p->pid >= 0);
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		storm->victim(fds[1], storm, rank, no);
	}
	close(fds[1]);
	p->fd = fds[0];
	memset(p->addr, 0, sizeof(p->addr));
}

static void prey_kill(struct prey *p, int rank)
{
	int status;

	atomic_store(&ks_shared->killed_ns[rank], th_now_ns());
	kill(p->pid, SIGKILL);
	th_eq(waitpid(p->pid, &status, 0), p->pid);
	th_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(p->fd);
}

/*
 * Waits @us at most (0: as long as it takes) for the address; without one it
 * stays zeros.
 */
static void prey_addr(struct prey *p, unsigned int us)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	ssize_t n;

	if (us && poll(&pfd, 1, (int)us / 1000) == 0)
		return;
	n = recv(p->fd, p->addr, sizeof(p->addr), 0);
	th_check(n > 0);
	p->len = (size_t)n;
}

/* Microseconds, short times as likely as long ones. */
static unsigned int random_us(uint64_t *state, unsigned int bits)
{
	uint64_t r = th_random(state);

	return (unsigned int)(r >> 32) & ((1u << (r % bits + 1)) - 1);
}

static void hunt(struct th_self *self, const struct ks_storm *storm,
		 unsigned long no, uint64_t *state, size_t len)
{
	bool early = th_random(state) % 5 == 0;
	char all[KS_RANKS * TH_MAX_ADDR];
	struct prey p = { 0 };

	prey_start(&p, storm, self->rank, no);
	if (early) {
		prey_addr(&p, 1000 + random_us(state, 15));
		prey_kill(&p, self->rank);
	} else {
		prey_addr(&p, 0);
		th_eq(p.len, len);
	}
	ks_addresses(self, p.addr, len, all);
	if (!early) {
		send(p.fd, all, len * (size_t)self->size, MSG_NOSIGNAL);
		th_sleep_us(random_us(state, storm->life_bits));
		prey_kill(&p, self->rank);
	}
	th_barrier(self, "round");
}

static void manager(struct th_self *self, const struct ks_storm *storm)
{
	uint64_t state = (uint64_t)self->rank;
	char all[KS_RANKS * TH_MAX_ADDR];
	struct prey p = { 0 };

	/* the first one only tells how long addresses are */
	prey_start(&p, storm, self->rank, 0);
	prey_addr(&p, 0);
	prey_kill(&p, self->rank);
	ks_addresses(self, p.addr, p.len, all);
	for (unsigned long no = 1; no <= storm->rounds; no++)
		hunt(self, storm, no, &state, p.len);
}

static void storm_main(struct th_self *self)
{
	const struct ks_storm *storm = self->arg;

	if (self->rank < storm->survivors)
		storm->survive(self, storm);
	else
		manager(self, storm);
}

void ks_storm_run(struct ks_storm *storm)
{
	unsigned int before = probe_leftovers();

	memset(ks_shared, 0, sizeof(*ks_shared));
	th_run(storm->survivors + storm->victims, storm_main, storm,
	       30 + 2 * (unsigned int)storm->rounds);
	assert_int_equal(probe_leftovers(), before);
}

unsigned long ks_storm_rounds(void)
{
	const char *quick = getenv("SHRIMP_QUICK");

	if (th_long())
		return 1000;
	return th_sanitized() || (quick && atoi(quick)) ? 5 : 50;
}
