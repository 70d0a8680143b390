/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Descriptors of processes.
 */
#include "tools/inspect_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shm/identity.h"
#include "tools/inspect_device.h"
#include "tools/inspect_file.h"
#include "tools/inspect_note.h"
#include "tools/inspect_tables.h"

enum { OPENING_MS = 256 }; /* half the time a device may take to open */

/* What a descriptor is of. */
enum kind { KIND_TABLES, KIND_MAILBOX, KIND_ARENA, KINDS };

static const char *const kind_name[KINDS] = {
	[KIND_TABLES] = "/memfd:shrimp-tables",
	[KIND_MAILBOX] = "/memfd:shrimp-mailbox",
	[KIND_ARENA] = "/memfd:shrimp-arena",
};

/* A descriptor of the process that is of a file of ours, by its name. */
struct found {
	enum kind kind;
	int fd;	      /* its number there */
	uint64_t dev; /* st_dev */
	uint64_t ino; /* st_ino */
};

/* All of them. */
struct finds {
	struct found *at;
	unsigned int n;
};

/* ---- descriptors ---- */

static bool kind_of(const char *path, enum kind *kind)
{
	for (int k = 0; k < KINDS; k++) {
		size_t len = strlen(kind_name[k]);

		*kind = (enum kind)k;
		if (!strncmp(path, kind_name[k], len) &&
		    (!path[len] || !strcmp(path + len, " (deleted)")))
			return true;
	}
	return false;
}

/*
 * Notes descriptor @name of the folder @dir, if it is of ours. Returns 0, also
 * if it has gone, or -EACCES.
 */
static int find_one(struct finds *f, int dir, const char *name)
{
	char path[64];
	struct found x = { .fd = atoi(name) };
	struct stat st;
	ssize_t n = readlinkat(dir, name, path, sizeof(path) - 1);

	if (n <= 0)
		return n && (errno == EACCES || errno == EPERM) ? -EACCES : 0;
	path[n] = '\0';
	if (!kind_of(path, &x.kind) || fstatat(dir, name, &st, 0) ||
	    !S_ISREG(st.st_mode))
		return 0;
	x.dev = st.st_dev;
	x.ino = st.st_ino;
	*(struct found *)insp_grow((void **)&f->at, f->n++, sizeof(x)) = x;
	return 0;
}

/* All descriptors of @pid that are of ours. 0 or a negative errno. */
static int find_all(pid_t pid, struct finds *f)
{
	struct dirent *e;
	char path[64];
	int ret = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!ret && (e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name))
			ret = find_one(f, dirfd(d), e->d_name);
	closedir(d);
	return ret;
}

/*
 * Opens what @x is of, for reading. A failure is noted, unless it is that the
 * descriptor has gone. Returns what rnic_segment_open_pid() says.
 */
static int open_found(pid_t pid, const struct found *x, struct rnic_segment *s,
		      struct insp_notes *notes)
{
	int ret = rnic_segment_open_pid(s, (uint32_t)pid, x->fd, x->dev, x->ino,
					false);

	if (ret == -EPROTO)
		insp_note(notes,
			  "descriptor %d: %s is not sealed against shrinking: "
			  "it is no segment of a device, and was not read",
			  x->fd, strrchr(kind_name[x->kind], ':') + 1);
	else if (ret && ret != -ESRCH && ret != -ESTALE)
		insp_note(notes, "descriptor %d: %s", x->fd, strerror(-ret));
	return ret;
}

/* ---- devices ---- */

/* The first descriptor of inode @ino; best of all number @fd. */
static const struct found *find_ino(const struct finds *f, enum kind kind,
				    uint64_t ino, int fd)
{
	const struct found *best = NULL;

	for (unsigned int i = 0; i < f->n; i++)
		if (f->at[i].kind == kind && f->at[i].ino == ino &&
		    (!best || f->at[i].fd == fd))
			best = &f->at[i];
	return best;
}

/* Opens mailbox or arena. Returns its descriptor there, or -1. */
static int open_other(const struct insp_process *p, struct insp_device *d,
		      const struct found *x, struct rnic_segment *s)
{
	if (!x)
		return -1;
	open_found(p->pid, x, s, &d->notes);
	return x->fd;
}

/*
 * Finds mailbox and arena. Descriptors come and go while they are listed, so
 * what is not there is looked for again. False: the tables are gone as well,
 * and so the device.
 */
