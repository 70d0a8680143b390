/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Numbers, rights and states in words.
 */
#include <inttypes.h>
#include <string.h>

#include "tools/inspect_print.h"

const char *insp_text_bytes(char *to, double n)
{
	static const char *const unit[] = { "B",   "KiB", "MiB", "GiB",
					    "TiB", "PiB", "EiB" };
	unsigned int i = 0;

	for (; n >= 1023.95 && i < 6; i++)
		n /= 1024;
	snprintf(to, INSP_TEXT, i ? "%.1f %s" : "%.0f %s", n, unit[i]);
	return to;
}

/* @n with a letter from @whole on; each is @step times the one before. */
static const char *brief(char *to, double n, double whole, double step)
{
	static const char unit[] = "KMGTPE";
	int i = -1;

	if (n < whole) {
		snprintf(to, INSP_TEXT, "%.0f", n);
		return to;
	}
	for (; n >= step - 0.5 && i < 5; i++)
		n /= step;
	snprintf(to, INSP_TEXT, n < 9.95 ? "%.1f%c" : "%.0f%c", n, unit[i]);
	return to;
}

const char *insp_text_brief_bytes(char *to, double n)
{
	return brief(to, n, 1023.5, 1024);
}

const char *insp_text_brief_count(char *to, double n)
{
	return brief(to, n, 999999.5, 1000);
}

const char *insp_text_count(char *to, double n)
{
	static const char unit[] = "MGTPE";
	unsigned int i = 0;

	if (n < 1e7) {
		snprintf(to, INSP_TEXT, "%.0f", n);
		return to;
	}
	for (n /= 1e6; n >= 1e4 && i < 4; i++)
		n /= 1e3;
	snprintf(to, INSP_TEXT, "%.1f%c", n, unit[i]);
	return to;
}

const char insp_rights_legend[] =
	"rights: r w for the owner, R W for peers to read, write; o addressed "
	"from 0;\n        g given; e E tells of remote reads, writes; "
	"m many ranges; v window;\n"
	"        d pages on demand; u watched for unmapping; others as a number";

const char *insp_text_rights(char *to, uint64_t rights)
{
	static const struct {
		uint64_t bit;
		char letter;
	} known[] = {
		{ RNIC_LOCAL_READ, 'r' },  { RNIC_LOCAL_WRITE, 'w' },
		{ RNIC_REMOTE_READ, 'R' }, { RNIC_REMOTE_WRITE, 'W' },
		{ RNIC_MR_OFFSET, 'o' },   { RNIC_MR_GIVEN, 'g' },
		{ RNIC_MR_EV_READ, 'e' },  { RNIC_MR_EV_WRITE, 'E' },
		{ RNIC_MR_LIST, 'm' },	   { RNIC_MR_WINDOW, 'v' },
		{ RNIC_MR_ODP, 'd' },	   { RNIC_MR_WATCHED, 'u' },
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (rights & known[i].bit)
			to[n++] = known[i].letter;
		rights &= ~known[i].bit;
	}
	to[n] = '\0';
	if (rights)
		snprintf(to + n, (size_t)(INSP_TEXT - n), "+%#" PRIx64, rights);
	else if (!n)
		strcpy(to, "-");
	return to;
}

const char *insp_text_kind(char *to, const struct insp_region *r)
{
	const char *what = "", *where = "mixed";
	char file[INSP_TEXT];

	if (r->parent)
		what = r->where ? "win " : "window";
	else if (r->rights & RNIC_MR_LIST)
		what = "list ";
	else if (r->rights & RNIC_MR_ODP)
		what = "demand ";
	snprintf(file, sizeof(file), "file %u", r->space);
	if (!r->where)
		where = "";
	else if (r->where == INSP_ARENA)
		where = "arena";
	else if (r->where == INSP_FILE)
		where = file;
	else if (r->where == INSP_ADDRESS)
		where = "address";
	else if (r->where == INSP_NOWHERE)
		where = "none";
	else if (r->where == INSP_GONE)
		where = "gone";
	snprintf(to, INSP_TEXT, "%s%.20s", what, where);
	return to;
}

const char *insp_place_state(unsigned int state)
{
	static const char *const name[] = {
		[RNIC_EP_FREE] = "free",
		[RNIC_EP_OPEN] = "open",
		[RNIC_EP_CLOSED] = "closed",
	};

	return state < sizeof(name) / sizeof(*name) ? name[state] : "?";
}

const char *insp_lane_state(unsigned int state)
{
	static const char *const name[] = {
		[RNIC_TX_NONE] = "new",
		[RNIC_TX_LIVE] = "live",
		[RNIC_TX_CLOSED] = "closed",
	};

	return state < sizeof(name) / sizeof(*name) ? name[state] : "?";
}

const char *insp_cache_policy(uint64_t policy)
{
	static const char *const name[] = {
		[0] = "-",
		[RNIC_KEYCACHE_CLOCK + 1] = "clock",
		[RNIC_KEYCACHE_LRU + 1] = "lru",
		[RNIC_KEYCACHE_RANDOM + 1] = "random",
		[RNIC_KEYCACHE_NONE + 1] = "none",
	};

	return policy < sizeof(name) / sizeof(*name) ? name[policy] : "?";
}
