/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Processes exchange messages of all sizes while some of them are killed at
 * random instants, round after round (contract P4, L1).
 *
 * Ranks below the number of survivors live through all rounds, with one
 * endpoint each. The other ranks are managers: in each round a manager forks
 * a victim, hands its address to the survivors and kills it, at times before
 * it has an address. Everything on the way from one process to another in
 * one round is a stream: the n-th message of a stream has a length and a
 * pattern that both sides can compute.
 *
 * 50 rounds; 1000 with SHRIMP_LONG=1; 5 with SHRIMP_QUICK=1 and in sanitizer
 * builds.
 *
 * Limit: 300 s
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"

enum {
	MAX_RANKS = 8,	   /* survivors and victims */
	WINDOW = 2,	   /* sends under way to a peer */
	DEPTH = 3,	   /* receives posted for a peer */
	MSG_MAX = 1 << 20, /* longest message */
	EARLY = 20,	   /* messages per stream while victims live */
	TOTAL = 40,	   /* messages per stream in a round */
	NOTICE_MS = 5000,  /* a death is noticed within (contract P4) */
	ROUND_MS = 20000,  /* a round takes at most */
	FD_SLACK = 8,	   /* descriptors that may come and go */
	MAP_SLACK = 24,	   /* mappings of segments likewise */
	GAP_MAX = 70,	   /* messages a dead peer can take along */
	LANE_KIB = 16	   /* segment of a lane */
};

/* How big a storm is. */
struct storm {
	int survivors;	      /* ranks that live */
	int victims;	      /* ranks that kill */
	unsigned long rounds; /* rounds */
};

/* When each rank's victim of this round was killed, on the clock. */
struct times {
	_Atomic uint64_t killed_ns[MAX_RANKS];
};

static struct times *times;

struct chan;

/* A send or a receive. */
struct slot {
	struct chan *ch; /* of which channel */
	bool rx;	 /* a receive */
	bool busy;	 /* under way */
	unsigned int n;	 /* number in the stream */
	char *buf;	 /* MSG_MAX bytes */
};

/* A peer of this round, both ways. */
struct chan {
	fi_addr_t addr;			  /* it */
	int peer;			  /* its rank */
	bool mortal;			  /* a victim */
	bool dead;			  /* known to be dead */
	uint64_t out;			  /* stream to it; also the tag */
	uint64_t in;			  /* stream from it */
	unsigned int sent;		  /* sends posted */
	unsigned int posted;		  /* receives posted */
	unsigned int ended;		  /* sends completed */
	unsigned int received;		  /* messages received */
	unsigned int out_now;		  /* sends under way */
	unsigned int in_now;		  /* receives posted */
	struct slot slot[WINDOW + DEPTH]; /* sends first */
};

/* What a process does in a round. */
struct round {
	struct th_stack *s;	   /* its endpoint */
	const struct storm *storm; /* how many are there */
	int rank;		   /* its rank */
	unsigned long no;	   /* number of the round */
	unsigned int limit;	   /* messages per immortal stream, now */
	unsigned int any_done;	   /* receives from any source that ended */
	struct slot any;	   /* receive from any source */
	int nch;		   /* channels in use */
	struct chan ch[MAX_RANKS]; /* by peer */
};

/* ---- streams ------------------------------------------------------------ */

static uint64_t stream_id(unsigned long round, int from, int to)
{
	return ((uint64_t)round * MAX_RANKS + (uint64_t)from) * MAX_RANKS +
	       (uint64_t)to;
}

/* Half of the messages fit into a descriptor, the rest is spread. */
static size_t msg_len(uint64_t stream, unsigned int n)
{
	static const size_t most[] = { 41,   41,    41,	       41,
				       1025, 65536, 4 * 65536, MSG_MAX };
	uint64_t state = stream << 16 | n;
	uint64_t r = th_random(&state);

	return (size_t)(r >> 8) % most[r % 8];
}

static uint64_t msg_seed(uint64_t stream, unsigned int n)
{
	return stream << 16 | n;
}

/* ---- a channel ------------------------------------------------------------ */

