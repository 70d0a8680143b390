/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Point to point in every mode: blocking, nonblocking and persistent Send,
 * Ssend, Rsend and Bsend, Sendrecv, all ways to wait and to test, order,
 * wildcards, null processes, freed requests and truncation.
 */
#include "common.h"

static long rounds = 6;
static long cut = 1;

static const struct mt_opt opts[] = {
	{ "rounds", &rounds, "rounds of the whole list" },
	{ "cut", &cut, "0: no truncated receives (ob1, ofi_rxm break)" },
	{ 0 },
};

enum { MAX_LEN = 300001 };

enum mode {
	SEND,
	SSEND,
	RSEND,
	BSEND,
	ISEND,
	ISSEND,
	IRSEND,
	IBSEND,
	SEND_INIT,
	SSEND_INIT,
	RSEND_INIT,
	BSEND_INIT,
	MODES
};

static const MPI_Comm world = MPI_COMM_WORLD;

static bool is_ready(enum mode m)
{
	return m == RSEND || m == IRSEND || m == RSEND_INIT;
}

/* A send that is a call; the others give a request. */
static void send_blocking(enum mode m, const void *buf, int len, int to,
			  int tag)
{
	if (m == SEND)
		MPI_Send(buf, len, MPI_BYTE, to, tag, world);
	else if (m == SSEND)
		MPI_Ssend(buf, len, MPI_BYTE, to, tag, world);
	else if (m == RSEND)
		MPI_Rsend(buf, len, MPI_BYTE, to, tag, world);
	else
		MPI_Bsend(buf, len, MPI_BYTE, to, tag, world);
}

static MPI_Request send_start(enum mode m, const void *buf, int len, int to,
			      int tag)
{
	static int (*const call[MODES])(const void *, int, MPI_Datatype, int,
					int, MPI_Comm, MPI_Request *) = {
		[ISEND] = MPI_Isend,	       [ISSEND] = MPI_Issend,
		[IRSEND] = MPI_Irsend,	       [IBSEND] = MPI_Ibsend,
		[SEND_INIT] = MPI_Send_init,   [SSEND_INIT] = MPI_Ssend_init,
		[RSEND_INIT] = MPI_Rsend_init, [BSEND_INIT] = MPI_Bsend_init,
	};
	MPI_Request req;

	call[m](buf, len, MPI_BYTE, to, tag, world, &req);
	return req;
}

/* Starts and frees a persistent request; waits for any. */
static void finish_send(enum mode m, MPI_Request *req)
{
	if (m >= SEND_INIT)
		MPI_Start(req);
	MPI_Wait(req, MPI_STATUS_IGNORE);
	if (m >= SEND_INIT)
		MPI_Request_free(req);
}

static void send_any(enum mode m, const void *buf, size_t len, int to, int tag)
{
	MPI_Request req;

	if (m < ISEND) {
		send_blocking(m, buf, (int)len, to, tag);
		return;
	}
	req = send_start(m, buf, (int)len, to, tag);
	finish_send(m, &req);
}

static void send_by(enum mode m, const void *buf, size_t len, int to, int tag)
{
	bool buffered = m == BSEND || m == IBSEND || m == BSEND_INIT;
	int room = (int)len + MPI_BSEND_OVERHEAD;
	void *buffer = mt_alloc((size_t)room);

	if (buffered)
		MPI_Buffer_attach(buffer, room);
	send_any(m, buf, len, to, tag);
	/* Waits until the buffered message is gone. */
	if (buffered)
		MPI_Buffer_detach(&buffer, &room);
	mt_sent(1, len);
	mt_free(buffer);
}

/* One message to the rank @shift to the right, one from the left. */
static void shift_once(enum mode m, size_t len, int shift, long round)
{
	int to = (mt_rank + shift) % mt_size, tag = 100 + (int)m;
	int from = (mt_rank + mt_size - shift) % mt_size;
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Request req;
	MPI_Status st;

	mt_fill(out, len, mt_seed(mt_rank, to, tag, round));
	MPI_Irecv(in, (int)len, MPI_BYTE, from, tag, world, &req);
	if (is_ready(m))
		MPI_Barrier(world);
	send_by(m, out, len, to, tag);
	MPI_Wait(&req, &st);
	mt_status(&st, from, tag, len);
	mt_verify(in, len, mt_seed(from, mt_rank, tag, round));
	mt_free(in);
	mt_free(out);
}

