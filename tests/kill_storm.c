/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Processes exchange messages of all sizes while some of them are killed at
 * random instants, round after round (contract P4, L1): a storm of
 * kill_steps.h.
 *
 * Everything on the way from one process to another in one round is a stream:
 * the n-th message of a stream has a length and a pattern that both sides can
 * compute.
 *
 * 50 rounds; 1000 with SHRIMP_LONG=1; 5 with SHRIMP_QUICK=1 and in sanitizer
 * builds.
 *
 * Limit: 300 s
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "env_probe.h"
#include "harness.h"
#include "kill_steps.h"

enum {
	WINDOW = 2,	   /* sends under way to a peer */
	DEPTH = 3,	   /* receives posted for a peer */
	MSG_MAX = 1 << 20, /* longest message */
	EARLY = 20,	   /* messages per stream while victims live */
	TOTAL = 40,	   /* messages per stream in a round */
	ROUND_MS = 20000,  /* a round takes at most */
	FD_SLACK = 8,	   /* descriptors that may come and go */
	MAP_SLACK = 24,	   /* mappings of segments likewise */
	GAP_MAX = 70,	   /* messages a dead peer can take along */
	LANE_KIB = 16	   /* segment of a lane */
};

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
	struct th_stack *s;	      /* its endpoint */
	const struct ks_storm *storm; /* how many are there */
	int rank;		      /* its rank */
	unsigned long no;	      /* number of the round */
	unsigned int limit;	      /* messages per immortal stream, now */
	unsigned int any_done;	      /* receives from any source that ended */
	struct slot any;	      /* receive from any source */
	int nch;		      /* channels in use */
	struct chan ch[KS_RANKS];     /* by peer */
};

/* ---- streams ------------------------------------------------------------ */

static uint64_t stream_id(unsigned long round, int from, int to)
{
	return ((uint64_t)round * KS_RANKS + (uint64_t)from) * KS_RANKS +
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

	for (i = 0; i < KS_RANKS; i++)
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

	if (ch->mortal && atomic_load(&ks_shared->killed_ns[ch->peer]))
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
	size_t len = r->s->addrlen;
	int i, n = r->storm->survivors + r->storm->victims;

	r->nch = 0;
	r->limit = EARLY;
	r->any_done = 0;
	for (i = 0; i < n; i++) {
		if (!ks_is_peer(r->s, all, i, r->rank))
			continue;
		chan_init(&r->ch[r->nch++], r, i,
			  th_insert(r->s, all + (size_t)i * len));
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
			ks_check_notice(r->storm);
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

static void forget_victims(struct round *r)
{
	int i;

	for (i = 0; i < r->nch; i++)
		th_eq(fi_av_remove(r->s->av, &r->ch[i].addr, 1, 0), 0);
}

static void survivor(struct th_self *self, const struct ks_storm *storm)
{
	static struct round r;
	unsigned long warm = storm->rounds < 10 ? 2 : 5;
	struct footprint base = { 0 };
	char all[KS_RANKS * TH_MAX_ADDR];
	struct th_stack_opts o = { .caps = FI_TAGGED | FI_DIRECTED_RECV };
	struct th_stack s;
	fi_addr_t next;

	th_stack_open(&s, &o);
	ks_addresses(self, s.addr, s.addrlen, all);
	next = th_insert(&s, all + s.addrlen * (size_t)((self->rank + 1) %
							storm->survivors));
	r = (struct round){ .s = &s, .storm = storm, .rank = self->rank };
	for (r.no = 1; r.no <= storm->rounds; r.no++) {
		ks_addresses(self, s.addr, s.addrlen, all);
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
static void victim(int fd, const struct ks_storm *storm, int rank,
		   unsigned long no)
{
	static struct round r;
	struct th_stack_opts o = { .caps = FI_TAGGED | FI_DIRECTED_RECV };
	char all[KS_RANKS * TH_MAX_ADDR];
	struct th_stack s;

	th_stack_open(&s, &o);
	ks_victim_meet(fd, storm, &s, all);
	r = (struct round){ .s = &s, .storm = storm, .rank = rank, .no = no };
	round_init(&r, all);
	for (;;)
		turn(&r);
}

/* ---- tests ------------------------------------------------------------------------- */

static void storm(int survivors, int victims, unsigned long rounds)
{
	struct ks_storm storm = { .survivors = survivors,
				  .victims = victims,
				  .rounds = rounds,
				  .life_bits = 17,
				  .survive = survivor,
				  .victim = victim };

	ks_storm_run(&storm);
}

static void contract_L1_storm(void **state)
{
	(void)state;
	storm(3, 2, ks_storm_rounds());
}

/* One survivor, one victim after the other: its lane serves them all. */
static void contract_L1_lane_reused(void **state)
{
	(void)state;
	storm(1, 1, 20);
}

static const struct CMUnitTest kill_storm[] = {
	cmocka_unit_test(contract_L1_lane_reused),
	cmocka_unit_test(contract_L1_storm),
};

int main(int argc, char **argv)
{
	if (th_is_shrimp())
		probe_isolate(64);
	ks_init();
	return th_main(argc, argv, "kill_storm", kill_storm,
		       sizeof(kill_storm) / sizeof(kill_storm[0]));
}
