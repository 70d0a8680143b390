/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Unit tests of what shrimp-bench prints.
 */
#include "bench/sb_out.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

/* An output into memory. */
struct page {
	struct sb_out out; /* of bench "b" */
	char *text;	   /* what was printed */
	size_t len;	   /* its length */
};

static struct page page;
static struct sb_set ours, bare;

static int set_up(void **state)
{
	(void)state;
	memset(&ours, 0, sizeof(ours));
	memset(&bare, 0, sizeof(bare));
	memset(&page, 0, sizeof(page));
	page.out.bench = "b";
	page.out.to = open_memstream(&page.text, &page.len);
	return page.out.to ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sb_out_end(&page.out);
	fclose(page.out.to);
	free(page.text);
	return 0;
}

static void assert_near(double value, double want)
{
	if (!(fabs(value - want) <= 1e-9 * fabs(want)))
		fail_msg("%.12g, wanted %.12g", value, want);
}

static void assert_text(const char *want)
{
	fflush(page.out.to);
	assert_string_equal(page.text, want);
}

/* ---- figures ---- */

static void a_time_has_its_ratio(void **state)
{
	struct sb_row r;

	(void)state;
	for (int i = 1; i <= 101; i++)
		sb_set_add(&ours, 1000.0 * i);
	sb_set_add(&bare, 17000);
	sb_row_fill(&r, &sb_us, &ours, &bare, "bare");
	assert_string_equal(r.unit, "us");
	assert_near(r.median, 51);
	assert_near(r.p99, 100);
	assert_near(r.min, 1);
	assert_near(r.floor, 17);
	assert_near(r.ratio, 3);
	assert_int_equal(r.n, 101);
}

/* The slowest sample is the lowest rate. */
static void a_rate_is_upside_down(void **state)
{
	struct sb_unit gbs = sb_gbs(1000);
	struct sb_row r;

	(void)state;
	for (int i = 1; i <= 101; i++)
		sb_set_add(&ours, 10.0 * i);
	sb_set_add(&bare, 255);
	sb_row_fill(&r, &gbs, &ours, &bare, "bare");
	assert_string_equal(r.unit, "GB/s");
	assert_near(r.median, 1000.0 / 510);
	assert_near(r.p99, 1);
	assert_near(r.min, 1000.0 / 1010);
	assert_near(r.ratio, 0.5);
}

static void without_floor_there_is_no_ratio(void **state)
{
	struct sb_row r;

	(void)state;
	sb_set_add(&ours, 5);
	sb_row_fill(&r, &sb_ns, &ours, NULL, NULL);
	assert_true(isnan(r.floor));
	assert_true(isnan(r.ratio));
	sb_row_fill(&r, &sb_ns, &ours, &bare, "of nothing");
	assert_true(isnan(r.floor));
}

static void units_agree(void **state)
{
	(void)state;
	assert_near(sb_unit_value(&sb_ns, 1500), 1500);
	assert_near(sb_unit_value(&sb_us, 1500), 1.5);
	assert_near(sb_unit_value(&sb_ms, 1500), 1.5e-3);
	assert_near(sb_unit_value(&sb_sec, 1500), 1.5e-6);
	assert_near(sb_unit_value(&sb_mps, 500), 2);
	assert_near(sb_unit_value(&sb_kps, 500), 2000);
}

static void sizes_have_short_names(void **state)
{
	char buf[SB_NAME_MAX];

	(void)state;
	assert_string_equal(sb_size_name(buf, 0), "0");
	assert_string_equal(sb_size_name(buf, 8), "8");
	assert_string_equal(sb_size_name(buf, 1023), "1023");
	assert_string_equal(sb_size_name(buf, 4096), "4K");
	assert_string_equal(sb_size_name(buf, 1 << 20), "1M");
	assert_string_equal(sb_size_name(buf, 3ull << 30), "3G");
	assert_string_equal(sb_size_name(buf, 1ull << 40), "1024G");
	assert_string_equal(sb_size_name(buf, 1025), "1025");
}

/* ---- formats ---- */

static const struct sb_row plain = {
	.name = "a case",
	.unit = "ns",
	.median = 12.5,
	.p99 = 1e6,
	.min = 0.25,
	.floor = NAN,
	.ratio = NAN,
	.n = 3,
};

static void json_is_an_object_a_row(void **state)
{
	struct sb_row r = plain;

	(void)state;
	page.out.format = SB_JSON;
	sb_out_begin(&page.out, "conditions");
	assert_int_equal(sb_out_row(&page.out, &r), 0);
	r.floor = 5;
	r.ratio = 2.5;
	sb_out_row(&page.out, &r);
	assert_text(
		"{\"bench\": \"b\", \"case\": \"a case\", \"unit\": \"ns\", "
		"\"median\": 12.5, \"p99\": 1e+06, \"min\": 0.25, "
		"\"floor\": null, \"ratio\": null, \"n\": 3}\n"
		"{\"bench\": \"b\", \"case\": \"a case\", \"unit\": \"ns\", "
		"\"median\": 12.5, \"p99\": 1e+06, \"min\": 0.25, "
		"\"floor\": 5, \"ratio\": 2.5, \"n\": 3}\n");
}

