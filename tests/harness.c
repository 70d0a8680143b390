/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Harness, the part without libfabric objects: checks, patterns, and the
 * switchboard between the children of a group.
 *
 * Each child has one SOCK_SEQPACKET socket to the parent, one datagram is
 * one message. The parent alone decides when a step is complete, so a killed
 * child can be left out of it at any time.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

enum {
	NAME_LEN = 32,	 /* step names, with the final 0 */
	DATA_MAX = 4096, /* bytes of one contribution or text */
	GUARD = 64,	 /* guard bytes on each side of a th_buf */
	GUARD_BYTE = 0xa5,
	EXIT_FAILED = 70, /* a child whose check failed */
	EXIT_SKIPPED = 77 /* a child that cannot run here */
};

/* What a child says. */
enum msg_kind { MSG_STEP, MSG_NOTE, MSG_FAIL, MSG_SKIP };

struct msg {
	enum msg_kind kind;  /* which of them */
	uint32_t len;	     /* bytes of data in use */
	uint64_t value;	     /* of a note */
	char name[NAME_LEN]; /* of a step or note */
	char data[DATA_MAX]; /* contribution or text, cut to len when sent */
};

struct note {
	struct note *next;   /* in order of arrival */
	int rank;	     /* who said it */
	uint64_t value;	     /* what */
	char name[NAME_LEN]; /* about what */
};

struct child {
	pid_t pid;	     /* 0 once reaped */
	int fd;		     /* its socket, -1 once it ended */
	int expect_sig;	     /* may die of this signal; 0: of none */
	bool lost;	     /* died as expected, not waited for */
	bool at_step;	     /* waits at step */
	uint32_t len;	     /* bytes of its contribution */
	char step[NAME_LEN]; /* last step it reached */
	char data[DATA_MAX]; /* its contribution */
};

struct th_group {
	int n;		       /* children */
	struct child *c;       /* n of them */
	struct note *notes;    /* not yet asked for */
	struct th_deadline dl; /* end of the group's time */
	bool failed;	       /* some child failed */
	bool skipped;	       /* some child skipped */
};

/* The child this process is; size is 0 in the parent. */
static struct th_self me;
/* The parent's running group, NULL if none. */
static struct th_group *running;

