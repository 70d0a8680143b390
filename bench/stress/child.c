/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Children of the actor, the end of a partner, and a second domain.
 */
#include "bench/stress/inside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/stress/fi.h"
#include "bench/stress/xfer.h"

enum {
	CHILD_S = 20, /* a child of a scenario lives at most */
	KILL_S = 10,  /* until the driver has killed a process */
};

static void child_main(pid_t parent, int (*run)(void *arg), void *arg)
{
	signal(SIGALRM, SIG_DFL);
	alarm(CHILD_S * 4);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(99);
	_exit(run(arg));
}

pid_t stress_fork(struct stress *s, int (*run)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		child_main(parent, run, arg);
	if (pid < 0)
		stress_wrong(s, "fork: %s", strerror(errno));
	else
		stress_say(s, "fork: child %d", pid);
	return pid;
}

static int status_check(struct stress *s, pid_t pid, int status)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFEXITED(status))
		return stress_wrong(s, "child %d exited with %d", pid,
				    WEXITSTATUS(status));
	return stress_wrong(s, "child %d died of signal %d (%s)", pid,
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
}

int stress_reap(struct stress *s, pid_t pid)
{
	uint64_t deadline = stress_deadline(s, CHILD_S);
	unsigned int polls = 0;
	int status;

	if (pid <= 0)
		return STRESS_FAILED;
	while (!waitpid(pid, &status, WNOHANG)) {
		stress_relax(s, &polls);
		if (!stress_late(deadline))
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return stress_wrong(s, "child %d did not end in %d s", pid,
				    CHILD_S);
	}
	return status_check(s, pid, status);
}

/* ---- a partner's end ---- */

static int killed_wait(struct stress *s)
{
	uint64_t deadline = stress_deadline(s, KILL_S);
	struct stress_order order;
	unsigned int polls = 0;
	int ret;

	while (!(ret = stress_wire_get(s->fd, &order, sizeof(order)))) {
		stress_relax(s, &polls);
		if (stress_late(deadline))
			return stress_wrong(s, "nobody was killed");
	}
	return ret < 0 ? stress_wrong(s, "the driver has gone") : 0;
}

int stress_kill(struct stress *s, int rank)
{
	struct stress_report r = { .told = STRESS_TOLD_KILL, .value = rank };

	stress_say(s, "kill process %d", rank);
	if (stress_wire_put(s->fd, &r, sizeof(r)))
		return stress_wrong(s, "the driver has gone");
	s->partner[rank].fd = -1;
	return killed_wait(s);
}

/* ---- the second domain ---- */

static int all_told(struct stress *s, enum stress_ask ask)
{
	struct stress_question q = { .ask = ask };

	memcpy(q.name, s->other.name, sizeof(q.name));
	for (int rank = 0; rank < s->size; rank++)
		if (s->partner[rank].fd >= 0 && stress_ask(s, rank, &q, NULL))
			return STRESS_FAILED;
	return 0;
}

int stress_second_open(struct stress *s)
{
	int ret = stress_side_open(s, &s->other);
	char why[STRESS_TEXT];

	if (ret) {
		snprintf(why, sizeof(why), "%s", s->text);
		return stress_skip(s, "a second domain: %.300s", why);
	}
	stress_say(s, "second domain opened");
	for (int rank = 0; rank < s->size; rank++) {
		if (s->partner[rank].fd < 0)
			continue;
		ret = stress_side_meet(&s->other, s->partner[rank].hello.name,
				       &s->other.peer[rank]);
		if (ret)
			return stress_wrong(s, "fi_av_insert: %s",
					    stress_code(ret));
	}
	return all_told(s, STRESS_ASK_MEET);
}

int stress_second_close(struct stress *s)
{
	char why[STRESS_TEXT];
	int ret;

	if (!s->other.ep)
		return 0;
	stress_say(s, "second domain closes");
	ret = all_told(s, STRESS_ASK_PART);
	snprintf(why, sizeof(why), "%s", s->text);
	if (!stress_side_close(s, &s->other) || ret)
		return ret;
	snprintf(why, sizeof(why), "%s", s->text);
	return stress_wrong(s, "second domain: %.300s", why);
}