static void chan_init(struct chan *ch, struct round *r, int peer,
		      fi_addr_t addr)
{
	struct chan zero = { .addr = addr };
	int i;

	for (i = 0; i < WINDOW + DEPTH; i++) {
		zero.slot[i] = (struct slot){ .ch = ch,
					      .rx = i >= WINDOW,
					      .buf = ch->slot[i].buf };
		if (!zero.slot[i].buf)
			zero.slot[i].buf = malloc(MSG_MAX);
		th_check(zero.slot[i].buf);
	}
	zero.peer = peer;
	zero.mortal = peer >= r->storm->survivors;
	zero.out = stream_id(r->no, r->rank, peer);
	zero.in = stream_id(r->no, peer, r->rank);
	*ch = zero;
}

static void chans_free(struct round *r)
{
	int i, j;

	for (i = 0; i < MAX_RANKS; i++)
		for (j = 0; j < WINDOW + DEPTH; j++)
			free(r->ch[i].slot[j].buf);
	free(r->any.buf);
}

static void post_send(struct th_stack *s, struct slot *sl)
{
	struct chan *ch = sl->ch;
	size_t len;

	sl->n = ch->sent++;
	len = msg_len(ch->out, sl->n);
	th_fill(sl->buf, len, msg_seed(ch->out, sl->n));
	th_tsend(s, ch->addr, sl->buf, len, ch->out, sl);
	sl->busy = true;
	ch->out_now++;
}

static void post_recv(struct th_stack *s, struct slot *sl)
{
	struct chan *ch = sl->ch;

	th_post(s, fi_trecv(s->ep, sl->buf, MSG_MAX, NULL, ch->addr, ch->in, 0,
			    sl));
	/* the n-th receive gets the n-th message, whenever it completes */
	sl->n = ch->posted++;
	sl->busy = true;
	ch->in_now++;
}

/* Posts what the channel may have under way. */
static void chan_feed(struct round *r, struct chan *ch)
{
	unsigned int sends = ch->mortal ? UINT_MAX : r->limit;
	unsigned int recvs = ch->mortal ? UINT_MAX : TOTAL;
	int i;

	for (i = 0; i < WINDOW + DEPTH && !ch->dead; i++) {
		struct slot *sl = &ch->slot[i];

		if (sl->busy)
			continue;
		if (sl->rx && ch->posted < recvs)
			post_recv(r->s, sl);
		else if (!sl->rx && ch->sent < sends)
			post_send(r->s, sl);
	}
}

static bool chan_finished(const struct chan *ch)
{
	if (ch->mortal)
		return ch->dead && !ch->out_now && !ch->in_now;
	return ch->ended == TOTAL && ch->received == TOTAL;
}

/* ---- completions ------------------------------------------------------------ */

static void slot_idle(struct slot *sl)
{
	sl->busy = false;
	if (sl->rx)
		sl->ch->in_now--;
	else
		sl->ch->out_now--;
}

/* True if @len bytes in @sl are message @n of the stream. */
static bool is_message(const struct slot *sl, size_t len, unsigned int n)
{
	uint64_t in = sl->ch->in;

	return len == msg_len(in, n) &&
	       th_match_at(sl->buf, len, msg_seed(in, n), 0);
}

static void wrong_message(const struct round *r, const struct slot *sl,
			  size_t len)
{
	const struct chan *ch = sl->ch;

	th_fail(__FILE__, __LINE__,
		"round %lu: message %u of rank %d (stream %#" PRIx64
		") has %zu bytes, wanted %zu, or is damaged; %u received, "
		"lost with dead peers %" PRIu64,
		r->no, sl->n, ch->peer, ch->in, len, msg_len(ch->in, sl->n),
		ch->received, probe_stats(&r->s->fabric->fid).dropped_msgs);
}

/*
 * The n-th receive holds the n-th message. A peer that was killed may take
 * payloads along that were still in its memory: then it is a later one.
 */
static void check_message(const struct round *r, const struct slot *sl,
			  size_t len)
{
	const struct chan *ch = sl->ch;
	unsigned int n = sl->n, last = n;

	if (ch->mortal && atomic_load(&times->killed_ns[ch->peer]))
		last += GAP_MAX;
	while (!is_message(sl, len, n))
		if (n++ == last)
			wrong_message(r, sl, len);
}

