/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * RMA to memory files of the application: sealed ones are mapped by the
 * initiator, all others are reached by address; the bytes are right in both.
 * Rank 0 owns the memory, rank 1 reads and writes it, and looks into its own
 * /proc/self/maps for what it has mapped.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	LEN = 1 << 20, /* bytes of a region */
	KEY = 77,
	SMALL = 8, /* bytes of the smallest access */
};

#define NAME "shrimp-spaces-test"
#define RW   (FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct th_stack_opts allocated = { .mr_mode = FI_MR_ALLOCATED };
static const struct th_stack_opts unallocated = { .mr_mode = FI_MR_VIRT_ADDR };

/* The owner's memory. */
struct memory {
	int fd;		  /* of the file, -1: closed */
	unsigned char *p; /* where it is mapped */
	struct fid_mr *mr;
};

/* @LEN bytes at byte @off of a file that is longer. */
static struct memory memory_new(struct th_stack *s, int seals, off_t off)
{
	struct memory m = { .fd = memfd_create(
				    NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING) };

	th_check(m.fd >= 0);
	th_eq(ftruncate(m.fd, off + LEN + PAGE), 0);
	if (seals)
		th_eq(fcntl(m.fd, F_ADD_SEALS, seals), 0);
	m.p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, off);
	th_check(m.p != MAP_FAILED);
	th_ok(fi_mr_reg(s->domain, m.p, LEN, RW, 0, KEY, 0, &m.mr, NULL));
	return m;
}

static void memory_free(struct memory *m)
{
	if (m->mr)
		th_ok(fi_close(&m->mr->fid));
	if (m->fd >= 0)
		close(m->fd);
	if (m->p)
		munmap(m->p, LEN);
}

/* Mappings of the file in this process. */
static unsigned int mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	th_check(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, NAME) != NULL;
	fclose(f);
	return n;
}

/* The initiator writes @len bytes at @off, and reads them back. */
static void round_trip(struct th_stack *s, size_t off, size_t len,
		       uint64_t seed)
{
	struct th_buf b = th_buf_new(len);

	th_fill(b.p, len, seed);
	th_ok(fi_write(s->ep, b.p, len, NULL, s->peers[0], off, KEY, &b));
	th_tx_ok(s);
	memset(b.p, 0, len);
	th_ok(fi_read(s->ep, b.p, len, NULL, s->peers[0], off, KEY, &b));
	th_tx_ok(s);
	th_verify(b.p, len, seed);
	th_buf_free(&b);
}

/* Small and large, at both ends; the owner looks at them afterwards. */
static void some_trips(struct th_stack *s, uint64_t seed)
{
	round_trip(s, 0, SMALL, seed);
	round_trip(s, LEN - SMALL, SMALL, seed + 1);
	round_trip(s, 4093, LEN / 2, seed + 2);
}

static void check_trips(const unsigned char *p, uint64_t seed)
{
	th_verify(p, SMALL, seed);
	th_verify(p + LEN - SMALL, SMALL, seed + 1);
	th_verify(p + 4093, LEN / 2, seed + 2);
}

/* How a test differs. */
struct how {
	int seals;			  /* of the file */
	off_t off;			  /* of the mapping in it */
	bool map;			  /* the initiator maps it */
	bool close;			  /* the owner closes its descriptor */
	const struct th_stack_opts *opts; /* of the stacks */
};

static void go(struct th_self *self, const struct how *how)
{
	struct memory m = { .fd = -1 };
	struct th_stack s;

	th_stack_open(&s, how->opts);
	th_stack_connect(&s, self);
	if (!self->rank)
		m = memory_new(&s, how->seals, how->off);
	if (!self->rank && how->close) {
		close(m.fd);
		m.fd = -1;
	}
	th_barrier_progress(self, &s, "registered");
	if (self->rank) {
		th_eq(mapped(), 0);
		some_trips(&s, 5);
		th_eq(mapped() > 0, how->map);
	}
	th_barrier_progress(self, &s, "written");
	if (!self->rank)
		check_trips(m.p, 5);
	memory_free(&m);
	th_barrier_progress(self, &s, "closed");
	th_stack_close(&s);
	th_eq(mapped(), 0);
}

static void sealed_is_mapped(struct th_self *self)
{
	go(self, &(struct how){ F_SEAL_SHRINK, 0, true, false, &allocated });
}

static void odd_offset_is_mapped(struct th_self *self)
{
	go(self,
	   &(struct how){ F_SEAL_SHRINK, 13 * PAGE, true, false, &allocated });
}

static void closed_is_mapped(struct th_self *self)
{
	go(self, &(struct how){ F_SEAL_SHRINK, PAGE, true, true, &allocated });
}

static void contract_L2_unsealed_is_not(struct th_self *self)
{
	go(self, &(struct how){ 0, 0, false, false, &allocated });
}

/* Sealed against growing only: it could be cut off below a peer. */
static void contract_L2_other_seal_is_not(struct th_self *self)
{
	go(self, &(struct how){ F_SEAL_GROW, PAGE, false, false, &allocated });
}

/* What is mapped at registration need not be there later. */
static void unallocated_is_not(struct th_self *self)
{
	go(self, &(struct how){ F_SEAL_SHRINK, 0, false, false, &unallocated });
}

/* Who came over the socket cannot open the file: the owner does it. */
static void by_socket_is_not(struct th_self *self)
{
	setenv("FI_SHRIMP_ATTACH", "socket", 1);
	go(self,
	   &(struct how){ F_SEAL_SHRINK, PAGE, false, false, &allocated });
}

