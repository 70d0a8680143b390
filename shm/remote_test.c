/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Devices, places, attach, claims: in one process and from a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/lane.h"
#include "shm/remote.h"
#include "shm/sock.h"

static const struct rnic_device_cfg cfg = {
	.heap_bytes = 1 << 20,
	.membarrier = true,
};

/* A device with one open place. */
struct owner {
	struct rnic_device dev;	 /* the device */
	struct rnic_place place; /* its place */
	struct rnic_addr addr;	 /* and name */
};

static int setup(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	assert_int_equal(rnic_device_open(&o->dev, &cfg), 0);
	assert_int_equal(rnic_place_open(&o->dev, &o->place), 0);
	rnic_place_addr(&o->place, &o->addr);
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	struct owner *o = *state;

	rnic_place_close(&o->place);
	rnic_device_close(&o->dev);
	free(o);
	return 0;
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void open_and_close_leave_nothing(void **state)
{
	struct rnic_device d;
	struct rnic_place p;
	int before;

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(rnic_device_open(&d, &cfg), 0);
		assert_int_equal(rnic_place_open(&d, &p), 0);
		assert_int_equal(rnic_place_pool(&p), 0);
		rnic_place_close(&p);
		rnic_device_close(&d);
		if (i == 0)
			before = count_fds();
	}
	assert_int_equal(count_fds(), before);
}

