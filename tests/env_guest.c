/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * How shrimp behaves as a guest in a process: no handlers, no threads, no
 * patched code, nothing before a domain is opened (contract L4), and what a
 * forked child can do with what it inherited (L6).
 *
 * Limit: 200 s
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

enum { MIB = 1024 * 1024 };

/* ---- L4 ----------------------------------------------------------------- */

/* What a library could change without being asked. */
struct traces {
	struct sigaction act[NSIG]; /* handlers */
	sigset_t mask;		    /* blocked signals of this thread */
	stack_t altstack;	    /* of this thread */
	uint64_t threads;	    /* of this process */
	unsigned int sockets;	    /* abstract ones of shrimp */
	unsigned int maps;	    /* mappings of segments */
	unsigned int fds;	    /* open descriptors */
};

static struct traces traces(void)
{
	struct traces t;
	int i;

	memset(&t, 0, sizeof(t));
	for (i = 1; i < NSIG; i++)
		sigaction(i, NULL, &t.act[i]);
	pthread_sigmask(SIG_BLOCK, NULL, &t.mask);
	sigaltstack(NULL, &t.altstack);
	t.threads = probe_status("Threads");
	t.sockets = probe_sockets("shrimp-");
	t.maps = probe_maps("memfd:shrimp");
	t.fds = probe_fds();
	return t;
}

static void same_set(const sigset_t *a, const sigset_t *b)
{
	int i;

	for (i = 1; i < NSIG; i++)
		th_eq(sigismember(a, i), sigismember(b, i));
}

static void same_signals(const struct traces *a, const struct traces *b)
{
	int i;

	for (i = 1; i < NSIG; i++) {
		th_ptr_eq(a->act[i].sa_handler, b->act[i].sa_handler);
		th_eq(a->act[i].sa_flags, b->act[i].sa_flags);
		same_set(&a->act[i].sa_mask, &b->act[i].sa_mask);
	}
	same_set(&a->mask, &b->mask);
	th_ptr_eq(a->altstack.ss_sp, b->altstack.ss_sp);
}

static struct fi_info *get_info(void)
{
	struct fi_info *hints = th_hints(NULL), *info;

	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

/* fi_getinfo() and fi_fabric() open, start and name nothing. */
static void contract_L4_before_domain(struct th_self *self)
{
	struct traces before, after;
	struct fid_fabric *fabric;
	struct fi_info *info;

	(void)self;
	/* the first call loads all providers, also those of others */
	fi_freeinfo(get_info());
	before = traces();
	info = get_info();
	th_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	after = traces();
	same_signals(&before, &after);
	th_eq(after.threads, before.threads);
	th_eq(after.sockets, before.sockets);
	th_eq(after.maps, 0);
	th_eq(after.fds, before.fds);
	th_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void open_progress(struct th_stack *s, struct th_self *self,
			  enum fi_progress progress, enum fi_wait_obj wait)
{
	struct th_stack_opts o = { .progress = progress, .cq_wait = wait };

	th_stack_open(s, &o);
	th_stack_connect(s, self);
}

/* No handler, mask or alternate stack changes, with an agent either. */
static void signals_kept(struct th_self *self, enum fi_progress progress)
{
	struct traces before, after;
	struct fi_cq_tagged_entry e;
	struct th_stack s;

	fi_freeinfo(get_info());
	before = traces();
	open_progress(&s, self, progress, FI_WAIT_UNSPEC);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_eq(fi_cq_sread(s.rxcq, &e, 1, NULL, 50), -FI_EAGAIN);
	after = traces();
	same_signals(&before, &after);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
	after = traces();
	same_signals(&before, &after);
}

static void contract_L4_signals_manual(struct th_self *self)
{
	signals_kept(self, FI_PROGRESS_MANUAL);
}

static void contract_L4_signals_auto(struct th_self *self)
{
	signals_kept(self, FI_PROGRESS_AUTO);
}

/* A joined thread may be counted for a moment longer. */
static void threads_soon(uint64_t want)
{
	struct th_deadline dl = th_deadline_ms(2000);

	while (probe_status("Threads") != want && !th_expired(&dl))
		th_sleep_us(1000);
	th_eq(probe_status("Threads"), want);
}

/* Manual progress starts no thread; automatic does, and ends it. */
static void contract_L4_threads(struct th_self *self)
{
	struct th_stack s;
	uint64_t threads;

	if (th_sanitized())
		th_skip(self, "a sanitizer starts threads of its own");
	fi_freeinfo(get_info());
	threads = probe_status("Threads");
	open_progress(&s, self, FI_PROGRESS_MANUAL, FI_WAIT_NONE);
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_eq(probe_status("Threads"), threads);
	th_barrier_progress(self, &s, "manual");
	th_stack_close(&s);
	open_progress(&s, self, FI_PROGRESS_AUTO, FI_WAIT_NONE);
	th_check(probe_status("Threads") > threads);
	th_barrier_progress(self, &s, "auto");
	th_stack_close(&s);
	threads_soon(threads);
}

/* KiB of changed pages in the code of libraries named @what. */
static unsigned long changed_code(const char *what)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long kib = 0, found = 0, n;
	bool code = false;
	char line[512];

	th_check(f);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, " r-xp ")) {
			code = strstr(line, what);
			found += code;
		} else if (strstr(line, "-p ") || strstr(line, "-s ")) {
			code = false;
		}
		if (code && sscanf(line, "Private_Dirty: %lu", &n) == 1)
			kib += n;
	}
	fclose(f);
	th_check(found);
	return kib;
}

