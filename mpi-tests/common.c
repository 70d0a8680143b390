/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * See common.h. The counters of shrimp are asked for on a fabric object of
 * our own: they are those of the process, so also of MPI's endpoints.
 */
#include "common.h"

#include <inttypes.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fabric.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include "rdma/fi_ext_shrimp.h"

enum {
	GUARD = 64, /* bytes of a guard zone */
	GUARD_BYTE = 0x5a,
};

/* Messages and bytes. */
struct amount {
	uint64_t msgs;
	uint64_t bytes;
};

/* What stands before the first guard zone of an allocation. */
struct block {
	size_t len; /* bytes of the caller */
};

int mt_rank = -1;
int mt_size;

/* Relaxed: sums only, read when all threads are joined. */
static _Atomic uint64_t sent_msgs, sent_bytes, moved_msgs, moved_bytes;
static _Atomic uint64_t device_ops, device_bytes;

/* How the job's traffic travels: SHRIMP_TEST_WAY, see common.h. */
static enum { WAY_ANY, WAY_RDMA, WAY_PT2PT, WAY_OB1 } way;

static struct fid_fabric *fabric;
static struct fi_ops_shrimp_stats *stats_ops;
static struct fi_shrimp_stats stats_base;

/* ---- checks -------------------------------------------------------- */

void mt_fail(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "FAILED %s:%d: rank %d of %d: %s\n", file, line,
		mt_rank, mt_size, text);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	_exit(1);
}

void mt_status_at(const char *file, int line, const MPI_Status *st, int src,
		  int tag, size_t len)
{
	MPI_Count got;

	MPI_Get_elements_x(st, MPI_BYTE, &got);
	if (st->MPI_SOURCE != src || st->MPI_TAG != tag || got != (long)len)
		mt_fail(file, line,
			"status: source %d tag %d length %lld, "
			"expected %d %d %zu",
			st->MPI_SOURCE, st->MPI_TAG, (long long)got, src, tag,
			len);
}

/* ---- data ---------------------------------------------------------- */

uint64_t mt_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t mt_seed(int src, int dst, long tag, long round)
{
	uint64_t s = (uint64_t)src << 32 | (uint32_t)dst;

	s = mt_random(&s) + (uint64_t)tag;
	s = mt_random(&s) + (uint64_t)round;
	return mt_random(&s);
}

uint64_t mt_word(uint64_t seed, uint64_t i)
{
	uint64_t x = (seed + i) * 0x9e3779b97f4a7c15u;

	return x ^ (x >> 29);
}

void mt_fill(void *buf, size_t len, uint64_t seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len / 8; i++) {
		uint64_t w = mt_word(seed, i);

		memcpy(p + 8 * i, &w, 8);
	}
	if (len % 8) {
		uint64_t w = mt_word(seed, i);

		memcpy(p + 8 * i, &w, len % 8);
	}
}

/* Position of the first wrong byte of @buf, or @len. */
static size_t mismatch(const unsigned char *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; 8 * i < len; i++) {
		size_t n = len - 8 * i < 8 ? len - 8 * i : 8;
		uint64_t w = mt_word(seed, i);

		if (!memcmp(buf + 8 * i, &w, n))
			continue;
		for (size_t k = 0; k < n; k++)
			if (buf[8 * i + k] != ((unsigned char *)&w)[k])
				return 8 * i + k;
	}
	return len;
}

void mt_verify_at(const char *file, int line, const void *buf, size_t len,
		  uint64_t seed)
{
	const unsigned char *p = buf;
	size_t at = mismatch(p, len, seed);

	if (at < len) {
		uint64_t w = mt_word(seed, at / 8);

		mt_fail(file, line, "byte %zu of %zu is %02x, expected %02x",
			at, len, p[at], ((unsigned char *)&w)[at % 8]);
	}
}

void *mt_alloc(size_t len)
{
	size_t room = (sizeof(struct block) + len + 3 * GUARD) & ~63ul;
	unsigned char *p = aligned_alloc(64, room + 64);

	if (!p)
		mt_fail(__FILE__, __LINE__, "no memory for %zu bytes", len);
	((struct block *)p)->len = len;
	memset(p + GUARD, GUARD_BYTE, GUARD);
	memset(p + 2 * GUARD + len, GUARD_BYTE, GUARD);
	return p + 2 * GUARD;
}

static void check_guard(const unsigned char *guard, const char *where,
			size_t len)
{
	for (int i = 0; i < GUARD; i++)
		mt_check(guard[i] == GUARD_BYTE,
			 "byte %d %s a buffer of %zu bytes was written", i,
			 where, len);
}

void mt_free(void *buf)
{
	unsigned char *p = buf;
	size_t len;

	if (!p)
		return;
	len = ((struct block *)(p - 2 * GUARD))->len;
	check_guard(p - GUARD, "of the zone before", len);
	check_guard(p + len, "behind", len);
	free(p - 2 * GUARD);
}

/* ---- rounds -------------------------------------------------------- */

static bool env_on(const char *name)
{
	const char *v = getenv(name);

	return v && !strcmp(v, "1");
}

