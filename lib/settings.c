/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Settings: one table says name, kind, range, default, place and help.
 */
#include "lib/settings.h"

#include <ctype.h>
#include <errno.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/info.h"

extern char **environ;

#define PREFIX "FI_SHRIMP_"

enum kind {
	KIND_BYTES,   /* number with k, m or g */
	KIND_COUNT,   /* plain number */
	KIND_SECONDS, /* decimal seconds, kept as milliseconds */
	KIND_WORD,    /* one of a list */
	KIND_SET,     /* any of a list, commas between; bits by index */
	KIND_NODE,    /* number of a NUMA node, or the word for here */
	KIND_PATH,    /* any string */
};

struct setting {
	const char *name;  /* after FI_SHRIMP_, upper case */
	const char *param; /* as libfabric wants it: lower case */
	enum kind kind;	   /* how to read it */
	double min, max;   /* of numbers */
	double def;	   /* default, of words the index */
	size_t off;	   /* in struct shrimp_settings */
	size_t size;	   /* of the field */
	const char *words; /* "a|b|c"; of a number: the name of 0 */
	const char *help;  /* one sentence */
};

#define FIELD(f)                                                               \
	offsetof(struct shrimp_settings, f),                                   \
		sizeof(((struct shrimp_settings *)0)->f)

