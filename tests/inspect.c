/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * tools/shrimp-inspect on live processes: its numbers are theirs, it takes
 * none of their memory, sees no damage where there is only change, and is not
 * disturbed by what happens to them. The process that runs it has no device
 * of its own. What damage looks like is in tools/inspect_test.c.
 *
 * Limit: 200 s
 */
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env_probe.h"
#include "json_look.h"
#include "rma_kit.h"

enum {
	REGIONS = 5,
	MESSAGES = 30, /* that the peer sends */
	WRITES = 20,   /* that it makes */
	KEYS = 0x4000, /* the first key */
	ARGS = 6,      /* of the tool, at most */
};

/* ---- running it --------------------------------------------------------- */

/* The tool at work. */
struct tool {
	pid_t pid;
	FILE *out; /* what it prints, standard error too */
};

static struct tool tool_start(const char *const *arg)
{
	const char *dir = getenv("SHRIMP_BUILDDIR");
	char path[4096], *argv[ARGS + 2] = { path };
	struct tool t;
	int p[2];

	snprintf(path, sizeof(path), "%s/tools/shrimp-inspect",
		 dir ? dir : ".");
	for (int i = 0; arg[i]; i++)
		argv[i + 1] = (char *)arg[i];
	th_eq(pipe2(p, O_CLOEXEC), 0);
	t.pid = fork();
	th_check(t.pid >= 0);
	if (!t.pid) {
		dup2(p[1], STDOUT_FILENO);
		dup2(p[1], STDERR_FILENO);
		execv(path, argv);
		_exit(127);
	}
	close(p[1]);
	t.out = fdopen(p[0], "r");
	th_check(t.out);
	return t;
}