long mt_rounds(long n)
{
	if (env_on("SHRIMP_LONG"))
		return n * 10;
	if (env_on("SHRIMP_QUICK"))
		return n < 20 ? 1 : n / 10;
	return n;
}

/* ---- counters ------------------------------------------------------ */

void mt_sent(uint64_t msgs, uint64_t bytes)
{
	/* relaxed: sums, read when all threads have ended */
	atomic_fetch_add_explicit(&sent_msgs, msgs, memory_order_relaxed);
	atomic_fetch_add_explicit(&sent_bytes, bytes, memory_order_relaxed);
}

void mt_moved(MPI_Comm comm, uint64_t msgs, uint64_t bytes)
{
	int rank;

	MPI_Comm_rank(comm, &rank);
	if (rank)
		return;
	/* relaxed: sums, read when all threads have ended */
	atomic_fetch_add_explicit(&moved_msgs, msgs, memory_order_relaxed);
	atomic_fetch_add_explicit(&moved_bytes, bytes, memory_order_relaxed);
}

void mt_device(uint64_t ops, uint64_t bytes)
{
	/* relaxed: sums, read when all threads have ended */
	atomic_fetch_add_explicit(&device_ops, ops, memory_order_relaxed);
	atomic_fetch_add_explicit(&device_bytes, bytes, memory_order_relaxed);
}

static struct fi_info *shrimp_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret = -FI_ENOMEM;

	if (hints && (hints->fabric_attr->prov_name = strdup("shrimp"))) {
		hints->ep_attr->type = FI_EP_RDM;
		ret = fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info);
	}
	mt_check(!ret, "fi_getinfo(shrimp): %s", fi_strerror(-ret));
	fi_freeinfo(hints);
	return info;
}

static void stats_read(struct fi_shrimp_stats *st)
{
	int ret;

	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	ret = stats_ops->read(&fabric->fid, st);
	mt_check(!ret, "shrimp's counters: %s", fi_strerror(-ret));
}

static void stats_open(void)
{
	struct fi_info *info;
	void *ops;
	int ret;

	if (env_on("SHRIMP_TEST_ANY"))
		return;
	info = shrimp_info();
	ret = fi_fabric(info->fabric_attr, &fabric, NULL);
	mt_check(!ret, "fi_fabric(shrimp): %s", fi_strerror(-ret));
	fi_freeinfo(info);
	ret = fi_open_ops(&fabric->fid, FI_SHRIMP_OPS_STATS, 0, &ops, NULL);
	mt_check(!ret, "fi_open_ops(%s): %s", FI_SHRIMP_OPS_STATS,
		 fi_strerror(-ret));
	stats_ops = ops;
	stats_read(&stats_base);
}

static struct amount traffic(const struct fi_shrimp_traffic *now,
			     const struct fi_shrimp_traffic *base)
{
	struct amount a = { 0, 0 };

	for (int i = 0; i < FI_SHRIMP_PATH_MAX; i++) {
		a.msgs += now->msgs[i] - base->msgs[i];
		a.bytes += now->bytes[i] - base->bytes[i];
	}
	return a;
}

/*
 * RMA and atomics that this process initiated. Bytes of atomics are not
 * counted: Open MPI's are of 8 bytes at most.
 */
static struct amount device(const struct fi_shrimp_stats *now)
{
	const struct fi_shrimp_stats *base = &stats_base;
	struct amount a = { 0, 0 };

	for (int i = 0; i < FI_SHRIMP_REACH_MAX; i++) {
		uint64_t atomics = now->atomic_ops[i] - base->atomic_ops[i];

		a.msgs += now->rma_ops[i] - base->rma_ops[i] + atomics;
		a.bytes += now->rma_bytes[i] - base->rma_bytes[i] + 8 * atomics;
	}
	return a;
}

static void compare(const char *what, struct amount got, struct amount want)
{
	mt_check(got.msgs >= want.msgs && got.bytes >= want.bytes,
		 "%s %" PRIu64 " messages or operations, %" PRIu64
		 " bytes through shrimp; the test told of %" PRIu64 ", %" PRIu64
		 " bytes",
		 what, got.msgs, got.bytes, want.msgs, want.bytes);
}

static struct amount sum(struct amount a, struct amount b)
{
	return (struct amount){ a.msgs + b.msgs, a.bytes + b.bytes };
}

/* What all ranks told and saw. */
struct totals {
	struct amount want;	/* must have passed as messages */
	struct amount want_ops; /* must have passed as RMA or atomics */
	struct amount tx;	/* messages that left an endpoint */
	struct amount rx;	/* messages that came to an endpoint */
	struct amount ops;	/* RMA and atomics */
};

/* The totals of this rank; fails if it sent less than it told. */
static struct totals own_totals(void)
{
	struct amount own = { sent_msgs, sent_bytes };
	struct totals t = { .want = { own.msgs + moved_msgs,
				      own.bytes + moved_bytes },
			    .want_ops = { device_ops, device_bytes } };
	struct fi_shrimp_stats now;