static const struct setting table[] = {
	{ "TX_BUFFER", "tx_buffer", KIND_BYTES, 65536, 900e6, 256 << 20,
	  FIELD(tx_buffer), NULL,
	  "bytes of injected messages an endpoint keeps before -FI_EAGAIN" },
	{ "CQ_MAX", "cq_max", KIND_COUNT, 1, 1e9, 1000000, FIELD(cq_max), NULL,
	  "unread completions of a queue before sends get -FI_EAGAIN" },
	{ "UNEXPECTED", "unexpected", KIND_BYTES, 0, 1e12, 64 << 20,
	  FIELD(unexpected), NULL,
	  "bytes of unmatched messages before senders keep their payload" },
	{ "POOL", "pool", KIND_BYTES, 256 << 10, 16 << 20, 0, FIELD(pool),
	  "auto", "chunk pool of an endpoint in bytes; auto: twice an L2" },
	{ "EAGER_MAX", "eager_max", KIND_BYTES, 1024, 65536, 65536,
	  FIELD(eager_max), NULL,
	  "largest message in bytes whose payload is sent before the match" },
	{ "LINGER", "linger", KIND_SECONDS, 0, 3600, 5, FIELD(linger_ms), NULL,
	  "seconds that closing an endpoint waits for peers to fetch" },
	{ "LANE_LINES", "lane_lines", KIND_COUNT, 2, 64, 64, FIELD(lane_lines),
	  NULL,
	  "descriptors under way to one peer (a small one is for tests)" },
	{ "SPIN", "spin", KIND_COUNT, 1, 1e9, 100, FIELD(spin), NULL,
	  "empty polls before a yield when processes outnumber cores" },
	{ "ATTACH", "attach", KIND_WORD, 0, 0, 0, FIELD(attach),
	  "auto|proc|socket", "how to reach a peer's segments" },
	{ "NUMA", "numa", KIND_WORD, 0, 0, 0, FIELD(numa),
	  "local|nic|interleave|preferred|off",
	  "NUMA nodes for tables, lanes, pools and device memory" },
	{ "HOME_NODE", "home_node", KIND_NODE, 0, 0, RNIC_NUMA_HERE,
	  FIELD(home_node), "auto",
	  "NUMA node of the device; auto: where its process runs" },
	{ "PIN", "pin", KIND_WORD, 0, 0, 0, FIELD(pin), "try|require|off",
	  "lock registered memory: if allowed, or fail, or do not" },
	{ "MTT", "mtt", KIND_WORD, 0, 0, 0, FIELD(mtt), "extent|pages",
	  "translation of a region: one entry each range, or each page" },
	{ "MR_MODE", "mr_mode", KIND_SET, 0, 0, 0, FIELD(mr_mode),
	  "local|virt_addr|prov_key|endpoint",
	  "FI_MR_ bits that clients who offer them must obey, as a real NIC" },
	{ "KEYCACHE_ENTRIES", "keycache_entries", KIND_COUNT, 1,
	  RNIC_KEYCACHE_ENTRIES_MAX, RNIC_KEYCACHE_ENTRIES, FIELD(keys.entries),
	  NULL, "keys that a context keeps: a power of two times the ways" },
	{ "KEYCACHE_WAYS", "keycache_ways", KIND_COUNT, 1,
	  RNIC_KEYCACHE_WAYS_MAX, RNIC_KEYCACHE_WAYS, FIELD(keys.ways), NULL,
	  "places that a key may have in the key cache" },
	{ "KEYCACHE_POLICY", "keycache_policy", KIND_WORD, 0, 0,
	  RNIC_KEYCACHE_CLOCK, FIELD(keys.policy), "clock|lru|random|none",
	  "which key gives way in the key cache; none: nothing is kept" },
	{ "KEYCACHE_MISS_NS", "keycache_miss_ns", KIND_COUNT, 0,
	  RNIC_KEYCACHE_MISS_NS_MAX, 0, FIELD(keys.miss_ns), NULL,
	  "nanoseconds that a miss in the key cache costs more (emulation)" },
	{ "KEYCACHE_SEED", "keycache_seed", KIND_COUNT, 0, 1e15, 0,
	  FIELD(keys.seed), NULL, "of KEYCACHE_POLICY=random" },
	{ "CMA", "cma", KIND_WORD, 0, 0, 0, FIELD(cma), "auto|off",
	  "off: no process_vm_readv; owners of memory move what it would" },
	{ "MEMBARRIER", "membarrier", KIND_WORD, 0, 0, 0, FIELD(membarrier),
	  "auto|off", "off: every sender fences by itself" },
	{ "MONITOR", "monitor", KIND_WORD, 0, 0, 0, FIELD(monitor),
	  "auto|uffd|off",
	  "regions whose unmapping is noticed: on demand or kept, all, or none" },
	{ "IMPLICIT", "implicit", KIND_WORD, 0, 0, 0, FIELD(implicit), "on|off",
	  "off: no region may cover the whole address space" },
	{ "MR_CACHE", "mr_cache", KIND_WORD, 0, 0, 0, FIELD(mrc),
	  "local|off|all",
	  "regions whose checks and translation are kept for the next one" },
	{ "MR_CACHE_PIN", "mr_cache_pin", KIND_WORD, 0, 0, 0, FIELD(mrc_pin),
	  "drop|keep",
	  "keep: what is cached stays locked; madvise(2) on it then fails" },
	{ "MR_CACHE_MONITOR", "mr_cache_monitor", KIND_WORD, 0, 0, 0,
	  FIELD(mrc_monitor), "auto|uffd|notify|off",
	  "how the registration cache hears of memory that is unmapped" },
	{ "MR_CACHE_ENTRIES", "mr_cache_entries", KIND_COUNT, 1, 1e7, 4096,
	  FIELD(mrc_entries), NULL,
	  "ranges in the registration cache above which unused ones go" },
	{ "MR_CACHE_BYTES", "mr_cache_bytes", KIND_BYTES, 4096, 1e15, 0,
	  FIELD(mrc_bytes), "unlimited",
	  "bytes in the registration cache above which unused ranges go" },
	{ "STATS", "stats", KIND_PATH, 0, 0, 0, FIELD(stats_file), NULL,
	  "file to which each domain appends its counters when it closes" },
};

enum { SETTINGS = sizeof(table) / sizeof(*table) };

void shrimp_settings_define(void)
{
	for (int i = 0; i < SETTINGS; i++)
		fi_param_define(&shrimp_prov, table[i].param, FI_PARAM_STRING,
				"%s", table[i].help);
}