static bool find_others(const struct insp_process *p, struct finds *f,
			const struct insp_device *d, const struct found **m,
			const struct found **a)
{
	const struct rnic_header *h = &d->hdr;

	for (int i = 0; i < INSP_RETRIES; i++) {
		*m = find_ino(f, KIND_MAILBOX, h->mailbox_ino, h->mailbox_fd);
		*a = find_ino(f, KIND_ARENA, h->arena_ino, h->arena_fd);
		if (*m && *a)
			return true;
		free(f->at);
		*f = (struct finds){ .n = 0 };
		if (find_all(p->pid, f) ||
		    !find_ino(f, KIND_TABLES, d->tables.ino, d->tables_fd))
			return false;
	}
	return true;
}

/* Opens mailbox and arena. False: the device is gone. */
static bool open_others(const struct insp_process *p, struct insp_device *d)
{
	const struct rnic_header *h = &d->hdr;
	const struct found *m, *a;
	struct finds f = { .n = 0 };
	bool there = find_others(p, &f, d, &m, &a);

	if (there) {
		d->mailbox_fd = open_other(p, d, m, &d->mailbox);
		d->arena_fd = open_other(p, d, a, &d->arena);
		if (d->mailbox_fd != h->mailbox_fd)
			insp_note(&d->notes,
				  "header: the mailbox is not descriptor "
				  "%" PRId32,
				  h->mailbox_fd);
		if (d->arena_fd != h->arena_fd)
			insp_note(&d->notes,
				  "header: the arena is not descriptor "
				  "%" PRId32,
				  h->arena_fd);
	}
	free(f.at);
	return there;
}

/* True if the process that the header names is alive. */
static bool owner_lives(const struct insp_process *p,
			const struct rnic_header *h)
{
	uint64_t identity;

	return h->ns == p->ns && !rnic_identity_of(h->pid, &identity) &&
	       rnic_identity_same(identity, h->identity);
}

/*
 * True if the tables are of this process, not of one that it talks to or was
 * forked from.
 */
static bool is_own(const struct insp_process *p, const struct finds *f,
		   const struct insp_device *d)
{
	const struct rnic_header *h = &d->hdr;
	const struct found *m;

	if (h->magic != RNIC_MAGIC_TABLES || h->pid == p->pid_inside)
		return true;
	if (!d->usable)
		return false;
	m = find_ino(f, KIND_MAILBOX, h->mailbox_ino, h->mailbox_fd);
	return m && m->fd == h->mailbox_fd && !owner_lives(p, h);
}

static void check_owner(const struct insp_process *p, struct insp_device *d)
{
	uint64_t identity;

	d->here = d->hdr.ns == p->ns;
	if (d->hdr.pid != p->pid_inside)
		insp_note(&d->notes,
			  "header: of process %" PRIu32
			  ", which is gone, found in %" PRIu32,
			  d->hdr.pid, p->pid_inside);
	else if (d->here && !rnic_identity_of(d->hdr.pid, &identity) &&
		 !rnic_identity_same(identity, d->hdr.identity))
		insp_note(&d->notes,
			  "header: made by another process that had this pid, "
			  "or before an exec");
}

static void device_close(struct insp_device *d)
{
	rnic_segment_close(&d->tables);
	rnic_segment_close(&d->mailbox);
	rnic_segment_close(&d->arena);
}

/*
 * Opens the tables @x and reads their header. Without seal or magic they may
 * be of a device that is just being opened: after some time they are not.
 */
static void open_tables(struct insp_process *p, const struct found *x,
			struct insp_device *d)
{
	unsigned int notes = p->notes.n;

	for (int ms = 1; ms <= OPENING_MS; ms *= 2) {
		const struct timespec t = { .tv_nsec = ms * 1000000L };
		int ret;

		insp_notes_cut(&p->notes, notes);
		insp_notes_free(&d->notes);
		rnic_segment_close(&d->tables);
		ret = open_found(p->pid, x, &d->tables, &p->notes);
		if (!ret)
			insp_header_read(d);
		if ((ret && ret != -EPROTO) || (!ret && d->hdr.magic))
			return;
		nanosleep(&t, NULL);
	}
}

/* Reads the device of the tables @x. False: it is none of this process. */
static bool read_device(struct insp_process *p, const struct finds *f,
			const struct found *x, const struct insp_want *w,
			struct insp_device *d)
{
	open_tables(p, x, d);
	if (d->tables.fd < 0)
		return false;
	if (!is_own(p, f, d)) {
		p->attached++;
		return false;
	}
	if (d->usable && !open_others(p, d))
		return false;
	if (d->usable)
		check_owner(p, d);
	insp_device_read(d, w);
	return true;
}