static void segments_are_sealed_and_private(void **state)
{
	struct owner *o = *state;
	int want =
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	struct stat st;

	assert_int_equal(fcntl(o->dev.tables.fd, F_GET_SEALS) & want, want);
	assert_true(fcntl(o->dev.mailbox.fd, F_GET_SEALS) & F_SEAL_SHRINK);
	assert_true(fcntl(o->dev.arena.fd, F_GET_SEALS) & F_SEAL_SHRINK);
	assert_int_equal(fstat(o->dev.mailbox.fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(mmap(NULL, RNIC_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 o->dev.tables.fd, 0) == MAP_FAILED);
}

/* What is not used costs nothing: the sizes are address space only. */
static void an_idle_device_is_small(void **state)
{
	struct owner *o = *state;
	struct stat st;

	assert_int_equal(fstat(o->dev.mailbox.fd, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 <= 64 * RNIC_PAGE);
	assert_int_equal(fstat(o->dev.arena.fd, &st), 0);
	assert_int_equal(st.st_blocks, 0);
}

static void places_have_a_limit_and_come_back(void **state)
{
	struct owner *o = *state;
	struct rnic_place *p = calloc(RNIC_EP_MAX, sizeof(*p));
	struct rlimit rl = { .rlim_cur = 1000, .rlim_max = 1000 };
	int n = 0;

	assert_non_null(p);
	getrlimit(RLIMIT_NOFILE, &rl);
	while (n < RNIC_EP_MAX && !rnic_place_open(&o->dev, &p[n]))
		n++;
	/* one is open already */
	assert_true(n == RNIC_EP_MAX - 1 || 2 * (rlim_t)n + 50 > rl.rlim_cur);
	while (n--)
		rnic_place_close(&p[n]);
	assert_int_equal(rnic_place_open(&o->dev, &p[0]), 0);
	rnic_place_close(&p[0]);
	free(p);
}

/* Runs @fn in a child; it returns 0 if all went well. */
static void in_child(struct owner *o, int (*fn)(struct owner *))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(30);
		_exit(fn(o));
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		rnic_remote_serve(&o->dev);
		usleep(1000);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define REQUIRE(x)                                                             \
	do {                                                                   \
		if (!(x))                                                      \
			return __LINE__ % 250 + 1;                             \
	} while (0)

/* Claims a lane and sends one descriptor through it. */
static int claim_and_send(struct owner *o, enum rnic_attach_mode mode)
{
	struct rnic_addr me = { .magic = RNIC_MAGIC_ADDR, .pid = 4711 };
	struct rnic_remote *r;
	struct rnic_lane *lane;
	struct rnic_lane_tx tx;
	unsigned int index;
	int ret = rnic_remote_open(&o->addr, mode, &r);

	for (int i = 0; ret == -EINPROGRESS && i < 5000; i++) {
		usleep(1000);
		ret = rnic_remote_poll(r);
	}
	REQUIRE(ret == 0);
	REQUIRE(r->by_socket == (mode == RNIC_ATTACH_SOCKET));
	REQUIRE(!rnic_remote_closed(r));
	r->unfenced = mode == RNIC_ATTACH_SOCKET;
	REQUIRE(rnic_remote_claim(r, &me, &lane, &index) == 0);
	/* always written: an earlier sender may have left it otherwise */
	REQUIRE(rnic_load32_relaxed(&lane->tx_unfenced) == r->unfenced);
	rnic_lane_tx_init(&tx, lane, index, RNIC_LANE_LINES, r->fence);
	REQUIRE(rnic_lane_publish(&tx, rnic_lane_slot(&tx), RNIC_DESC_INLINE, 0,
				  0));
	rnic_remote_ring(r, index);
	REQUIRE(rnic_remote_map_pool(r) == 0);
	REQUIRE(rnic_remote_map_heap(r) == 0);
	rnic_remote_unmap_lane(lane);
	rnic_remote_close(r);
	return 0;
}

static int by_proc(struct owner *o)
{
	return claim_and_send(o, RNIC_ATTACH_PROC);
}

static int by_socket(struct owner *o)
{
	return claim_and_send(o, RNIC_ATTACH_SOCKET);
}

/* The bell has rung for lane 0, which holds one descriptor of pid 4711. */
static void expect_lane(struct owner *o)
{
	struct rnic_ep_head *h = o->place.head;
	struct rnic_lane_rx rx;
	uint64_t head;

	assert_int_equal(rnic_xchg64_seqcst(&h->bell, 0), 1);
	assert_int_equal(rnic_xchg64_seqcst(&h->lane_bell[0], 0), 1);
	assert_true(rnic_load64_acquire(&h->claim[0]) != 0);
	assert_int_equal(rnic_load32_acquire(&o->place.lanes[0].tx_state),
			 RNIC_TX_LIVE);
	assert_int_equal(o->place.lanes[0].sender.pid, 4711);
	rnic_lane_rx_init(&rx, &o->place.lanes[0], 0);
	assert_non_null(rnic_lane_peek(&rx, &head));
}

static void attach_by_proc(void **state)
{
	in_child(*state, by_proc);
	expect_lane(*state);
}

static void attach_by_socket(void **state)
{
	in_child(*state, by_socket);
	expect_lane(*state);
}

/* What an attach under way comes to, while its owner serves if @serve. */
static int attach_ends(struct owner *o, struct rnic_remote *r, bool serve)
{
	int ret = -EINPROGRESS;

	for (int i = 0; ret == -EINPROGRESS && i < 3000; i++) {
		usleep(1000);
		if (serve)
			rnic_remote_serve(&o->dev);
		ret = rnic_remote_poll(r);
	}
	return ret;
}

/* The owner waits for what is asked only for a moment. */
static void who_is_hung_up_on_asks_again(void **state)
{
	struct owner *o = *state;
	struct rnic_remote *r;
	struct ucred peer;
	int conn;

	assert_int_equal(rnic_remote_open(&o->addr, RNIC_ATTACH_SOCKET, &r),
			 -EINPROGRESS);
	conn = rnic_sock_accept(o->dev.sock, &peer);
	assert_true(conn >= 0);
	close(conn);
	assert_int_equal(rnic_remote_poll(r), -EINPROGRESS);
	assert_int_equal(attach_ends(o, r, true), 0);
	assert_int_equal(rnic_remote_poll(r), 0);
	rnic_remote_close(r);
}

/* More ask at once than the socket has room for. */
static void a_full_backlog_is_waited_for(void **state)
{
	struct owner *o = *state;
	struct rnic_remote *r;
	int conn[1000], n = 0;
	struct ucred peer;
	char name[64];

	snprintf(name, sizeof(name), "shrimp-%u-%016" PRIx64, o->addr.uid,
		 o->addr.incarnation);
	while ((conn[n] = rnic_sock_connect(name, 0, &peer)) >= 0)
		assert_true(++n < 1000);
	assert_int_equal(conn[n], -ETIMEDOUT);
	assert_int_equal(rnic_remote_open(&o->addr, RNIC_ATTACH_SOCKET, &r),
			 -EINPROGRESS);
	assert_int_equal(rnic_remote_poll(r), -EINPROGRESS);
	while (n--)
		close(conn[n]);
	assert_int_equal(attach_ends(o, r, true), 0);
	rnic_remote_close(r);
}

/* Nobody is there any more to be asked again: dead, and that for good. */
static void an_owner_that_goes_is_not_asked_for_long(void **state)
{
	struct owner *o = *state;
	struct rnic_remote *r;

	assert_int_equal(rnic_remote_open(&o->addr, RNIC_ATTACH_SOCKET, &r),
			 -EINPROGRESS);
	assert_int_equal(close(o->dev.sock), 0);
	o->dev.sock = -1;
	assert_int_equal(attach_ends(o, r, false), -ESRCH);
	assert_int_equal(rnic_remote_poll(r), -ESRCH);
	rnic_remote_close(r);
}

static void pool_of_owner(void **state)
{
	struct owner *o = *state;

	assert_int_equal(rnic_place_pool(&o->place), 0);
	assert_int_equal(rnic_place_heap(&o->place), 0);
	assert_int_equal(rnic_place_heap_populate(&o->place, 0, 4096), 0);
	memset(o->place.pool, 1, o->dev.hdr->pool_bytes);
	memset(o->place.heap, 1, 4096);
}

static int wakes(struct owner *o)
{
	struct rnic_remote *r;

	REQUIRE(rnic_remote_open(&o->addr, RNIC_ATTACH_PROC, &r) == 0);
	REQUIRE(rnic_remote_ring_return(r));
	rnic_remote_close(r);
	return 0;
}

static void a_sleeper_is_woken_through_its_pipe(void **state)
{
	struct owner *o = *state;
	struct pollfd pfd = { .fd = o->place.wake_rd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, 0), 0);
	rnic_store32_relaxed(&o->place.head->sleeping, 1);
	in_child(o, wakes);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	rnic_place_drain_pipe(&o->place);
	assert_int_equal(poll(&pfd, 1, 0), 0);
}

static int wrong_addresses(struct owner *o)
{
	struct rnic_remote *r;
	struct rnic_addr a = o->addr;

	a.version++;
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_AUTO, &r) == -EPROTONOSUPPORT);
	a = o->addr;
	a.uid++;
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_AUTO, &r) == -EACCES);
	a = o->addr;
	a.identity++;
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_PROC, &r) == -ESRCH);
	a = o->addr;
	a.ino++;
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_PROC, &r) == -ESTALE);
	a = o->addr;
	a.ep_gen++;
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_PROC, &r) == -ECONNREFUSED);
	a = o->addr;
	a.tables_fd = 0;
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_PROC, &r) < 0);
	memset(&a, 0xff, sizeof(a));
	REQUIRE(rnic_remote_open(&a, RNIC_ATTACH_AUTO, &r) == -EPROTO);
	return 0;
}