/* Says it where a user looks, whatever the log level is. */
static void complain(const char *name, const char *value, const char *allowed)
{
	fprintf(stderr, "shrimp: " PREFIX "%s=%s: not allowed; %s\n", name,
		value, allowed);
	FI_INFO(&shrimp_prov, FI_LOG_CORE, PREFIX "%s=%s: not allowed; %s\n",
		name, value, allowed);
}

static double unit(const char *end, bool *ok)
{
	static const char letters[] = "kmg";
	const char *at;

	*ok = true;
	if (!*end)
		return 1;
	at = strchr(letters, tolower((unsigned char)*end));
	*ok = at && !end[1];
	return *ok ? (double)(UINT64_C(1) << 10 * (at - letters + 1)) : 0;
}

/* A number of the kind @s says, in its range. */
static bool parse_number(const struct setting *s, const char *value, double *x)
{
	char *end;
	bool ok = false;

	errno = 0;
	*x = strtod(value, &end);
	if (end == value || errno || *x > 1e18 ||
	    !isdigit((unsigned char)*value))
		return false;
	if (s->kind == KIND_BYTES)
		*x *= unit(end, &ok);
	else
		ok = !*end;
	if (ok && s->kind != KIND_SECONDS)
		ok = *x < s->max + 1 && *x == (double)(uint64_t)*x;
	if (ok && s->words && *x == 0)
		return true;
	return ok && *x >= s->min && *x <= s->max;
}

/* Index of @value in the list of words, or -1. */
static int parse_word(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (int i = 0;; i++) {
		size_t n = strcspn(words, "|");

		if (n == len && !strncmp(words, value, n))
			return i;
		if (!words[n])
			return -1;
		words += n + 1;
	}
}

/* Bits of the words in @value, commas between; -1: one is not in the list. */
static double parse_set(const char *words, const char *value)
{
	char one[32];
	double x = 0;

	while (*value) {
		size_t n = strcspn(value, ",");
		int i;

		if (n >= sizeof(one))
			return -1;
		memcpy(one, value, n);
		one[n] = '\0';
		i = parse_word(words, one);
		if (i < 0)
			return -1;
		x = (double)((unsigned int)x | 1u << i);
		value += n + (value[n] == ',');
	}
	return x;
}

/* A node with memory, or the word; else -2. */
static double parse_node(const struct setting *s, const char *value)
{
	size_t digits = strspn(value, "0123456789");
	int node;

	if (!strcmp(value, s->words))
		return RNIC_NUMA_HERE;
	if (!digits || digits > 4 || value[digits])
		return -2;
	node = atoi(value);
	return rnic_topo_has_node(rnic_topo_get(), node) ? node : -2;
}

static void store(struct shrimp_settings *to, const struct setting *s, double x)
{
	void *at = (char *)to + s->off;

	if (s->kind == KIND_NODE) {
		*(int *)at = (int)x;
		return;
	}
	if (s->kind == KIND_SECONDS)
		x *= 1000;
	if (s->size == sizeof(size_t))
		*(size_t *)at = (size_t)x;
	else if (s->size == sizeof(unsigned int))
		*(unsigned int *)at = (unsigned int)x;
	else
		*(bool *)at = x == 0; /* the first word means yes */
}

static void allowed_text(const struct setting *s, char *buf, size_t room)
{
	static const char *const kinds[] = {
		[KIND_BYTES] = "bytes (k, m, g allowed)",
		[KIND_COUNT] = "a number",
		[KIND_SECONDS] = "seconds",
	};

	char nodes[96];

	if (s->kind == KIND_NODE) {
		rnic_topo_nodes_text(rnic_topo_get(), nodes, sizeof(nodes));
		snprintf(buf, room, "allowed: %s or a node: %s", s->words,
			 nodes);
	} else if (s->kind == KIND_SET)
		snprintf(buf, room, "allowed: any of %s, commas between",
			 s->words);
	else if (s->kind == KIND_WORD)
		snprintf(buf, room, "allowed: %s", s->words);
	else
		snprintf(buf, room, "allowed: %s%s%s from %.0f to %.0f",
			 s->words ? s->words : "", s->words ? " or " : "",
			 kinds[s->kind], s->min, s->max);
}

