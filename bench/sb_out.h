/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What shrimp-bench prints: rows of equal form, as a table, as JSON (an object
 * a row), as CSV, and as a picture by gnuplot.
 *
 * Of a time, min is the shortest and p99 what 99 of 100 samples do not
 * exceed; of a rate, min is the lowest and p99 what 99 of 100 samples reach.
 * The floor is what the operation cannot beat, measured in turns with it; the
 * ratio is that of the two medians.
 *
 * Private to one thread.
 */
#ifndef BENCH_SB_OUT_H
#define BENCH_SB_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/sb_measure.h"

enum {
	SB_NAME_MAX = 64, /* bytes of a name, with its end */
};

/** How rows are printed. */
enum sb_format {
	SB_TABLE,
	SB_JSON,
	SB_CSV,
};

/** What a figure is given in. */
struct sb_unit {
	const char *name; /* shown */
	double factor;	  /* figure = ns * factor, of a rate factor / ns */
	bool rate;	  /* more is better */
};

/** Where a row goes in the picture; zeroed: nowhere. */
struct sb_point {
	char panel[SB_NAME_MAX];  /* diagram; "" leaves the row out */
	char series[SB_NAME_MAX]; /* curve in it */
	double x;		  /* its value is y */
};

/** A row. Figures are NaN where there is none. */
struct sb_row {
	char name[SB_NAME_MAX]; /* the case */
	const char *unit;	/* of the figures */
	double median;
	double p99;
	double min;
	double floor;	       /* median of the floor */
	double ratio;	       /* median / floor */
	uint64_t n;	       /* samples */
	const char *of;	       /* what the floor is, or NULL */
	double most;	       /* limit; 0: none */
	bool most_ratio;       /* it is one of the ratio */
	double least;	       /* lowest ratio, of rates; 0: no limit */
	struct sb_point point; /* in the picture */
};

/** What a row is made of; pointers are borrowed. */
struct sb_case {
	char name[SB_NAME_MAX];	    /* of the row */
	const struct sb_unit *unit; /* of its figures */
	struct sb_set *set;	    /* times in ns */
	struct sb_set *floor;	    /* likewise, or NULL */
	const char *of;		    /* what the floor is, or NULL */
	double most;		    /* as in struct sb_row */
	bool most_ratio;	    /* likewise */
	double least;		    /* likewise */
	struct sb_point point;	    /* likewise */
};

/** The axes of a picture. */
struct sb_axes {
	const char *title; /* above all */
	const char *x;	   /* label */
	const char *y;	   /* label */
	bool log_x;	   /* in steps of 16 */
	bool log_y;	   /* in steps of 10 */
	double y_step;	   /* of the labels; 0: as gnuplot likes */
	double y_most;	   /* from 0 to this; 0: likewise */
	/*
	 * The unit that y, y_step and y_most are for, NULL: all; a panel of
	 * rows of another one has that for its label, and an axis of its own.
	 */
	const char *y_unit;
};

/** Where rows go; zeroed memory is closed. */
struct sb_out {
	FILE *to;	       /* borrowed */
	enum sb_format format; /* of the rows */
	const char *bench;     /* subcommand; borrowed */
	const char *plot;      /* file to draw to, or NULL; borrowed */
	struct sb_axes axes;   /* of the picture */
	struct sb_row *row;    /* all rows */
	size_t n;	       /* their number */
	size_t room;	       /* allocated */
	bool missed;	       /* a limit was exceeded */
};

extern const struct sb_unit sb_ns;  /* nanoseconds */
extern const struct sb_unit sb_us;  /* microseconds */
extern const struct sb_unit sb_ms;  /* milliseconds */
extern const struct sb_unit sb_sec; /* seconds */
extern const struct sb_unit sb_mps; /* millions a second */
extern const struct sb_unit sb_kps; /* thousands a second */

/* GB/s (10^9 bytes) of operations on @bytes each. */
struct sb_unit sb_gbs(uint64_t bytes);

/* @ns, or 1 / @ns, in @u. */
double sb_unit_value(const struct sb_unit *u, double ns);

/*
 * Fills *@row but its name, limit and point: the figures of @set, times in ns,
 * in unit @u; @floor is NULL or what @of names, as ns too. Cannot fail.
 */
void sb_row_fill(struct sb_row *row, const struct sb_unit *u,
		 struct sb_set *set, struct sb_set *floor, const char *of);

/*
 * Begins: prints the head of the format. @conditions is a line about the
 * machine, printed in a table only. @out has its first fields set, the rest
 * zeroed. Partner: sb_out_end().
 */
void sb_out_begin(struct sb_out *out, const char *conditions);

/*
 * Prints @row, keeps a copy for the picture and remembers in out->missed if
 * its limit is exceeded: a table tells so beside each limit, the other formats
 * in a note (sb_out_note()). A limit of a ratio that is not known is none.
 * Returns 0 or -ENOMEM.
 */
int sb_out_row(struct sb_out *out, const struct sb_row *row);

/*
 * Prints case @c as a row: sb_row_fill() and sb_out_row(). An empty set is
 * left out. Returns as sb_out_row().
 */
int sb_out_case(struct sb_out *out, const struct sb_case *c);

/*
 * A line about what was left out and why: in a table among the rows, else on
 * stderr.
 */
void sb_out_note(struct sb_out *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Draws the picture, if one was asked for (sb_plot_draw()), and frees the
 * rows. Zeroed memory is accepted.
 */
int sb_out_end(struct sb_out *out);

/*
 * Before anything is measured: whether @path can be drawn to. Makes the file.
 * Returns 0, or, said on stderr: -EINVAL (@axes are of a subcommand that draws
 * nothing, or the name cannot be quoted), -ENOENT (no gnuplot), or why @path
 * cannot be written.
 */
int sb_plot_check(const char *path, const struct sb_axes *axes);

/*
 * Draws the rows to the file out->plot. Waits for gnuplot, which ends by
 * itself. Returns 0, or, said on stderr: -ENOENT (no gnuplot), -EINVAL (no
 * row has a point, or the file has a name that cannot be quoted), -EIO
 * (gnuplot failed).
 */
int sb_plot_draw(const struct sb_out *out);

/*
 * Writes what gnuplot is told to @to. Returns the number of curves.
 */
int sb_plot_write(const struct sb_out *out, FILE *to);

/*
 * "64", "4K", "2M", "1G": @bytes as users write them, to *@buf. Returns buf.
 */
const char *sb_size_name(char buf[SB_NAME_MAX], uint64_t bytes);

#endif
