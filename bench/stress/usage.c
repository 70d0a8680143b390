/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a process has of the kernel.
 */
#include "bench/stress/usage.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum {
	FDS_MORE = 4,	   /* of a library that is loaded for good */
	MAPS_MORE = 96,	   /* heaps and stacks of threads, for the next ones */
	MAPS_SLOW = 10000, /* sanitizers keep what was freed */
};

/*
 * The mappings that are locked, in KiB, and the first of them as the kernel
 * names it. Not VmLck: where mappings are locked and unmapped by several
 * threads it was seen to stay above 0 with nothing locked (Linux 6.18).
 */
static long locked_read(char *name, size_t room)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to, kib = 0;
	char line[512], head[128] = "";

	name[0] = 0;
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			snprintf(head, sizeof(head), "%.120s", line);
		if (strncmp(line, "VmFlags:", 8) || !strstr(line, " lo"))
			continue;
		if (!kib)
			snprintf(name, room, "; %s", head);
		kib += (to - from) >> 10;
	}
	fclose(f);
	return (long)kib;
}

static long fds_count(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ".", "..", and its own */
}

static long maps_count(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	long n = 0;
	int c;

	if (!f)
		return -1;
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

void stress_usage_read(struct stress_usage *u)
{
	u->locked_kib = locked_read(u->locked, sizeof(u->locked));
	u->fds = fds_count();
	u->maps = maps_count();
}

const char *stress_usage_left(const struct stress_usage *start,
			      const struct stress_usage *now, bool slow,
			      char *text, size_t room)
{
	long more = slow ? MAPS_SLOW : MAPS_MORE;

	if (now->locked_kib <= start->locked_kib &&
	    now->fds <= start->fds + FDS_MORE &&
	    now->maps <= start->maps + more)
		return NULL;
	snprintf(text, room,
		 "not all was given back: %ld KiB locked (%ld at the start), "
		 "%ld descriptors (%ld), %ld mappings (%ld)%s",
		 now->locked_kib, start->locked_kib, now->fds, start->fds,
		 now->maps, start->maps, now->locked);
	return text;
}