/* The value of any kind but a path. */
static bool parse(const struct setting *s, const char *value, double *x)
{
	switch (s->kind) {
	case KIND_NODE:
		*x = parse_node(s, value);
		return *x >= RNIC_NUMA_HERE;
	case KIND_SET:
		*x = parse_set(s->words, value);
		return *x >= 0;
	case KIND_WORD:
		*x = parse_word(s->words, value);
		return *x >= 0;
	default:
		if (s->words && !strcmp(value, s->words)) {
			*x = 0;
			return true;
		}
		return parse_number(s, value, x);
	}
}

static int set_one(struct shrimp_settings *to, const struct setting *s,
		   const char *value)
{
	char allowed[128];
	double x = 0;

	if (s->kind == KIND_PATH) {
		to->stats_file = *value ? strdup(value) : NULL;
		return 0;
	}
	if (parse(s, value, &x)) {
		store(to, s, x);
		return 0;
	}
	allowed_text(s, allowed, sizeof(allowed));
	complain(s->name, value, allowed);
	return -FI_EINVAL;
}

/* A key cache has whole sets, 2^n of them. */
static int check_keycache(const struct rnic_keycache_cfg *k)
{
	char value[16], allowed[96];

	if (rnic_keycache_has_shape(k->entries, k->ways))
		return 0;
	snprintf(value, sizeof(value), "%u", k->entries);
	snprintf(allowed, sizeof(allowed),
		 "allowed: " PREFIX "KEYCACHE_WAYS, which is %u, times 2^n",
		 k->ways);
	complain("KEYCACHE_ENTRIES", value, allowed);
	return -FI_EINVAL;
}

static const struct setting *find(const char *name, size_t len)
{
	for (int i = 0; i < SETTINGS; i++)
		if (strlen(table[i].name) == len &&
		    !strncmp(table[i].name, name, len))
			return &table[i];
	return NULL;
}

/* A name nobody reads is most likely a mistake. */
static int check_names(void)
{
	int ret = 0;

	for (char **e = environ; e && *e; e++) {
		const char *name = *e + strlen(PREFIX);
		size_t len = strcspn(*e, "=");

		if (strncmp(*e, PREFIX, strlen(PREFIX)) ||
		    find(name, len - strlen(PREFIX)))
			continue;
		fprintf(stderr,
			"shrimp: %s: there is no such setting; "
			"allowed: what fi_info -g " PREFIX " lists\n",
			*e);
		ret = -FI_EINVAL;
	}
	return ret;
}

int shrimp_settings_load(struct shrimp_settings *s)
{
	int ret = check_names();

	*s = (struct shrimp_settings){ 0 };
	for (int i = 0; i < SETTINGS; i++) {
		char *value = NULL;

		if (table[i].kind != KIND_PATH)
			store(s, &table[i], table[i].def);
		if (!fi_param_get_str(&shrimp_prov, table[i].param, &value) &&
		    value && set_one(s, &table[i], value))
			ret = -FI_EINVAL;
	}
	if (!ret)
		ret = check_keycache(&s->keys);
	if (ret)
		shrimp_settings_free(s);
	return ret;
}

int shrimp_settings_mr_mode(void)
{
	static const int bit[] = { FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY,
				   FI_MR_ENDPOINT };
	const struct setting *s = find("MR_MODE", strlen("MR_MODE"));
	char *value = NULL;
	int mode = 0;
	double x;

	if (fi_param_get_str(&shrimp_prov, s->param, &value) || !value)
		return 0;
	x = parse_set(s->words, value);
	for (size_t i = 0; x > 0 && i < sizeof(bit) / sizeof(*bit); i++)
		if ((unsigned int)x >> i & 1)
			mode |= bit[i];
	return mode;
}

void shrimp_settings_free(struct shrimp_settings *s)
{
	free(s->stats_file);
	s->stats_file = NULL;
}
