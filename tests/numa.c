/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Placement on a machine of several nodes, as a user sets it: two processes
 * on different nodes exchange messages and write to each other's memory, and
 * then the kernel says on which nodes the pages of all segments lie, those
 * that the peer made included. make check-numa runs it on such a machine.
 *
 * Limit: 300 s
 */
#define _GNU_SOURCE
#include "harness.h"

#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rma_kit.h"

enum {
	NODES = 64,	  /* more are not looked at */
	SEGMENTS = 32,	  /* of this process: three a device */
	BIG = 1 << 20,	  /* longest message, and device memory */
	SMALL_NODE = 512, /* MiB: more memory is not filled up */
};

#define NODE_DIR "/sys/devices/system/node"

/* ---- the machine ---------------------------------------------------------- */

/* Nodes with memory. */
struct machine {
	int node[NODES]; /* their numbers, rising */
	int n;		 /* how many */
};

/* Reads a list as "0-1,4" of @file. */
static int read_list(const char *file, int *out, int room)
{
	FILE *f = fopen(file, "r");
	int n = 0, from, to;

	while (f && n < room && fscanf(f, "%d", &from) == 1) {
		to = from;
		if (fscanf(f, "-%d", &to) < 0)
			to = from;
		while (from <= to && n < room)
			out[n++] = from++;
		if (fgetc(f) != ',')
			break;
	}
	if (f)
		fclose(f);
	return n;
}

static struct machine machine(struct th_self *self, int nodes)
{
	struct machine m;

	m.n = read_list(NODE_DIR "/has_memory", m.node, NODES);
	if (m.n < nodes)
		th_skip(self, "not a machine of several nodes: "
			      "see make check-numa");
	return m;
}

/* From here on this process runs on @node. */
static void run_on(int node)
{
	char file[64];
	cpu_set_t set;
	int cpu[CPU_SETSIZE], n;

	snprintf(file, sizeof(file), NODE_DIR "/node%d/cpulist", node);
	n = read_list(file, cpu, CPU_SETSIZE);
	CPU_ZERO(&set);
	for (int i = 0; i < n; i++)
		CPU_SET((size_t)cpu[i], &set);
	th_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* MemFree of @node, MiB. */
static unsigned long free_mib(int node)
{
	unsigned long kib = 0;
	char line[128];
	FILE *f;

	snprintf(line, sizeof(line), NODE_DIR "/node%d/meminfo", node);
	f = fopen(line, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Node %*d MemFree: %lu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib >> 10;
}

/* ---- segments ------------------------------------------------------------- */

/* Pages of a segment that this process has touched. */
struct segment {
	unsigned long ino;	   /* of the memfd */
	unsigned long page[NODES]; /* by node */
	bool own;		   /* of our device */
};

struct segments {
	struct segment at[SEGMENTS];
	int n;
};

static struct segment *segment(struct segments *s, unsigned long ino)
{
	for (int i = 0; i < s->n; i++)
		if (s->at[i].ino == ino)
			return &s->at[i];
	th_check(s->n < SEGMENTS);
	s->at[s->n] = (struct segment){ .ino = ino };
	return &s->at[s->n++];
}

/* The inode that is mapped at @start. */
static unsigned long ino_at(unsigned long start)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long at, ino, found = 0;
	char line[512];

	th_check(f);
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &at, &ino) == 2 &&
		    at == start)
			found = ino;
	fclose(f);
	return found;
}

/* Adds the "N1=23" of a line of numa_maps. */
static void add_pages(struct segment *s, const char *line)
{
	unsigned long pages;
	int node;

	while ((line = strstr(line, " N"))) {
		if (sscanf(line, " N%d=%lu", &node, &pages) == 2 &&
		    node < NODES)
			s->page[node] += pages;
		line += 2;
	}
}

/* Asks the kernel where the pages of all segments lie. */
static void look(struct segments *s)
{
	FILE *f = fopen("/proc/self/numa_maps", "r");
	unsigned long start;
	char line[512];

	th_check(f);
	for (int i = 0; i < s->n; i++)
		memset(s->at[i].page, 0, sizeof(s->at[i].page));
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:shrimp-") &&
		    sscanf(line, "%lx ", &start) == 1)
			add_pages(segment(s, ino_at(start)), line);
	fclose(f);
}

