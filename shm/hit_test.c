/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a lookup that hits does to others (contract I6, I7): which words of the
 * three segments and of its key cache it changes, and, by a child that is run
 * instruction by instruction, that none of those it executes is a lock, a full
 * fence or a system call.
 */
#include "shm/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/reach_kit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_STEP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAN_STEP 0
#endif
#endif
#ifndef CAN_STEP
#if defined(__x86_64__)
#define CAN_STEP 1
#include <sys/user.h>
#else
#define CAN_STEP 0
#endif
#endif

enum {
	LIMIT_S = 60,	       /* the whole program ends by then */
	HITS = 1000,	       /* looked at for what they write */
	STEPPED = 10,	       /* run instruction by instruction */
	MOST = 100000,	       /* instructions of one of them */
	LEN = 64,	       /* bytes of an access */
	WORDS = RNIC_PAGE / 8, /* of a page */
	NKEYS = 3,	       /* ways to find a region */
};

/* One that every miss finds by its slot, by the index, by a table. */
struct keys {
	struct kit_mem m[NKEYS]; /* memory of the device */
	uint64_t addr[NKEYS];	 /* where an access begins */
};

static void publish_user(struct kit_owner *o, struct kit_mem *m)
{
	struct rnic_region r = {
		.va = (uintptr_t)m->p,
		.length = m->len,
		.mtt = rnic_mtt_root_make(0, m->leaf),
		.rights = RNIC_REMOTE_READ,
	};

	m->key = 4711;
	assert_int_equal(rnic_mpt_publish(&o->mpt, &r, true, &m->key, &m->slot),
			 0);
}

static void keys_publish(struct kit_owner *o, struct keys *k)
{
	for (int i = 0; i < NKEYS; i++) {
		k->m[i] = kit_arena(o, RNIC_PAGE);
		k->addr[i] = (uintptr_t)k->m[i].p + 100;
	}
	kit_publish(o, &k->m[0], RNIC_REMOTE_READ);
	publish_user(o, &k->m[1]);
	k->m[2].key = kit_publish_list(o, k->m, NKEYS, RNIC_REMOTE_READ);
	k->addr[2] = RNIC_PAGE + 100;
}

/* ---- a lookup ---- */

/* @n lookups of bytes @addr of @key, as an operation makes its first one. */
struct job {
	uint64_t key;	/* of either kind */
	uint64_t addr;	/* of the access */
	unsigned int n; /* times */
	bool quick;	/* the short way, with a read, or rnic_resolve() */
};

/*
 * How many of them found what they looked for. A function of its own: where it
 * begins and ends is looked for.
 */
static unsigned int __attribute__((noinline))
run(struct kit_reader *d, const struct job *j)
{
	static char buf[LEN];
	struct rnic_want w = { .key = j->key, .addr = j->addr, .len = LEN };
	struct rnic_access a = { .key = j->key, .addr = j->addr, .len = LEN };
	unsigned int found = 0;
	struct rnic_xlat x;

	a.buf = buf;
	w.rights = RNIC_REMOTE_READ;
	for (unsigned int i = 0; i < j->n; i++) {
		if (j->quick) {
			found += rnic_reach_quick(&d->c, &d->x, &a, 0);
			continue;
		}
		rnic_enter(&d->x.target);
		found += !rnic_resolve(&d->c, &d->x.target, &w, &x);
		rnic_leave(&d->x.target);
	}
	return found;
}

/* Makes what follows a hit: the translation is cached, the arena is mapped. */
static void warm(struct kit_reader *d, const struct keys *k, int i)
{
	char buf[LEN];
	struct rnic_access a = {
		.key = k->m[i].key,
		.addr = k->addr[i],
		.len = LEN,
		.buf = buf,
	};
	size_t moved;

	assert_int_equal(rnic_reach_move(&d->c, &d->x, &a, &moved), 0);
	assert_int_equal(a.path, RNIC_BY_MAP);
}

/* ---- what is written ---- */

/* The pages that a segment has: offset and words of each. */
struct image {
	uint64_t *word; /* WORDS + 1 for a page */
	size_t pages;	/* in @word */
};

/* A word that is not as it was. */
struct change {
	uint64_t was; /* before */
	uint64_t is;  /* after */
};

static void image_page(struct image *m, int fd, off_t at)
{
	size_t n = m->pages++ * (WORDS + 1);

	m->word = realloc(m->word, (n + WORDS + 1) * sizeof(*m->word));
	assert_non_null(m->word);
	m->word[n] = (uint64_t)at;
	assert_int_equal(pread(fd, &m->word[n + 1], RNIC_PAGE, at), RNIC_PAGE);
}

/* Reads the pages that are there; it makes none. */
static struct image image_of(const struct rnic_segment *s)
{
	struct image m = { 0 };
	off_t at = 0, end;

