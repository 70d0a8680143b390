/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The picture: a diagram for each panel, a curve for each series, drawn by
 * gnuplot, which reads its commands and the points from a pipe.
 */
#include "bench/sb_out.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PANELS = 16,	/* diagrams at most */
	SERIES = 12,	/* curves of a diagram at most */
	WIDTH = 320,	/* of a diagram */
	HEIGHT = 280,	/* likewise */
	TITLE_ROOM = 40 /* above all */
};

extern char **environ;

/* Names in the order in which they came. */
struct names {
	const char *name[PANELS]; /* borrowed from rows */
	unsigned int n;
};

_Static_assert((int)SERIES <= (int)PANELS, "series fit");

static void names_add(struct names *l, const char *name, unsigned int most)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (!strcmp(l->name[i], name))
			return;
	if (l->n < most)
		l->name[l->n++] = name;
}

/* The panels; or, with @panel, the series in it. */
static struct names names_of(const struct sb_out *o, const char *panel)
{
	struct names l = { .n = 0 };

	for (size_t i = 0; i < o->n; i++) {
		const struct sb_point *p = &o->row[i].point;

		if (!panel && *p->panel)
			names_add(&l, p->panel, PANELS);
		if (panel && !strcmp(p->panel, panel))
			names_add(&l, p->series, SERIES);
	}
	return l;
}

static void points_write(const struct sb_out *o, const char *panel,
			 const char *series, FILE *to)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct sb_row *r = &o->row[i];

		if (!strcmp(r->point.panel, panel) &&
		    !strcmp(r->point.series, series) && isfinite(r->median))
			fprintf(to, "%.6g %.6g\n", r->point.x, r->median);
	}
}

/* The unit of the rows of @panel. */
static const char *unit_of(const struct sb_out *o, const char *panel)
{
	for (size_t i = 0; i < o->n; i++)
		if (!strcmp(o->row[i].point.panel, panel))
			return o->row[i].unit;
	return "";
}

/* What panels may have different ones of: after each other, so set anew. */
static void y_axis_write(const struct sb_out *o, const char *panel, FILE *to)
{
	const struct sb_axes *a = &o->axes;
	const char *unit = unit_of(o, panel);
	bool own = a->y_unit && strcmp(unit, a->y_unit);

	fprintf(to, "set ylabel \"%s\"\n", own ? unit : a->y ? a->y : "");
	if (!own && a->y_step > 0)
		fprintf(to, "set ytics %g\n", a->y_step);
	else
		fprintf(to, "set ytics autofreq\n");
	if (!own && a->y_most > 0)
		fprintf(to, "set yrange [0:%g]\n", a->y_most);
	else
		fprintf(to, "set yrange [%s:*]\n", own ? "0" : "*");
}

/* Its points, then the command that draws them. */
static int panel_write(const struct sb_out *o, const char *panel, FILE *to)
{
	struct names l = names_of(o, panel);

	for (unsigned int i = 0; i < l.n; i++) {
		fprintf(to, "$d%u << EOD\n", i);
		points_write(o, panel, l.name[i], to);
		fprintf(to, "EOD\n");
	}
	y_axis_write(o, panel, to);
	fprintf(to, "set title \"%s\"\nplot", panel);
	for (unsigned int i = 0; i < l.n; i++)
		fprintf(to,
			"%s $d%u using 1:2 title \"%s\" with lines lt %u "
			"lw 1.5",
			i ? "," : "", i, l.name[i], i + 1);
	fprintf(to, "\n");
	return (int)l.n;
}

static void head_write(const struct sb_out *o, unsigned int panels, FILE *to)
{
	const struct sb_axes *a = &o->axes;
	unsigned int cols = panels > 4 ? 4 : panels;
	unsigned int rows = (panels + cols - 1) / cols;

	fprintf(to,
		"set terminal svg size %u,%u font \"sans-serif,11\" "
		"background \"white\"\n"
		"set output \"%s\"\n"
		"set multiplot layout %u,%u title \"%s\"\n"
		"set grid lt 1 lc \"gray\" lw 0.5\nset border 3\n"
		"set tics nomirror\nunset mxtics\nunset mytics\n"
		"set key bottom right\n"
		"set xlabel \"%s\"\n",
		cols * WIDTH, rows * HEIGHT + TITLE_ROOM,
		o->plot ? o->plot : "", rows, cols, a->title ? a->title : "",
		a->x ? a->x : "");
	if (a->log_x)
		fprintf(to, "set logscale x 16\nset format x \"%%.0b%%B\"\n");
	if (a->log_y)
		fprintf(to, "set logscale y 10\n");
}

int sb_plot_write(const struct sb_out *o, FILE *to)
{
	struct names l = names_of(o, NULL);
	int curves = 0;

	if (!l.n)
		return 0;
	head_write(o, l.n, to);
	for (unsigned int i = 0; i < l.n; i++)
		curves += panel_write(o, l.name[i], to);
	fprintf(to, "unset multiplot\n");
	return curves;
}

/* Starts gnuplot; what is written to *@to is its input. */
static int gnuplot_start(pid_t *pid, FILE **to)
{
	char *argv[] = { (char *)"gnuplot", NULL };
	posix_spawn_file_actions_t fa;
	int fd[2], ret;

	if (pipe(fd))
		return -errno;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, fd[0], 0);
	posix_spawn_file_actions_addclose(&fa, fd[1]);
	ret = posix_spawnp(pid, "gnuplot", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(fd[0]);
	*to = ret ? NULL : fdopen(fd[1], "w");
	if (!*to)
		close(fd[1]);
	return -ret;
}

/* Whether a program of that name is in one of the folders of PATH. */
static bool is_in_path(const char *name)
{
	const char *dir = getenv("PATH");
	char file[4096];
	size_t n;

	for (; dir && *dir; dir += n + (dir[n] == ':')) {
		n = strcspn(dir, ":");
		snprintf(file, sizeof(file), "%.*s/%s", (int)n, dir, name);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

int sb_plot_check(const char *path, const struct sb_axes *axes)
{
	int fd;

	if (!axes->x || !*axes->x) {
		fputs("shrimp-bench: --plot: this subcommand has no curves\n",
		      stderr);
		return -EINVAL;
	}
	if (strpbrk(path, "\"\\\n")) {
		fprintf(stderr, "shrimp-bench: --plot: not a good name: %s\n",
			path);
		return -EINVAL;
	}
	if (!is_in_path("gnuplot")) {
		fputs("shrimp-bench: --plot needs gnuplot "
		      "(Debian: apt install gnuplot-nox)\n",
		      stderr);
		return -ENOENT;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		int err = errno;

		fprintf(stderr, "shrimp-bench: cannot write %s: %s\n", path,
			strerror(err));
		return -err;
	}
	close(fd);
	return 0;
}

int sb_plot_draw(const struct sb_out *o)
{
	FILE *to = NULL;
	pid_t pid;
	int status = 0, ret;

	if (!names_of(o, NULL).n || strpbrk(o->plot, "\"\\\n")) {
		fprintf(stderr,
			"shrimp-bench: %s: no curves to draw, or no "
			"good name of a file\n",
			o->plot);
		return -EINVAL;
	}
	ret = gnuplot_start(&pid, &to);
	if (ret) {
		fprintf(stderr, "shrimp-bench: gnuplot: %s\n", strerror(-ret));
		return ret;
	}
	if (to) {
		sb_plot_write(o, to);
		fclose(to);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!to || status) {
		fprintf(stderr, "shrimp-bench: gnuplot failed on %s\n",
			o->plot);
		return -EIO;
	}
	return 0;
}