/* Before any peer is known, all segments are our own. */
static void own(struct segments *s)
{
	struct stat st;
	char path[64], name[64];

	*s = (struct segments){ .n = 0 };
	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		if (strstr(name, "memfd:shrimp-") && !fstat(fd, &st))
			segment(s, st.st_ino)->own = true;
	}
	th_eq(s->n, 3);
}

/* ---- traffic -------------------------------------------------------------- */

/* Messages of all kinds of paths, and RMA. */
static void talk(struct th_stack *s, struct th_self *self)
{
	static const size_t lens[] = { 8, 1000, 5000, 60000, BIG };
	unsigned char *out = malloc(BIG), *in = malloc(BIG);
	fi_addr_t to = s->peers[!self->rank];

	th_check(out && in);
	th_fill(out, BIG, (uint64_t)self->rank);
	for (int i = 0; i < 5; i++) {
		th_trecv(s, in, lens[i], 1, 0, in);
		th_tsend(s, to, out, lens[i], 1, out);
		th_rx_ok(s);
		th_verify(in, lens[i], !self->rank);
		th_tx_ok(s);
	}
	th_ok(fi_write(s->ep, out, BIG, NULL, to, 0, RK_KEY, out));
	rk_done(s, FI_WRITE, out);
	free(out);
	free(in);
}

/* ---- the tests ------------------------------------------------------------ */

/* A policy, and the node where it puts the memory of rank r. */
struct policy {
	const char *numa; /* FI_SHRIMP_NUMA; NULL: not set */
	bool home;	  /* with FI_SHRIMP_HOME_NODE: two farther */
};

static int home_of(const struct machine *m, const struct policy *p, int rank)
{
	return m->node[(rank + (p->home ? 2 : 0)) % m->n];
}

/* Every page of @s is on @node. */
static void all_on(const struct segment *s, int node)
{
	unsigned long there = s->page[node];

	th_check(there);
	for (int i = 0; i < NODES; i++)
		if (i != node)
			th_eq(s->page[i], 0);
}

static void device_memory_on(struct rk_mem *m, struct fid_mr *mr, int node)
{
	int at[BIG / RK_PAGE];

	th_eq(m->ops->nodes(mr, 0, BIG, at, BIG / RK_PAGE), BIG / RK_PAGE);
	for (int i = 0; i < BIG / RK_PAGE; i++)
		th_eq(at[i], node);
}

static void set(const struct policy *p, int node)
{
	char text[16];

	if (p->numa)
		setenv("FI_SHRIMP_NUMA", p->numa, 1);
	snprintf(text, sizeof(text), "%d", node);
	if (p->home)
		setenv("FI_SHRIMP_HOME_NODE", text, 1);
}

static void one_node(struct th_self *self)
{
	const struct policy *p = self->arg;
	struct machine m = machine(self, 3);
	int mine = home_of(&m, p, self->rank);
	struct th_stack_opts o = rk_opts();
	struct segments seg;
	struct th_stack s;
	struct rk_mem mem;
	struct fid_mr *mr;

	run_on(m.node[self->rank]);
	set(p, mine);
	th_stack_open(&s, &o);
	own(&seg);
	mem = rk_mem_new(&s, true, BIG);
	mr = rk_reg(&s, mem.p, BIG, RK_RW, RK_KEY);
	th_stack_connect(&s, self);
	talk(&s, self);
	th_barrier_progress(self, &s, "talked");
	look(&seg);
	th_check(seg.n > 3);
	for (int i = 0; i < seg.n; i++)
		all_on(&seg.at[i],
		       seg.at[i].own ? mine : home_of(&m, p, !self->rank));
	device_memory_on(&mem, mr, mine);
	th_barrier_progress(self, &s, "looked");
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&mem);
	th_stack_close(&s);
}

static void placed(const char *numa, bool home)
{
	struct policy p = { numa, home };

	th_run(2, one_node, &p, 60);
}

static void contract_N1_default(void **state)
{
	(void)state;
	placed(NULL, false);
}

static void contract_N1_local(void **state)
{
	(void)state;
	placed("local", false);
}

static void contract_N1_nic(void **state)
{
	(void)state;
	placed("nic", false);
	placed("nic", true);
}

static void contract_N1_preferred(void **state)
{
	(void)state;
	placed("preferred", false);
	placed("preferred", true);
}

