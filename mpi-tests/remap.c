/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Buffers that are new for each transfer, most of them where another one was a
 * moment ago: from malloc and realloc, mapped at one address, moved, given up,
 * of files that change. Messages of many sizes, and windows that come and go
 * with their memory. A cached registration that is too old shows: wrong bytes.
 */
#include "common.h"

#include <fcntl.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma/fi_ext_shrimp.h"

static long rounds = 6;
static long windows = 3;
static long same;
static long told;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of all sizes, by messages" },
	{ "windows", &windows, "rounds of all sizes, by windows" },
	{ "same", &same, "1: only memory mapped at one address" },
	{ "told", &told, "1: tell shrimp of memory before it changes" },
	{ 0 },
};

static const MPI_Comm world = MPI_COMM_WORLD;
static const size_t page = 4096;

/* ---- what shrimp is told ------------------------------------------------- */

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fi_ops_shrimp_cache *ops; /* NULL: nobody is told */

/* A domain of our own: what it is told holds for MPI's as well. */
static void told_open(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	void *table = NULL;

	mt_check(hints, "no memory");
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED;
	mt_check(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) &&
			 !fi_fabric(info->fabric_attr, &fabric, NULL) &&
			 !fi_domain(fabric, info, &domain, NULL) &&
			 !fi_open_ops(&domain->fid, FI_SHRIMP_OPS_CACHE, 0,
				      &table, NULL),
		 "cannot open a domain");
	ops = table;
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void told_close(void)
{
	ops = NULL;
	mt_check(!fi_close(&domain->fid) && !fi_close(&fabric->fid),
		 "cannot close the domain");
}

/* The memory at @p is about to change, and has. */
static void begin(const void *p, size_t len)
{
	if (ops)
		mt_check(!ops->unmap_begin(&domain->fid, p, len),
			 "unmap_begin fails");
}

static void end(const void *p, size_t len)
{
	if (ops)
		mt_check(!ops->unmap_end(&domain->fid, p, len),
			 "unmap_end fails");
}

/* ---- buffers ------------------------------------------------------------- */

/* How the memory of a buffer comes and goes. */
enum way { MALLOC, REALLOC, MAPPED, FROM_FILE, MOVED, GIVEN_UP, WAYS };

enum { SLOTS = 3 };

/* One of the buffers that are in use at a time. */
struct buf {
	char *p;      /* its bytes */
	size_t len;   /* how many */
	enum way way; /* how it goes */
	int slot;     /* its number, 0 to SLOTS - 1 */
	size_t room;  /* whole pages of it, if mapped */
	int fd;	      /* their file, or -1 */
};

static void *spot[SLOTS];    /* where its memory was mapped before */
static char *lasting[SLOTS]; /* of GIVEN_UP: stays mapped */
static size_t most;	     /* bytes of these, whole pages */
static long hits, misses;    /* mapped where it was, or elsewhere */

/* Maps @b at the address that its slot had, if nobody else is there. */
static void map(struct buf *b, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	int prot = PROT_READ | PROT_WRITE;
	void *p = MAP_FAILED;

	if (spot[b->slot])
		p = mmap(spot[b->slot], b->room, prot,
			 flags | MAP_FIXED_NOREPLACE, fd, 0);
	if (p != MAP_FAILED)
		hits++;
	else if (spot[b->slot])
		misses++;
	if (p == MAP_FAILED)
		p = mmap(NULL, b->room, prot, flags, fd, 0);
	mt_check(p != MAP_FAILED, "mmap of %zu bytes", b->room);
	b->p = spot[b->slot] = p;
}

/*
 * Another file each time: its pages are never those of the last one. Peers map
 * it, as it cannot shrink and is open.
 */
static void map_file(struct buf *b)
{
	int fd = memfd_create("remap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	b->fd = fd;
	mt_check(fd >= 0 && !ftruncate(fd, (off_t)b->room) &&
			 !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK),
		 "memfd_create");
	map(b, fd);
}

/* Grows from half of it, and may move. */
static void map_moved(struct buf *b)
{
	size_t room = b->room, half = (room / 2 + page - 1) & ~(page - 1);

	b->room = half;
	map(b, -1);
	memset(b->p, 1, half);
	begin(b->p, half);
	b->p = mremap(b->p, half, room, MREMAP_MAYMOVE);
	mt_check(b->p != MAP_FAILED, "mremap to %zu bytes", room);
	end(spot[b->slot], half);
	b->room = room;
}

/* Apart: compilers object to the use of the old address afterwards. */
static __attribute__((noinline)) char *resize(char *p, size_t len)
{
	p = realloc(p, len);
	mt_check(p, "no memory for %zu bytes", len);
	return p;
}

/* realloc() of @was bytes at @p to @len; it may move. */
static char *told_resize(char *p, size_t was, size_t len)
{
	char *q;

	begin(p, was);
	q = resize(p, len);
	end(p, was);
	return q;
}

static void take(struct buf *b)
{
	b->room = (b->len + page - 1 + !b->len) & ~(page - 1);
	switch (b->way) {
	case MALLOC:
		b->p = resize(NULL, b->len + 1);
		break;
	case REALLOC:
		b->p = resize(NULL, b->len / 2 + 1);
		memset(b->p, 1, b->len / 2 + 1);
		b->p = told_resize(b->p, b->len / 2 + 1, b->len + 1);
		break;
	case MAPPED:
		map(b, -1);
		break;
	case FROM_FILE:
		map_file(b);
		break;
	case MOVED:
		map_moved(b);
		break;
	default:
		b->p = lasting[b->slot];
	}
}

/* Apart, as resize(). */
static __attribute__((noinline)) void release(char *p)
{
	free(p);
}