	if (!stats_ops)
		return t;
	stats_read(&now);
	t.tx = traffic(&now.tx, &stats_base.tx);
	t.rx = traffic(&now.rx, &stats_base.rx);
	t.ops = device(&now);
	if (way != WAY_OB1)
		compare("this rank sent", t.tx, own);
	if (way == WAY_RDMA)
		compare("this rank's RMA:", t.ops, t.want_ops);
	return t;
}

/*
 * pml ob1 moves large messages by RMA, and those of a rank to itself without
 * the network: a quarter of the messages that were told and 1/32 of the
 * bytes must have passed in some way.
 * osc pt2pt packs many operations into a message.
 */
static void compare_all(const struct totals *all)
{
	struct amount want = sum(all->want, all->want_ops);

	mt_check(want.msgs, "this test tells of no message");
	if (way == WAY_OB1) {
		want = (struct amount){ want.msgs / 4, want.bytes / 32 };
		compare("all ranks:", sum(all->tx, all->ops), want);
		return;
	}
	compare("all ranks sent", all->tx, all->want);
	compare("all ranks received", all->rx, all->want);
	want.msgs = all->want.msgs;
	if (way == WAY_RDMA)
		compare("all ranks' RMA:", all->ops, all->want_ops);
	else
		compare("all ranks:", sum(all->tx, all->ops), want);
}

static struct totals all_totals(void)
{
	struct totals own, all;

	/* What all have received has left its sender, and is counted. */
	MPI_Barrier(MPI_COMM_WORLD);
	own = own_totals();
	MPI_Allreduce(&own, &all, sizeof(own) / 8, MPI_UINT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	if (stats_ops)
		compare_all(&all);
	return all;
}

void mt_passed(void)
{
	all_totals();
}

/* ---- start and end ------------------------------------------------- */

static void usage(const char *about, const struct mt_opt *opts)
{
	printf("%s\n", about);
	for (; opts && opts->name; opts++)
		printf("  --%-10s %s [%ld]\n", opts->name, opts->help,
		       *opts->value);
	exit(0);
}

static void bad_option(const char *arg)
{
	fprintf(stderr, "bad option or value: %s (--help lists the options)\n",
		arg);
	exit(2);
}

static const struct mt_opt *find_option(const struct mt_opt *opts,
					const char *arg)
{
	if (strncmp(arg, "--", 2))
		return NULL;
	for (; opts && opts->name; opts++)
		if (!strcmp(arg + 2, opts->name))
			return opts;
	return NULL;
}

static void parse(int argc, char **argv, const char *about,
		  const struct mt_opt *opts)
{
	for (int i = 1; i < argc; i += 2) {
		const struct mt_opt *o = find_option(opts, argv[i]);
		char *end;

		if (!strcmp(argv[i], "--help"))
			usage(about, opts);
		if (!o || i + 1 == argc)
			bad_option(argv[i]);
		*o->value = strtol(argv[i + 1], &end, 0);
		if (*end || end == argv[i + 1])
			bad_option(argv[i + 1]);
	}
}

static int way_named(const char *name)
{
	static const char *const names[] = {
		[WAY_RDMA] = "rdma",
		[WAY_PT2PT] = "pt2pt",
		[WAY_OB1] = "ob1",
	};

	for (int i = WAY_RDMA; name && i <= WAY_OB1; i++)
		if (!strcmp(name, names[i]))
			return i;
	return WAY_ANY;
}

void mt_init(int argc, char **argv, int level, const char *about,
	     const struct mt_opt *opts)
{
	int provided;

	parse(argc, argv, about, opts);
	way = way_named(getenv("SHRIMP_TEST_WAY"));
	MPI_Init_thread(&argc, &argv, level, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &mt_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mt_size);
	mt_check(provided >= level, "MPI gives thread level %d, not %d",
		 provided, level);
	stats_open();
	/* Nobody's messages may be counted before all have read. */
	MPI_Barrier(MPI_COMM_WORLD);
}

static void print_ok(const char *name, const struct totals *all)
{
	printf("ok %s: %d ranks, %" PRIu64 " messages, %" PRIu64
	       " bytes told, ",
	       name, mt_size, all->want.msgs, all->want.bytes);
	if (stats_ops)
		printf("%" PRIu64 " messages, %" PRIu64 " bytes through shrimp",
		       all->tx.msgs, all->tx.bytes);
	else
		printf("transport not checked");
	if (all->want_ops.msgs)
		printf("; one-sided %" PRIu64 " operations, %" PRIu64
		       " bytes told",
		       all->want_ops.msgs, all->want_ops.bytes);
	if (stats_ops && all->ops.msgs)
		printf("; RMA %" PRIu64 " operations, %" PRIu64
		       " bytes through shrimp",
		       all->ops.msgs, all->ops.bytes);
	printf("\n");
}

int mt_end(const char *name)
{
	struct totals all = all_totals();

	if (!mt_rank && name)
		print_ok(name, &all);
	fflush(stdout);
	MPI_Finalize();
	if (fabric)
		fi_close(&fabric->fid);
	return 0;
}
