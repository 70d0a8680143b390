/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * shrimp-inspect: a look at the shrimp devices of live processes.
 *
 * It reads their memory files and never writes, and holds them open only
 * while it reads: between two looks of --watch there is nothing of the
 * process left in this one but a pidfd.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/log.h"
#include "tools/inspect_find.h"
#include "tools/inspect_json.h"
#include "tools/inspect_note.h"
#include "tools/inspect_options.h"
#include "tools/inspect_print.h"

/* Exit statuses. */
enum { OK = 0, NOTHING = 1, REFUSED = 2 };

/* The device's own messages are for its users; notes say it here. */
static void no_log(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int complain(pid_t pid, int err)
{
	if (pid)
		fprintf(stderr, "shrimp-inspect: process %d: %s\n", pid,
			err == -EACCES || err == -EPERM
				? "does not let us look at its descriptors; "
				  "its user may, and root"
				: strerror(-err));
	else
		fprintf(stderr, "shrimp-inspect: /proc: %s\n", strerror(-err));
	return err == -ESRCH ? NOTHING : REFUSED;
}

static int say_nothing(pid_t pid)
{
	if (pid)
		fprintf(stderr,
			"shrimp-inspect: process %d has no shrimp device\n",
			pid);
	else
		fputs("shrimp-inspect: no process of this user has a shrimp "
		      "device\n",
		      stderr);
	return NOTHING;
}

/* Reads what @o asks for into *@l. Returns a status; what it is was said. */
static int look(const struct insp_options *o, struct insp_list *l)
{
	struct insp_process *p;
	int ret;

	*l = (struct insp_list){ .n = 0 };
	if (!o->pid) {
		ret = insp_list_read(&o->want, l);
		if (ret)
			return complain(0, ret);
		return l->n ? OK : say_nothing(0);
	}
	p = l->process = insp_alloc(1, sizeof(*l->process));
	l->n = 1;
	ret = insp_process_read(o->pid, &o->want, p);
	if (ret)
		return complain(o->pid, ret);
	return p->ndevices || p->notes.n ? OK : say_nothing(o->pid);
}

static void show(FILE *f, const struct insp_options *o,
		 const struct insp_list *l, const struct insp_before *b)
{
	if (o->pid && o->json)
		insp_json_process(f, l->process, b);
	else if (o->pid)
		insp_print_process(f, l->process, &o->want, b);
	else if (o->json)
		insp_json_list(f, l, b);
	else
		insp_print_list(f, l, b);
}

/* @status, if all that was printed is where it belongs. */
static int written(int status)
{
	if (!fflush(stdout))
		return status;
	perror("shrimp-inspect: cannot write to standard output");
	return REFUSED;
}

static int once(const struct insp_options *o)
{
	struct insp_before none = { .list = NULL };
	struct insp_list l;
	int status = look(o, &l);

	if (status == OK)
		show(stdout, o, &l, &none);
	insp_list_free(&l);
	return written(status);
}

/* ---- again and again ---- */

/* What ends a watch: a signal, or the process. */
static int open_ends(pid_t pid, struct pollfd ends[2])
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ends[0] = (struct pollfd){ .events = POLLIN };
	ends[0].fd = signalfd(-1, &set, SFD_CLOEXEC);
	ends[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (ends[0].fd < 0)
		return -errno;
	if (pid)
		ends[1].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* kernels before 5.3: the next look will find it gone */
	return pid && ends[1].fd < 0 && errno != ENOSYS ? -errno : 0;
}

/* Writes a look at once, so that a screen does not flicker. */
static bool draw(const struct insp_options *o, const struct insp_list *l,
		 const struct insp_before *b)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return false;
	if (!o->json && isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", f);
	show(f, o, l, b);
	if (!o->json)
		fputc('\n', f);
	fclose(f);
	fwrite(text, 1, len, stdout);
	free(text);
	return written(OK) == OK;
}

/* One look of a watch, after that of @b. Returns a status. */
static int watch_look(const struct insp_options *o, struct insp_list *l,
		      struct insp_before *b, double *at)
{
	double was = *at;
	int status;

	*at = now();
	b->seconds = *at - was;
	status = look(o, l);
	/* a list may be empty for a while */
	if (status != OK && (o->pid || status != NOTHING))
		return status;
	return draw(o, l, b) ? OK : REFUSED;
}

static int watch(const struct insp_options *o)
{
	struct insp_list l[2] = { { .n = 0 }, { .n = 0 } };
	struct insp_before b = { .list = NULL };
	struct pollfd ends[2];
	int status = open_ends(o->pid, ends);
	bool any = false;
	double at = 0;

	if (status)
		return complain(o->pid, status);
	for (int i = 0;; i = !i) {
		insp_list_free(&l[i]);
		status = watch_look(o, &l[i], &b, &at);
		if (status != OK)
			break;
		any = true;
		b.list = &l[i];
		if (poll(ends, 2, o->wait_ms) > 0)
			break;
	}
	insp_list_free(&l[0]);
	insp_list_free(&l[1]);
	/* that the process has ended is what we waited for */
	return any && status == NOTHING ? OK : status;
}

int main(int argc, char **argv)
{
	struct insp_options o;

	rnic_log_sink(no_log);
	switch (insp_options(argc, argv, &o)) {
	case INSP_HELP:
		fputs(insp_help, stdout);
		return written(OK);
	case INSP_VERSION:
		printf("shrimp-inspect %s, layout %d\n", PACKAGE_VERSION,
		       RNIC_VERSION);
		return written(OK);
	case INSP_WRONG:
		fputs("shrimp-inspect: --help tells more\n", stderr);
		return REFUSED;
	default:
		return o.wait_ms ? watch(&o) : once(&o);
	}
}
