/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The other processes of a benchmark.
 */
#include "bench/sb_proc.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/pin.h"

enum { IDLE_PART = 10 }; /* one of so many of a second is looked at */

static cpu_set_t given;	   /* to the program; empty: not known */
static bool child_process; /* this one has been started by another */

void sb_cpus_save(void)
{
	if (sched_getaffinity(0, sizeof(given), &given))
		CPU_ZERO(&given);
}

void sb_cpus_all(void)
{
	if (CPU_COUNT(&given))
		sched_setaffinity(0, sizeof(given), &given);
}

unsigned int sb_cpus_given(void)
{
	return (unsigned int)CPU_COUNT(&given);
}

/* Time that core @cpu has been idle for, in ticks of /proc/stat. */
static bool idle_ticks(int cpu, unsigned long long *ticks)
{
	FILE *f = fopen("/proc/stat", "re");
	char line[256];
	int which;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "cpu%d %*u %*u %*u %llu", &which, ticks) ==
				2 &&
			which == cpu;
	if (f)
		fclose(f);
	return found;
}

unsigned int sb_cpus_idle(void)
{
	static unsigned long long before[CPU_SETSIZE];
	unsigned long long now, most;
	unsigned int n = 0;

	most = (unsigned long long)sysconf(_SC_CLK_TCK) / IDLE_PART;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &given) && !idle_ticks(i, &before[i]))
			return 0;
	usleep(1000000 / IDLE_PART);
	for (int i = 0; i < CPU_SETSIZE; i++)
		/* what it has to do beside takes a fifth of the time at most */
		if (CPU_ISSET(i, &given) && idle_ticks(i, &now) &&
		    now - before[i] >= most - most / 5)
			n++;
	return n;
}

int sb_proc_put(int fd, const void *data, size_t len)
{
	ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

	return n == (ssize_t)len ? 0 : -EPIPE;
}

int sb_proc_get(int fd, void *data, size_t len)
{
	if (child_process)
		alarm(SB_PROC_LIMIT_S);
	return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len ? 0 : -EPIPE;
}

static int child_main(int (*run)(int fd, void *arg), int fd, void *arg, int cpu)
{
	child_process = true;
	alarm(SB_PROC_LIMIT_S);
	if (cpu < 0)
		sb_cpus_all();
	else
		bench_pin_self(cpu);
	return run(fd, arg) ? 1 : 0;
}

int sb_proc_start(struct sb_proc *p, int (*run)(int fd, void *arg), void *arg,
		  int cpu)
{
	pid_t parent = getpid();
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -errno;
	fflush(NULL);
	p->pid = fork();
	if (!p->pid) {
		close(fd[0]);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		_exit(child_main(run, fd[1], arg, cpu));
	}
	close(fd[1]);
	p->fd = fd[0];
	if (p->pid > 0)
		return 0;
	p->pid = 0;
	close(fd[0]);
	return -EAGAIN;
}

/* Waits for its end without being held up for ever. */
static bool reap(pid_t pid, int *status, unsigned int ms)
{
	for (unsigned int i = 0; i <= ms; i++) {
		if (waitpid(pid, status, WNOHANG))
			return true;
		usleep(1000);
	}
	return false;
}

int sb_proc_end(struct sb_proc *p)
{
	int status = 1;

	if (!p->pid)
		return 0;
	/* not close(): other children have copies of the descriptor */
	shutdown(p->fd, SHUT_RDWR);
	if (!reap(p->pid, &status, SB_PROC_END_S * 1000)) {
		sb_proc_kill(p);
		return -ECHILD;
	}
	close(p->fd);
	p->pid = 0;
	return status ? -ECHILD : 0;
}

void sb_proc_kill(struct sb_proc *p)
{
	if (!p->pid)
		return;
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(p->fd);
	p->pid = 0;
}
