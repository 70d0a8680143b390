/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The processes of a run.
 */
#include "bench/stress/group.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"
#include "bench/stress/peer.h"
#include "bench/stress/result.h"

enum {
	START_S = 60, /* until all are ready */
	STEP_S = 50,  /* for a step: more than an answer takes */
	STOP_S = 30,  /* for an orderly end */
	SLOW = 4,     /* times as long in slow builds */
};

/* ---- starting ---- */

/** Sockets between all; [i][j] is that of i to j, [i][i] that of the driver. */
struct mesh {
	int fd[STRESS_RANKS][STRESS_RANKS];
	int driver[STRESS_RANKS];
};

static int pair_open(int *a, int *b)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		return -errno;
	*a = fd[0];
	*b = fd[1];
	return 0;
}

static int mesh_open(struct mesh *m, int n)
{
	int ret = 0;

	memset(m, -1, sizeof(*m));
	for (int i = 0; i < n && !ret; i++) {
		ret = pair_open(&m->fd[i][i], &m->driver[i]);
		for (int j = 0; j < i && !ret; j++)
			ret = pair_open(&m->fd[i][j], &m->fd[j][i]);
	}
	return ret;
}

/* Closes all but what process @rank needs; -1: the driver. */
static void mesh_close(struct mesh *m, int rank)
{
	for (int i = 0; i < STRESS_RANKS; i++) {
		for (int j = 0; j < STRESS_RANKS; j++)
			if (i != rank && m->fd[i][j] >= 0)
				close(m->fd[i][j]);
		if (rank >= 0 && m->driver[i] >= 0)
			close(m->driver[i]);
	}
}

static void env_set(const struct stress_scenario *sc)
{
	for (const char *const *e = sc ? sc->env : NULL; e && *e; e++) {
		char name[128];
		const char *is = strchr(*e, '=');

		snprintf(name, sizeof(name), "%.*s", (int)(is - *e), *e);
		setenv(name, is + 1, 1);
	}
}

static int child_run(struct stress_group *g, const struct stress_spec *spec,
		     struct mesh *m, int rank)
{
	const struct stress_scenario *env =
		spec->env < 0 ? NULL : stress_scenarios[spec->env];
	struct stress *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return 1;
	mesh_close(m, rank);
	env_set(env);
	s->o = g->o;
	s->log = g->proc[rank].log;
	s->rank = rank;
	s->size = g->n;
	s->fd = m->fd[rank][rank];
	s->trace = spec->trace;
	s->offer = spec->offer;
	for (int i = 0; i < STRESS_RANKS; i++)
		s->partner[i].fd = i == rank ? -1 : m->fd[rank][i];
	ret = stress_peer_run(s, env);
	free(s);
	return ret;
}

static int proc_start(struct stress_group *g, const struct stress_spec *spec,
		      struct mesh *m, int rank)
{
	struct stress_proc *p = &g->proc[rank];
	pid_t parent = getpid();

	p->log = mmap(NULL, sizeof(*p->log), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->log == MAP_FAILED) {
		p->log = NULL;
		return -errno;
	}
	fflush(NULL);
	p->pid = fork();
	if (p->pid < 0) {
		p->pid = 0;
		return -errno;
	}
	if (!p->pid) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		exit(child_run(g, spec, m, rank));
	}
	p->fd = m->driver[rank];
	m->driver[rank] = -1;
	return 0;
}

/* ---- what goes wrong ---- */

static enum stress_end wrong(struct stress_report *r, const char *text)
{
	r->told = STRESS_TOLD_DONE;
	r->status = STRESS_FAILED;
	snprintf(r->text, sizeof(r->text), "%s", text);
	return STRESS_END_WRONG;
}

/* Reaps @rank, which has closed its socket, and says how it ended. */
static enum stress_end died(struct stress_group *g, int rank,
			    struct stress_report *r)
{
	struct stress_proc *p = &g->proc[rank];
	char text[STRESS_TEXT];
	int status = 0;

	for (int i = 0; i < 200 && !waitpid(p->pid, &status, WNOHANG); i++)
		usleep(10000);
	if (waitpid(p->pid, &status, WNOHANG) >= 0) { /* closed, and lives */
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &status, 0);
	}
	p->pid = 0;
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text),
			 "process %d died of signal %d (%s)", rank,
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "process %d exited with %d", rank,
			 WEXITSTATUS(status));
	return wrong(r, text);
}

/* Where a thread of a process sleeps in the kernel. */
static void waits_in(pid_t pid, char *text, size_t room)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	f = fopen(path, "re");
	if (!f || !fgets(text, (int)room, f))
		snprintf(text, room, "?");
	if (f)
		fclose(f);
}

static enum stress_end stuck(struct stress_group *g, int rank, int seconds,
			     struct stress_report *r)
{
	char text[STRESS_TEXT], where[64];

