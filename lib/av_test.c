/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Address vectors and the peers behind them, without a device: the domain is
 * a shell with a table of peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "lib/av.h"
#include "lib/domain.h"
#include "lib/endpoint.h"
#include "lib/eq.h"
#include "lib/fabric.h"
#include "lib/peer.h"

enum { MANY = 3000 };

static struct shrimp_fabric fabric;
static struct shrimp_domain domain;

static int setup(void **state)
{
	(void)state;
	memset(&domain, 0, sizeof(domain));
	memset(&fabric, 0, sizeof(fabric));
	domain.fabric = &fabric;
	return shrimp_peers_init(&domain.peers);
}

static int teardown(void **state)
{
	(void)state;
	shrimp_peers_fini(&domain.peers);
	return 0;
}

/* The name of endpoint number @i; they differ in one field. */
static struct rnic_addr name(uint32_t i)
{
	return (struct rnic_addr){ .magic = RNIC_MAGIC_ADDR,
				   .version = RNIC_VERSION,
				   .kind = RNIC_ADDR_ENDPOINT,
				   .pid = 4711,
				   .incarnation = 0xabcdef,
				   .ino = i };
}

static struct rnic_addr service(const char *s)
{
	struct rnic_addr a = { .magic = RNIC_MAGIC_ADDR,
			       .version = RNIC_VERSION,
			       .kind = RNIC_ADDR_SERVICE };

	strncpy(a.service, s, sizeof(a.service) - 1);
	return a;
}

static struct fid_av *av_open(enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .flags = flags };
	struct fid_av *av;

	assert_int_equal(shrimp_av_open(&domain.fid, &attr, &av, &attr), 0);
	assert_ptr_equal(av->fid.context, &attr);
	return av;
}

static void av_close(struct fid_av *av)
{
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(rnic_load32_acquire(&domain.refs), 0);
}

static struct shrimp_av *av_of(struct fid_av *fid)
{
	return (struct shrimp_av *)fid;
}

static fi_addr_t insert(struct fid_av *av, uint32_t i)
{
	struct rnic_addr a = name(i);
	fi_addr_t addr = FI_ADDR_UNSPEC;

	assert_int_equal(fi_av_insert(av, &a, 1, &addr, 0, NULL), 1);
	return addr;
}

static uint32_t id_of(struct fid_av *av, fi_addr_t addr)
{
	struct shrimp_peer *p = shrimp_av_peer(av_of(av), addr);

	assert_non_null(p);
	return p->id;
}

/* ---- insert, look up, remove ---- */

/* Indices from 0, of both types, over calls of any size. */
static void av_indices(void **state)
{
	static const enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE };
	struct rnic_addr *names = calloc(MANY, sizeof(*names)), back;
	size_t len;

	(void)state;
	assert_non_null(names);
	for (uint32_t i = 0; i < MANY; i++)
		names[i] = name(i);
	for (int t = 0; t < 2; t++) {
		struct fid_av *av = av_open(types[t], 0);

		assert_int_equal(insert(av, 0), 0);
		assert_int_equal(fi_av_insert(av, names + 1, MANY - 1, NULL,
					      FI_MORE, NULL),
				 MANY - 1);
		assert_int_equal(fi_av_insert(av, names, 0, NULL, 0, NULL), 0);
		for (uint32_t i = 0; i < MANY; i++) {
			len = sizeof(back);
			assert_int_equal(fi_av_lookup(av, i, &back, &len), 0);
			assert_memory_equal(&back, &names[i], sizeof(back));
			assert_int_equal(len, sizeof(back));
		}
		av_close(av);
	}
	free(names);
}

static void av_lookup_truncates(void **state)
{
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	struct rnic_addr a = name(1);
	char back[8] = "xxxxxxx";
	size_t len = 4;

	(void)state;
	insert(av, 1);
	assert_int_equal(fi_av_lookup(av, 0, back, &len), 0);
	assert_int_equal(len, sizeof(a));
	assert_memory_equal(back, &a, 4);
	assert_int_equal(back[4], 'x');
	av_close(av);
}