static void all_modes(long round)
{
	static const size_t list[] = { 0, 1, 40, 1025, 16385, MAX_LEN };

	for (int m = 0; m < MODES; m++)
		for (int shift = 0; shift < mt_size; shift++)
			for (size_t i = 0; i < 6; i++)
				shift_once((enum mode)m, list[i], shift, round);
}

static void sendrecv(size_t len, int shift, long round)
{
	int to = (mt_rank + shift) % mt_size;
	int from = (mt_rank + mt_size - shift) % mt_size;
	char *in = mt_alloc(len), *out = mt_alloc(len);
	MPI_Status st;

	mt_fill(out, len, mt_seed(mt_rank, to, 1, round));
	MPI_Sendrecv(out, (int)len, MPI_BYTE, to, 1, in, (int)len, MPI_BYTE,
		     from, 1, world, &st);
	mt_status(&st, from, 1, len);
	mt_verify(in, len, mt_seed(from, mt_rank, 1, round));
	mt_fill(in, len, mt_seed(mt_rank, to, 2, round));
	MPI_Sendrecv_replace(in, (int)len, MPI_BYTE, to, 2, from, 2, world,
			     &st);
	mt_status(&st, from, 2, len);
	mt_verify(in, len, mt_seed(from, mt_rank, 2, round));
	mt_sent(2, 2 * len);
	mt_free(in);
	mt_free(out);
}

/* ---- persistent requests, restarted -------------------------------- */

enum { PAIRS = 8, RESTARTS = 5 };

static void restart_once(MPI_Request *req, char *in, char *out, size_t len,
			 long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;

	for (int i = 0; i < PAIRS; i++)
		mt_fill(out + (size_t)i * len, len,
			mt_seed(mt_rank, to, i, round));
	MPI_Startall(2 * PAIRS, req);
	MPI_Waitall(2 * PAIRS, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < PAIRS; i++)
		mt_verify(in + (size_t)i * len, len,
			  mt_seed(from, mt_rank, i, round));
	mt_sent(PAIRS, PAIRS * len);
}

static void persistent(size_t len, long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(PAIRS * len), *out = mt_alloc(PAIRS * len);
	MPI_Request req[2 * PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		size_t off = (size_t)i * len;

		MPI_Recv_init(in + off, (int)len, MPI_BYTE, from, i, world,
			      &req[i]);
		(i & 1 ? MPI_Ssend_init : MPI_Send_init)(out + off, (int)len,
							 MPI_BYTE, to, i, world,
							 &req[PAIRS + i]);
	}
	for (int i = 0; i < RESTARTS; i++)
		restart_once(req, in, out, len, round * RESTARTS + i);
	for (int i = 0; i < 2 * PAIRS; i++)
		MPI_Request_free(&req[i]);
	mt_free(in);
	mt_free(out);
}

/* ---- all ways to wait ---------------------------------------------- */

enum { WINDOW = 24 };

enum wait_way {
	WAITANY,
	WAITSOME,
	WAITALL,
	TESTANY,
	TESTSOME,
	TESTALL,
	TEST,
	GET_STATUS,
	WAIT_WAYS
};

/* A window of receives, and what has completed of it. */
struct window {
	MPI_Request req[WINDOW]; /* receives, tag = place */
	MPI_Status st[WINDOW];	 /* of those done, by place */
	bool done[WINDOW];	 /* seen complete */
	int left;		 /* not complete yet */
};

static void window_done(struct window *w, int i, const MPI_Status *st)
{
	mt_check(i >= 0 && i < WINDOW && !w->done[i],
		 "request %d completed twice or is unknown", i);
	w->done[i] = true;
	w->st[i] = *st;
	w->left--;
}

static void wait_any(struct window *w, bool test)
{
	MPI_Status st;
	int i, flag = 1;

	if (test)
		MPI_Testany(WINDOW, w->req, &i, &flag, &st);
	else
		MPI_Waitany(WINDOW, w->req, &i, &st);
	if (flag)
		window_done(w, i, &st);
}

static void wait_some(struct window *w, bool test)
{
	int n, at[WINDOW];
	MPI_Status st[WINDOW];

	(test ? MPI_Testsome : MPI_Waitsome)(WINDOW, w->req, &n, at, st);
	for (int i = 0; i < n; i++)
		window_done(w, at[i], &st[i]);
}

static void wait_all(struct window *w, bool test)
{
	MPI_Status st[WINDOW];
	int flag = 1;

	if (test)
		MPI_Testall(WINDOW, w->req, &flag, st);
	else
		MPI_Waitall(WINDOW, w->req, st);
	for (int i = 0; flag && i < WINDOW; i++)
		window_done(w, i, &st[i]);
}