static void on_success(struct round *r, const struct fi_cq_tagged_entry *e)
{
	struct slot *sl = e->op_context;
	struct chan *ch = sl->ch;

	if (sl == &r->any) {
		r->any_done++;
		return;
	}
	slot_idle(sl);
	if (!sl->rx) {
		ch->ended++;
		return;
	}
	check_message(r, sl, e->len);
	ch->received++;
}

static void on_error(struct round *r, const struct fi_cq_err_entry *err)
{
	struct slot *sl = err->op_context;

	th_eq(err->err, FI_ECONNRESET);
	th_check(sl && sl != &r->any && sl->busy);
	th_check(sl->ch->mortal);
	sl->ch->dead = true;
	slot_idle(sl);
}

static void take(struct round *r, struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(cq, &e, 1);

	if (ret == 1) {
		on_success(r, &e);
	} else if (ret == -FI_EAVAIL) {
		th_eq(fi_cq_readerr(cq, &err, 0), 1);
		on_error(r, &err);
	} else {
		th_eq(ret, -FI_EAGAIN);
	}
}

static void turn(struct round *r)
{
	int i;

	for (i = 0; i < r->nch; i++)
		chan_feed(r, &r->ch[i]);
	take(r, r->s->txcq);
	take(r, r->s->rxcq);
}

/* ---- a round of a survivor or victim --------------------------------------- */

static void round_init(struct round *r, const char *all)
{
	static const char none[TH_MAX_ADDR];
	size_t len = r->s->addrlen;
	int i, n = r->storm->survivors + r->storm->victims;

	r->nch = 0;
	r->limit = EARLY;
	r->any_done = 0;
	for (i = 0; i < n; i++) {
		const char *addr = all + (size_t)i * len;

		if (i == r->rank || memcmp(addr, none, len) == 0)
			continue;
		chan_init(&r->ch[r->nch++], r, i, th_insert(r->s, addr));
	}
}

static bool victims_gone(const struct round *r)
{
	int i;

	for (i = 0; i < r->nch; i++)
		if (r->ch[i].mortal && !chan_finished(&r->ch[i]))
			return false;
	return true;
}

static bool all_finished(const struct round *r)
{
	int i;

	for (i = 0; i < r->nch; i++)
		if (!chan_finished(&r->ch[i]))
			return false;
	return true;
}

static void too_slow(const struct round *r)
{
	int i;

	for (i = 0; i < r->nch; i++)
		if (!chan_finished(&r->ch[i]))
			th_fail(__FILE__, __LINE__,
				"round %lu, %s stream %#" PRIx64
				": dead %d, sent %u ended %u received %u, "
				"%u sends and %u receives under way",
				r->no, r->ch[i].mortal ? "mortal" : "immortal",
				r->ch[i].out, r->ch[i].dead, r->ch[i].sent,
				r->ch[i].ended, r->ch[i].received,
				r->ch[i].out_now, r->ch[i].in_now);
	th_fail(__FILE__, __LINE__, "round %lu: receive from any source",
		r->no);
}

/* The last death was noticed in time. */
static void check_notice(const struct round *r)
{
	uint64_t last = 0, now = th_now_ns(), at;
	int i;

	for (i = r->storm->survivors; i < MAX_RANKS; i++) {
		at = atomic_load(&times->killed_ns[i]);
		last = at > last ? at : last;
	}
	th_check(now < last + UINT64_C(1000000) * NOTICE_MS * th_time_scale());
}

static uint64_t any_tag(const struct round *r)
{
	return UINT64_C(1) << 60 | r->no;
}

/* A receive from any source outlives the victims; a neighbour serves it. */
static void any_post(struct round *r)
{
	if (!r->any.buf)
		r->any.buf = malloc(8);
	th_check(r->any.buf);
	th_trecv(r->s, r->any.buf, 8, any_tag(r), 0, &r->any);
}

static void any_serve(struct round *r, fi_addr_t next)
{
	th_post(r->s, fi_tinject(r->s->ep, "survivor", 8, next, any_tag(r)));
}

static void survive(struct round *r, fi_addr_t next)
{
	struct th_deadline dl = th_deadline_ms(ROUND_MS);

	any_post(r);
	while (!all_finished(r) || !r->any_done) {
		turn(r);
		if (r->limit == EARLY && victims_gone(r)) {
			check_notice(r);
			r->limit = TOTAL;
			any_serve(r, next);
		}
		if (th_expired(&dl))
			too_slow(r);
	}
	th_eq(memcmp(r->any.buf, "survivor", 8), 0);
}