static void give_back(struct buf *b)
{
	if (b->way == REALLOC)
		b->p = told_resize(b->p, b->len + 1, b->len / 4 + 1);
	begin(b->p, b->len + 1);
	if (b->way == MALLOC || b->way == REALLOC)
		release(b->p);
	else if (b->way == GIVEN_UP)
		/* locked pages stay as they are */
		(void)madvise(b->p, b->room, MADV_DONTNEED);
	else
		mt_check(!munmap(b->p, b->room), "munmap");
	end(b->p, b->len + 1);
	if (b->fd >= 0)
		close(b->fd);
}

/*
 * A new buffer, by one of the ways. What was found out about private memory is
 * right about a file that comes there; the other way round it is not: so files
 * are first, and more.
 */
static struct buf fresh(int slot, size_t len, uint64_t *state)
{
	struct buf b = { .len = len, .slot = slot, .fd = -1 };
	static int n;

	if (same)
		b.way = n++ > 100 && mt_random(state) % 4 == 0 ? MAPPED
							       : FROM_FILE;
	else
		b.way = (enum way)(mt_random(state) % WAYS);
	take(&b);
	return b;
}

static void lasting_open(size_t len)
{
	most = (len + page - 1) & ~(page - 1);
	for (int i = 0; i < SLOTS; i++) {
		lasting[i] = mmap(NULL, most, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mt_check(lasting[i] != MAP_FAILED, "mmap of %zu bytes", most);
	}
}

static void lasting_close(void)
{
	for (int i = 0; i < SLOTS; i++) {
		begin(lasting[i], most);
		munmap(lasting[i], most);
		end(lasting[i], most);
	}
}

/* ---- messages --------------------------------------------------------------- */

/* Round the ring. */
static void message(size_t len, long round, uint64_t *state)
{
	int right = (mt_rank + 1) % mt_size;
	int left = (mt_rank + mt_size - 1) % mt_size;
	struct buf in = fresh(0, len, state), out = fresh(1, len, state);
	MPI_Request req[2];
	MPI_Status st[2];

	mt_fill(out.p, len, mt_seed(mt_rank, right, (long)len, round));
	memset(in.p, 0xee, len);
	MPI_Irecv(in.p, (int)len, MPI_BYTE, left, 7, world, &req[0]);
	MPI_Isend(out.p, (int)len, MPI_BYTE, right, 7, world, &req[1]);
	MPI_Waitall(2, req, st);
	mt_sent(1, len);
	mt_status(&st[0], left, 7, len);
	mt_verify(in.p, len, mt_seed(left, mt_rank, (long)len, round));
	give_back(&in);
	give_back(&out);
}

/* ---- windows ------------------------------------------------------------------ */

/*
 * The right neighbour's memory is read, written, and read again to where it was
 * written from: Open MPI, whose own cache has that buffer for a put, registers
 * it anew for a get, and finds it in ours.
 */
static void use_window(MPI_Win win, struct buf *mem, long round,
		       uint64_t *state)
{
	int right = (mt_rank + 1) % mt_size;
	int left = (mt_rank + mt_size - 1) % mt_size, n = (int)mem->len;
	struct buf in = fresh(1, mem->len, state);
	struct buf out = fresh(2, mem->len, state);

	memset(in.p, 0xee, mem->len);
	mt_fill(mem->p, mem->len, mt_seed(mt_rank, 1, n, round));
	MPI_Win_fence(0, win);
	MPI_Get(in.p, n, MPI_BYTE, right, 0, n, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	mt_verify(in.p, mem->len, mt_seed(right, 1, n, round));
	mt_fill(out.p, mem->len, mt_seed(mt_rank, 2, n, round));
	MPI_Put(out.p, n, MPI_BYTE, right, 0, n, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	mt_verify(mem->p, mem->len, mt_seed(left, 2, n, round));
	memset(out.p, 0xee, mem->len);
	MPI_Get(out.p, n, MPI_BYTE, right, 0, n, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	mt_verify(out.p, mem->len, mt_seed(mt_rank, 2, n, round));
	if (mem->len && right != mt_rank)
		mt_device(3, 3 * mem->len);
	give_back(&in);
	give_back(&out);
}

static void window(size_t len, long round, uint64_t *state)
{
	struct buf mem = fresh(0, len, state);
	MPI_Win win;

	MPI_Win_create(mem.p, (MPI_Aint)len, 1, MPI_INFO_NULL, world, &win);
	use_window(win, &mem, round, state);
	MPI_Win_free(&win);
	give_back(&mem);
}

/* ---- all ------------------------------------------------------------------------- */

static const size_t sizes[] = { 1,     40,     4096,   4097,	30000,
				65536, 131073, 600000, 1 << 20, 3000001 };

enum { NSIZES = sizeof(sizes) / sizeof(*sizes) };

int main(int argc, char **argv)
{
	uint64_t state;

	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"remap: new buffers at old addresses (2 ranks or more)", opts);
	if (told)
		told_open();
	lasting_open(sizes[NSIZES - 1]);
	state = (uint64_t)mt_rank;
	for (long k = 0; k < mt_rounds(rounds); k++)
		for (int i = 0; i < NSIZES; i++)
			message(sizes[i], k, &state);
	for (long k = 0; k < mt_rounds(windows); k++)
		for (int i = 0; i < NSIZES; i++)
			window(sizes[i], k, &state);
	lasting_close();
	/* else it did not do what it is for */
	mt_check(!same || hits > 0,
		 "memory came where it was %ld times, elsewhere %ld", hits,
		 misses);
	if (told)
		told_close();
	return mt_end(same ? "remap (case_C9)" : "remap");
}