/* One after the other, under one key: each goes to its own file. */
static void contract_I1_next_file(struct th_self *self)
{
	unsigned char in[64];
	struct th_stack s;

	th_stack_open(&s, &allocated);
	th_stack_connect(&s, self);
	for (uint64_t i = 0; i < 40; i++) {
		struct memory m = { .fd = -1 };

		if (!self->rank)
			m = memory_new(&s, F_SEAL_SHRINK, PAGE);
		th_barrier_progress(self, &s, "registered");
		if (self->rank) {
			some_trips(&s, i);
			/* of files that are gone it has kept none */
			th_check(mapped() == 1);
		}
		th_barrier_progress(self, &s, "written");
		if (!self->rank) {
			check_trips(m.p, i);
			th_ok(fi_close(&m.mr->fid));
			m.mr = NULL;
			memset(m.p, 0, LEN);
		}
		th_barrier_progress(self, &s, "withdrawn");
		if (self->rank) {
			th_ok(fi_write(s.ep, in, 64, NULL, s.peers[0], 0, KEY,
				       in));
			th_eq(th_tx_err(&s).err, FI_EKEYREJECTED);
		}
		th_barrier_progress(self, &s, "refused");
		if (!self->rank)
			th_verify_byte(m.p, LEN, 0);
		memory_free(&m);
	}
	th_stack_close(&s);
}

enum { GUARD = 8192 }; /* bytes that are written all the time */

/* A new file, registered for a moment, must be silent afterwards. */
static void come_and_go(struct th_stack *s, unsigned int us)
{
	struct memory m = memory_new(s, F_SEAL_SHRINK, PAGE);

	th_sleep_us(us);
	th_ok(fi_close(&m.mr->fid));
	m.mr = NULL;
	memset(m.p, 0, GUARD);
	th_sleep_us(us);
	th_verify_byte(m.p, GUARD, 0);
	memory_free(&m);
}

/* One write, which may find no key, and nothing else amiss. */
static bool write_once(struct th_stack *s, const void *in)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;

	th_ok(fi_write(s->ep, in, GUARD, NULL, s->peers[0], 0, KEY, NULL));
	if (th_cq_next(s, s->txcq, &e, &err) == 1)
		return true;
	th_eq(err.err, FI_EKEYREJECTED);
	return false;
}

/* Files change under one key while a peer writes without a pause. */
static void contract_I1_files_come_and_go(struct th_self *self)
{
	struct th_deadline end;
	unsigned char in[GUARD];
	unsigned long good = 0, bad = 0;
	struct th_stack s;
	uint64_t seed = 7;

	th_stack_open(&s, &allocated);
	th_stack_connect(&s, self);
	memset(in, 0xa5, sizeof(in));
	th_barrier_progress(self, &s, "begin");
	end = th_deadline_ms(th_long() ? 30000 : 2000);
	while (!th_expired(&end)) {
		if (!self->rank)
			come_and_go(&s, (unsigned int)(th_random(&seed) % 200));
		else if (write_once(&s, in))
			good++;
		else
			bad++;
	}
	th_barrier_progress(self, &s, "end");
	/* on a busy machine one of the two may not come up */
	if (self->rank)
		th_check(good + bad > 0);
	th_stack_close(&s);
}

/* Two files, and private memory between them, under one key. */
static void ranges_of_files(struct th_self *self)
{
	static const size_t at[] = { 0, LEN - 30, LEN + 10, LEN + 1000 - 40,
				     2 * LEN - 100 };
	struct memory m = { .fd = -1 }, n = m;
	unsigned char own[1000];
	struct iovec iov[3];
	struct fid_mr *mr = NULL;
	struct th_stack s;

	th_stack_open(&s, &allocated);
	th_stack_connect(&s, self);
	if (!self->rank) {
		m = memory_new(&s, F_SEAL_SHRINK, PAGE);
		th_ok(fi_close(&m.mr->fid));
		n = memory_new(&s, F_SEAL_SHRINK, 3 * PAGE);
		th_ok(fi_close(&n.mr->fid));
		m.mr = n.mr = NULL;
		iov[0] = (struct iovec){ m.p, LEN };
		iov[1] = (struct iovec){ own, sizeof(own) };
		iov[2] = (struct iovec){ n.p + 10, LEN - 10 };
		th_ok(fi_mr_regv(s.domain, iov, 3, RW, 0, KEY, 0, &mr, NULL));
	}
	th_barrier_progress(self, &s, "registered");
	for (size_t i = 0; self->rank && i < 5; i++)
		round_trip(&s, at[i], 60, i);
	if (self->rank)
		th_eq(mapped(), 2);
	th_barrier_progress(self, &s, "written");
	if (!self->rank) {
		th_verify(m.p, 60, 0);
		th_verify(m.p + LEN - 30, 30, 1);
		th_verify_at(own + 10, 60, 2, 0);
		th_verify_at(n.p + 10, 20, 3, 40);
		th_ok(fi_close(&mr->fid));
	}
	memory_free(&m);
	memory_free(&n);
	th_stack_close(&s);
}

static const struct CMUnitTest tests[] = {
	TH_CASE(sealed_is_mapped, 2, 30),
	TH_CASE(odd_offset_is_mapped, 2, 30),
	TH_CASE(closed_is_mapped, 2, 30),
	TH_CASE(contract_L2_unsealed_is_not, 2, 30),
	TH_CASE(contract_L2_other_seal_is_not, 2, 30),
	TH_CASE(unallocated_is_not, 2, 30),
	TH_CASE(by_socket_is_not, 2, 30),
	TH_CASE(contract_I1_next_file, 2, 60),
	TH_CASE(contract_I1_files_come_and_go, 2, 60),
	TH_CASE(ranges_of_files, 2, 30),
};

TH_MAIN(tests)