/* Signals that cmocka takes for itself, and what they did before. */
static const int fatal_sigs[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
enum { NFATAL = sizeof(fatal_sigs) / sizeof(fatal_sigs[0]) };
static struct sigaction fatal_acts[NFATAL];

static void group_destroy(struct th_group *g);

/* ---- checks -------------------------------------------------------- */

static void msg_send(int fd, const struct msg *m)
{
	size_t len = offsetof(struct msg, data) + m->len;

	while (send(fd, m, len, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(EXIT_FAILED);
}

static void msg_text(struct msg *m, enum msg_kind kind, const char *text)
{
	memset(m, 0, offsetof(struct msg, data));
	m->kind = kind;
	m->len = (uint32_t)snprintf(m->data, sizeof(m->data), "%s", text) + 1;
	if (m->len > sizeof(m->data))
		m->len = sizeof(m->data);
}

/* Where this thread's test last called the harness. */
static _Thread_local const char *at_file;
static _Thread_local int at_line;

/* True for a source file of the harness itself. */
static bool in_harness(const char *file)
{
	const char *base = strrchr(file, '/');

	base = base ? base + 1 : file;
	return strncmp(base, "harness", 7) == 0;
}

static void fail_child(const char *text)
{
	struct msg m;

	msg_text(&m, MSG_FAIL, text);
	msg_send(me.fd, &m);
	_exit(EXIT_FAILED);
}

static void fail_parent(const char *text, const char *file, int line)
{
	struct th_group *g = running;

	if (g) {
		running = NULL;
		group_destroy(g);
	}
	print_error("%s\n", text);
	_fail(file, line);
}

void th_at(const char *file, int line)
{
	if (in_harness(file))
		return;
	at_file = file;
	at_line = line;
}

void th_fail(const char *file, int line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	if (in_harness(file) && at_file) {
		file = at_file;
		line = at_line;
	}
	n = snprintf(text, sizeof(text), "%s:%d: ", file, line);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	if (me.size)
		fail_child(text);
	fail_parent(text, file, line);
	abort();
}

static const char *err_name(int64_t v)
{
	if (v >= 0 || v < -FI_ERRNO_MAX)
		return "";
	return fi_strerror((int)-v);
}

ssize_t th_ok_at(const char *file, int line, const char *what, ssize_t ret)
{
	if (ret < 0)
		th_fail(file, line, "%s gave %zd (%s)", what, ret,
			err_name(ret));
	return ret;
}

void th_eq_at(const char *file, int line, const char *what, int64_t a,
	      int64_t b)
{
	if (a != b)
		th_fail(file, line,
			"%s: %" PRId64 " (%#" PRIx64 ") %s, wanted %" PRId64
			" (%#" PRIx64 ") %s",
			what, a, (uint64_t)a, err_name(a), b, (uint64_t)b,
			err_name(b));
}

/* ---- time and rounds ----------------------------------------------- */

uint64_t th_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void th_sleep_us(unsigned int us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

#if defined(__SANITIZE_THREAD__)
enum { TIME_SCALE = 6 };
#elif defined(__SANITIZE_ADDRESS__)
enum { TIME_SCALE = 3 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { TIME_SCALE = 6 };
#elif __has_feature(address_sanitizer)
enum { TIME_SCALE = 3 };
#else
enum { TIME_SCALE = 1 };
#endif
#else
enum { TIME_SCALE = 1 };
#endif

unsigned int th_time_scale(void)
{
	const char *slow = getenv("SHRIMP_SLOW");
	int times = slow ? atoi(slow) : 0;

	return TIME_SCALE * (times > 1 ? (unsigned int)times : 1);
}

bool th_sanitized(void)
{
	return TIME_SCALE != 1;
}

static bool env_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v && strcmp(v, "0") != 0;
}

bool th_long(void)
{
	return env_set("SHRIMP_LONG");
}

unsigned long th_rounds(unsigned long n)
{
	if (th_long())
		n *= 10;
	if (env_set("SHRIMP_QUICK") || th_sanitized())
		n /= 10;
	return n ? n : 1;
}

struct th_deadline th_deadline_ms(unsigned int ms)
{
	uint64_t ns = (uint64_t)ms * th_time_scale() * 1000000u;
	struct th_deadline dl = { th_now_ns() + ns };

	return dl;
}

bool th_expired(const struct th_deadline *dl)
{
	return th_now_ns() > dl->at_ns;
}

struct th_deadline th_patience(void)
{
	return th_deadline_ms(20000);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 29)) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ (x >> 32);
}

uint64_t th_random(uint64_t *state)
{
	*state += UINT64_C(0x632be59bd9b4e019);
	return mix(*state);
}

/* ---- patterns and guarded buffers ---------------------------------- */

/* Word @index of pattern @seed; eight bytes of it. */
static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	return mix((seed + 1) * UINT64_C(0x2545f4914f6cdd1d) + index);
}

static unsigned char pattern_byte(uint64_t seed, size_t off)
{
	return (unsigned char)(pattern_word(seed, off / 8) >> (off % 8 * 8));
}

void th_fill_at(void *buf, size_t len, uint64_t seed, size_t off)
{
	unsigned char *p = buf;
	uint64_t w;

	for (; len && off % 8; len--)
		*p++ = pattern_byte(seed, off++);
	for (; len >= 8; len -= 8, off += 8, p += 8) {
		w = pattern_word(seed, off / 8);
		memcpy(p, &w, 8);
	}
	for (; len; len--)
		*p++ = pattern_byte(seed, off++);
}

void th_fill(void *buf, size_t len, uint64_t seed)
{
	th_fill_at(buf, len, seed, 0);
}

/* Length of the part of @buf that holds the pattern. */
static size_t match_len(const unsigned char *p, size_t len, uint64_t seed,
			size_t off)
{
	size_t i = 0;
	uint64_t w, have;

	while (i < len) {
		if ((off + i) % 8 == 0 && len - i >= 8) {
			w = pattern_word(seed, (off + i) / 8);
			memcpy(&have, p + i, 8);
			if (w == have) {
				i += 8;
				continue;
			}
		}
		if (p[i] != pattern_byte(seed, off + i))
			break;
		i++;
	}
	return i;
}

bool th_match_at(const void *buf, size_t len, uint64_t seed, size_t off)
{
	return match_len(buf, len, seed, off) == len;
}

void(th_verify_at)(const void *buf, size_t len, uint64_t seed, size_t off)
{
	size_t i = match_len(buf, len, seed, off);

	if (i < len)
		th_fail(__FILE__, __LINE__,
			"byte %zu of %zu is %#x, wanted %#x", i, len,
			((const unsigned char *)buf)[i],
			pattern_byte(seed, off + i));
}

void(th_verify)(const void *buf, size_t len, uint64_t seed)
{
	th_verify_at(buf, len, seed, 0);
}

void(th_verify_byte)(const void *buf, size_t len, unsigned char byte)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != byte)
			th_fail(__FILE__, __LINE__,
				"byte %zu of %zu is %#x, wanted %#x", i, len,
				p[i], byte);
}