/* Its exit status; a signal fails the test. */
static int tool_end(struct tool *t)
{
	int status;

	fclose(t->out);
	while (waitpid(t->pid, &status, 0) < 0)
		th_eq(errno, EINTR);
	if (!WIFEXITED(status))
		th_fail(__FILE__, __LINE__, "the tool: signal %d",
			WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* Runs it to its end; *@text is what it printed, to be freed. */
static int tool_run(char **text, const char *const *arg)
{
	struct tool t = tool_start(arg);
	size_t room = 0;

	*text = NULL;
	if (getdelim(text, &room, 0, t.out) < 0) {
		free(*text);
		*text = strdup("");
	}
	return tool_end(&t);
}

/* Runs it with --json --all on @pid; fails if there is no good answer. */
static char *tool_json(pid_t pid)
{
	char number[32], *text;
	const char *arg[] = { "--json", "--all", number, NULL };
	int status;

	snprintf(number, sizeof(number), "%d", pid);
	status = tool_run(&text, arg);
	if (status || !json_valid(text))
		th_fail(__FILE__, __LINE__, "status %d, %.500s", status, text);
	return text;
}

/* The number at @path, which is a format, in @text. */
static uint64_t get(const char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static uint64_t get(const char *text, const char *fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return json_number(text, path);
}

/* ---- its numbers -------------------------------------------------------- */

/* What the owner knows. */
struct facts {
	pid_t pid;
	uint64_t key[REGIONS], va[REGIONS], len[REGIONS];
	uint64_t kib;		   /* memory of its segments */
	struct fi_shrimp_stats st; /* of its domain */
	char addr[2][TH_MAX_ADDR]; /* of its endpoints */
	uint64_t length;	   /* of an address */
};

static uint64_t segments_kib(void)
{
	return probe_segment_kib("shrimp-tables") +
	       probe_segment_kib("shrimp-mailbox") +
	       probe_segment_kib("shrimp-arena");
}

/* The memory and keys of an owner: the first region is of the device. */
struct owner {
	struct th_stack a, b; /* of one domain */
	struct rk_mem m[REGIONS];
	struct fid_mr *mr[REGIONS];
};

static void owner_open(struct owner *o)
{
	struct th_stack_opts opts = rk_opts();

	th_stack_open(&o->a, &opts);
	opts.domain_of = &o->a;
	th_stack_open(&o->b, &opts);
	for (int i = 0; i < REGIONS; i++) {
		o->m[i] = rk_mem_new(&o->b, i % 2 == 0,
				     (size_t)(i + 1) * RK_PAGE);
		o->mr[i] = rk_reg(&o->b, o->m[i].p, o->m[i].len - (size_t)i,
				  i < 3 ? RK_RW : FI_REMOTE_READ,
				  (uint64_t)(KEYS + i));
	}
}

static void owner_close(struct owner *o)
{
	for (int i = 0; i < REGIONS; i++) {
		th_ok(fi_close(&o->mr[i]->fid));
		rk_mem_free(&o->m[i]);
	}
	th_stack_close(&o->b);
	th_stack_close(&o->a);
}

static void owner_facts(struct owner *o, struct facts *f)
{
	*f = (struct facts){ .pid = getpid(), .length = o->a.addrlen };
	for (int i = 0; i < REGIONS; i++) {
		f->key[i] = fi_mr_key(o->mr[i]);
		f->va[i] = (uintptr_t)o->m[i].p;
		f->len[i] = o->m[i].len - (size_t)i;
	}
	f->st = probe_stats(&o->a.domain->fid);
	f->kib = segments_kib();
	memcpy(f->addr[0], o->a.addr, o->a.addrlen);
	memcpy(f->addr[1], o->b.addr, o->b.addrlen);
}

/* Messages of several paths from the peer, and an own one. */
static void owner_receive(struct owner *o)
{
	static unsigned char buf[100000];
	fi_addr_t own = th_insert(&o->a, o->a.addr);

	for (int i = 0; i < MESSAGES + 3; i++) {
		th_recv(&o->a, buf, sizeof(buf), NULL);
		th_rx_ok(&o->a);
	}
	th_recv(&o->a, buf, sizeof(buf), NULL);
	th_send(&o->a, own, "self", 4, NULL);
	th_tx_ok(&o->a);
	th_rx_ok(&o->a);
}

static void be_owner(struct th_self *self)
{
	struct facts f[3], mine;
	struct owner o;

	owner_open(&o);
	owner_facts(&o, &mine);
	th_gather(self, "addresses", &mine, f, sizeof(mine));
	owner_receive(&o);
	th_barrier_progress(self, &o.a, "traffic");
	owner_facts(&o, &mine);
	th_gather(self, "facts", &mine, f, sizeof(mine));
	th_barrier(self, "inspected");
	/* reading made no page */
	th_eq(segments_kib(), mine.kib);
	th_barrier(self, "checked");
	owner_close(&o);
}

static void peer_send(struct th_stack *s, fi_addr_t to)
{
	static const size_t len[] = { 500, 20000, 100000 };
	static unsigned char buf[100000];

	for (int i = 0; i < MESSAGES; i++) {
		th_send(s, to, buf, 8, NULL);
		th_tx_ok(s);
	}
	for (int i = 0; i < 3; i++) {
		th_send(s, to, buf, len[i], NULL);
		th_tx_ok(s);
	}
}

static void peer_write(struct th_stack *s, fi_addr_t to, uint64_t key)
{
	unsigned char buf[64] = { 0 };

	for (int i = 0; i < WRITES; i++) {
		th_ok(fi_write(s->ep, buf, sizeof(buf), NULL, to, 0, key, buf));
		rk_done(s, FI_WRITE, buf);
	}
}

static void be_peer(struct th_self *self)
{
	struct th_stack_opts opts = rk_opts();
	struct facts f[3], mine = { .pid = getpid() };
	struct th_stack s;

	th_stack_open(&s, &opts);
	th_gather(self, "addresses", &mine, f, sizeof(mine));
	peer_write(&s, th_insert(&s, f[0].addr[1]), KEYS);
	peer_send(&s, th_insert(&s, f[0].addr[0]));
	th_barrier_progress(self, &s, "traffic");
	mine.st = probe_stats(&s.domain->fid);
	mine.kib = segments_kib();
	th_gather(self, "facts", &mine, f, sizeof(mine));
	th_barrier(self, "inspected");
	th_eq(segments_kib(), mine.kib);
	th_barrier(self, "checked");
	th_stack_close(&s);
}

static void check_stats(const char *text, const struct fi_shrimp_stats *st)
{
	static const char *const path[] = { "inline", "ring", "pool", "stream",
					    "heap",   "cma",  "self" };
	static const char *const reach[] = { "mapped", "cma", "owner" };
	const char *const at = "devices.0.stats.";

	for (int i = 0; i < 7; i++) {
		th_eq(get(text, "%stx_msgs.%s", at, path[i]), st->tx.msgs[i]);
		th_eq(get(text, "%stx_bytes.%s", at, path[i]), st->tx.bytes[i]);
		th_eq(get(text, "%srx_msgs.%s", at, path[i]), st->rx.msgs[i]);
		th_eq(get(text, "%srx_bytes.%s", at, path[i]), st->rx.bytes[i]);
	}
	for (int i = 0; i < 3; i++) {
		th_eq(get(text, "%srma_msgs.%s", at, reach[i]), st->rma_ops[i]);
		th_eq(get(text, "%srma_bytes.%s", at, reach[i]),
		      st->rma_bytes[i]);
	}
	th_eq(get(text, "%sunexpected", at), st->unexpected_msgs);
	th_eq(get(text, "%sheld", at), st->held_msgs);
	th_eq(get(text, "%speers", at), st->peers);
	th_eq(get(text, "%sdoorbells", at), st->doorbells);
	th_eq(get(text, "%sattach_proc", at), st->attach_proc);
	th_eq(get(text, "%sserved", at), st->served);
}

static void check_region(const char *text, const struct facts *f,
			 unsigned int n)
{
	for (int i = 0; i < REGIONS; i++) {
		if (get(text, "devices.0.regions.%u.key", n) != f->key[i])
			continue;
		th_eq(get(text, "devices.0.regions.%u.va", n), f->va[i]);
		th_eq(get(text, "devices.0.regions.%u.length", n), f->len[i]);
		th_eq(get(text, "devices.0.regions.%u.rights", n) & 0xc,
		      i < 3 ? 0xc : 0x4);
		th_eq(get(text, "devices.0.regions.%u.user_key", n), 1);
		return;
	}
	th_fail(__FILE__, __LINE__, "a region that is not: %s", text);
}

static void check_regions(const char *text, const struct facts *f)
{
	uint64_t bytes = 0;

	for (int i = 0; i < REGIONS; i++)
		bytes += f->len[i];
	th_eq(get(text, "devices.0.mpt.live"), REGIONS);
	th_eq(get(text, "devices.0.mpt.registered_bytes"), bytes);
	th_eq(get(text, "devices.0.user_key_index.entries"), REGIONS);
	th_eq(json_length(text, "devices.0.regions"), REGIONS);
	for (unsigned int n = 0; n < REGIONS; n++)
		check_region(text, f, n);
	th_check(json_is(text, "devices.0.regions.0.kind", "arena") ||
		 json_is(text, "devices.0.regions.0.kind", "address"));
}

/* The lanes of the peer into both endpoints, and no others. */
static void check_lanes(const char *text, const struct facts *peer)
{
	unsigned int n = json_length(text, "devices.0.lanes"), found = 0;

	th_eq(n, get(text, "devices.0.lanes_claimed"));
	for (unsigned int i = 0; i < n; i++) {
		if (get(text, "devices.0.lanes.%u.pid", i) !=
		    (uint64_t)peer->pid)
			continue;
		found++;
		th_eq(get(text, "devices.0.lanes.%u.dead", i), 0);
		th_check(get(text, "devices.0.lanes.%u.written", i) == 0 ||
			 get(text, "devices.0.lanes.%u.written", i) >=
				 MESSAGES + 3);
		th_eq(get(text, "devices.0.lanes.%u.waiting", i), 0);
	}
	th_eq(found, 2);
}

/* The descriptor that is named, as the kernel knows it. */
static void check_file(const char *text, const char *name, pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%" PRIu64, pid,
		 get(text, "devices.0.%s.fd", name));
	th_eq(stat(path, &st), 0);
	th_eq(get(text, "devices.0.%s.inode", name), st.st_ino);
	th_eq(get(text, "devices.0.%s.size", name), st.st_size);
	th_eq(get(text, "devices.0.%s.memory", name), st.st_blocks * 512);
}

static void check_owner(const struct facts *f, const struct facts *peer)
{
	char *text = tool_json(f->pid);

	th_eq(get(text, "pid"), f->pid);
	th_eq(json_length(text, "devices"), 1);
	th_eq(json_length(text, "problems"), 0);
	th_eq(json_length(text, "devices.0.problems"), 0);
	th_eq(get(text, "devices.0.endpoints_open"), 2);
	th_eq(json_length(text, "devices.0.endpoints"), 2);
	check_stats(text, &f->st);
	check_regions(text, f);
	check_lanes(text, peer);
	check_file(text, "tables", f->pid);
	check_file(text, "mailbox", f->pid);
	check_file(text, "arena", f->pid);
	free(text);
}

static void check_peer(const struct facts *f)
{
	char *text = tool_json(f->pid);

	th_eq(json_length(text, "devices.0.problems"), 0);
	check_stats(text, &f->st);
	th_eq(get(text, "devices.0.mpt.live"), 0);
	/* the first write misses, all others hit */
	th_check(get(text, "devices.0.key_cache_sums.hits") >= WRITES - 1);
	th_check(get(text, "devices.0.key_cache_sums.misses") >= 1);
	th_eq(get(text, "devices.0.key_cache_sums.used"), 1);
	free(text);
}

/* The list has both, with the same sums. */
static void check_list(const struct facts *f)
{
	const char *arg[] = { "--json", NULL };
	unsigned int n, found = 0;
	char *text;

	th_eq(tool_run(&text, arg), 0);
	th_check(json_valid(text));
	n = json_length(text, "processes");
	for (unsigned int i = 0; i < n; i++) {
		if (get(text, "processes.%u.pid", i) != (uint64_t)f->pid)
			continue;
		found++;
		th_check(json_is(text, "processes.0.command", "") == 0);
		th_eq(get(text, "processes.%u.endpoints", i), 2);
		th_eq(get(text, "processes.%u.regions", i), REGIONS);
		th_eq(get(text, "processes.%u.received_messages", i),
		      MESSAGES + 3 + 1);
	}
	th_eq(found, 1);
	free(text);
}

/* What people read has the same numbers. */
static void check_text(const struct facts *f)
{
	char number[32], key[32], want[64], *text;
	const char *arg[] = { key, number, NULL };

	snprintf(number, sizeof(number), "%d", f->pid);
	snprintf(key, sizeof(key), "--key=%#" PRIx64, f->key[2]);
	th_eq(tool_run(&text, arg), 0);
	snprintf(want, sizeof(want), "%16" PRIx64 " %12" PRIx64, f->key[2],
		 f->va[2]);
	if (!strstr(text, want) || strstr(text, "PROBLEM"))
		th_fail(__FILE__, __LINE__, "no %s in: %s", want, text);
	free(text);
}

static void be_inspector(struct th_self *self)
{
	struct facts f[3], none = { .pid = 0 };

	th_gather(self, "addresses", &none, f, sizeof(none));
	th_barrier(self, "traffic");
	th_gather(self, "facts", &none, f, sizeof(none));
	check_owner(&f[0], &f[1]);
	check_peer(&f[1]);
	check_list(&f[0]);
	check_text(&f[0]);
	th_barrier(self, "inspected");
	th_barrier(self, "checked");
}

static void contract_K1_read_by_another_process(struct th_self *self)
{
	th_main_fn *const role[] = { be_owner, be_peer, be_inspector };

	role[self->rank](self);
}

/* ---- amid changes ------------------------------------------------------- */

/* Registers, writes to itself, sends and closes until @stop, a pipe, ends. */
static void churn(struct th_stack *a, struct th_stack *b, int stop)
{
	static unsigned char buf[2000], to[2000];
	struct rk_mem m = rk_mem_new(b, true, 8 * RK_PAGE);
	char c;

	for (uint64_t i = 0; read(stop, &c, 1) < 0; i++) {
		struct fid_mr *mr =
			rk_reg(b, m.p, RK_PAGE * (i % 8 + 1), RK_RW, i % 3);

		th_ok(fi_write(a->ep, buf, 64, NULL, a->peers[1], 0, i % 3,
			       buf));
		rk_done(a, FI_WRITE, buf);
		th_recv(b, to, sizeof(to), NULL);
		th_send(a, a->peers[1], buf, i % sizeof(buf), NULL);
		th_tx_ok(a);
		th_rx_ok(b);
		th_ok(fi_close(&mr->fid));
	}
	rk_mem_free(&m);
}

/* Opens and closes all there is until @stop, a pipe, ends. */
static void reopen(int stop)
{
	struct th_stack_opts opts = rk_opts();
	struct th_stack a, b;
	char c;

	while (read(stop, &c, 1) < 0) {
		th_pair_open(&a, &b, &opts);
		th_send(&a, a.peers[1], "x", 1, NULL);
		th_tx_ok(&a);
		th_pair_close(&a, &b);
	}
}

/* No damage is seen in process @pid, which may have @devices or fewer. */
static unsigned int see_no_damage(pid_t pid, unsigned int devices)
{
	char number[32], *text;
	const char *arg[] = { "--json", "--all", number, NULL };
	unsigned int n = 0;
	int status;

	snprintf(number, sizeof(number), "%d", pid);
	status = tool_run(&text, arg);
	if (status > 1 || strstr(text, "\"problems\":[\""))
		th_fail(__FILE__, __LINE__, "status %d: %s", status, text);
	if (!status) {
		th_check(json_valid(text));
		n = json_length(text, "devices");
	}
	th_check(n <= devices);
	free(text);
	return n;
}

/*
 * Rank 0 changes what it has all the time, rank 2 opens and closes it; what
 * rank 1 sees is never called damage.
 */
static void changes_are_no_damage(struct th_self *self)
{
	struct th_stack_opts opts = rk_opts();
	int *stop = self->arg;
	pid_t pid[3] = { getpid() };
	struct th_stack a, b;

	if (!self->rank)
		th_pair_open(&a, &b, &opts);
	th_gather(self, "open", &pid[0], pid, sizeof(*pid));
	if (self->rank == 1) {
		for (unsigned long i = 0; i < th_rounds(60); i++) {
			th_eq(see_no_damage(pid[0], 2), 2);
			see_no_damage(pid[2], 2);
		}
		return;
	}
	close(stop[1]);
	if (!self->rank) {
		churn(&a, &b, stop[0]);
		th_pair_close(&a, &b);
	} else {
		reopen(stop[0]);
	}
}

/* A group of @n; the pipe is that of rank 1 alone. */
static void run_with_pipe(int n, th_main_fn *fn)
{
	struct th_group *g;
	int stop[2];

	assert_int_equal(pipe2(stop, O_CLOEXEC | O_NONBLOCK), 0);
	g = th_group_start(n, fn, stop, 60);
	close(stop[0]);
	close(stop[1]);
	th_group_finish(g);
}

static void test_changes(void **state)
{
	(void)state;
	run_with_pipe(3, changes_are_no_damage);
}

/* ---- death -------------------------------------------------------------- */

enum { VICTIMS = 4 };

static void be_victim(void)
{
	struct th_stack_opts opts = rk_opts();
	struct th_stack a, b;
	int never[2];

	th_check(!pipe2(never, O_NONBLOCK));
	th_pair_open(&a, &b, &opts);
	churn(&a, &b, never[0]);
}

/* Looks at process @pid until it is gone. Its status is 0 until then. */
static void look_until_gone(pid_t pid)
{
	struct th_deadline dl = th_patience();
	char number[32], *text;
	const char *arg[] = { "--json", "--all", number, NULL };
	int status;

	snprintf(number, sizeof(number), "%d", pid);
	do {
		status = tool_run(&text, arg);
		if (status > 1 || (!status && !json_valid(text)))
			th_fail(__FILE__, __LINE__, "status %d: %s", status,
				text);
		/* it may have just begun to open its devices */
		if (status && kill(pid, 0))
			break;
		free(text);
		th_check(!th_expired(&dl));
	} while (true);
	free(text);
}

/* Rank 0 looks at the others, which are killed meanwhile. */
static void look_at_victims(struct th_self *self)
{
	pid_t pid[VICTIMS + 1], mine = getpid();

	th_gather(self, "pids", &mine, pid, sizeof(mine));
	if (self->rank)
		be_victim();
	for (int i = 1; i <= VICTIMS; i++) {
		th_note(self, "looking", (uint64_t)i);
		look_until_gone(pid[i]);
	}
}

static void test_killed(void **state)
{
	struct th_group *g =
		th_group_start(VICTIMS + 1, look_at_victims, NULL, 60);

	(void)state;
	for (int i = 1; i <= VICTIMS; i++) {
		th_group_wait_note(g, 0, "looking");
		th_sleep_us((unsigned int)(i * 23000 * (int)th_time_scale()));
		th_group_kill(g, i, SIGKILL);
	}
	th_group_finish(g);
}

/* ---- watch -------------------------------------------------------------- */

/* A line of @t, which must be JSON. */
static char *next_line(struct tool *t, char **line, size_t *room)
{
	th_check(getline(line, room, t->out) > 0);
	if (!json_valid(*line))
		th_fail(__FILE__, __LINE__, "no JSON: %s", *line);
	return *line;
}

/* Watches process @pid; @sig ends it, or 0: the process does, told by @fd. */
static void watch(pid_t pid, int sig, int fd)
{
	char number[32], *line = NULL;
	const char *arg[] = { "--json", "--watch=0.05", number, NULL };
	struct tool t;
	size_t room = 0;

	snprintf(number, sizeof(number), "%d", pid);
	t = tool_start(arg);
	th_check(!json_at(next_line(&t, &line, &room), "seconds"));
	for (int i = 0; i < 2; i++) {
		next_line(&t, &line, &room);
		th_check(json_at(line, "seconds"));
		th_check(json_at(line, "devices.0.per_second.sent_messages"));
	}
	if (sig)
		th_eq(kill(t.pid, sig), 0);
	else
		close(fd);
	while (getline(&line, &room, t.out) > 0)
		;
	th_eq(tool_end(&t), 0);
	free(line);
}

/* Rank 0 is watched by rank 1. */
static void a_watch_ends(struct th_self *self)
{
	struct th_stack_opts opts = rk_opts();
	pid_t pid[2] = { getpid(), 0 };
	int *stop = self->arg;
	struct th_stack a, b;

	if (!self->rank)
		th_pair_open(&a, &b, &opts);
	th_gather(self, "open", &pid[0], pid, sizeof(*pid));
	if (self->rank) {
		watch(pid[0], SIGINT, -1);
		watch(pid[0], SIGTERM, -1);
		watch(pid[0], 0, stop[1]);
		return;
	}
	close(stop[1]);
	churn(&a, &b, stop[0]);
	th_pair_close(&a, &b);
}

static void test_watch(void **state)
{
	(void)state;
	run_with_pipe(2, a_watch_ends);
}

/* ---- what is none of ours ----------------------------------------------- */

/* A memory file @name with @len bytes of @data, sealed as @seals says. */
static int impostor(const char *name, const void *data, size_t len, int seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	th_check(fd >= 0);
	th_eq(write(fd, data, len), len);
	if (seals)
		th_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void says(pid_t pid, const char *what)
{
	char number[32], *text;
	const char *arg[] = { number, NULL };

	snprintf(number, sizeof(number), "%d", pid);
	th_eq(tool_run(&text, arg), 0);
	if (!strstr(text, what))
		th_fail(__FILE__, __LINE__, "no \"%s\" in: %s", what, text);
	free(text);
}

/* Files that only look like those of a device. */
static void impostors_are_named(struct th_self *self)
{
	static unsigned char zeros[8192], noise[8192];
	int fd;

	(void)self;
	th_fill(noise, sizeof(noise), 5);
	fd = impostor("shrimp-tables", noise, sizeof(noise), 0);
	says(getpid(), "not sealed against shrinking");
	close(fd);
	fd = impostor("shrimp-tables", noise, sizeof(noise), F_SEAL_SHRINK);
	says(getpid(), "bad magic");
	free(tool_json(getpid()));
	close(fd);
	fd = impostor("shrimp-tables", zeros, sizeof(zeros), F_SEAL_SHRINK);
	says(getpid(), "no magic");
	close(fd);
	fd = impostor("shrimp-tables", noise, 3, F_SEAL_SHRINK);
	says(getpid(), "no header");
	close(fd);
}

/* ---- paging ------------------------------------------------------------- */

enum {
	DEMAND = 32 * RK_PAGE, /* bytes of a region on demand */
	IMPLICIT = 6,	       /* registrations of all there is */
};

/* Registers @len bytes at @p with key @key, as @flags say. */
static struct fid_mr *paged_reg(struct th_stack *s, void *p, size_t len,
				uint64_t key, uint64_t flags)
{
	struct iovec iov = { .iov_base = p, .iov_len = len };
	struct fi_mr_attr a = { .mr_iov = &iov,
				.iov_count = 1,
				.access = RK_RW,
				.requested_key = key };
	struct fid_mr *mr;

	th_ok(fi_mr_regattr(s->domain, &a, flags, &mr));
	return mr;
}

/* Writes a byte to page @page of key KEYS of @to. */
static void paged_touch(struct th_stack *s, fi_addr_t to, uint64_t page)
{
	unsigned char buf[1] = { 1 };

	th_ok(fi_write(s->ep, buf, 1, NULL, to, page * RK_PAGE, KEYS, buf));
	rk_done(s, FI_WRITE, buf);
}

/* Whole address spaces, and a region whose memory goes. */
static void paged_more(struct th_stack *s)
{
	struct th_deadline dl = th_patience();
	unsigned char *gone = rk_pages(RK_PAGE);
	struct fid_mr *mr = rk_reg(s, gone, RK_PAGE, RK_RW, KEYS + 1);

	rk_take_away(gone, RK_PAGE);
	while (probe_stats(&s->domain->fid).mrs_gone < 1)
		th_check(!th_expired(&dl));
	th_ok(fi_close(&mr->fid));
	munmap(gone, RK_PAGE);
	for (int i = 0; i < IMPLICIT; i++)
		th_ok(fi_close(
			&paged_reg(s, NULL, SIZE_MAX, KEYS + 2, 0)->fid));
}

/* Each counter gets a number of its own; what the peer asks for comes later. */
static void paged_use(struct th_stack *s, unsigned char *p, struct fid_mr *mr)
{
	struct fi_ops_shrimp_mr *ops = rk_mr_ops(s);
	fi_addr_t own = th_insert(s, s->addr);
	struct th_deadline dl = th_patience();

	for (uint64_t i = 0; i < 3; i++)
		paged_touch(s, own, i);
	th_ok(ops->advise(mr, 10 * RK_PAGE, 4 * RK_PAGE,
			  FI_SHRIMP_PREFETCH_WRITE));
	rk_take_away(p, 3 * RK_PAGE);
	while (probe_stats(&s->domain->fid).pages_invalidated < 3)
		th_check(!th_expired(&dl));
	paged_more(s);
}

static void paged_check(const char *text, const struct fi_shrimp_stats *st)
{
	const char *const at = "devices.0.paging.";

	th_eq(get(text, "%srequests", at), 2);
	th_eq(get(text, "%sfaults", at), 5);
	th_eq(get(text, "%smerged", at), st->page_merged);
	th_eq(get(text, "%sprefetched", at), 4);
	th_eq(get(text, "%sinvalidated", at), 3);
	th_eq(get(text, "%sgone", at), 1);
	th_eq(get(text, "%simplicit", at), IMPLICIT);
	th_eq(st->page_requests, 2);
	th_eq(st->page_faults, 5);
}

static void be_paged(struct th_self *self, struct th_stack *s)
{
	unsigned char *p = rk_pages(DEMAND);
	struct facts f[3], mine = { .pid = getpid() };
	struct fid_mr *mr = paged_reg(s, p, DEMAND, KEYS, FI_SHRIMP_ON_DEMAND);

	paged_use(s, p, mr);
	memcpy(mine.addr[0], s->addr, s->addrlen);
	th_gather(self, "addresses", &mine, f, sizeof(mine));
	th_barrier_progress(self, s, "asked");
	mine.st = probe_stats(&s->domain->fid);
	th_gather(self, "facts", &mine, f, sizeof(mine));
	th_barrier(self, "inspected");
	th_ok(fi_close(&mr->fid));
	munmap(p, DEMAND);
}

static void be_asking(struct th_self *self, struct th_stack *s)
{
	struct facts f[3], mine = { .pid = getpid() };

	th_gather(self, "addresses", &mine, f, sizeof(mine));
	for (uint64_t i = 20; i < 22; i++)
		paged_touch(s, th_insert(s, f[0].addr[0]), i);
	th_barrier_progress(self, s, "asked");
	th_gather(self, "facts", &mine, f, sizeof(mine));
	th_barrier(self, "inspected");
}

/* What became of pages on demand is told as the process itself counts it. */
static void paging_is_told(struct th_self *self)
{
	struct th_stack_opts opts = rk_opts();
	struct facts f[3], mine = { .pid = 0 };
	struct th_stack s;
	char *text;

	if (self->rank == 2) {
		th_gather(self, "addresses", &mine, f, sizeof(mine));
		th_barrier(self, "asked");
		th_gather(self, "facts", &mine, f, sizeof(mine));
		text = tool_json(f[0].pid);
		paged_check(text, &f[0].st);
		free(text);
		th_barrier(self, "inspected");
		return;
	}
	setenv("FI_SHRIMP_MONITOR", "uffd", 1);
	th_stack_open(&s, &opts);
	if (self->rank)
		be_asking(self, &s);
	else
		be_paged(self, &s);
	th_stack_close(&s);
}

/* ---- statuses ----------------------------------------------------------- */

static void ends_with(int status, const char *arg, const char *says)
{
	const char *args[] = { arg, NULL };
	char *text;
	int got = tool_run(&text, args);

	if (got != status || !strstr(text, says))
		th_fail(__FILE__, __LINE__, "%s: status %d: %s", arg, got,
			text);
	free(text);
}

static void statuses(struct th_self *self)
{
	char own[32];

	(void)self;
	snprintf(own, sizeof(own), "%d", getpid());
	ends_with(0, "--help", "usage: shrimp-inspect");
	ends_with(0, "--version", "shrimp-inspect ");
	ends_with(1, own, "has no shrimp device");
	ends_with(1, "2147483647", "No such process");
	ends_with(2, "1x", "not a process");
	ends_with(2, "--nonsense", "--help");
	/* one that nobody may look at, root without that right neither */
	th_eq(prctl(PR_SET_DUMPABLE, 0), 0);
	prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE);
	ends_with(2, own, "does not let us look");
	th_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}

#define CASE(fn, n) TH_CASE(fn, n, 60)

static const struct CMUnitTest inspect[] = {
	CASE(contract_K1_read_by_another_process, 3),
	cmocka_unit_test(test_changes),
	cmocka_unit_test(test_killed),
	cmocka_unit_test(test_watch),
	CASE(paging_is_told, 3),
	CASE(impostors_are_named, 1),
	CASE(statuses, 1),
};

TH_MAIN(inspect)
