/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What a process has in the tables of its shrimp devices.
 */
#include "bench/stress/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 512 };

/* The tool beside this program, or "" if there is none. */
static void tool_find(char path[PATH])
{
	static const char tool[] = "/../tools/shrimp-inspect";
	char *end;
	ssize_t n = readlink("/proc/self/exe", path, PATH - sizeof(tool));

	path[n < 0 ? 0 : n] = 0;
	end = strrchr(path, '/');
	if (end)
		strcpy(end, tool);
	if (access(path, X_OK))
		path[0] = 0;
}

/* The sum of all numbers with this name; -1: there is none. */
static long sum_of(const char *json, const char *name)
{
	char key[64];
	long sum = -1;

	snprintf(key, sizeof(key), "\"%s\":", name);
	while ((json = strstr(json, key))) {
		json += strlen(key);
		sum = (sum < 0 ? 0 : sum) + strtol(json, NULL, 10);
	}
	return sum;
}

bool stress_inspect(pid_t pid, struct stress_tables *t)
{
	char path[PATH], command[PATH + 64], *line = NULL;
	size_t room = 0;
	bool seen = false;
	FILE *f;

	tool_find(path);
	snprintf(command, sizeof(command), "'%s' --json %d 2>/dev/null", path,
		 pid);
	f = path[0] && !strchr(path, '\'') ? popen(command, "re") : NULL;
	if (!f)
		return false;
	if (getline(&line, &room, f) > 0) {
		t->live = sum_of(line, "live");
		t->pages = sum_of(line, "in_translations");
		seen = t->live >= 0 && t->pages >= 0;
	}
	pclose(f);
	free(line);
	return seen;
}