struct th_buf th_buf_new(size_t len)
{
	struct th_buf b = { .len = len };

	b.base = malloc(len + 2 * GUARD);
	th_check(b.base);
	b.p = (unsigned char *)b.base + GUARD;
	memset(b.base, GUARD_BYTE, GUARD);
	memset(b.p, 0xee, len);
	memset(b.p + len, GUARD_BYTE, GUARD);
	return b;
}

void(th_buf_check)(const struct th_buf *b)
{
	th_verify_byte(b->base, GUARD, GUARD_BYTE);
	th_verify_byte(b->p + b->len, GUARD, GUARD_BYTE);
}

void(th_buf_free)(struct th_buf *b)
{
	th_buf_check(b);
	free(b->base);
	memset(b, 0, sizeof(*b));
}

/* ---- processes: the child's side ------------------------------------ */

static void step_send(struct th_self *self, const char *name, const void *in,
		      size_t len)
{
	struct msg m = { .kind = MSG_STEP, .len = (uint32_t)len };

	th_check(len <= DATA_MAX);
	snprintf(m.name, sizeof(m.name), "%s", name);
	if (len)
		memcpy(m.data, in, len);
	msg_send(self->fd, &m);
}

/* Receives @len bytes, sent as datagrams of at most DATA_MAX. */
static void reply_recv(struct th_self *self, char *out, size_t len)
{
	ssize_t n;

	while (len) {
		n = recv(self->fd, out, len < DATA_MAX ? len : DATA_MAX, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(EXIT_FAILED);
		out += n;
		len -= (size_t)n;
	}
}

void th_gather(struct th_self *self, const char *name, const void *in,
	       void *all, size_t len)
{
	char go;

	step_send(self, name, in, len);
	reply_recv(self, &go, 1);
	if (len)
		reply_recv(self, all, len * (size_t)self->size);
}

void th_barrier(struct th_self *self, const char *name)
{
	th_gather(self, name, NULL, NULL, 0);
}

void th_barrier_progress(struct th_self *self, struct th_stack *s,
			 const char *name)
{
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	char go;

	step_send(self, name, NULL, 0);
	while (poll(&p, 1, 0) == 0) {
		th_progress(s);
		sched_yield();
	}
	reply_recv(self, &go, 1);
}

void th_note(struct th_self *self, const char *name, uint64_t value)
{
	struct msg m = { .kind = MSG_NOTE, .value = value };

	snprintf(m.name, sizeof(m.name), "%s", name);
	msg_send(self->fd, &m);
}

uint64_t th_listen(struct th_self *self)
{
	uint64_t value;

	reply_recv(self, (char *)&value, sizeof(value));
	return value;
}

void th_skip(struct th_self *self, const char *reason)
{
	struct msg m;

	msg_text(&m, MSG_SKIP, reason);
	msg_send(self->fd, &m);
	_exit(EXIT_SKIPPED);
}

/* ---- much memory ---------------------------------------------------------- */

void th_need_memory(struct th_self *self, unsigned int gib)
{
	size_t pages = (size_t)sysconf(_SC_AVPHYS_PAGES);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (th_long())
		return;
	if (th_sanitized() || pages * page >> 30 < gib)
		th_skip(self, "needs much free memory, or SHRIMP_LONG=1");
}

unsigned char *th_huge_map(size_t len, int *fd)
{
	unsigned char *base;

	*fd = memfd_create("huge", MFD_CLOEXEC);
	th_check(*fd >= 0 && ftruncate(*fd, TH_HUGE_PERIOD) == 0);
	base = mmap(NULL, len + TH_HUGE_PERIOD, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	th_check(base != MAP_FAILED);
	for (size_t off = 0; off < len; off += TH_HUGE_PERIOD)
		th_check(mmap(base + off, TH_HUGE_PERIOD,
			      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      *fd, 0) != MAP_FAILED);
	return base;
}

/* ---- processes: the parent's side ----------------------------------- */

/* Saves the handlers before cmocka runs, restores them in a child. */
static void fatal_handlers(bool restore)
{
	int i;

	for (i = 0; i < NFATAL; i++)
		sigaction(fatal_sigs[i], restore ? &fatal_acts[i] : NULL,
			  restore ? NULL : &fatal_acts[i]);
}

static void child_main(struct th_group *g, int rank, int fd, pid_t parent,
		       th_main_fn *main, void *arg)
{
	int i;

	fatal_handlers(true);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	setpgid(0, 0);
	for (i = 0; i < rank; i++)
		if (g->c[i].fd >= 0)
			close(g->c[i].fd);
	me = (struct th_self){ rank, g->n, arg, fd };
	free(g->c);
	free(g);
	running = NULL;
	main(&me);
	exit(0);
}

static void child_fork(struct th_group *g, int rank, th_main_fn *main,
		       void *arg)
{
	struct child *c = &g->c[rank];
	pid_t parent = getpid();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		th_fail(__FILE__, __LINE__, "socketpair: %s", strerror(errno));
	fflush(NULL);
	c->pid = fork();
	if (c->pid == 0) {
		close(fds[0]);
		child_main(g, rank, fds[1], parent, main, arg);
	}
	close(fds[1]);
	c->fd = fds[0];
	if (c->pid < 0) {
		c->pid = 0;
		th_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	}
	setpgid(c->pid, c->pid);
}

/* Ends a group that a test left behind when an assertion of its failed. */
static void leftover_kill(void)
{
	struct th_group *g = running;

	running = NULL;
	if (g)
		group_destroy(g);
}

struct th_group *th_group_start(int n, th_main_fn *main, void *arg,
				unsigned int seconds)
{
	struct th_group *g;
	int i;

	th_check(n > 0);
	leftover_kill();
	g = calloc(1, sizeof(*g));
	th_check(g);
	g->n = n;
	g->c = calloc((size_t)n, sizeof(*g->c));
	th_check(g->c);
	for (i = 0; i < n; i++)
		g->c[i].fd = -1;
	/* ten times the rounds take ten times as long, and a little */
	g->dl = th_deadline_ms(seconds * (th_long() ? 12000 : 1000));
	running = g;
	for (i = 0; i < n; i++)
		child_fork(g, i, main, arg);
	return g;
}

pid_t th_group_pid(const struct th_group *g, int rank)
{
	return g->c[rank].pid;
}

void th_group_expect_death(struct th_group *g, int rank, int sig)
{
	g->c[rank].expect_sig = sig;
}

void th_group_kill(struct th_group *g, int rank, int sig)
{
	struct child *c = &g->c[rank];

	if (sig == SIGKILL)
		c->expect_sig = sig;
	if (c->pid)
		kill(c->pid, sig);
}

void th_group_tell(struct th_group *g, int rank, uint64_t value)
{
	send(g->c[rank].fd, &value, sizeof(value), MSG_NOSIGNAL);
}

static void group_fail(struct th_group *g, int rank, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void group_fail(struct th_group *g, int rank, const char *fmt, ...)
{
	char text[DATA_MAX + 64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_error("rank %d of %d: %s\n", rank, g->n, text);
	g->failed = true;
}

static void kill_all(struct th_group *g)
{
	int i, status;

	for (i = 0; i < g->n; i++)
		if (g->c[i].pid)
			kill(-g->c[i].pid, SIGKILL);
	for (i = 0; i < g->n; i++) {
		while (g->c[i].pid && waitpid(g->c[i].pid, &status, 0) < 0 &&
		       errno == EINTR)
			;
		g->c[i].pid = 0;
	}
}

static void group_destroy(struct th_group *g)
{
	struct note *next;
	int i;

	kill_all(g);
	for (i = 0; i < g->n; i++)
		if (g->c[i].fd >= 0)
			close(g->c[i].fd);
	for (; g->notes; g->notes = next) {
		next = g->notes->next;
		free(g->notes);
	}
	free(g->c);
	free(g);
}

static void note_add(struct th_group *g, int rank, const struct msg *m)
{
	struct note *nt = calloc(1, sizeof(*nt)), **p;

	th_check(nt);
	nt->rank = rank;
	nt->value = m->value;
	memcpy(nt->name, m->name, sizeof(nt->name));
	for (p = &g->notes; *p; p = &(*p)->next)
		;
	*p = nt;
}

static bool note_take(struct th_group *g, int rank, const char *name,
		      uint64_t *value)
{
	struct note **p, *nt;

	for (p = &g->notes; *p; p = &(*p)->next) {
		nt = *p;
		if (nt->rank != rank || strcmp(nt->name, name) != 0)
			continue;
		*value = nt->value;
		*p = nt->next;
		free(nt);
		return true;
	}
	return false;
}

static void child_said(struct th_group *g, int rank, struct msg *m)
{
	struct child *c = &g->c[rank];

	switch (m->kind) {
	case MSG_STEP:
		c->at_step = true;
		c->len = m->len;
		memcpy(c->step, m->name, sizeof(c->step));
		memcpy(c->data, m->data, m->len);
		break;
	case MSG_NOTE:
		note_add(g, rank, m);
		break;
	case MSG_FAIL:
		group_fail(g, rank, "%s", m->data);
		break;
	case MSG_SKIP:
		if (!g->skipped)
			print_message("skipped: %s\n", m->data);
		g->skipped = true;
		break;
	}
}

static void child_drain(struct th_group *g, int rank)
{
	struct child *c = &g->c[rank];
	struct msg m;

	while (c->fd >= 0 && recv(c->fd, &m, sizeof(m), MSG_DONTWAIT) > 0)
		child_said(g, rank, &m);
}

static void child_ended(struct th_group *g, int rank, int status)
{
	struct child *c = &g->c[rank];
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	child_drain(g, rank);
	kill(-c->pid, SIGKILL);
	c->pid = 0;
	close(c->fd);
	c->fd = -1;
	c->at_step = false;
	if (sig && sig == c->expect_sig)
		c->lost = true;
	else if (sig)
		group_fail(g, rank, "died of signal %d (%s) after step '%s'",
			   sig, strsignal(sig), c->step);
	else if (WEXITSTATUS(status) != 0 && !g->failed && !g->skipped)
		group_fail(g, rank, "exited with %d after step '%s'",
			   WEXITSTATUS(status), c->step);
}

static void reap(struct th_group *g)
{
	int i, status;

	for (i = 0; i < g->n; i++)
		if (g->c[i].pid &&
		    waitpid(g->c[i].pid, &status, WNOHANG) == g->c[i].pid)
			child_ended(g, i, status);
}

static void reply(struct th_group *g, int rank, const char *all, size_t len)
{
	int fd = g->c[rank].fd;
	size_t n;

	send(fd, "", 1, MSG_NOSIGNAL);
	for (; len; all += n, len -= n) {
		n = len < DATA_MAX ? len : DATA_MAX;
		send(fd, all, n, MSG_NOSIGNAL);
	}
}

/* True when the step is complete; *first is a child that is at it. */
static bool step_complete(struct th_group *g, struct child **first)
{
	int i, absent = 0, gone = 0;
	struct child *c;

	*first = NULL;
	for (i = 0; i < g->n; i++) {
		c = &g->c[i];
		if (c->at_step && !*first)
			*first = c;
		if (c->at_step && strcmp(c->step, (*first)->step) != 0)
			group_fail(g, i, "is at step '%s', another at '%s'",
				   c->step, (*first)->step);
		absent += !c->at_step && !c->lost;
		gone += !c->at_step && !c->lost && !c->pid;
	}
	if (*first && gone && !g->failed && !g->skipped)
		group_fail(g, (int)(*first - g->c),
			   "waits at step '%s' but another has ended",
			   (*first)->step);
	return *first && !absent && !g->failed;
}

static void step_serve(struct th_group *g)
{
	struct child *first;
	size_t len;
	char *all;
	int i;

	if (!step_complete(g, &first))
		return;
	len = first->len;
	all = calloc((size_t)g->n, len + 1);
	th_check(all);
	for (i = 0; i < g->n; i++)
		if (g->c[i].at_step)
			memcpy(all + (size_t)i * len, g->c[i].data, len);
	for (i = 0; i < g->n; i++) {
		if (!g->c[i].at_step)
			continue;
		g->c[i].at_step = false;
		reply(g, i, all, len * (size_t)g->n);
	}
	free(all);
}

static void group_timeout(struct th_group *g)
{
	int i;

	for (i = 0; i < g->n; i++)
		if (g->c[i].pid)
			group_fail(g, i, "time limit, %s step '%s'",
				   g->c[i].at_step ? "waits at" : "after",
				   g->c[i].step);
}

static bool group_alive(const struct th_group *g)
{
	int i;

	for (i = 0; i < g->n; i++)
		if (g->c[i].pid)
			return true;
	return false;
}

bool th_group_pump(struct th_group *g, int ms)
{
	struct pollfd *p = calloc((size_t)g->n, sizeof(*p));
	int i;

	th_check(p);
	for (i = 0; i < g->n; i++) {
		p[i].fd = g->c[i].fd;
		p[i].events = POLLIN;
	}
	poll(p, (nfds_t)g->n, ms);
	for (i = 0; i < g->n; i++)
		if (p[i].revents)
			child_drain(g, i);
	free(p);
	reap(g);
	step_serve(g);
	if (!g->failed && group_alive(g) && th_expired(&g->dl))
		group_timeout(g);
	if (g->failed || g->skipped)
		kill_all(g);
	return group_alive(g);
}

void th_group_serve(struct th_group *g, unsigned int ms)
{
	uint64_t end = th_now_ns() + UINT64_C(1000000) * ms;

	while (th_now_ns() < end)
		th_group_pump(g, 10);
}

/* Frees the group and passes its outcome to cmocka. */
static void group_end(struct th_group *g)
{
	bool failed = g->failed, skipped = g->skipped;

	running = NULL;
	group_destroy(g);
	if (failed)
		fail();
	if (skipped)
		skip();
}

uint64_t th_group_wait_note(struct th_group *g, int rank, const char *name)
{
	uint64_t value;

	while (!note_take(g, rank, name, &value)) {
		if (g->failed || g->skipped)
			group_end(g);
		if (!g->c[rank].pid) {
			group_fail(g, rank, "ended without note '%s'", name);
			continue;
		}
		th_group_pump(g, 100);
	}
	return value;
}

void th_group_finish(struct th_group *g)
{
	while (th_group_pump(g, 100))
		;
	group_end(g);
}

void th_run(int n, th_main_fn *main, void *arg, unsigned int seconds)
{
	th_group_finish(th_group_start(n, main, arg, seconds));
}

void th_case(void **state)
{
	const struct th_spec *spec = *state;

	th_run(spec->n, spec->main, NULL, spec->seconds);
}

int th_main(int argc, char **argv, const char *name,
	    const struct CMUnitTest *tests, size_t n)
{
	int failed;

	fatal_handlers(false);
	setenv("FI_PROVIDER", th_provider(), 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
	leftover_kill();
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
		print_error("%s: a child process is left\n", name);
		failed++;
	}
	return failed ? 1 : 0;
}