static void wrong_addresses_are_refused(void **state)
{
	in_child(*state, wrong_addresses);
}

static int damaged_header(struct owner *o)
{
	struct rnic_remote *r;

	REQUIRE(rnic_remote_open(&o->addr, RNIC_ATTACH_PROC, &r) == -EPROTO);
	return 0;
}

static void a_damaged_header_is_refused(void **state)
{
	struct owner *o = *state;
	struct rnic_header good = *o->dev.hdr;

	o->dev.hdr->magic = 1;
	in_child(o, damaged_header);
	*o->dev.hdr = good;
	o->dev.hdr->incarnation++;
	in_child(o, damaged_header);
	*o->dev.hdr = good;
	o->dev.hdr->pool_bytes = UINT64_MAX;
	in_child(o, damaged_header);
	*o->dev.hdr = good;
	o->dev.hdr->heap_bytes = UINT64_MAX;
	in_child(o, damaged_header);
	*o->dev.hdr = good;
}

static void a_closed_place_is_refused(void **state)
{
	struct owner *o = *state;
	struct rnic_remote *r;
	struct rnic_place p;
	struct rnic_addr a;

	assert_int_equal(rnic_place_open(&o->dev, &p), 0);
	rnic_place_addr(&p, &a);
	assert_int_equal(rnic_remote_open(&a, RNIC_ATTACH_PROC, &r), 0);
	rnic_place_close(&p);
	assert_true(rnic_remote_closed(r));
	rnic_remote_close(r);
	assert_int_equal(rnic_remote_open(&a, RNIC_ATTACH_PROC, &r),
			 -ECONNREFUSED);
}

/* ---- lanes that pass on ---- */

static void put(struct rnic_lane_tx *tx)
{
	rnic_lane_publish(tx, rnic_lane_slot(tx), RNIC_DESC_INLINE, 0, 0);
}

static struct rnic_remote *to_own(struct owner *o)
{
	struct rnic_remote *r;

	assert_int_equal(rnic_remote_open(&o->addr, RNIC_ATTACH_PROC, &r), 0);
	return r;
}