static const fi_addr_t nobody[] = {
	1, UINT32_MAX, 1u << 22, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2
};

static void av_addresses_that_name_nobody(void **state)
{
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	size_t len = sizeof(struct rnic_addr);
	struct rnic_addr back;

	(void)state;
	insert(av, 0);
	for (size_t i = 0; i < sizeof(nobody) / sizeof(*nobody); i++) {
		fi_addr_t a = nobody[i];

		assert_null(shrimp_av_peer(av_of(av), a));
		assert_int_equal(fi_av_lookup(av, a, &back, &len), -FI_EINVAL);
		assert_int_equal(fi_av_remove(av, &a, 1, 0), -FI_EINVAL);
	}
	assert_int_equal(shrimp_av_addr_of(av_of(av), 4000000),
			 FI_ADDR_NOTAVAIL);
	av_close(av);
}

/* Bad entries are reported, good ones are removed all the same. */
static void av_remove_some(void **state)
{
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	fi_addr_t list[] = { 1, 99, 3, 1 };

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		insert(av, i);
	assert_int_equal(fi_av_remove(av, list, 4, 0), -FI_EINVAL);
	assert_int_equal(fi_av_remove(av, list, 1, FI_MORE), -FI_EINVAL);
	assert_non_null(shrimp_av_peer(av_of(av), 0));
	assert_null(shrimp_av_peer(av_of(av), 1));
	assert_non_null(shrimp_av_peer(av_of(av), 2));
	assert_null(shrimp_av_peer(av_of(av), 3));
	av_close(av);
}

/* Indices that were given back are used before new ones. */
static void av_reuses_indices(void **state)
{
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	fi_addr_t gaps[] = { 2, 4 }, a, b;

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		insert(av, i);
	assert_int_equal(fi_av_remove(av, gaps, 2, 0), 0);
	a = insert(av, 10);
	b = insert(av, 11);
	assert_int_equal(a + b, 6);
	assert_true(a == 2 || a == 4);
	assert_int_equal(insert(av, 12), 6);
	av_close(av);
}

static void av_refuses_garbage(void **state)
{
	struct fid_av *av = av_open(FI_AV_MAP, 0);
	struct rnic_addr names[4] = { name(0), name(1), name(2), name(3) };
	fi_addr_t addr[4] = { 7, 7, 7, 7 };
	int errs[4] = { 9, 9, 9, 9 };

	(void)state;
	names[1].magic ^= 1;
	names[2].kind = 0;
	assert_int_equal(fi_av_insert(av, names, 4, addr, FI_SYNC_ERR, errs),
			 2);
	assert_int_equal(addr[0], 0);
	assert_int_equal(addr[1], FI_ADDR_NOTAVAIL);
	assert_int_equal(addr[2], FI_ADDR_NOTAVAIL);
	assert_int_equal(addr[3], 1);
	assert_int_equal(errs[0] | errs[3], 0);
	assert_int_equal(errs[1], FI_EINVAL);
	assert_int_equal(errs[2], FI_EINVAL);
	assert_int_equal(fi_av_insert(av, NULL, 1, addr, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, names, 1, addr, FI_PEEK, NULL),
			 -FI_EINVAL);
	av_close(av);
}

/* ---- the way back ---- */

/* The first address of a peer, then the next one, then none; gen moves. */
static void av_addr_of(void **state)
{
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	uint32_t id, gen = rnic_load32_acquire(&av_of(av)->gen), now;
	fi_addr_t a;

	(void)state;
	insert(av, 5);
	insert(av, 6);
	insert(av, 5);
	id = id_of(av, 0);
	assert_int_equal(id_of(av, 2), id);
	assert_int_equal(shrimp_av_addr_of(av_of(av), id), 0);
	assert_int_equal(shrimp_av_addr_of(av_of(av), id_of(av, 1)), 1);
	for (a = 0; a <= 2; a += 2) {
		now = rnic_load32_acquire(&av_of(av)->gen);
		assert_int_not_equal(now, gen);
		gen = now;
		assert_int_equal(fi_av_remove(av, &a, 1, 0), 0);
		assert_int_equal(shrimp_av_addr_of(av_of(av), id),
				 a ? FI_ADDR_NOTAVAIL : 2);
	}
	assert_int_not_equal(rnic_load32_acquire(&av_of(av)->gen), gen);
	insert(av, 5);
	assert_int_not_equal(shrimp_av_addr_of(av_of(av), id),
			     FI_ADDR_NOTAVAIL);
	av_close(av);
}