static void find_device(struct insp_process *p, const struct finds *f,
			const struct found *x, const struct insp_want *w)
{
	struct insp_device d = { .tables_fd = x->fd,
				 .mailbox_fd = -1,
				 .arena_fd = -1,
				 .tables.fd = -1,
				 .mailbox.fd = -1,
				 .arena.fd = -1 };

	if (!read_device(p, f, x, w, &d)) {
		insp_device_free(&d);
		return;
	}
	/* while they are open they outlive the process */
	device_close(&d);
	*(struct insp_device *)insp_grow((void **)&p->device, p->ndevices++,
					 sizeof(d)) = d;
}

/* ---- processes ---- */

/* A line of /proc/PID/status: the last number behind @field. */
static bool status_number(const char *line, const char *field, uint32_t *n)
{
	const char *last;

	if (strncmp(line, field, strlen(field)))
		return false;
	last = strrchr(line, '\t');
	if (last)
		*n = (uint32_t)strtoul(last, NULL, 10);
	return last;
}

static void read_status(struct insp_process *p)
{
	char path[64], line[256];
	FILE *f;

	p->pid_inside = (uint32_t)p->pid;
	snprintf(path, sizeof(path), "/proc/%d/status", p->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (status_number(line, "NSpid:", &p->pid_inside))
			break;
	if (f)
		fclose(f);
}

static void read_command(struct insp_process *p)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", p->pid);
	f = fopen(path, "re");
	if (!f || !fgets(p->command, sizeof(p->command), f))
		strcpy(p->command, "?");
	if (f)
		fclose(f);
	p->command[strcspn(p->command, "\n")] = '\0';
	for (char *c = p->command; *c; c++)
		if (!isprint((unsigned char)*c) || !isascii(*c))
			*c = '?';
}

static int look(struct insp_process *p)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", p->pid);
	if (stat(path, &st))
		return errno == ENOENT ? -ESRCH : -errno;
	p->uid = st.st_uid;
	return 0;
}

/* A process that has ended, and waits for its parent, lets nobody look. */
static bool is_dead(pid_t pid)
{
	uint64_t identity;

	return rnic_identity_of((uint32_t)pid, &identity) == -ESRCH;
}

/* True if an earlier descriptor is of the same file. */
static bool seen(const struct finds *f, unsigned int i)
{
	for (unsigned int k = 0; k < i; k++)
		if (f->at[k].ino == f->at[i].ino &&
		    f->at[k].dev == f->at[i].dev)
			return true;
	return false;
}

int insp_process_read(pid_t pid, const struct insp_want *w,
		      struct insp_process *p)
{
	struct finds f = { .n = 0 };
	int ret;

	*p = (struct insp_process){ .pid = pid };
	ret = look(p);
	if (!ret)
		ret = find_all(pid, &f);
	if (ret == -EACCES && is_dead(pid))
		ret = -ESRCH;
	if (!ret && f.n) {
		read_status(p);
		read_command(p);
		if (rnic_identity_ns(&p->ns))
			p->ns = 0;
	}
	for (unsigned int i = 0; !ret && i < f.n; i++)
		if (f.at[i].kind == KIND_TABLES && !seen(&f, i))
			find_device(p, &f, &f.at[i], w);
	free(f.at);
	return ret;
}

void insp_process_free(struct insp_process *p)
{
	for (unsigned int i = 0; i < p->ndevices; i++)
		insp_device_free(&p->device[i]);
	free(p->device);
	insp_notes_free(&p->notes);
	*p = (struct insp_process){ .pid = 0 };
}

/* ---- all processes ---- */

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct insp_process *)a)->pid;
	pid_t y = ((const struct insp_process *)b)->pid;

	return (x > y) - (x < y);
}

/* Adds process @pid, if it is of this user and has a device. */
static void list_add(struct insp_list *l, pid_t pid, const struct insp_want *w)
{
	struct insp_process p = { .pid = pid };

	if (look(&p) || p.uid != geteuid())
		return;
	/* one that is gone, or does not let us look, is none of ours */
	if (insp_process_read(pid, w, &p) || (!p.ndevices && !p.notes.n))
		insp_process_free(&p);
	else
		*(struct insp_process *)insp_grow((void **)&l->process, l->n++,
						  sizeof(p)) = p;
}

int insp_list_read(const struct insp_want *w, struct insp_list *l)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	*l = (struct insp_list){ .n = 0 };
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name))
			list_add(l, (pid_t)atoi(e->d_name), w);
	closedir(d);
	if (l->n)
		qsort(l->process, l->n, sizeof(*l->process), by_pid);
	return 0;
}

void insp_list_free(struct insp_list *l)
{
	for (unsigned int i = 0; i < l->n; i++)
		insp_process_free(&l->process[i]);
	free(l->process);
	*l = (struct insp_list){ .n = 0 };
}