	waits_in(g->proc[rank].pid, where, sizeof(where));
	snprintf(text, sizeof(text),
		 "process %d does not answer for %d s (it is in %s)", rank,
		 seconds, where);
	return wrong(r, text);
}

/* ---- waiting ---- */

static void order_put(struct stress_group *g, int rank, uint32_t call)
{
	struct stress_order o = { .call = call };

	/* if it has gone, the wait for its answer tells */
	(void)stress_wire_put(g->proc[rank].fd, &o, sizeof(o));
}

static void proc_kill(struct stress_proc *p)
{
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	p->pid = 0;
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* Process @of wants another one dead. */
static void kill_for(struct stress_group *g, int of, int64_t rank)
{
	if (rank < 0 || rank >= g->n || rank == of)
		return;
	proc_kill(&g->proc[rank]);
	g->proc[rank].killed = true;
	order_put(g, of, STRESS_CALL_KILLED);
}

/* Another one than @rank that has died; -1: none. */
static int other_dead(const struct stress_group *g, int rank)
{
	for (int i = 0; i < g->n; i++) {
		struct pollfd p = { .fd = g->proc[i].fd, .events = POLLIN };

		if (i == rank || p.fd < 0 || poll(&p, 1, 0) <= 0)
			continue;
		if (p.revents & POLLHUP && !(p.revents & POLLIN))
			return i;
	}
	return -1;
}

static bool report_wait(const struct stress_group *g, int rank)
{
	struct pollfd p[STRESS_RANKS];

	for (int i = 0; i < g->n; i++)
		p[i] = (struct pollfd){ .fd = g->proc[i].fd,
					.events = i == rank ? POLLIN : 0 };
	return poll(p, (nfds_t)g->n, 1000) >= 0;
}

/* Waits for a report of @rank that is not a wish. */
static enum stress_end report_get(struct stress_group *g, int rank, int seconds,
				  struct stress_report *r)
{
	int limit = seconds * (g->o->slow ? SLOW : 1);
	uint64_t until = bench_clock_ns() + (uint64_t)limit * 1000000000;
	int ret, dead;

	for (;;) {
		ret = stress_wire_get(g->proc[rank].fd, r, sizeof(*r));
		if (ret == 1 && r->told == STRESS_TOLD_KILL) {
			kill_for(g, rank, r->value);
			continue;
		}
		if (ret)
			break;
		dead = other_dead(g, rank);
		if (dead >= 0)
			return died(g, dead, r);
		if (bench_clock_ns() > until)
			return stuck(g, rank, limit, r);
		report_wait(g, rank);
		stress_result_tick();
	}
	if (ret < 0)
		return died(g, rank, r);
	r->text[STRESS_TEXT - 1] = 0;
	if (r->told == STRESS_TOLD_UNUSABLE)
		return STRESS_END_UNUSABLE;
	if (!r->status)
		return STRESS_END_FINE;
	return r->status == STRESS_SKIP ? STRESS_END_SKIPPED : STRESS_END_WRONG;
}

static enum stress_end all_ready(struct stress_group *g,
				 struct stress_report *r)
{
	enum stress_end end = STRESS_END_FINE;

	for (int i = 0; i < g->n && end == STRESS_END_FINE; i++) {
		end = report_get(g, i, START_S, r);
		if (!i && end == STRESS_END_FINE)
			snprintf(g->provider, sizeof(g->provider), "%s",
				 r->text);
	}
	return end;
}

/* What is in the tables of all, now that only windows are registered. */
static void tables_look(struct stress_group *g)
{
	for (int i = 0; i < g->n; i++) {
		struct stress_proc *p = &g->proc[i];

		p->looked = stress_inspect(p->pid, &p->tables);
	}
}

enum stress_end stress_group_start(struct stress_group *g,
				   const struct stress_options *o,
				   const struct stress_spec *spec,
				   struct stress_report *r)
{
	enum stress_end end;
	struct mesh m;
	int ret;

	*g = (struct stress_group){ .o = o,
				    .n = (int)o->processes,
				    .actor = -1 };
	for (int i = 0; i < STRESS_RANKS; i++)
		g->proc[i].fd = -1;
	ret = mesh_open(&m, g->n);
	for (int i = 0; !ret && i < g->n; i++)
		ret = proc_start(g, spec, &m, i);
	mesh_close(&m, -1);
	if (ret)
		end = wrong(r, strerror(-ret));
	else
		end = all_ready(g, r);
	if (end != STRESS_END_FINE)
		stress_group_kill(g);
	else if (spec->look)
		tables_look(g);
	return end;
}

/* ---- the steps ---- */

enum stress_end stress_group_close(struct stress_group *g,
				   struct stress_report *r)
{
	int actor = g->actor;

	g->actor = -1;
	if (actor < 0)
		return STRESS_END_FINE;
	order_put(g, actor, STRESS_CALL_CLOSE);
	return report_get(g, actor, STEP_S, r);
}

enum stress_end stress_group_step(struct stress_group *g, int rank,
				  const struct stress_order *order,
				  struct stress_report *r)
{
	if (g->actor >= 0 && g->act != order->act) {
		enum stress_end end = stress_group_close(g, r);

		if (end == STRESS_END_WRONG)
			return end;
	}
	g->actor = rank;
	g->act = order->act;
	/* if it has gone, the wait for its answer tells */
	(void)stress_wire_put(g->proc[rank].fd, order, sizeof(*order));
	return report_get(g, rank, STEP_S, r);
}

/* ---- the end ---- */

void stress_group_kill(struct stress_group *g)
{
	for (int i = 0; i < g->n; i++) {
		proc_kill(&g->proc[i]);
		if (g->proc[i].log)
			munmap(g->proc[i].log, sizeof(*g->proc[i].log));
		g->proc[i].log = NULL;
	}
	g->n = 0;
}

/* Waits for the exit of @rank, which has said that it ends. */
static enum stress_end exit_wait(struct stress_group *g, int rank,
				 struct stress_report *r)
{
	struct stress_proc *p = &g->proc[rank];
	int ms = STOP_S * 1000 * (g->o->slow ? SLOW : 1);
	char text[STRESS_TEXT];
	int status = 0;

	for (int i = 0; i < ms; i++) {
		if (waitpid(p->pid, &status, WNOHANG)) {
			p->pid = 0;
			break;
		}
		usleep(1000);
	}
	if (p->pid)
		return stuck(g, rank, STOP_S, r);
	proc_kill(p); /* closes the socket */
	if (!status)
		return STRESS_END_FINE;
	snprintf(text, sizeof(text), "process %d: exit status %#x at its end",
		 rank, (unsigned int)status);
	return wrong(r, text);
}

/* After a flush process @rank has in its tables what it had at the start. */
static enum stress_end tables_check(struct stress_group *g, int rank,
				    struct stress_report *r)
{
	struct stress_proc *p = &g->proc[rank];
	enum stress_end end = STRESS_END_FINE;
	char text[STRESS_TEXT];
	struct stress_tables now;

	if (p->fd < 0 || !p->looked)
		return end;
	order_put(g, rank, STRESS_CALL_FLUSH);
	end = report_get(g, rank, STEP_S, r);
	if (end == STRESS_END_WRONG || !stress_inspect(p->pid, &now))
		return end;
	if (now.live <= p->tables.live && now.pages <= p->tables.pages)
		return STRESS_END_FINE;
	snprintf(text, sizeof(text),
		 "process %d: %ld regions (%ld at the start) and %ld table "
		 "pages (%ld) are left",
		 rank, now.live, p->tables.live, now.pages, p->tables.pages);
	return wrong(r, text);
}

enum stress_end stress_group_stop(struct stress_group *g,
				  struct stress_report *r)
{
	enum stress_end end = stress_group_close(g, r);

	for (int i = 0; i < g->n && end != STRESS_END_WRONG; i++)
		end = tables_check(g, i, r);
	for (int i = 0; i < g->n && end != STRESS_END_WRONG; i++)
		if (g->proc[i].fd >= 0)
			order_put(g, i, STRESS_CALL_END);
	for (int i = 0; i < g->n && end != STRESS_END_WRONG; i++) {
		if (g->proc[i].fd < 0)
			continue;
		end = report_get(g, i, STOP_S, r);
		if (end != STRESS_END_WRONG)
			end = exit_wait(g, i, r);
	}
	return end == STRESS_END_WRONG ? end : STRESS_END_FINE;
}

/* ---- the log ---- */

static void log_tell(const struct stress_log *log, int rank, FILE *to,
		     uint32_t number, const char *prefix, unsigned int most)
{
	uint64_t end = log->lines;
	uint64_t from = end > STRESS_LINES ? end - STRESS_LINES : 0;

	if (end - from > most)
		from = end - most;
	for (uint64_t i = from; i < end; i++) {
		const char *line = log->line[i % STRESS_LINES];
		unsigned long of = strtoul(line, NULL, 10);

		if (number && of != number && strncmp(line, "0 ", 2))
			continue;
		fprintf(to, "%sprocess %d: %.*s\n", prefix, rank,
			STRESS_LINE - 1, line);
	}
}

void stress_group_tell(const struct stress_group *g, FILE *to, uint32_t number,
		       const char *prefix, unsigned int most)
{
	for (int i = 0; i < g->n; i++)
		if (g->proc[i].log)
			log_tell(g->proc[i].log, i, to, number, prefix, most);
}