/* A message of the endpoint behind a service comes from the service. */
static void av_addr_of_a_service(void **state)
{
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	struct rnic_addr svc = service("7471"), real = name(9);
	struct shrimp_peer *p = shrimp_peer_intern(&domain.peers, &real);
	fi_addr_t a, direct;

	(void)state;
	insert(av, 0);
	assert_int_equal(fi_av_insert(av, &svc, 1, &a, 0, NULL), 1);
	assert_int_equal(shrimp_av_addr_of(av_of(av), p->id), FI_ADDR_NOTAVAIL);
	rnic_ptr_store_release(&shrimp_av_peer(av_of(av), a)->alias, p);
	assert_int_equal(shrimp_av_addr_of(av_of(av), p->id), a);
	direct = insert(av, 9);
	assert_int_equal(shrimp_av_addr_of(av_of(av), p->id), direct);
	assert_int_equal(fi_av_remove(av, &direct, 1, 0), 0);
	assert_int_equal(shrimp_av_addr_of(av_of(av), p->id), a);
	assert_int_equal(fi_av_remove(av, &a, 1, 0), 0);
	assert_int_equal(shrimp_av_addr_of(av_of(av), p->id), FI_ADDR_NOTAVAIL);
	av_close(av);
}

/* Removal makes bound endpoints forget whom they knew under that address. */
static void av_tells_endpoints(void **state)
{
	struct shrimp_tx_peer *known[3] = { (void *)8, (void *)16, (void *)24 };
	struct shrimp_ep ep = { .domain = &domain, .tx = known, .ntx = 3 };
	struct fid_av *av = av_open(FI_AV_TABLE, 0);
	fi_addr_t a = 1;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		insert(av, i);
	assert_int_equal(shrimp_av_attach_ep(av_of(av), &ep), 0);
	assert_int_equal(fi_av_remove(av, &a, 1, 0), 0);
	assert_non_null(known[0]);
	assert_null(known[1]);
	assert_non_null(known[2]);
	a = 4;
	assert_int_equal(fi_av_remove(av, &a, 1, 0), 0);
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	shrimp_av_detach_ep(av_of(av), &ep);
	a = 0;
	assert_int_equal(fi_av_remove(av, &a, 1, 0), 0);
	assert_non_null(known[0]);
	av_close(av);
}

/* ---- text, services ---- */

static void av_straddr(void **state)
{
	struct fid_av *av = av_open(FI_AV_MAP, 0);
	struct rnic_addr a = name(1), svc = service("echo");
	char text[128], small[6] = "xxxxx";
	size_t len = sizeof(text);

	(void)state;
	assert_ptr_equal(fi_av_straddr(av, &a, text, &len), text);
	assert_int_equal(len, strlen(text) + 1);
	assert_non_null(strstr(text, "shrimp://4711/0/"));
	assert_non_null(strstr(text, "abcdef"));
	len = 5;
	fi_av_straddr(av, &a, small, &len);
	assert_int_equal(len, strlen(text) + 1);
	assert_string_equal(small, "shri");
	len = sizeof(text);
	fi_av_straddr(av, &svc, text, &len);
	assert_non_null(strstr(text, "echo"));
	av_close(av);
}

static void av_insertsvc(void **state)
{
	struct fid_av *av = av_open(FI_AV_MAP, 0);
	struct rnic_addr back;
	size_t len = sizeof(back);
	fi_addr_t a = 9;

	(void)state;
	assert_int_equal(fi_av_insertsvc(av, "localhost", "7471", &a, 0, NULL),
			 1);
	assert_int_equal(fi_av_lookup(av, a, &back, &len), 0);
	assert_int_equal(back.kind, RNIC_ADDR_SERVICE);
	assert_string_equal(back.service, "7471");
	assert_true(fi_av_insertsvc(av, "192.0.2.1", "7471", &a, 0, NULL) < 0);
	assert_true(fi_av_insertsvc(av, "localhost", NULL, &a, 0, NULL) < 0);
	assert_int_equal(
		fi_av_insertsym(av, "localhost", 1, "1", 1, &a, 0, NULL),
		-FI_ENOSYS);
	av_close(av);
}