/* ---- survivors ----------------------------------------------------------------- */

/* What must not grow from round to round. */
struct footprint {
	unsigned int fds;  /* open descriptors */
	unsigned int maps; /* mappings of segments */
	uint64_t kib;	   /* of the mailbox */
};

static struct footprint footprint(void)
{
	return (struct footprint){ probe_fds(), probe_maps("memfd:shrimp"),
				   probe_segment_kib("shrimp-mailbox") };
}

static void check_footprint(const struct footprint *base, int victims,
			    unsigned long round)
{
	struct footprint f = footprint();

	if (f.fds <= base->fds + FD_SLACK && f.maps <= base->maps + MAP_SLACK &&
	    f.kib <= base->kib + 2 * (uint64_t)victims * LANE_KIB)
		return;
	th_fail(__FILE__, __LINE__,
		"round %lu: %u descriptors, %u mappings, %" PRIu64
		" KiB of mailbox; were %u, %u, %" PRIu64,
		round, f.fds, f.maps, f.kib, base->fds, base->maps, base->kib);
}

/* Everybody's addresses; victims that died too early have none. */
static void exchange(struct th_self *self, const char *addr, size_t len,
		     char *all)
{
	th_gather(self, "addresses", addr, all, len);
}

static void forget_victims(struct round *r)
{
	int i;

	for (i = 0; i < r->nch; i++)
		th_eq(fi_av_remove(r->s->av, &r->ch[i].addr, 1, 0), 0);
}

static void survivor(struct th_self *self, const struct storm *storm)
{
	static struct round r;
	unsigned long warm = storm->rounds < 10 ? 2 : 5;
	struct footprint base = { 0 };
	char all[MAX_RANKS * TH_MAX_ADDR];
	struct th_stack_opts o = { .caps = FI_TAGGED | FI_DIRECTED_RECV };
	struct th_stack s;
	fi_addr_t next;

	th_stack_open(&s, &o);
	exchange(self, s.addr, s.addrlen, all);
	next = th_insert(&s, all + s.addrlen * (size_t)((self->rank + 1) %
							storm->survivors));
	r = (struct round){ .s = &s, .storm = storm, .rank = self->rank };
	for (r.no = 1; r.no <= storm->rounds; r.no++) {
		exchange(self, s.addr, s.addrlen, all);
		round_init(&r, all);
		survive(&r, next);
		th_barrier_progress(self, &s, "round");
		forget_victims(&r);
		if (r.no == warm)
			base = footprint();
		else if (r.no > warm)
			check_footprint(&base, storm->victims, r.no);
	}
	th_stack_close(&s);
	chans_free(&r);
	th_eq(probe_maps("memfd:shrimp"), 0);
}

/* ---- victims ---------------------------------------------------------------------- */

/* Opens, tells its address through @fd, learns the others', talks for ever. */
static void victim(int fd, const struct storm *storm, int rank,
		   unsigned long no)
{
	static struct round r;
	struct th_stack_opts o = { .caps = FI_TAGGED | FI_DIRECTED_RECV };
	char all[MAX_RANKS * TH_MAX_ADDR];
	struct th_stack s;
	size_t len;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	th_stack_open(&s, &o);
	len = s.addrlen * (size_t)(storm->survivors + storm->victims);
	th_eq(send(fd, s.addr, s.addrlen, MSG_NOSIGNAL), s.addrlen);
	th_eq(recv(fd, all, len, 0), len);
	r = (struct round){ .s = &s, .storm = storm, .rank = rank, .no = no };
	round_init(&r, all);
	for (;;)
		turn(&r);
}

/* A victim as its manager sees it. */
struct prey {
	pid_t pid;		/* process */
	int fd;			/* socket to it */
	char addr[TH_MAX_ADDR]; /* its name, zeros if it has none */
	size_t len;		/* bytes of a name; 0: not known yet */
};

static void prey_start(struct prey *p, const struct storm *storm, int rank,
		       unsigned long no)
{
	int fds[2];

	atomic_store(&times->killed_ns[rank], 0);
	th_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	p->pid = fork();
	th_check(p->pid >= 0);
	if (!p->pid) {
		close(fds[0]);
		victim(fds[1], storm, rank, no);
	}
	close(fds[1]);
	p->fd = fds[0];
	memset(p->addr, 0, sizeof(p->addr));
}