/* No code of libc or libfabric is patched. */
static void contract_L4_code(struct th_self *self)
{
	struct th_stack s;

	(void)self;
	open_progress(&s, self, FI_PROGRESS_AUTO, FI_WAIT_UNSPEC);
	th_eq(changed_code("libc.so"), 0);
	th_eq(changed_code("libfabric.so"), 0);
	th_stack_close(&s);
}

/* ---- L6: calls on inherited objects ---------------------------------------- */

/* Everything a client can have. */
struct objects {
	struct th_stack s;     /* endpoint, CQs, counters, AV, domain */
	struct fid_eq *eq;     /* event queue */
	struct fid_wait *wait; /* wait set */
	struct fid_poll *poll; /* poll set */
};

static void objects_open(struct objects *o, struct th_self *self,
			 enum fi_progress progress)
{
	struct th_stack_opts opts = { .progress = progress,
				      .cq_wait = FI_WAIT_FD,
				      .cntr_wait = FI_WAIT_FD,
				      .cntrs = true };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_FD, .flags = FI_WRITE };
	struct fi_wait_attr wait = { .wait_obj = FI_WAIT_FD };
	struct fi_poll_attr poll = { 0 };

	th_stack_open(&o->s, &opts);
	th_stack_connect(&o->s, self);
	th_ok(fi_eq_open(o->s.fabric, &eq, &o->eq, NULL));
	th_ok(fi_wait_open(o->s.fabric, &wait, &o->wait));
	th_ok(fi_poll_open(o->s.domain, &poll, &o->poll));
}

static void objects_close(struct objects *o)
{
	th_ok(fi_close(&o->poll->fid));
	th_ok(fi_close(&o->wait->fid));
	th_ok(fi_close(&o->eq->fid));
	th_stack_close(&o->s);
}

#define bad(call) th_eq((int64_t)(call), -FI_EOPBADSTATE)

static void bad_sends(struct fid_ep *ep, fi_addr_t to)
{
	struct iovec iov = { "message!", 8 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = to };
	struct fi_msg_tagged tm = { .msg_iov = &iov,
				    .iov_count = 1,
				    .addr = to };
	char *buf = iov.iov_base;

	bad(fi_send(ep, buf, 8, NULL, to, NULL));
	bad(fi_sendv(ep, &iov, NULL, 1, to, NULL));
	bad(fi_sendmsg(ep, &m, 0));
	bad(fi_inject(ep, buf, 8, to));
	bad(fi_senddata(ep, buf, 8, NULL, 1, to, NULL));
	bad(fi_injectdata(ep, buf, 8, 1, to));
	bad(fi_tsend(ep, buf, 8, NULL, to, 1, NULL));
	bad(fi_tsendv(ep, &iov, NULL, 1, to, 1, NULL));
	bad(fi_tsendmsg(ep, &tm, 0));
	bad(fi_tinject(ep, buf, 8, to, 1));
	bad(fi_tsenddata(ep, buf, 8, NULL, 1, to, 1, NULL));
	bad(fi_tinjectdata(ep, buf, 8, 1, to, 1));
}