static void csv_has_a_head(void **state)
{
	(void)state;
	page.out.format = SB_CSV;
	sb_out_begin(&page.out, "conditions");
	sb_out_row(&page.out, &plain);
	assert_text("bench,case,unit,median,p99,min,floor,ratio,n\n"
		    "b,\"a case\",ns,12.5,1e+06,0.25,,,3\n");
}

static void a_table_is_aligned(void **state)
{
	struct sb_row r = plain;
	const char *head, *row;

	(void)state;
	sb_out_begin(&page.out, "conditions");
	r.floor = 5;
	r.ratio = 2.5;
	r.of = "nothing";
	sb_out_row(&page.out, &r);
	fflush(page.out.to);
	assert_non_null(strstr(page.text, "shrimp-bench b: conditions\n"));
	head = strchr(page.text, '\n') + 1;
	row = strchr(head, '\n') + 1;
	/* columns end where their heads end */
	assert_memory_equal(strstr(head, "median") + 2, "dian", 4);
	assert_memory_equal(row + (strstr(head, "median") - head) + 1, "12.50",
			    5);
	assert_memory_equal(row + (strstr(head, "ratio") - head) + 1, "2.50",
			    4);
	assert_non_null(strstr(row, "3  of nothing\n"));
}

static void notes_stay_out_of_json(void **state)
{
	(void)state;
	page.out.format = SB_JSON;
	sb_out_note(&page.out, "left out: %d", 1);
	assert_text("");
	page.out.format = SB_TABLE;
	sb_out_note(&page.out, "left out: %d", 2);
	assert_text("(left out: 2)\n");
}

/* ---- cases and limits ---- */

static struct sb_case case_of(double most, bool ratio)
{
	struct sb_case c = { .name = "c",
			     .unit = &sb_ns,
			     .set = &ours,
			     .floor = &bare,
			     .of = "bare",
			     .most = most,
			     .most_ratio = ratio };

	return c;
}

static void an_empty_case_is_left_out(void **state)
{
	struct sb_case c = case_of(0, false);

	(void)state;
	assert_int_equal(sb_out_case(&page.out, &c), 0);
	assert_int_equal(page.out.n, 0);
	assert_text("");
}

static void limits_are_remembered(void **state)
{
	struct sb_case c = case_of(50, false);

	(void)state;
	sb_set_add(&ours, 40);
	sb_set_add(&bare, 10);
	sb_out_case(&page.out, &c);
	assert_false(page.out.missed);
	c = case_of(4, true);
	sb_out_case(&page.out, &c);
	assert_false(page.out.missed);
	fflush(page.out.to);
	assert_null(strstr(page.text, "NO"));
	c = case_of(3.9, true);
	sb_out_case(&page.out, &c);
	assert_true(page.out.missed);
	fflush(page.out.to);
	assert_non_null(strstr(page.text, "at most 3.90: NO\n"));
}

static void an_absolute_limit_is_one_of_the_median(void **state)
{
	struct sb_case c = case_of(39, false);

	(void)state;
	sb_set_add(&ours, 40);
	sb_out_case(&page.out, &c);
	assert_true(page.out.missed);
	fflush(page.out.to);
	assert_non_null(strstr(page.text, "at most 39.00 ns: NO\n"));
}

static void a_rate_has_a_lowest_ratio(void **state)
{
	struct sb_case c = case_of(0, false);

	(void)state;
	c.unit = &sb_kps;
	sb_set_add(&ours, 100);
	sb_set_add(&bare, 80);
	c.least = 0.8;
	sb_out_case(&page.out, &c);
	assert_false(page.out.missed);
	c.least = 0.81;
	sb_out_case(&page.out, &c);
	assert_true(page.out.missed);
	fflush(page.out.to);
	assert_non_null(strstr(page.text, "at least 0.8: yes\n"));
	assert_non_null(strstr(page.text, "at least 0.81: NO\n"));
}

static void without_floor_no_ratio_is_met(void **state)
{
	struct sb_case c = case_of(2, true);

	(void)state;
	sb_set_add(&ours, 40);
	sb_out_case(&page.out, &c);
	c.least = 0.9;
	sb_out_case(&page.out, &c);
	assert_false(page.out.missed);
	fflush(page.out.to);
	assert_null(strstr(page.text, "at "));
}

/* ---- pictures ---- */