/* Every node has its share of the memory. */
static void contract_N1_interleave(struct th_self *self)
{
	struct machine m = machine(self, 2);
	unsigned int count[NODES] = { 0 };
	int at[BIG / RK_PAGE];
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct rk_mem mem;
	struct fid_mr *mr;

	setenv("FI_SHRIMP_NUMA", "interleave", 1);
	th_stack_open(&s, &o);
	mem = rk_mem_new(&s, true, BIG);
	mr = rk_reg(&s, mem.p, BIG, RK_RW, RK_KEY);
	th_eq(mem.ops->nodes(mr, 0, BIG, at, BIG / RK_PAGE), BIG / RK_PAGE);
	for (int i = 0; i < BIG / RK_PAGE; i++) {
		th_check(at[i] >= 0 && at[i] < NODES);
		count[at[i]]++;
	}
	for (int i = 0; i < m.n; i++)
		th_check((int)count[m.node[i]] >= BIG / RK_PAGE / m.n - 1);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&mem);
	th_stack_close(&s);
}

/* The home node is where the process is when the domain is opened. */
static void contract_N1_home_stays(struct th_self *self)
{
	struct machine m = machine(self, 2);
	struct th_stack_opts o = rk_opts();
	struct th_stack s;
	struct rk_mem mem;
	struct fid_mr *mr;

	setenv("FI_SHRIMP_NUMA", "nic", 1);
	run_on(m.node[1]);
	th_stack_open(&s, &o);
	run_on(m.node[0]);
	mem = rk_mem_new(&s, true, BIG);
	mr = rk_reg(&s, mem.p, BIG, RK_RW, RK_KEY);
	device_memory_on(&mem, mr, m.node[1]);
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&mem);
	th_stack_close(&s);
}

static bool has_memory(const struct machine *m, int node)
{
	for (int i = 0; i < m->n; i++)
		if (m->node[i] == node)
			return true;
	return false;
}

/* Reads a row as "10 20 30" of @file. */
static int read_row(const char *file, int *out, int room)
{
	FILE *f = fopen(file, "r");
	int n = 0;

	while (f && n < room && fscanf(f, "%d", &out[n]) == 1)
		n++;
	if (f)
		fclose(f);
	return n;
}

/* The node with memory that is nearest to @node, or -1 if several are. */
static int nearest(const struct machine *m, int node)
{
	int far[NODES], all[NODES], n, ties = 0, best = -1;
	char file[64];

	n = read_list(NODE_DIR "/online", all, NODES);
	snprintf(file, sizeof(file), NODE_DIR "/node%d/distance", node);
	th_eq(read_row(file, far, NODES), n);
	for (int i = 0; i < n; i++) {
		if (all[i] == node || !has_memory(m, all[i]))
			continue;
		if (best >= 0 && far[i] == far[best])
			ties++;
		if (best >= 0 && far[i] >= far[best])
			continue;
		best = i;
		ties = 0;
	}
	return best < 0 || ties ? -1 : all[best];
}

/* More than the preferred node has: the rest is next door, and no error. */
static void contract_N1_preferred_is_full(struct th_self *self)
{
	struct machine m = machine(self, 2);
	int home = m.node[m.n - 1], first, last;
	struct th_stack_opts o = rk_opts();
	unsigned long mib = free_mib(home);
	struct policy p = { "preferred", true };
	struct th_stack s;
	struct rk_mem mem;
	struct fid_mr *mr;
	size_t len = (mib + 16) << 20;

	if (!mib || mib > SMALL_NODE)
		th_skip(self, "nodes with more memory than a test should fill");
	set(&p, home);
	setenv("FI_SHRIMP_PIN", "off", 1);
	th_stack_open(&s, &o);
	mem = rk_mem_new(&s, true, len);
	mr = rk_reg(&s, mem.p, len, RK_RW, RK_KEY);
	th_check(mem.ops->nodes(mr, 0, 1, &first, 1) == 1);
	th_check(mem.ops->nodes(mr, len - 1, 1, &last, 1) == 1);
	th_eq(first, home);
	th_check(last >= 0 && last != home);
	if (nearest(&m, home) >= 0)
		th_eq(last, nearest(&m, home));
	th_ok(fi_close(&mr->fid));
	rk_mem_free(&mem);
	th_stack_close(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(contract_N1_default),
	cmocka_unit_test(contract_N1_local),
	cmocka_unit_test(contract_N1_nic),
	cmocka_unit_test(contract_N1_preferred),
	TH_CASE(contract_N1_interleave, 1, 60),
	TH_CASE(contract_N1_home_stays, 1, 60),
	TH_CASE(contract_N1_preferred_is_full, 1, 120),
};

TH_MAIN(tests)