static void bad_recvs(struct fid_ep *ep)
{
	static char buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg m = { .msg_iov = &iov,
			    .iov_count = 1,
			    .addr = FI_ADDR_UNSPEC };
	struct fi_msg_tagged tm = { .msg_iov = &iov,
				    .iov_count = 1,
				    .addr = FI_ADDR_UNSPEC };

	bad(fi_recv(ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL));
	bad(fi_recvv(ep, &iov, NULL, 1, FI_ADDR_UNSPEC, NULL));
	bad(fi_recvmsg(ep, &m, 0));
	bad(fi_trecv(ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	bad(fi_trecvv(ep, &iov, NULL, 1, FI_ADDR_UNSPEC, 1, 0, NULL));
	bad(fi_trecvmsg(ep, &tm, 0));
	bad(fi_trecvmsg(ep, &tm, FI_PEEK));
	bad(fi_cancel(&ep->fid, NULL));
}

static void bad_queues(struct objects *o)
{
	struct fid *fid = &o->s.rxcq->fid;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
	uint32_t event;
	char buf[64];

	bad(fi_cq_read(o->s.rxcq, &e, 1));
	bad(fi_cq_readfrom(o->s.rxcq, &e, 1, &src));
	bad(fi_cq_readerr(o->s.rxcq, &err, 0));
	bad(fi_cq_sread(o->s.rxcq, &e, 1, NULL, 100));
	bad(fi_cq_sreadfrom(o->s.rxcq, &e, 1, &src, NULL, 100));
	bad(fi_cq_signal(o->s.rxcq));
	bad(fi_trywait(o->s.fabric, &fid, 1));
	bad(fi_eq_read(o->eq, &event, buf, sizeof(buf), 0));
	bad(fi_eq_sread(o->eq, &event, buf, sizeof(buf), 10, 0));
	bad(fi_eq_write(o->eq, FI_NOTIFY, buf, 8, 0));
	bad(fi_wait(o->wait, 10));
	bad(fi_poll(o->poll, (void **)buf, 1));
	bad(fi_poll_add(o->poll, fid, 0));
}

static void bad_counters_and_names(struct objects *o)
{
	fi_addr_t a = 0;
	char buf[TH_MAX_ADDR];
	size_t len = sizeof(buf);

	bad(fi_cntr_add(o->s.rxcntr, 1));
	bad(fi_cntr_set(o->s.rxcntr, 1));
	bad(fi_cntr_adderr(o->s.rxcntr, 1));
	bad(fi_cntr_seterr(o->s.rxcntr, 1));
	bad(fi_cntr_wait(o->s.rxcntr, 100000, 100));
	bad(fi_av_insert(o->s.av, o->s.addr, 1, &a, 0, NULL));
	bad(fi_av_lookup(o->s.av, o->s.peers[0], buf, &len));
	bad(fi_av_remove(o->s.av, &o->s.peers[0], 1, 0));
	bad(fi_getname(&o->s.ep->fid, buf, &len));
	bad(fi_enable(o->s.ep));
}

static void bad_opens(struct objects *o)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_domain *domain;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_eq *eq;

	bad(fi_domain(o->s.fabric, o->s.info, &domain, NULL));
	bad(fi_endpoint(o->s.domain, o->s.info, &ep, NULL));
	bad(fi_cq_open(o->s.domain, &cq_attr, &cq, NULL));
	bad(fi_av_open(o->s.domain, &av_attr, &av, NULL));
	bad(fi_cntr_open(o->s.domain, &cntr_attr, &cntr, NULL));
	bad(fi_eq_open(o->s.fabric, &eq_attr, &eq, NULL));
}

static void bad_closes(struct objects *o)
{
	bad(fi_close(&o->poll->fid));
	bad(fi_close(&o->wait->fid));
	bad(fi_close(&o->eq->fid));
	bad(fi_close(&o->s.ep->fid));
	bad(fi_close(&o->s.rxcntr->fid));
	bad(fi_close(&o->s.rxcq->fid));
	bad(fi_close(&o->s.av->fid));
	bad(fi_close(&o->s.domain->fid));
	bad(fi_close(&o->s.fabric->fid));
}

/* Forks; the child runs @main with @arg and ends. */
static pid_t fork_child(void (*main)(void *), void *arg)
{
	pid_t pid = fork();

	th_check(pid >= 0);
	if (pid)
		return pid;
	main(arg);
	_exit(0);
}

static void reap(pid_t pid)
{
	int status;

	th_eq(waitpid(pid, &status, 0), pid);
	th_check(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void all_bad(void *arg)
{
	struct objects *o = arg;

	bad_sends(o->s.ep, o->s.peers[1]);
	bad_recvs(o->s.ep);
	bad_queues(o);
	bad_counters_and_names(o);
	bad_opens(o);
	bad_closes(o);
	bad_sends(o->s.ep, o->s.peers[1]);
}

static void calls(struct th_self *self, enum fi_progress progress)
{
	struct objects o;

	objects_open(&o, self, progress);
	ks_one_message(&o.s, self, 0, 1);
	if (self->rank == 0)
		reap(fork_child(all_bad, &o));
	ks_exchange_sizes(&o.s, o.s.peers[1 - self->rank]);
	th_barrier_progress(self, &o.s, "end");
	objects_close(&o);
}

static void contract_L6_calls(struct th_self *self)
{
	calls(self, FI_PROGRESS_MANUAL);
}

static void contract_L6_calls_auto(struct th_self *self)
{
	calls(self, FI_PROGRESS_AUTO);
}

static void unread_is_bad(void *arg)
{
	struct th_stack *s = arg;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };

	bad(fi_cq_read(s->rxcq, &e, 1));
	bad(fi_cq_readerr(s->rxcq, &err, 0));
	bad(fi_cq_read(s->rxcq, &e, 1));
	bad(fi_cq_read(s->txcq, &e, 1));
	bad(fi_cq_read(s->txcq, &e, 0));
}

/* What lay in the queues at the fork is the parent's to read. */
static void contract_L6_unread(struct th_self *self)
{
	struct th_stack s;
	fi_addr_t me;
	int rx[2];

	(void)self;
	th_stack_open(&s, NULL);
	me = th_insert(&s, s.addr);
	th_trecv(&s, &rx[0], sizeof(int), 1, 0, &rx[0]);
	th_trecv(&s, &rx[1], sizeof(int), 2, 0, &rx[1]);
	th_tsend(&s, me, &(int){ 5 }, sizeof(int), 1, &s);
	th_ok(fi_cancel(&s.ep->fid, &rx[1]));
	reap(fork_child(unread_is_bad, &s));
	th_ptr_eq(th_tx_ok(&s).op_context, &s);
	th_ptr_eq(th_rx_ok(&s).op_context, &rx[0]);
	th_ptr_eq(th_rx_err(&s).op_context, &rx[1]);
	th_stack_close(&s);
}

/* ---- L6: ends of the child -------------------------------------------------- */

static void child_exits(void *arg)
{
	(void)arg;
	/* the leak check of a sanitizer would count what was inherited */
	if (!th_sanitized())
		exit(0);
}

static void child_execs(void *arg)
{
	(void)arg;
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

/* Reads and writes memory that the parent is sending from. */
static void child_writes(void *arg)
{
	th_verify(arg, 4 * MIB, 3);
	memset(arg, 0, 4 * MIB);
}

/*
 * Children fork off and end, in different ways, while messages of 4 MiB are
 * under way: these arrive, nobody takes the parent for dead, and no
 * descriptor stays open.
 */
static void contract_L6_exit(struct th_self *self)
{
	static void (*const main[])(void *) = { child_exits, child_execs,
						child_writes };
	char *buf = malloc(4 * MIB);
	struct th_stack s;
	unsigned int fds, i;

	th_check(buf);
	ks_open_all(&s, self);
	ks_one_message(&s, self, 0, 1);
	fds = probe_fds();
	for (i = 0; i < 12; i++) {
		th_fill(buf, 4 * MIB, 3);
		if (self->rank == 0) {
			th_tsend(&s, s.peers[1], buf, 4 * MIB, KS_TAG, NULL);
			reap(fork_child(main[i % 3], buf));
			th_tx_ok(&s);
		} else {
			memset(buf, 0, 4 * MIB);
			th_trecv(&s, buf, 4 * MIB, KS_TAG, 0, NULL);
			ks_expect_message(&s, buf, 4 * MIB, 3);
		}
		th_barrier_progress(self, &s, "sent");
	}
	th_check(probe_fds() <= fds + 4);
	th_quiet(&s, 300);
	th_stack_close(&s);
	free(buf);
}

/* Forks while an agent thread may hold any lock. */
static void contract_L6_auto(struct th_self *self)
{
	struct objects o;
	int i, n = (int)th_rounds(50);
	pid_t pid;

	objects_open(&o, self, FI_PROGRESS_AUTO);
	for (i = 0; i < n; i++) {
		pid = self->rank ? 0 : fork_child(all_bad, &o);
		ks_exchange_sizes(&o.s, o.s.peers[1 - self->rank]);
		if (pid)
			reap(pid);
	}
	th_barrier_progress(self, &o.s, "end");
	objects_close(&o);
}

/* ---- L6: objects of the child's own ------------------------------------------ */

/* The child tells rank 1 its name and gets a message there. */
static void child_talks(void *arg)
{
	const char *peer = arg;
	struct th_stack s;
	char buf[8];

	th_stack_open(&s, NULL);
	th_trecv(&s, buf, sizeof(buf), KS_TAG, 0, NULL);
	th_tsend(&s, th_insert(&s, peer), s.addr, s.addrlen, KS_TAG + 1, NULL);
	th_tx_ok(&s);
	ks_expect_message(&s, buf, sizeof(buf), 9);
	th_stack_close(&s);
}

static void answer_child(struct th_stack *s)
{
	char name[TH_MAX_ADDR], buf[8];

	th_trecv(s, name, s->addrlen, KS_TAG + 1, 0, NULL);
	th_eq(th_rx_ok(s).len, s->addrlen);
	th_fill(buf, sizeof(buf), 9);
	th_tsend(s, th_insert(s, name), buf, sizeof(buf), KS_TAG, NULL);
	th_tx_ok(s);
}

/* A child opens objects of its own, which work; so do its parent's. */
static void contract_L6_own_objects(struct th_self *self)
{
	char all[2 * TH_MAX_ADDR];
	struct th_stack s;

	ks_open_all(&s, self);
	th_gather(self, "names", s.addr, all, s.addrlen);
	ks_one_message(&s, self, 0, 1);
	if (self->rank == 0)
		reap(fork_child(child_talks, all + s.addrlen));
	else
		answer_child(&s);
	th_barrier_progress(self, &s, "child done");
	ks_exchange_sizes(&s, s.peers[1 - self->rank]);
	th_barrier_progress(self, &s, "end");
	th_stack_close(&s);
}

/* ------------------------------------------------------------------------- */

static const struct CMUnitTest env_guest[] = {
	TH_CASE(contract_L4_before_domain, 1, 10),
	TH_CASE(contract_L4_signals_manual, 2, 20),
	TH_CASE(contract_L4_signals_auto, 2, 20),
	TH_CASE(contract_L4_threads, 2, 20),
	TH_CASE(contract_L4_code, 1, 10),
	TH_CASE(contract_L6_calls, 2, 20),
	TH_CASE(contract_L6_calls_auto, 2, 20),
	TH_CASE(contract_L6_unread, 1, 20),
	TH_CASE(contract_L6_exit, 2, 30),
	TH_CASE(contract_L6_auto, 2, 60),
	TH_CASE(contract_L6_own_objects, 2, 20),
};

int main(int argc, char **argv)
{
	if (th_is_shrimp())
		probe_isolate(64);
	return th_main(argc, argv, "env_guest", env_guest,
		       sizeof(env_guest) / sizeof(env_guest[0]));
}
