/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Attach: by /proc without the peer's help, or by descriptors that its
 * progress calls send over the attach socket.
 *
 * Exclusion: one endpoint's lock per remote. Between processes: the claim
 * word (CAS against other claimers; state looked at again after the CAS
 * against the closing owner), the doorbell (OR and exchange).
 */
#include "shm/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shm/fence.h"
#include "shm/identity.h"
#include "shm/log.h"
#include "shm/sock.h"
#include "shm/window.h"

enum {
	ATTACH_TIMEOUT_MS = 5000, /* a peer that never serves */
	SERVE_BATCH = 16,	  /* requests answered in one call */
	SERVE_WAIT_MS = 20,	  /* for a request already connected */
	ATTACH_FDS = 4,		  /* tables, mailbox, arena, pipe */
};

/* What a peer asks over the attach socket. */
struct attach_request {
	uint32_t magic;	  /* RNIC_MAGIC_ADDR */
	uint32_t version; /* RNIC_VERSION */
	uint32_t ep;	  /* endpoint place wanted */
	uint32_t ep_gen;  /* its incarnation */
};

/* What it gets, with the descriptors. */
struct attach_reply {
	uint32_t magic;	   /* RNIC_MAGIC_ADDR */
	int32_t error;	   /* 0 or a negative errno */
	uint32_t pid;	   /* the asker in the owner's pid namespace */
	uint32_t pad;	   /* 0 */
	uint64_t identity; /* the asker as the owner sees it */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Checks the fields of an address that need no look at the peer. */
static int check_addr(const struct rnic_addr *a)
{
	if (a->magic != RNIC_MAGIC_ADDR || a->kind != RNIC_ADDR_ENDPOINT ||
	    a->ep >= RNIC_EP_MAX) {
		rnic_log(RNIC_LOG_WARN, "attach: not an address of shrimp");
		return -EPROTO;
	}
	if (a->version != RNIC_VERSION) {
		rnic_log(RNIC_LOG_WARN,
			 "attach to pid %u: its shrimp speaks "
			 "version %u, ours version %d: use the same library "
			 "on both sides",
			 a->pid, a->version, RNIC_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (a->uid != geteuid()) {
		rnic_log(RNIC_LOG_WARN,
			 "attach to pid %u: it runs as user "
			 "%u, we as user %u",
			 a->pid, a->uid, geteuid());
		return -EACCES;
	}
	return 0;
}

/* Checks a peer's header, already copied, against its address and files. */
static int check_header(const struct rnic_header *h, const struct rnic_addr *a,
			const struct rnic_segment *mailbox)
{
	if (h->magic != RNIC_MAGIC_TABLES || h->version != RNIC_VERSION ||
	    h->incarnation != a->incarnation ||
	    h->lane_lines != RNIC_LANE_LINES ||
	    h->ring_bytes != RNIC_RING_BYTES || h->heap_bytes > RNIC_HEAP_MAX)
		return -EPROTO;
	if (mailbox->fd >= 0 &&
	    mailbox->size < rnic_head_off(a->ep) + RNIC_EP_STRIDE)
		return -EPROTO;
	return 0;
}

/* Reads the header from @tables and takes from it what @r needs. */
static int read_header(struct rnic_remote *r, const struct rnic_segment *tables,
		       struct rnic_header *h)
{
	ssize_t n = pread(tables->fd, h, sizeof(*h), 0);
	int ret = n == (ssize_t)sizeof(*h) ? 0 : -EPROTO;

	if (!ret)
		ret = check_header(h, &r->addr, &r->mailbox);
	if (!ret &&
	    rnic_pool_geom_init(&r->geom, h->pool_bytes, h->pool_large_off))
		ret = -EPROTO;
	if (ret) {
		rnic_log(RNIC_LOG_WARN,
			 "attach to pid %u: header of its "
			 "device is damaged or not of shrimp",
			 r->addr.pid);
		return ret;
	}
	r->hdr = *h;
	r->heap_bytes = h->heap_bytes;
	r->arena_fd = h->arena_fd;
	r->arena_ino = h->arena_ino;
	r->fence = !(h->features & RNIC_FEAT_MEMBARRIER) ||
		   !rnic_fence_registered();
	return 0;
}

/* The endpoint's state word says open, and this incarnation. */
static int check_state(const struct rnic_remote *r)
{
	/* acquires the head; pairs with D2 in rnic_place_open() */
	uint64_t s = rnic_load64_acquire(&r->head->state);

	return s == ((uint64_t)r->addr.ep_gen << 32 | RNIC_EP_OPEN)
		       ? 0
		       : -ECONNREFUSED;
}

static int map_head(struct rnic_remote *r)
{
	void *p;
	int ret = rnic_window_map(&r->mailbox, rnic_head_off(r->addr.ep),
				  sizeof(struct rnic_ep_head),
				  PROT_READ | PROT_WRITE, &p);

	if (ret)
		return ret;
	r->head = p;
	return check_state(r);
}

static int attach_proc(struct rnic_remote *r)
{
	const struct rnic_addr *a = &r->addr;
	struct rnic_segment tables = { .fd = -1 };
	struct rnic_header h;
	uint64_t self;
	int ret = rnic_proc_get(a->pid, a->identity, &r->proc);

	if (!ret)
		ret = rnic_segment_open_pid(&tables, a->pid, (int)a->tables_fd,
					    a->dev, a->ino, false);
	if (!ret)
		ret = read_header(r, &tables, &h);
	rnic_segment_close(&tables);
	if (!ret)
		ret = rnic_segment_open_pid(&r->mailbox, a->pid, h.mailbox_fd,
					    a->dev, h.mailbox_ino, true);
	if (!ret)
		ret = check_header(&h, a, &r->mailbox);
	if (!ret)
		ret = rnic_identity_self(&self);
	if (ret)
		return ret;
	r->claim = rnic_claim_make((uint32_t)getpid(), self);
	return map_head(r);
}

/* Connects and asks. -ETIMEDOUT: no room for a connection now. */
static int ask(struct rnic_remote *r)
{
	struct attach_request req = {
		.magic = RNIC_MAGIC_ADDR,
		.version = RNIC_VERSION,
		.ep = r->addr.ep,
		.ep_gen = r->addr.ep_gen,
	};
	struct ucred peer;
	char name[64];
	int ret;

	r->asked_ms = now_ms();
	snprintf(name, sizeof(name), "shrimp-%u-%016" PRIx64, r->addr.uid,
		 r->addr.incarnation);
	ret = rnic_sock_connect(name, 0, &peer);
	if (ret < 0)
		return ret == -ECONNREFUSED ? -ESRCH : ret;
	r->conn = ret;
	r->peer_pid = (uint32_t)peer.pid;
	if (!r->peer_pid) {
		rnic_log(RNIC_LOG_WARN,
			 "attach: the peer's pid namespace "
			 "cannot be seen from this one: its death would go "
			 "unnoticed");
		return -EPROTO;
	}
	return rnic_sock_send(r->conn, &req, sizeof(req), NULL, 0, 0);
}

static void hang_up(struct rnic_remote *r)
{
	if (r->conn >= 0)
		close(r->conn);
	r->conn = -1;
}

/*
 * Asks; the answer comes with the peer's progress. A full backlog, or a peer
 * that took us for slow and hung up, is asked again: if it is dead, that says
 * so.
 */
static int attach_ask(struct rnic_remote *r)
{
	int ret = ask(r);

	if (ret == -ETIMEDOUT || ret == -ECONNRESET)
		hang_up(r);
	else if (ret)
		return ret;
	return -EINPROGRESS;
}

static int attach_start(struct rnic_remote *r)
{
	r->asking = true;
	r->deadline_ms = now_ms() + ATTACH_TIMEOUT_MS;
	return attach_ask(r);
}

static void close_fds(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Opens a pipe behind @fd for reading as well: with a reader of our own a
 * write can never raise SIGPIPE in the application. -1 if that fails.
 */
static int reopen_pipe(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/* Takes the descriptors of a reply into @r; owns them from here on. */
static int adopt_fds(struct rnic_remote *r, int *fds, int n)
{
	struct rnic_segment tables = { .fd = -1 };
	struct rnic_header h;
	int ret = n == ATTACH_FDS ? 0 : -EPROTO;

	if (!ret)
		ret = rnic_segment_adopt(&tables, fds[0], sizeof(h));
	if (ret) {
		close_fds(fds, n);
		return ret;
	}
	ret = rnic_segment_adopt(&r->mailbox, fds[1], RNIC_MAILBOX_EP0);
	if (ret) {
		close_fds(fds + 1, n - 1);
	} else {
		ret = rnic_segment_adopt(&r->arena, fds[2], RNIC_PAGE);
		if (ret)
			close(fds[2]);
		r->pipe = reopen_pipe(fds[3]);
		close(fds[3]);
	}
	if (!ret)
		ret = read_header(r, &tables, &h);
	/* /proc is not a way back to it */
	r->tables = tables;
	return ret;
}

/* The owner's process, as this one sees it. */
static int find_proc(struct rnic_remote *r)
{
	uint64_t identity;
	int ret = rnic_identity_of(r->peer_pid, &identity);

	return ret ? ret : rnic_proc_get(r->peer_pid, identity, &r->proc);
}

static int attach_answer(struct rnic_remote *r)
{
	struct attach_reply rep;
	int fds[ATTACH_FDS], n = ATTACH_FDS;
	int ret = rnic_sock_recv(r->conn, &rep, sizeof(rep), fds, &n, 0);

	if (ret)
		return ret;
	if (rep.magic != RNIC_MAGIC_ADDR || rep.error) {
		close_fds(fds, n);
		return rep.magic != RNIC_MAGIC_ADDR ? -EPROTO : -ECONNREFUSED;
	}
	ret = adopt_fds(r, fds, n);
	if (!ret)
		ret = find_proc(r);
	if (ret)
		return ret;
	hang_up(r);
	r->asking = false;
	r->claim = rnic_claim_make(rep.pid, rep.identity);
	r->by_socket = true;
	return map_head(r);
}

static bool same_namespaces(const struct rnic_addr *a)
{
	uint64_t ns;

	return !rnic_identity_ns(&ns) && ns == a->ns;
}

static int start(struct rnic_remote *r, enum rnic_attach_mode mode)
{
	int ret = check_addr(&r->addr);

	if (ret)
		return ret;
	if (mode == RNIC_ATTACH_SOCKET ||
	    (mode == RNIC_ATTACH_AUTO && !same_namespaces(&r->addr)))
		return attach_start(r);
	ret = attach_proc(r);
	if (ret != -EACCES || mode == RNIC_ATTACH_PROC)
		return ret;
	rnic_log(RNIC_LOG_INFO,
		 "attach to pid %u: /proc refused, using the "
		 "socket",
		 r->addr.pid);
	rnic_proc_put(r->proc);
	r->proc = NULL;
	return attach_start(r);
}

int rnic_remote_open(const struct rnic_addr *addr, enum rnic_attach_mode mode,
		     struct rnic_remote **out)
{
	struct rnic_remote *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->refs = 1;
	r->addr = *addr;
	r->mailbox.fd = r->arena.fd = r->tables.fd = -1;
	r->pipe = r->conn = -1;
	ret = start(r, mode);
	if (ret && ret != -EINPROGRESS) {
		rnic_remote_close(r);
		return ret;
	}
	*out = r;
	return ret;
}

/* Looks for the answer, or asks again. -EINPROGRESS: none yet. */
static int attach_go_on(struct rnic_remote *r)
{
	struct pollfd pfd = { .fd = r->conn, .events = POLLIN };
	int ret = -EINPROGRESS;

	if (r->conn >= 0 && poll(&pfd, 1, 0) > 0) {
		ret = attach_answer(r);
		if (ret != -ECONNRESET)
			return ret;
		hang_up(r);
	}
	/* once in a millisecond: this is called in each progress */
	return r->conn < 0 && now_ms() != r->asked_ms ? attach_ask(r)
						      : -EINPROGRESS;
}

int rnic_remote_poll(struct rnic_remote *r)
{
	if (!r->asking)
		return 0;
	if (r->error)
		return r->error;
	r->error = attach_go_on(r);
	if (r->error != -EINPROGRESS)
		return r->error;
	r->error = 0;
	if (now_ms() < r->deadline_ms)
		return -EINPROGRESS;
	r->error = -ETIMEDOUT;
	rnic_log(RNIC_LOG_WARN, "attach to pid %u: no answer in %d s",
		 r->addr.pid, ATTACH_TIMEOUT_MS / 1000);
	return -ETIMEDOUT;
}

struct rnic_remote *rnic_remote_share(struct rnic_remote *r)
{
	r->refs++;
	return r;
}

void rnic_remote_close(struct rnic_remote *r)
{
	if (!r || --r->refs)
		return;
	if (r->head)
		rnic_window_unmap(r->head, sizeof(struct rnic_ep_head));
	if (r->pool)
		rnic_segment_unmap((void *)(uintptr_t)r->pool, r->geom.bytes);
	if (r->heap)
		rnic_segment_unmap((void *)(uintptr_t)r->heap, r->heap_bytes);
	rnic_segment_close(&r->mailbox);
	rnic_segment_close(&r->arena);
	rnic_segment_close(&r->tables);
	if (r->pipe >= 0)
		close(r->pipe);
	hang_up(r);
	rnic_proc_put(r->proc);
	free(r);
}

/* Raises the number that the owner scans up to. */
static void raise_hi(struct rnic_remote *r, uint64_t n)
{
	rnic_a64 *hi = &r->head->lane_hi;
	uint64_t old;

	do {
		/* relaxed: the CAS decides */
		old = rnic_load64_relaxed(hi);
	} while (old < n && !rnic_cas64_seqcst(hi, old, n));
}

/* First free directory entry that the CAS gives us, or -ENOSPC. */
static int claim_word(struct rnic_remote *r)
{
	for (unsigned int i = 0; i < RNIC_LANE_MAX; i++) {
		rnic_a64 *w = &r->head->claim[i];

		/* relaxed: the CAS decides and acquires (D1) */
		if (rnic_load64_relaxed(w))
			continue;
		/* before the claim: the owner's fence must not miss it */
		raise_hi(r, i + 1);
		if (rnic_cas64_seqcst(w, 0, r->claim))
			return (int)i;
	}
	rnic_log(RNIC_LOG_WARN, "peer %u: all %d lanes are claimed",
		 r->addr.pid, RNIC_LANE_MAX);
	return -ENOSPC;
}

static int map_lane(struct rnic_remote *r, unsigned int index,
		    struct rnic_lane **lane)
{
	uint64_t off = rnic_lane_off(r->addr.ep, index);
	void *p;
	int ret = rnic_segment_populate(&r->mailbox, off, RNIC_LANE_SIZE);

	if (!ret)
		ret = rnic_window_map(&r->mailbox, off, RNIC_LANE_SIZE,
				      PROT_READ | PROT_WRITE, &p);
	if (!ret)
		*lane = p;
	return ret;
}

int rnic_remote_claim(struct rnic_remote *r, const struct rnic_addr *self,
		      struct rnic_lane **lane, unsigned int *index)
{
	int ret = claim_word(r);
	int got = ret;

	if (ret < 0)
		return ret;
	/* after the CAS, a full fence: pairs with rnic_place_close() */
	ret = check_state(r);
	if (!ret)
		ret = map_lane(r, (unsigned int)got, lane);
	if (ret) {
		/*
		 * D1: nothing was written into the lane; see device.h. Only
		 * what is still ours: the place may have been emptied between
		 * our CAS and this, and the lane be another sender's by now.
		 */
		rnic_cas64_seqcst(&r->head->claim[got], r->claim, 0);
		return ret;
	}
	*index = (unsigned int)got;
	(*lane)->sender = *self;
	/* relaxed: published by R1 */
	rnic_store32_relaxed(&(*lane)->tx_unfenced, r->unfenced);
	/* R1: publishes the name; pairs with the load in lane_open() */
	rnic_store32_release(&(*lane)->tx_state, RNIC_TX_LIVE);
	if (r->by_socket)
		return 0;
	rnic_segment_close(&r->mailbox);
	return 0;
}

void rnic_remote_unmap_lane(struct rnic_lane *lane)
{
	rnic_window_unmap(lane, RNIC_LANE_SIZE);
}

/* Opens the peer's wake pipe, and only that pipe. */
static int open_pipe(struct rnic_remote *r)
{
	uint64_t ino = rnic_load64_relaxed(&r->head->pipe_ino);
	struct stat st;
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", r->addr.pid,
		 rnic_load32_relaxed(&r->head->pipe_fd));
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) || !S_ISFIFO(st.st_mode) || st.st_ino != ino;
	if (!ret)
		r->pipe = reopen_pipe(fd);
	close(fd);
	return r->pipe < 0 ? -ESTALE : 0;
}

/* After a bell was rung: writes a byte if the peer sleeps. */
static bool wake(struct rnic_remote *r)
{
	/*
	 * relaxed: ordered after the bell by this; pairs with the full
	 * fence between the sleeper's store and its last look
	 */
	rnic_fence_after_rmw();
	if (!rnic_load32_relaxed(&r->head->sleeping))
		return false;
	if (r->pipe < 0 && open_pipe(r))
		return false;
	/* a full pipe wakes as well */
	return write(r->pipe, "", 1) == 1;
}

bool rnic_remote_ring(struct rnic_remote *r, unsigned int index)
{
	uint64_t word = index / 64;

	/* the lane's bit first: the owner clears the summary first */
	rnic_or64_seqcst(&r->head->lane_bell[word], UINT64_C(1) << index % 64);
	rnic_or64_seqcst(&r->head->bell, UINT64_C(1) << word);
	return wake(r);
}

bool rnic_remote_ring_return(struct rnic_remote *r)
{
	/* full barrier: the answer before it, the sleeper's word after it */
	rnic_or64_seqcst(&r->head->ret_bell, 1);
	return wake(r);
}

bool rnic_remote_closed(const struct rnic_remote *r)
{
	return r->head && check_state(r);
}

/* Maps @len bytes at @off of the peer's arena part of its endpoint. */
static int map_arena(struct rnic_remote *r, uint64_t off, uint64_t len,
		     const uint8_t **out)
{
	struct rnic_segment s = r->arena;
	void *p;
	int ret = 0;

	if (s.fd < 0)
		ret = rnic_segment_open_pid(&s, r->addr.pid, r->arena_fd,
					    r->addr.dev, r->arena_ino, false);
	if (ret)
		return ret;
	off += r->addr.ep * RNIC_ARENA_EP_STRIDE;
	ret = s.size < off + len
		      ? -EPROTO
		      : rnic_segment_map(&s, off, len, PROT_READ, &p);
	if (r->arena.fd < 0)
		rnic_segment_close(&s);
	if (!ret)
		*out = p;
	return ret;
}

int rnic_remote_arena(const struct rnic_remote *r, struct rnic_segment *s)
{
	int fd;

	if (r->arena.fd < 0)
		return rnic_segment_open_pid(s, r->addr.pid, r->arena_fd,
					     r->addr.dev, r->arena_ino, true);
	fd = fcntl(r->arena.fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return errno == EMFILE ? -EMFILE : -EIO;
	*s = r->arena;
	s->fd = fd;
	return 0;
}

int rnic_remote_file(const struct rnic_remote *r, int fd, uint64_t ino,
		     struct rnic_segment *s)
{
	if (r->by_socket)
		return -EREMOTE;
	return rnic_segment_open_pid(s, r->addr.pid, fd, r->addr.dev, ino,
				     true);
}

int rnic_remote_map_pool(struct rnic_remote *r)
{
	return r->pool ? 0 : map_arena(r, 0, r->geom.bytes, &r->pool);
}

int rnic_remote_map_heap(struct rnic_remote *r)
{
	return r->heap ? 0
		       : map_arena(r, RNIC_HEAP_OFF, r->heap_bytes, &r->heap);
}

/* @n parts of @each bytes at @off are whole pages within @size bytes. */
static bool part_fits(uint64_t off, uint64_t n, uint64_t each, uint64_t size)
{
	return !(off % RNIC_PAGE) && off <= size && n <= (size - off) / each &&
	       !(n * each % RNIC_PAGE);
}

/* What readers use of the tables lies within them. */
static int check_tables(const struct rnic_remote *r)
{
	const struct rnic_header *h = &r->hdr;
	uint64_t size = r->tables.size;

	if (h->mpt_head_off % RNIC_LINE == 0 && h->mpt_head_off < size &&
	    part_fits(h->space_off, RNIC_SPACES, sizeof(struct rnic_space),
		      size) &&
	    h->mpt_slots <= UINT64_C(1) << RNIC_SLOT_BITS &&
	    /* what device.c lays out: bounds what readers keep about it */
	    h->index_slots <= 2 * h->mpt_slots &&
	    h->mtt_pages <= h->mpt_slots / 16 &&
	    part_fits(h->mpt_off, h->mpt_slots, sizeof(struct rnic_mpt),
		      size) &&
	    part_fits(h->index_off[0], h->index_slots,
		      sizeof(struct rnic_key_entry), size) &&
	    part_fits(h->index_off[1], h->index_slots,
		      sizeof(struct rnic_key_entry), size) &&
	    part_fits(h->mtt_off, h->mtt_pages, sizeof(struct rnic_mtt_page),
		      size) &&
	    size % RNIC_PAGE == 0)
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "pid %u: its tables (%" PRIu64 " bytes) are smaller than "
		 "their header says",
		 r->addr.pid, size);
	return -EPROTO;
}

int rnic_remote_tables(struct rnic_remote *r)
{
	int ret = 0;

	if (r->tables.fd < 0)
		ret = rnic_segment_open_pid(&r->tables, r->addr.pid,
					    (int)r->addr.tables_fd, r->addr.dev,
					    r->addr.ino, false);
	return ret ? ret : check_tables(r);
}

/* The wake pipe of the endpoint place that @req names, or -ECONNREFUSED. */
static int find_pipe(struct rnic_device *d, const struct attach_request *req)
{
	int fd = -1;

	if (req->magic != RNIC_MAGIC_ADDR || req->version != RNIC_VERSION ||
	    req->ep >= RNIC_EP_MAX)
		return -ECONNREFUSED;
	/* from our own table: peers can write what the mailbox says */
	pthread_mutex_lock(&d->lock);
	if (d->place[req->ep] == RNIC_PLACE_OPEN &&
	    d->gen[req->ep] == req->ep_gen)
		fd = d->pipe[req->ep];
	pthread_mutex_unlock(&d->lock);
	return fd < 0 ? -ECONNREFUSED : fd;
}

/* Answers one connected asker. */
static void serve_one(struct rnic_device *d, int conn, const struct ucred *peer)
{
	struct attach_reply rep = { .magic = RNIC_MAGIC_ADDR };
	struct attach_request req;
	int fds[ATTACH_FDS], n = 0;
	int pipe;

	if (rnic_sock_recv(conn, &req, sizeof(req), NULL, NULL, SERVE_WAIT_MS))
		return;
	pipe = find_pipe(d, &req);
	rep.pid = (uint32_t)peer->pid;
	rep.error = pipe < 0 ? pipe : 0;
	if (!rep.error)
		rep.error = rnic_identity_of(rep.pid, &rep.identity);
	if (!rep.error) {
		fds[n++] = d->tables.fd;
		fds[n++] = d->mailbox.fd;
		fds[n++] = d->arena.fd;
		fds[n++] = pipe;
	}
	rnic_sock_send(conn, &rep, sizeof(rep), fds, n, 0);
}

int rnic_remote_serve(struct rnic_device *d)
{
	struct ucred peer;
	int served = 0;

	for (int i = 0; i < SERVE_BATCH && d->sock >= 0; i++) {
		int conn = rnic_sock_accept(d->sock, &peer);

		if (conn < 0)
			break;
		serve_one(d, conn, &peer);
		close(conn);
		served++;
	}
	return served;
}