static void point_add(const char *panel, const char *series, double x)
{
	struct sb_row r = plain;

	snprintf(r.point.panel, SB_NAME_MAX, "%s", panel);
	snprintf(r.point.series, SB_NAME_MAX, "%s", series);
	r.point.x = x;
	sb_out_row(&page.out, &r);
}

static void each_series_is_a_curve(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	(void)state;
	page.out.plot = "x.svg";
	point_add("p", "one", 1);
	point_add("p", "two", 1);
	point_add("p", "one", 2);
	point_add("q", "one", 4);
	sb_out_row(&page.out, &plain);
	assert_int_equal(sb_plot_write(&page.out, to), 3);
	fclose(to);
	assert_non_null(strstr(text, "set output \"x.svg\""));
	assert_non_null(strstr(text, "$d0 << EOD\n1 12.5\n2 12.5\nEOD\n"));
	assert_non_null(strstr(text, "title \"two\""));
	assert_non_null(strstr(text, "set title \"q\""));
	free(text);
	page.out.plot = NULL;
}

static void a_panel_of_another_unit_has_its_own_axis(void **state)
{
	const char *percent, *time;
	struct sb_row r = plain;
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	(void)state;
	page.out.axes = (struct sb_axes){
		.x = "x", .y = "percent", .y_most = 100, .y_unit = "%"
	};
	snprintf(r.point.panel, SB_NAME_MAX, "rate");
	r.unit = "%";
	sb_out_row(&page.out, &r);
	point_add("time", "one", 1);
	assert_int_equal(sb_plot_write(&page.out, to), 2);
	fclose(to);
	percent = strstr(text, "set ylabel \"percent\"");
	time = strstr(text, "set ylabel \"ns\"");
	assert_non_null(percent);
	assert_non_null(time);
	assert_true(percent < time);
	assert_non_null(strstr(percent, "set yrange [0:100]"));
	assert_true(strstr(percent, "set yrange [0:100]") < time);
	assert_null(strstr(time, "[0:100]"));
	assert_non_null(strstr(time, "set yrange [0:*]"));
	free(text);
}

static void nothing_to_draw_is_an_error(void **state)
{
	(void)state;
	page.out.plot = "x.svg";
	assert_int_equal(sb_plot_draw(&page.out), -EINVAL);
	point_add("p", "one", 1);
	page.out.plot = "a\"; system 'false'; #.svg";
	assert_int_equal(sb_plot_draw(&page.out), -EINVAL);
	page.out.plot = NULL;
}

static void without_gnuplot_is_an_error(void **state)
{
	char *path = strdup(getenv("PATH"));

	(void)state;
	page.out.plot = "x.svg";
	point_add("p", "one", 1);
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(sb_plot_draw(&page.out), -ENOENT);
	setenv("PATH", path, 1);
	free(path);
	page.out.plot = NULL;
}

/* What cannot be drawn is told before anything is measured. */
static void a_picture_is_checked_first(void **state)
{
	const struct sb_axes none = { .x = "" }, some = { .x = "bytes" };
	char dir[] = "/tmp/sb-out.XXXXXX", file[64], tool[64];
	char *path = strdup(getenv("PATH"));
	FILE *to;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/x.svg", dir);
	snprintf(tool, sizeof(tool), "%s/gnuplot", dir);
	assert_int_equal(sb_plot_check(file, &none), -EINVAL);
	assert_int_equal(sb_plot_check("a\"b.svg", &some), -EINVAL);
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(sb_plot_check(file, &some), -ENOENT);
	assert_int_not_equal(access(file, F_OK), 0);
	to = fopen(tool, "w");
	assert_non_null(to);
	fclose(to);
	chmod(tool, 0700);
	setenv("PATH", dir, 1);
	assert_int_equal(sb_plot_check("/nowhere/x.svg", &some), -ENOENT);
	assert_int_equal(sb_plot_check(dir, &some), -EISDIR);
	assert_int_equal(sb_plot_check(file, &some), 0);
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(unlink(file), 0);
	unlink(tool);
	rmdir(dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_time_has_its_ratio),
		TEST(a_rate_is_upside_down),
		TEST(without_floor_there_is_no_ratio),
		TEST(units_agree),
		TEST(sizes_have_short_names),
		TEST(json_is_an_object_a_row),
		TEST(csv_has_a_head),
		TEST(a_table_is_aligned),
		TEST(notes_stay_out_of_json),
		TEST(an_empty_case_is_left_out),
		TEST(limits_are_remembered),
		TEST(an_absolute_limit_is_one_of_the_median),
		TEST(a_rate_has_a_lowest_ratio),
		TEST(without_floor_no_ratio_is_met),
		TEST(each_series_is_a_curve),
		TEST(a_panel_of_another_unit_has_its_own_axis),
		TEST(nothing_to_draw_is_an_error),
		TEST(without_gnuplot_is_an_error),
		TEST(a_picture_is_checked_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