static void prey_kill(struct prey *p, int rank)
{
	int status;

	atomic_store(&times->killed_ns[rank], th_now_ns());
	kill(p->pid, SIGKILL);
	th_eq(waitpid(p->pid, &status, 0), p->pid);
	th_check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(p->fd);
}

/*
 * Waits @us at most (0: as long as it takes) for the address. False if there
 * is none yet.
 */
static bool prey_addr(struct prey *p, unsigned int us)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	ssize_t n;

	if (us && poll(&pfd, 1, (int)us / 1000) == 0)
		return false;
	n = recv(p->fd, p->addr, sizeof(p->addr), 0);
	th_check(n > 0);
	p->len = (size_t)n;
	return true;
}

/* Microseconds, short times as likely as long ones. */
static unsigned int random_us(uint64_t *state, unsigned int bits)
{
	uint64_t r = th_random(state);

	return (unsigned int)(r >> 32) & ((1u << (r % bits + 1)) - 1);
}

static void hunt(struct th_self *self, const struct storm *storm,
		 unsigned long no, uint64_t *state, size_t len)
{
	bool early = th_random(state) % 5 == 0;
	char all[MAX_RANKS * TH_MAX_ADDR];
	struct prey p = { 0 };

	prey_start(&p, storm, self->rank, no);
	if (early) {
		prey_addr(&p, 1000 + random_us(state, 15));
		prey_kill(&p, self->rank);
	} else {
		prey_addr(&p, 0);
		th_eq(p.len, len);
	}
	exchange(self, p.addr, len, all);
	if (!early) {
		send(p.fd, all, len * (size_t)self->size, MSG_NOSIGNAL);
		th_sleep_us(random_us(state, 17));
		prey_kill(&p, self->rank);
	}
	th_barrier(self, "round");
}

static void manager(struct th_self *self, const struct storm *storm)
{
	uint64_t state = (uint64_t)self->rank;
	char all[MAX_RANKS * TH_MAX_ADDR];
	struct prey p = { 0 };
	unsigned long no;

	/* the first one only tells how long addresses are */
	prey_start(&p, storm, self->rank, 0);
	prey_addr(&p, 0);
	prey_kill(&p, self->rank);
	exchange(self, p.addr, p.len, all);
	for (no = 1; no <= storm->rounds; no++)
		hunt(self, storm, no, &state, p.len);
}

static void storm_main(struct th_self *self)
{
	const struct storm *storm = self->arg;

	if (self->rank < storm->survivors)
		survivor(self, storm);
	else
		manager(self, storm);
}

/* ---- tests ------------------------------------------------------------------------- */

static void storm_run(struct storm *storm)
{
	unsigned int before = probe_leftovers();

	memset(times, 0, sizeof(*times));
	th_run(storm->survivors + storm->victims, storm_main, storm,
	       30 + 2 * (unsigned int)storm->rounds);
	assert_int_equal(probe_leftovers(), before);
}

/* The rounds of the storm: not those of th_rounds(). */
static unsigned long storm_rounds(void)
{
	const char *quick = getenv("SHRIMP_QUICK");

	if (th_long())
		return 1000;
	return th_sanitized() || (quick && atoi(quick)) ? 5 : 50;
}

static void contract_L1_storm(void **state)
{
	struct storm storm = { 3, 2, storm_rounds() };

	(void)state;
	storm_run(&storm);
}

/* One survivor, one victim after the other: its lane serves them all. */
static void contract_L1_lane_reused(void **state)
{
	struct storm storm = { 1, 1, 20 };

	(void)state;
	storm_run(&storm);
}

static const struct CMUnitTest kill_storm[] = {
	cmocka_unit_test(contract_L1_lane_reused),
	cmocka_unit_test(contract_L1_storm),
};

int main(int argc, char **argv)
{
	if (th_is_shrimp())
		probe_isolate(64);
	times = probe_shared(sizeof(*times));
	return th_main(argc, argv, "kill_storm", kill_storm,
		       sizeof(kill_storm) / sizeof(kill_storm[0]));
}