static void wait_each(struct window *w, bool peek)
{
	for (int i = 0; i < WINDOW; i++) {
		MPI_Status st;
		int flag = 1;

		if (w->done[i])
			continue;
		if (peek)
			MPI_Request_get_status(w->req[i], &flag, &st);
		if (flag)
			MPI_Test(&w->req[i], &flag, &st);
		if (flag)
			window_done(w, i, &st);
	}
}

static void wait_once(struct window *w, enum wait_way how)
{
	if (how == WAITANY || how == TESTANY)
		wait_any(w, how == TESTANY);
	else if (how == WAITSOME || how == TESTSOME)
		wait_some(w, how == TESTSOME);
	else if (how == WAITALL || how == TESTALL)
		wait_all(w, how == TESTALL);
	else
		wait_each(w, how == GET_STATUS);
}

static size_t window_len(int i)
{
	static const size_t len[] = { 0, 9, 41, 700, 5000, 70000 };

	return len[i % 6];
}

static void window_send(char *out, MPI_Request *req, long round)
{
	int to = (mt_rank + 1) % mt_size;

	for (int k = 0; k < WINDOW; k++) {
		int i = (k * 7 + (int)round) % WINDOW;
		size_t len = window_len(i);
		char *p = out + (size_t)i * 70000;

		mt_fill(p, len, mt_seed(mt_rank, to, i, round));
		MPI_Isend(p, (int)len, MPI_BYTE, to, i, world, &req[k]);
		mt_sent(1, len);
	}
}

static void window_run(enum wait_way how, long round)
{
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(WINDOW * 70000), *out = mt_alloc(WINDOW * 70000);
	struct window w = { .left = WINDOW };
	MPI_Request req[WINDOW];

	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in + (size_t)i * 70000, 70000, MPI_BYTE, from, i,
			  world, &w.req[i]);
	window_send(out, req, round);
	while (w.left)
		wait_once(&w, how);
	for (int i = 0; i < WINDOW; i++) {
		mt_status(&w.st[i], from, i, window_len(i));
		mt_verify(in + (size_t)i * 70000, window_len(i),
			  mt_seed(from, mt_rank, i, round));
	}
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
	mt_free(in);
	mt_free(out);
}

/* ---- order --------------------------------------------------------- */

enum { ORDERED = 60 };

static size_t order_len(int i, long round)
{
	static const size_t len[] = { 0, 8, 41, 4096, 4097, 40000, 200000 };
	uint64_t s = (uint64_t)i * 131 + (uint64_t)round;

	return len[mt_random(&s) % 7];
}