/* ---- events ---- */

static void av_events(void **state)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct rnic_addr names[3] = { name(0), name(1), name(2) };
	struct fid_av *av = av_open(FI_AV_TABLE, FI_EVENT);
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry e;
	struct fid_eq *eq;
	uint32_t event;
	fi_addr_t addr[3];
	int ctx;

	(void)state;
	names[1].magic = 0;
	assert_int_equal(shrimp_eq_open(&fabric.fid, &attr, &eq, NULL), 0);
	assert_int_equal(fi_av_insert(av, names, 3, addr, 0, &ctx), -FI_ENOEQ);
	assert_int_equal(fi_av_bind(av, &eq->fid, 1), -FI_EINVAL);
	assert_int_equal(fi_av_bind(av, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_av_bind(av, &eq->fid, 0), 0);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_int_equal(fi_av_insert(av, names, 3, addr, 0, &ctx), 0);
	assert_int_equal(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), sizeof(err));
	assert_ptr_equal(err.fid, &av->fid);
	assert_ptr_equal(err.context, &ctx);
	assert_int_equal(err.data, 1);
	assert_int_equal(err.err, FI_EINVAL);
	assert_int_equal(fi_eq_read(eq, &event, &e, sizeof(e), 0), sizeof(e));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_ptr_equal(e.fid, &av->fid);
	assert_ptr_equal(e.context, &ctx);
	assert_int_equal(e.data, 2);
	assert_int_equal(addr[2], 1);
	av_close(av);
	assert_int_equal(fi_close(&eq->fid), 0);
}

/* ---- opening ---- */

static void av_open_refuses(void **state)
{
	static const struct {
		struct fi_av_attr attr; /* that is wrong */
		int error;		/* what it gives */
	} bad[] = {
		{ { .type = 99 }, -FI_EINVAL },
		{ { .name = "shared" }, -FI_ENOSYS },
		{ { .flags = FI_READ }, -FI_ENOSYS },
		{ { .rx_ctx_bits = 1 }, -FI_ENOSYS },
		{ { .flags = FI_PEER }, -FI_EINVAL },
	};
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC,
				   .flags = FI_SYMMETRIC,
				   .count = 1000000 };
	struct fid_av *av;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct fi_av_attr a = bad[i].attr;

		assert_int_equal(shrimp_av_open(&domain.fid, &a, &av, NULL),
				 bad[i].error);
	}
	assert_int_equal(shrimp_av_open(&domain.fid, NULL, &av, NULL),
			 -FI_EINVAL);
	assert_int_equal(rnic_load32_acquire(&domain.refs), 0);
	assert_int_equal(shrimp_av_open(&domain.fid, &attr, &av, NULL), 0);
	assert_int_not_equal(attr.type, FI_AV_UNSPEC);
	av_close(av);
}

static void av_inherited_domain(void **state)
{
	struct fid_av *av = av_open(FI_AV_MAP, 0);
	struct rnic_addr a = name(0);
	fi_addr_t addr;

	(void)state;
	domain.inherited = true;
	assert_int_equal(fi_av_insert(av, &a, 1, &addr, 0, NULL),
			 -FI_EOPBADSTATE);
	assert_int_equal(fi_av_remove(av, &addr, 1, 0), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&av->fid), -FI_EOPBADSTATE);
	domain.inherited = false;
	av_close(av);
}

/* ---- peers ---- */