	while ((at = lseek(s->fd, at, SEEK_DATA)) >= 0) {
		end = lseek(s->fd, at, SEEK_HOLE);
		for (; at < end; at += RNIC_PAGE)
			image_page(&m, s->fd, at);
	}
	assert_true(m.pages > 0);
	return m;
}

/* How many words of @s are not as in @old, which is freed; *@c: the last. */
static size_t changes(struct image old, const struct rnic_segment *s,
		      struct change *c)
{
	struct image now = image_of(s);
	size_t n = 0;

	assert_int_equal(old.pages, now.pages);
	for (size_t i = 0; i < now.pages * (WORDS + 1); i++)
		if (old.word[i] != now.word[i]) {
			*c = (struct change){ old.word[i], now.word[i] };
			n++;
		}
	free(old.word);
	free(now.word);
	return n;
}

/*
 * Inverts the lane of @d but for its sequence: a hit that stores there what is
 * there already would change it back. Nobody else uses it.
 */
static void lane_invert(struct kit_reader *d)
{
	uint64_t *word = (uint64_t *)(void *)d->lane;
	const void *seq = &d->lane->reader[1].seq;

	for (size_t i = 0; i < sizeof(*d->lane) / sizeof(*word); i++)
		if (&word[i] != seq)
			word[i] = ~word[i];
}

/* HITS of @j change the sequence word of @d, in two of three segments none. */
static void only_the_sequence(struct kit_owner *o, struct kit_reader *d,
			      const struct job *j)
{
	struct image tables = image_of(&o->dev.tables), mailbox;
	struct image arena = image_of(&o->dev.arena);
	struct change c = { 0 };
	uint64_t seq = d->x.target.now;

	lane_invert(d);
	mailbox = image_of(&o->dev.mailbox);
	assert_int_equal(run(d, j), HITS);
	assert_int_equal(changes(tables, &o->dev.tables, &c), 0);
	assert_int_equal(changes(arena, &o->dev.arena, &c), 0);
	assert_int_equal(changes(mailbox, &o->dev.mailbox, &c), 1);
	lane_invert(d);
	assert_int_equal(c.was, seq);
	assert_int_equal(c.is, seq + 2 * HITS);
	assert_int_equal(rnic_load64_relaxed(&d->lane->reader[1].seq), c.is);
}

/* And the counter of hits in the key cache, whose entries are for reading. */
static void only_the_counter(struct kit_owner *o, struct kit_reader *d,
			     const struct keys *k, int i, bool quick)
{
	const struct job j = { k->m[i].key, k->addr[i], HITS, quick };
	size_t bytes = rnic_keycache_bytes(&d->cfg);
	char *memo = (char *)d->memo;
	struct rnic_cache *was = malloc(bytes);
	uint64_t hits = rnic_load64_relaxed(&d->memo->hits);

	assert_non_null(was);
	memcpy(was, memo, bytes);
	assert_int_equal(
		mprotect(memo + RNIC_PAGE, bytes - RNIC_PAGE, PROT_READ), 0);
	only_the_sequence(o, d, &j);
	assert_int_equal(mprotect(memo + RNIC_PAGE, bytes - RNIC_PAGE,
				  PROT_READ | PROT_WRITE),
			 0);
	assert_int_equal(rnic_load64_relaxed(&d->memo->hits), hits + HITS);
	rnic_store64_relaxed(&was->hits, hits + HITS);
	assert_memory_equal(was, memo, bytes);
	free(was);
}

/*
 * What remembers use is private: of all that others can read, hits change the
 * sequence and the counter of hits of their own context.
 */
static void contract_I7_a_hit_writes_no_shared_line(void **state)
{
	struct kit_owner o;
	struct kit_reader d, other;
	struct keys k;

	(void)state;
	kit_owner_open(&o, true);
	keys_publish(&o, &k);
	assert_int_equal(kit_reader_open(&other, &o.addr), 0);
	warm(&other, &k, 0);
	for (int p = 0; p < RNIC_KEYCACHE_NONE; p++) {
		const struct rnic_keycache_cfg cfg = {
			.policy = (enum rnic_keycache_policy)p,
		};

		assert_int_equal(kit_reader_open_cfg(&d, &o.addr, &cfg), 0);
		for (int i = 0; i < NKEYS; i++)
			warm(&d, &k, i);
		for (int i = 0; i < 2 * NKEYS; i++)
			only_the_counter(&o, &d, &k, i / 2, i % 2);
		kit_reader_close(&d);
	}
	kit_reader_close(&other);
	kit_owner_close(&o);
}

/* ---- what is executed ---- */

/* What a child has executed in run(). */
struct trace {
	unsigned long steps;  /* instructions */
	unsigned long locked; /* with a lock: read-modify-write, or a fence */
	unsigned long fences; /* mfence */
	unsigned long calls;  /* of the kernel */
};

#if CAN_STEP