static void order_sends(int to, long round)
{
	for (int i = 0; i < ORDERED; i++) {
		size_t len = order_len(i, round);
		char *out = mt_alloc(len);
		MPI_Request req;

		mt_fill(out, len, mt_seed(mt_rank, to, i, round));
		(i % 5 ? MPI_Isend : MPI_Issend)(out, (int)len, MPI_BYTE, to, 5,
						 world, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		mt_sent(1, len);
		mt_free(out);
	}
}

/* Any tag, sometimes any source: messages of one sender come in order. */
static void order_recvs(int from, long round)
{
	char *in = mt_alloc(200000);

	for (int i = 0; i < ORDERED; i++) {
		size_t len = order_len(i, round);
		MPI_Status st;

		MPI_Recv(in, 200000, MPI_BYTE, i & 1 ? MPI_ANY_SOURCE : from,
			 i & 2 ? MPI_ANY_TAG : 5, world, &st);
		mt_status(&st, from, 5, len);
		mt_verify(in, len, mt_seed(from, mt_rank, i, round));
	}
	mt_free(in);
}

/* Even ranks send to the right and then receive from there. */
static void order(long round)
{
	int peer = mt_rank ^ 1;

	MPI_Barrier(world);
	if (peer < mt_size && mt_rank < peer) {
		order_sends(peer, round);
		order_recvs(peer, round);
	} else if (peer < mt_size) {
		order_recvs(peer, round);
		order_sends(peer, round);
	}
	MPI_Barrier(world);
}

/* ---- the rest ------------------------------------------------------ */

static void any_source(long round)
{
	char in[64], out[64];
	MPI_Status st;
	uint64_t seen = 0;

	for (int r = 0; r < mt_size && mt_rank == 0; r++) {
		MPI_Recv(in, 64, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, world,
			 &st);
		mt_check(!(seen >> st.MPI_SOURCE & 1), "rank %d sent twice",
			 st.MPI_SOURCE);
		seen |= 1ull << st.MPI_SOURCE;
		mt_status(&st, st.MPI_SOURCE, 200 + st.MPI_SOURCE,
			  (size_t)st.MPI_SOURCE % 64);
		mt_verify(in, (size_t)st.MPI_SOURCE % 64,
			  mt_seed(st.MPI_SOURCE, 0, 9, round));
		if (r == 0 && mt_size > 1)
			MPI_Barrier(world);
	}
	if (mt_rank == 0)
		return;
	mt_fill(out, 64, mt_seed(mt_rank, 0, 9, round));
	MPI_Send(out, mt_rank % 64, MPI_BYTE, 0, 200 + mt_rank, world);
	mt_sent(1, (uint64_t)mt_rank % 64);
	MPI_Barrier(world);
}

static void any_source_self(long round)
{
	char out[64];
	MPI_Request req = MPI_REQUEST_NULL;

	if (mt_rank == 0) {
		mt_fill(out, 64, mt_seed(0, 0, 9, round));
		MPI_Isend(out, 0, MPI_BYTE, 0, 200, world, &req);
		mt_sent(1, 0);
	}
	any_source(round);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Barrier(world);
}

static void null_process(void)
{
	MPI_Request req[2];
	MPI_Status st[2];
	char c = 3;

	MPI_Send(&c, 1, MPI_BYTE, MPI_PROC_NULL, 1, world);
	MPI_Recv(&c, 1, MPI_BYTE, MPI_PROC_NULL, 1, world, &st[0]);
	mt_status(&st[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Irecv(&c, 1, MPI_BYTE, MPI_PROC_NULL, 1, world, &req[0]);
	MPI_Isend(&c, 1, MPI_BYTE, MPI_PROC_NULL, 1, world, &req[1]);
	MPI_Waitall(2, req, st);
	mt_status(&st[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
	mt_check(c == 3, "a null process wrote to the buffer");
}

/* A request freed while it runs; the next message tells it is over. */
static void freed_request(long round)
{
	int to = (mt_rank + 1) % mt_size;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(100000), *out = mt_alloc(100000);
	MPI_Request req;

	mt_fill(out, 100000, mt_seed(mt_rank, to, 11, round));
	MPI_Isend(out, 100000, MPI_BYTE, to, 11, world, &req);
	MPI_Request_free(&req);
	MPI_Recv(in, 100000, MPI_BYTE, from, 11, world, MPI_STATUS_IGNORE);
	mt_verify(in, 100000, mt_seed(from, mt_rank, 11, round));
	MPI_Barrier(world);
	mt_sent(1, 100000);
	mt_free(in);
	mt_free(out);
}

/* A receive that is too small fails; the next message is not hurt. */
static void truncated(size_t len, size_t room, long round)
{
	int to = (mt_rank + 1) % mt_size, class;
	int from = (mt_rank + mt_size - 1) % mt_size;
	char *in = mt_alloc(room), *out = mt_alloc(len);
	MPI_Request req;
	MPI_Status st;
	int ret;

	mt_fill(out, len, mt_seed(mt_rank, to, 12, round));
	MPI_Isend(out, (int)len, MPI_BYTE, to, 12, world, &req);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	ret = MPI_Recv(in, (int)room, MPI_BYTE, from, 12, world, &st);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
	MPI_Error_class(ret, &class);
	mt_check(class == MPI_ERR_TRUNCATE,
		 "a receive of %zu bytes took %zu "
		 "bytes with error class %d",
		 room, len, class);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	mt_sent(1, len);
	mt_free(in);
	mt_free(out);
	sendrecv(len, 1, round);
}

static void one_round(long round)
{
	static const size_t list[] = { 0, 8, 40, 41, 4096, 70001, MAX_LEN };

	all_modes(round);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		for (int shift = 0; shift < mt_size; shift++)
			sendrecv(list[i], shift, round);
		persistent(list[i], round);
	}
	for (int how = 0; how < WAIT_WAYS; how++)
		window_run((enum wait_way)how, round);
	order(round);
	any_source_self(round);
	null_process();
	freed_request(round);
	if (cut) {
		truncated(8, 4, round);
		truncated(1 << 20, 4096, round);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, MPI_THREAD_SINGLE,
		"pt2pt: every mode of point to point, every byte checked",
		opts);
	for (long r = 0; r < mt_rounds(rounds); r++)
		one_round(r);
	return mt_end("pt2pt");
}