/* Whose descriptors were not all taken leaves none to the next one. */
static void a_freed_lane_is_empty(void **state)
{
	struct owner *o = *state;
	struct rnic_remote *r[2] = { to_own(o), to_own(o) };
	struct rnic_lane *sh = &o->place.lanes[0], *lane;
	struct rnic_lane_tx tx;
	struct rnic_lane_rx rx;
	unsigned int index;
	uint64_t head;

	assert_int_equal(rnic_remote_claim(r[0], &o->addr, &lane, &index), 0);
	assert_int_equal(index, 0);
	rnic_lane_tx_init(&tx, lane, index, RNIC_LANE_LINES, true);
	rnic_lane_rx_init(&rx, sh, index);
	for (int i = 0; i < RNIC_LANE_LINES; i++)
		put(&tx);
	for (int i = 0; i < 10; i++) {
		assert_non_null(rnic_lane_peek(&rx, &head));
		rnic_lane_take(&rx);
	}
	rnic_lane_credit(&rx);
	rnic_store32_relaxed(&sh->flag.rx_closed, 1);
	rnic_place_free_lane(&o->place, index);
	rnic_remote_unmap_lane(lane);

	assert_int_equal(rnic_remote_claim(r[1], &o->addr, &lane, &index), 0);
	assert_int_equal(index, 0);
	assert_int_equal(rnic_load32_relaxed(&lane->flag.rx_closed), 0);
	rnic_lane_tx_init(&tx, lane, index, RNIC_LANE_LINES, true);
	rnic_lane_rx_init(&rx, sh, index);
	for (int i = 0; i < 3 * RNIC_LANE_LINES; i++) {
		assert_null(rnic_lane_peek(&rx, &head));
		put(&tx);
		assert_non_null(rnic_lane_peek(&rx, &head));
		rnic_lane_take(&rx);
		rnic_lane_credit(&rx);
		rnic_lane_refresh(&tx);
	}
	rnic_remote_unmap_lane(lane);
	rnic_remote_close(r[0]);
	rnic_remote_close(r[1]);
}

/* Claims that get no memory: each is given back at once. */
struct in_vain {
	struct rnic_remote *r; /* the place */
	struct rnic_addr me;   /* the claimer */
	rnic_a32 calls;	       /* that have ended */
	rnic_a32 stop;	       /* 1: end */
};

static void *claims_in_vain(void *arg)
{
	struct in_vain *t = arg;
	struct rnic_lane *lane;
	unsigned int i;

	while (!rnic_load32_relaxed(&t->stop)) {
		if (!rnic_remote_claim(t->r, &t->me, &lane, &i))
			return t;
		rnic_add32_relaxed(&t->calls, 1);
	}
	return NULL;
}

/*
 * Between a claim and its giving back the place was emptied, and the lane
 * claimed by another one: that claim stays.
 */
static void only_the_own_claim_is_given_back(void **state)
{
	struct owner *o = *state;
	struct in_vain t = { .r = to_own(o), .me = o->addr };
	rnic_a64 *w = &t.r->head->claim[0];
	int hits = 0, lost = 0;
	pthread_t thread;
	void *bad;

	rnic_segment_close(&t.r->mailbox);
	assert_int_equal(pthread_create(&thread, NULL, claims_in_vain, &t), 0);
	for (int i = 0; i < 20000000 && hits < 200; i++) {
		if (!rnic_cas64_seqcst(w, t.r->claim, 1))
			continue;
		hits++;
		/* the call under way has given back what it claimed, or not */
		for (uint32_t n = rnic_load32_relaxed(&t.calls);
		     n == rnic_load32_relaxed(&t.calls);)
			sched_yield();
		lost += rnic_load64_acquire(w) != 1;
		rnic_cas64_seqcst(w, 1, 0);
	}
	rnic_store32_relaxed(&t.stop, 1);
	assert_int_equal(pthread_join(thread, &bad), 0);
	assert_null(bad);
	assert_int_equal(lost, 0);
	rnic_remote_close(t.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_and_close_leave_nothing),
		cmocka_unit_test_setup_teardown(segments_are_sealed_and_private,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_idle_device_is_small, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			places_have_a_limit_and_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(attach_by_proc, setup,
						teardown),
		cmocka_unit_test_setup_teardown(attach_by_socket, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_is_hung_up_on_asks_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_backlog_is_waited_for,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_owner_that_goes_is_not_asked_for_long, setup,
			teardown),
		cmocka_unit_test_setup_teardown(pool_of_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_sleeper_is_woken_through_its_pipe, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_addresses_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_header_is_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_closed_place_is_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_freed_lane_is_empty, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			only_the_own_claim_is_given_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