/* One object per address, numbers without gaps, whichever byte differs. */
static void peers_are_interned(void **state)
{
	struct rnic_addr a = name(0);
	struct shrimp_peer *first;

	(void)state;
	first = shrimp_peer_intern(&domain.peers, &a);
	assert_non_null(first);
	assert_int_equal(first->id, 0);
	for (size_t i = 0; i < sizeof(a); i++) {
		struct shrimp_peer *p;

		((uint8_t *)&a)[i] ^= 0x40;
		p = shrimp_peer_intern(&domain.peers, &a);
		assert_non_null(p);
		assert_int_equal(p->id, i + 1);
		assert_memory_equal(&p->addr, &a, sizeof(a));
		assert_ptr_equal(shrimp_peer_intern(&domain.peers, &a), p);
		assert_ptr_equal(shrimp_peer_by_id(&domain.peers, p->id), p);
		((uint8_t *)&a)[i] ^= 0x40;
	}
	assert_ptr_equal(shrimp_peer_intern(&domain.peers, &a), first);
	assert_null(shrimp_peer_by_id(&domain.peers, sizeof(a) + 1));
	assert_null(shrimp_peer_by_id(&domain.peers, UINT32_MAX));
	assert_ptr_equal(shrimp_peer_real(first), first);
}

enum { THREADS = 3 };

/* Interns the same names as the others; the numbers must agree. */
static void *intern_all(void *arg)
{
	uint32_t *ids = arg;

	for (uint32_t i = 0; i < MANY; i++) {
		struct rnic_addr a = name(i);
		struct shrimp_peer *p = shrimp_peer_intern(&domain.peers, &a);

		ids[i] = p && shrimp_peer_by_id(&domain.peers, p->id) == p &&
					 p->addr.ino == i
				 ? p->id
				 : UINT32_MAX;
	}
	return NULL;
}

static void peers_of_threads(void **state)
{
	uint32_t *ids = calloc(THREADS, MANY * sizeof(*ids));
	pthread_t t[THREADS];

	(void)state;
	assert_non_null(ids);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&t[i], NULL, intern_all, ids + i * MANY),
			0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_true(ids[i] < MANY);
		for (int k = 1; k < THREADS; k++)
			assert_int_equal(ids[k * MANY + i], ids[i]);
	}
	free(ids);
}

/* ---- readers beside a writer ---- */

struct beside {
	struct fid_av *av; /* changes */
	rnic_a32 stop;	   /* 1: readers end */
	uint32_t fixed;	   /* peer at index 0, never removed */
};

static void *av_reader(void *arg)
{
	struct beside *b = arg;
	struct shrimp_av *av = av_of(b->av);
	uintptr_t bad = 0;

	for (uint64_t i = 0; !rnic_load32_acquire(&b->stop); i++) {
		struct shrimp_peer *p = shrimp_av_peer(av, i % MANY);

		bad += p && p->addr.magic != RNIC_MAGIC_ADDR;
		bad += shrimp_av_addr_of(av, b->fixed) != 0;
	}
	return (void *)bad;
}

static void av_readers_beside_a_writer(void **state)
{
	struct beside b = { .av = av_open(FI_AV_TABLE, 0) };
	pthread_t t[2];
	void *bad;

	(void)state;
	insert(b.av, 0);
	b.fixed = id_of(b.av, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, av_reader, &b), 0);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 1; i < MANY; i++)
			insert(b.av, i);
		for (fi_addr_t a = 1; a < MANY; a++)
			assert_int_equal(fi_av_remove(b.av, &a, 1, 0), 0);
	}
	rnic_store32_release(&b.stop, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(t[i], &bad), 0);
		assert_null(bad);
	}
	av_close(b.av);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(av_indices),
		CASE(av_lookup_truncates),
		CASE(av_addresses_that_name_nobody),
		CASE(av_remove_some),
		CASE(av_reuses_indices),
		CASE(av_refuses_garbage),
		CASE(av_addr_of),
		CASE(av_addr_of_a_service),
		CASE(av_tells_endpoints),
		CASE(av_straddr),
		CASE(av_insertsvc),
		CASE(av_events),
		CASE(av_open_refuses),
		CASE(av_inherited_domain),
		CASE(peers_are_interned),
		CASE(peers_of_threads),
		CASE(av_readers_beside_a_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