/* Notes the instruction at @i: prefixes, the opcode, its first operand. */
static void note(struct trace *t, const uint8_t *i)
{
	bool lock = false;

	for (; strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", *i) && *i;
	     i++)
		lock |= *i == 0xf0;
	if (*i >> 4 == 4)
		i++;
	/* exchanges with memory lock by themselves */
	t->locked += lock || ((*i == 0x86 || *i == 0x87) && i[1] >> 6 != 3);
	t->fences += i[0] == 0x0f && i[1] == 0xae && i[2] >> 3 == 0x1e;
	t->calls += i[0] == 0x0f && (i[1] == 0x05 || i[1] == 0x34);
	t->steps++;
}

static void look_at(pid_t pid, uint64_t at, struct trace *t)
{
	uint64_t code[2];

	/* the last one of a mapping may end there */
	for (int i = 0; i < 2; i++)
		code[i] = (uint64_t)ptrace(PTRACE_PEEKTEXT, pid,
					   (void *)(uintptr_t)(at + 8 * i), 0);
	note(t, (const uint8_t *)code);
}

/* One instruction of @pid, and where it is then. */
static struct user_regs_struct step(pid_t pid)
{
	struct user_regs_struct r;
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
	return r;
}

/* From its stop, through run() of @n lookups, to its end. */
static void follow(pid_t pid, unsigned int n, struct trace *t)
{
	struct user_regs_struct r;
	uint64_t back, stack;
	int status;

	do
		r = step(pid);
	while (r.rip != (uintptr_t)run);
	stack = r.rsp;
	back = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)stack,
				0);
	for (; r.rip != back || r.rsp <= stack; r = step(pid)) {
		look_at(pid, r.rip, t);
		assert_true(t->steps < (unsigned long)MOST * n);
	}
	assert_int_equal(ptrace(PTRACE_CONT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Skips the test where a child must not be traced. */
static void must_step(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(!!ptrace(PTRACE_TRACEME, 0, 0, 0));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status) {
		print_message("no child can be traced here\n");
		skip();
	}
}

/*
 * What a new reader of @o executes in @j, with @k in its cache but for the
 * last, in a child of this process.
 */
static struct trace trace(struct kit_owner *o, const struct keys *k,
			  const struct job *j)
{
	struct trace t = { 0 };
	struct kit_reader d;
	pid_t pid = fork();
	int status;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) ||
		    kit_reader_open(&d, &o->addr))
			_exit(1);
		for (int i = 0; i + 1 < NKEYS; i++)
			warm(&d, k, i);
		/* the C library binds a function at its first call */
		run(&d, &(struct job){ k->m[0].key, k->addr[0], 1, true });
		raise(SIGSTOP);
		_exit(run(&d, j) != j->n);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	follow(pid, j->n, &t);
	print_message("%u lookups: %lu instructions, %lu locked, %lu fences, "
		      "%lu system calls\n",
		      j->n, t.steps, t.locked, t.fences, t.calls);
	return t;
}

#else

static void must_step(void)
{
	print_message("not for this build\n");
	skip();
}

static struct trace trace(struct kit_owner *o, const struct keys *k,
			  const struct job *j)
{
	(void)o;
	(void)k;
	(void)j;
	return (struct trace){ 0 };
}

#endif

static void contract_I6_a_hit_has_no_lock_and_no_fence(void **state)
{
	struct kit_owner o;
	struct keys k;

	(void)state;
	must_step();
	kit_owner_open(&o, true);
	keys_publish(&o, &k);
	for (int i = 0; i < 4; i++) {
		const struct job j = { k.m[i / 2].key, k.addr[i / 2], STEPPED,
				       i % 2 };
		struct trace t = trace(&o, &k, &j);

		assert_true(t.steps >= 10 * STEPPED);
		assert_int_equal(t.locked, 0);
		assert_int_equal(t.fences, 0);
		assert_int_equal(t.calls, 0);
	}
	kit_owner_close(&o);
}

/* That way it would be seen: a miss has a fence, so have readers without. */
static void fences_of_others_are_seen(void **state)
{
	struct kit_owner o;
	struct trace t;
	struct keys k;
	struct job j;

	(void)state;
	must_step();
	kit_owner_open(&o, true);
	keys_publish(&o, &k);
	j = (struct job){ k.m[2].key, k.addr[2], 1, false };
	t = trace(&o, &k, &j);
	assert_true(t.locked + t.fences >= 1);
	kit_owner_close(&o);
	kit_owner_open(&o, false);
	keys_publish(&o, &k);
	j = (struct job){ k.m[0].key, k.addr[0], STEPPED, true };
	t = trace(&o, &k, &j);
	assert_int_equal(t.locked + t.fences, STEPPED);
	kit_owner_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contract_I7_a_hit_writes_no_shared_line),
		cmocka_unit_test(contract_I6_a_hit_has_no_lock_and_no_fence),
		cmocka_unit_test(fences_of_others_are_seen),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
