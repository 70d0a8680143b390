/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_getinfo(): the profile that is offered, which hints match it and what
 * is made of them; and that asking has no side effects.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>

enum { IOV_LIMIT = 16, INJECT_MIN = 4096 };

/* What is offered when nothing is asked. */
static const uint64_t all_caps =
	FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ |
	FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |
	FI_LOCAL_COMM | FI_REMOTE_COMM | FI_MULTI_RECV | FI_SOURCE |
	FI_RMA_EVENT;

/* What this provider cannot do. */
static const uint64_t no_caps = FI_HMEM | FI_COLLECTIVE | FI_MULTICAST |
				FI_NAMED_RX_CTX | FI_TRIGGER | FI_VARIABLE_MSG |
				FI_RMA_PMEM | FI_SHARED_AV;

static const uint64_t not_ordered =
	FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW;

static struct fi_info *hints_new(void)
{
	struct fi_info *h = fi_allocinfo();

	th_check(h);
	h->fabric_attr->prov_name = strdup(th_provider());
	th_check(h->fabric_attr->prov_name);
	return h;
}

static int query_version(uint32_t version, struct fi_info *h,
			 struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(version, NULL, NULL, 0, h, info);
}

/* The one info that matches @h; fails if there is not exactly one. */
static struct fi_info *one_match(struct fi_info *h)
{
	struct fi_info *info;

	th_ok(query_version(FI_VERSION(1, 17), h, &info));
	th_check(info && !info->next);
	return info;
}

static void no_match(struct fi_info *h)
{
	struct fi_info *info;

	th_eq(query_version(FI_VERSION(1, 17), h, &info), -FI_ENODATA);
	th_check(!info);
}

/* ---- the profile ------------------------------------------------------------ */

static void check_sizes(const struct fi_info *i)
{
	th_eq(i->tx_attr->iov_limit, IOV_LIMIT);
	th_eq(i->rx_attr->iov_limit, IOV_LIMIT);
	th_check(i->tx_attr->inject_size >= INJECT_MIN);
	th_check(i->tx_attr->size > 0 && i->rx_attr->size > 0);
	th_check(i->ep_attr->max_msg_size > (size_t)1 << 31);
	th_eq(i->ep_attr->tx_ctx_cnt, 1);
	th_eq(i->ep_attr->rx_ctx_cnt, 1);
	th_eq(i->domain_attr->cq_data_size, 8);
	th_eq(i->domain_attr->max_ep_tx_ctx, 1);
	th_eq(i->domain_attr->max_ep_rx_ctx, 1);
	th_check(i->domain_attr->ep_cnt > 0 && i->domain_attr->cq_cnt > 0);
	/* All 64 bits of a tag are the user's. */
	th_check(i->ep_attr->mem_tag_format >> 63 == 1);
}

static void check_modes(const struct fi_info *i)
{
	th_eq(i->mode, 0);
	th_eq(i->tx_attr->mode, 0);
	th_eq(i->rx_attr->mode, 0);
	th_eq(i->domain_attr->mode, 0);
	/* Sends against writes are not ordered, and it is not said so. */
	th_check(i->tx_attr->msg_order & FI_ORDER_SAS);
	th_eq(i->tx_attr->msg_order & not_ordered, 0);
	th_eq(i->rx_attr->msg_order, i->tx_attr->msg_order);
	th_eq(i->domain_attr->threading, FI_THREAD_SAFE);
	th_eq(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	th_eq(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
	th_eq(i->ep_attr->type, FI_EP_RDM);
	th_check(!i->nic);
}

static void check_names(const struct fi_info *i)
{
	th_check(i->fabric_attr->name && *i->fabric_attr->name);
	th_check(i->domain_attr->name && *i->domain_attr->name);
	th_check(!strcmp(i->fabric_attr->prov_name, "shrimp"));
	th_eq(i->fabric_attr->api_version, FI_VERSION(1, 17));
	th_check(i->fabric_attr->prov_version > 0);
	th_eq(i->src_addrlen, 64);
	th_check(i->addr_format & FI_PROV_SPECIFIC);
}

/* Nothing asked, and hints that ask nothing: one info, the whole profile. */
static void profile(struct th_self *self)
{
	struct fi_info *h = hints_new(), *info, *i;
	int k;

	(void)self;
	for (k = 0; k < 2; k++) {
		th_ok(query_version(FI_VERSION(1, 17), k ? h : NULL, &info));
		th_check(info && !info->next);
		i = info;
		check_sizes(i);
		check_modes(i);
		check_names(i);
		th_eq(i->caps & all_caps, all_caps);
		th_eq(i->caps & no_caps, 0);
		th_eq(i->tx_attr->caps & ~i->caps, 0);
		th_eq(i->rx_attr->caps & ~i->caps, 0);
		fi_freeinfo(info);
	}
	fi_freeinfo(h);
}

/* ---- capabilities --------------------------------------------------------------- */

static void case_T33_caps(struct th_self *self)
{
	static const uint64_t ask[] = {
		FI_MSG,
		FI_TAGGED,
		FI_MSG | FI_TAGGED,
		FI_MSG | FI_SEND,
		FI_TAGGED | FI_RECV,
		FI_MSG | FI_REMOTE_COMM,
		FI_MSG | FI_LOCAL_COMM,
		FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM,
		FI_TAGGED | FI_DIRECTED_RECV,
		FI_TAGGED | FI_SOURCE,
		FI_MSG | FI_MULTI_RECV,
		FI_MSG | FI_TAGGED | FI_FENCE,
	};
	struct fi_info *h = hints_new(), *i;
	size_t k;

	(void)self;
	for (k = 0; k < sizeof(ask) / sizeof(ask[0]); k++) {
		h->caps = ask[k];
		i = one_match(h);
		th_eq(i->caps & ask[k], ask[k]);
		th_eq(i->caps & no_caps, 0);
		/* Primary capabilities only if asked. */
		th_eq(i->caps & ~ask[k] &
			      (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
			       FI_DIRECTED_RECV),
		      0);
		if (!(ask[k] & FI_RECV))
			th_check(i->caps & FI_SEND);
		if (!(ask[k] & (FI_SEND | FI_RECV)))
			th_check(i->caps & FI_RECV);
		fi_freeinfo(i);
	}
	fi_freeinfo(h);
}

static void case_T33_caps_impossible(struct th_self *self)
{
	struct fi_info *h = hints_new();
	int bit;

	(void)self;
	for (bit = 0; bit < 64; bit++) {
		h->caps = no_caps & (UINT64_C(1) << bit);
		if (!h->caps)
			continue;
		h->caps |= FI_MSG | FI_TAGGED;
		no_match(h);
	}
	fi_freeinfo(h);
}

/* ---- mr_mode, mode, versions ------------------------------------------------------ */

static const int mr_bits[] = { FI_MR_LOCAL,	FI_MR_RAW,
			       FI_MR_VIRT_ADDR, FI_MR_ALLOCATED,
			       FI_MR_PROV_KEY,	FI_MR_MMU_NOTIFY,
			       FI_MR_RMA_EVENT, FI_MR_ENDPOINT,
			       FI_MR_HMEM,	FI_MR_COLLECTIVE };
enum { NMR = sizeof(mr_bits) / sizeof(mr_bits[0]) };

/* Whatever is offered matches; all but FI_MR_ALLOCATED comes back cleared. */
static void case_T33_mr_mode(struct th_self *self)
{
	struct fi_info *h = hints_new(), *i;
	int k, all = 0;

	(void)self;
	h->caps = FI_MSG | FI_TAGGED;
	for (k = 0; k <= NMR; k++) {
		h->domain_attr->mr_mode = k < NMR ? mr_bits[k] : all;
		if (k < NMR)
			all |= mr_bits[k];
		i = one_match(h);
		th_eq(i->domain_attr->mr_mode,
		      h->domain_attr->mr_mode & FI_MR_ALLOCATED);
		fi_freeinfo(i);
	}
	h->domain_attr->mr_mode = 0;
	i = one_match(h);
	th_eq(i->domain_attr->mr_mode, 0);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* mr_mode that comes back for @hint of a client of @version. */
static int mr_mode(struct fi_info *h, uint32_t version, int hint)
{
	struct fi_info *i;
	int mode;

	h->domain_attr->mr_mode = hint;
	th_ok(query_version(version, h, &i));
	th_check(i && !i->next);
	mode = i->domain_attr->mr_mode;
	fi_freeinfo(i);
	return mode;
}

/* Bits of a real NIC are demanded of who offers them, where we shall. */
static void case_T33_strict_mr_mode(struct th_self *self)
{
	static const struct {
		const char *set; /* FI_SHRIMP_MR_MODE */
		int bits;	 /* what it stands for */
	} strict[] = {
		{ "local", FI_MR_LOCAL },
		{ "virt_addr", FI_MR_VIRT_ADDR },
		{ "prov_key", FI_MR_PROV_KEY },
		{ "endpoint", FI_MR_ENDPOINT },
		{ "local,virt_addr,prov_key,endpoint",
		  FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
			  FI_MR_ENDPOINT },
	};
	struct fi_info *h = hints_new();
	int all = 0;

	(void)self;
	for (int k = 0; k < NMR; k++)
		all |= mr_bits[k];
	for (size_t s = 0; s < sizeof(strict) / sizeof(strict[0]); s++) {
		int bits = strict[s].bits;

		setenv("FI_SHRIMP_MR_MODE", strict[s].set, 1);
		th_eq(mr_mode(h, FI_VERSION(1, 17), 0), 0);
		th_eq(mr_mode(h, FI_VERSION(1, 17), all),
		      bits | FI_MR_ALLOCATED);
		for (int k = 0; k < NMR; k++)
			th_eq(mr_mode(h, FI_VERSION(1, 17), mr_bits[k]),
			      mr_bits[k] & (bits | FI_MR_ALLOCATED));
	}
	fi_freeinfo(h);
}

/* What clients before 1.5 call a mode is kept; what it means is in force. */
static void case_T33_old_mr_mode(struct th_self *self)
{
	static const uint32_t old = FI_VERSION(1, 4), new = FI_VERSION(1, 17);
	const int basic = 1 << 0, scalable = 1 << 1;
	struct fi_info *h = hints_new();

	(void)self;
	h->caps = FI_TAGGED;
	th_eq(mr_mode(h, old, basic), basic);
	th_eq(mr_mode(h, new, basic), basic);
	th_eq(mr_mode(h, old, scalable), scalable);
	th_eq(mr_mode(h, new, scalable), scalable);
	/* our choice; a modern client gets the modern word for it */
	th_eq(mr_mode(h, old, 0), scalable);
	th_eq(mr_mode(h, new, 0), 0);
	/* they must be alone: with others, these count */
	th_eq(mr_mode(h, new, basic | scalable | FI_MR_ALLOCATED),
	      FI_MR_ALLOCATED);
	setenv("FI_SHRIMP_MR_MODE", "virt_addr,prov_key", 1);
	th_eq(mr_mode(h, old, 0), basic);
	th_eq(mr_mode(h, old, scalable), scalable);
	fi_freeinfo(h);
}

/* FI_LOCAL_MR was the FI_MR_LOCAL of then. */
static void case_T33_old_local_mr(struct th_self *self)
{
	const uint64_t local = UINT64_C(1) << 55;
	struct fi_info *h = hints_new(), *i;

	(void)self;
	h->domain_attr->mr_mode = 1 << 0;
	h->mode = ~UINT64_C(0);
	i = one_match(h);
	th_eq(i->mode, 0);
	fi_freeinfo(i);
	setenv("FI_SHRIMP_MR_MODE", "local", 1);
	i = one_match(h);
	th_eq(i->mode, local);
	fi_freeinfo(i);
	h->mode = ~local;
	i = one_match(h);
	th_eq(i->mode, 0);
	fi_freeinfo(i);
	h->mode = local;
	h->domain_attr->mr_mode = FI_MR_LOCAL;
	i = one_match(h);
	th_eq(i->mode, 0);
	th_eq(i->domain_attr->mr_mode, FI_MR_LOCAL);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* The keys and addresses that go with each of them. */
static void case_T33_old_keys(struct th_self *self)
{
	const uint64_t key = UINT64_C(0x123456789);
	struct fi_info *h = hints_new(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_mr *mr;
	char mem[64];

	(void)self;
	for (int mode = 1; mode <= 2; mode++) {
		h->domain_attr->mr_mode = mode;
		th_ok(query_version(FI_VERSION(1, 4), h, &info));
		th_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
		th_ok(fi_domain(fabric, info, &domain, NULL));
		th_ok(fi_mr_reg(domain, mem, sizeof(mem), FI_REMOTE_WRITE, 0,
				key, 0, &mr, NULL));
		th_eq(fi_mr_key(mr) == key, mode == 2);
		th_ok(fi_close(&mr->fid));
		/* basic memory is there, scalable need not be */
		th_eq(fi_mr_reg(domain, (void *)(uintptr_t)4096, 64,
				FI_REMOTE_WRITE, 0, key, 0, &mr, NULL),
		      mode == 1 ? -FI_EFAULT : 0);
		if (mode == 2)
			th_ok(fi_close(&mr->fid));
		th_ok(fi_close(&domain->fid));
		th_ok(fi_close(&fabric->fid));
		fi_freeinfo(info);
	}
	fi_freeinfo(h);
}

/* Every application mode bit may be offered; none is needed. */
static void mode_bits(struct th_self *self)
{
	struct fi_info *h = hints_new(), *i;

	(void)self;
	h->mode = ~UINT64_C(0);
	i = one_match(h);
	th_eq(i->mode, 0);
	th_eq(i->tx_attr->mode | i->rx_attr->mode, 0);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

static void case_T33_api_versions(struct th_self *self)
{
	static const uint32_t versions[] = {
		FI_VERSION(1, 0), FI_VERSION(1, 4),  FI_VERSION(1, 5),
		FI_VERSION(1, 9), FI_VERSION(1, 17), FI_VERSION(1, 20),
		FI_VERSION(2, 0),
	};
	struct fi_info *h = hints_new(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	size_t k;

	(void)self;
	h->caps = FI_TAGGED;
	for (k = 0; k < sizeof(versions) / sizeof(versions[0]); k++) {
		if (FI_VERSION_LT(fi_version(), versions[k]))
			continue;
		h->domain_attr->mr_mode = k < 2 ? FI_MR_UNSPEC : 0;
		th_ok(query_version(versions[k], h, &info));
		th_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
		th_ok(fi_domain(fabric, info, &domain, NULL));
		th_ok(fi_close(&domain->fid));
		th_ok(fi_close(&fabric->fid));
		fi_freeinfo(info);
	}
	fi_freeinfo(h);
}

/* ---- attributes that are echoed ------------------------------------------------------ */

static void threading_echoed(struct th_self *self)
{
	static const enum fi_threading kinds[] = {
		FI_THREAD_SAFE,	      FI_THREAD_FID,	  FI_THREAD_DOMAIN,
		FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT,
	};
	struct fi_info *h = hints_new(), *i;
	size_t k;

	(void)self;
	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		h->domain_attr->threading = kinds[k];
		i = one_match(h);
		th_eq(i->domain_attr->threading, kinds[k]);
		fi_freeinfo(i);
	}
	fi_freeinfo(h);
}

static void progress_echoed(struct th_self *self)
{
	static const enum fi_progress ask[] = { FI_PROGRESS_UNSPEC,
						FI_PROGRESS_MANUAL,
						FI_PROGRESS_AUTO };
	static const enum fi_progress get[] = { FI_PROGRESS_MANUAL,
						FI_PROGRESS_MANUAL,
						FI_PROGRESS_AUTO };
	struct fi_info *h = hints_new(), *i;
	int k;

	(void)self;
	for (k = 0; k < 3; k++) {
		h->domain_attr->data_progress = ask[k];
		i = one_match(h);
		th_eq(i->domain_attr->data_progress, get[k]);
		fi_freeinfo(i);
	}
	h->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	h->domain_attr->control_progress = FI_PROGRESS_AUTO;
	i = one_match(h);
	th_eq(i->domain_attr->control_progress, FI_PROGRESS_AUTO);
	fi_freeinfo(i);
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	i = one_match(h);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

static void av_type_and_rm(struct th_self *self)
{
	struct fi_info *h = hints_new(), *i;

	(void)self;
	h->domain_attr->av_type = FI_AV_MAP;
	i = one_match(h);
	th_eq(i->domain_attr->av_type, FI_AV_MAP);
	fi_freeinfo(i);
	h->domain_attr->av_type = FI_AV_TABLE;
	i = one_match(h);
	th_eq(i->domain_attr->av_type, FI_AV_TABLE);
	fi_freeinfo(i);
	h->domain_attr->resource_mgmt = FI_RM_DISABLED;
	fi_freeinfo(one_match(h));
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	i = one_match(h);
	th_eq(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* ---- sizes, order, flags: at the limit and above --------------------------------------- */

/* Tries @at and @above in *@field of @h: the one matches, the other not. */
static void limit(struct fi_info *h, size_t *field, size_t at, size_t above)
{
	*field = at;
	fi_freeinfo(one_match(h));
	*field = above;
	no_match(h);
	*field = 0;
}

static void case_T33_limits(struct th_self *self)
{
	struct fi_info *h = hints_new(), *i = one_match(h);
	size_t inject = i->tx_attr->inject_size;
	size_t max = i->ep_attr->max_msg_size;

	(void)self;
	limit(h, &h->tx_attr->inject_size, inject, inject + 1);
	limit(h, &h->tx_attr->iov_limit, IOV_LIMIT, IOV_LIMIT + 1);
	limit(h, &h->rx_attr->iov_limit, IOV_LIMIT, IOV_LIMIT + 1);
	limit(h, &h->domain_attr->cq_data_size, 8, 9);
	limit(h, &h->ep_attr->tx_ctx_cnt, 1, 2);
	limit(h, &h->ep_attr->rx_ctx_cnt, 1, 2);
	if (max < SIZE_MAX)
		limit(h, &h->ep_attr->max_msg_size, max, max + 1);
	h->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	no_match(h);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

static void orders_and_flags(struct th_self *self)
{
	static const uint64_t good = FI_COMPLETION | FI_INJECT |
				     FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
				     FI_DELIVERY_COMPLETE;
	struct fi_info *h = hints_new(), *i;

	(void)self;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
	i = one_match(h);
	th_check(i->tx_attr->msg_order & FI_ORDER_SAS);
	fi_freeinfo(i);
	h->tx_attr->msg_order = FI_ORDER_SAW;
	no_match(h);
	h->tx_attr->msg_order = 0;
	h->tx_attr->op_flags = good;
	i = one_match(h);
	th_eq(i->tx_attr->op_flags, good);
	fi_freeinfo(i);
	h->tx_attr->op_flags = FI_COMMIT_COMPLETE;
	no_match(h);
	h->tx_attr->op_flags = 0;
	h->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	i = one_match(h);
	th_eq(i->rx_attr->op_flags, FI_COMPLETION | FI_MULTI_RECV);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* ---- names, formats, types -------------------------------------------------------------- */

static void names_and_formats(struct th_self *self)
{
	struct fi_info *h = hints_new(), *i = one_match(h);

	(void)self;
	h->domain_attr->name = strdup(i->domain_attr->name);
	h->fabric_attr->name = strdup(i->fabric_attr->name);
	h->addr_format = i->addr_format;
	fi_freeinfo(one_match(h));
	h->domain_attr->name[0] ^= 1;
	no_match(h);
	h->domain_attr->name[0] ^= 1;
	h->fabric_attr->name[0] ^= 1;
	no_match(h);
	h->fabric_attr->name[0] ^= 1;
	h->addr_format = FI_SOCKADDR_IN;
	no_match(h);
	h->addr_format = FI_FORMAT_UNSPEC;
	h->ep_attr->type = FI_EP_MSG;
	no_match(h);
	h->ep_attr->type = FI_EP_DGRAM;
	no_match(h);
	h->ep_attr->type = FI_EP_RDM;
	fi_freeinfo(one_match(h));
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* FI_PROV_ATTR_ONLY lists the provider without asking it for more. */
static void attr_only(struct th_self *self)
{
	struct fi_info *info, *i;
	bool found = false;

	(void)self;
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, NULL,
			 &info));
	for (i = info; i; i = i->next)
		found = found ||
			!strcmp(i->fabric_attr->prov_name, th_provider());
	th_check(found);
	fi_freeinfo(info);
}

/* ---- L4: no side effects before a domain is opened ---------------------------------------- */

static unsigned int entries_of(const char *path)
{
	DIR *d = opendir(path);
	unsigned int n = 0;

	th_check(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool maps_name(const char *word)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	th_check(f);
	while (fgets(line, sizeof(line), f))
		found = found || strstr(line, word);
	fclose(f);
	return found;
}

struct traces {
	unsigned int fds;	    /* open descriptors */
	unsigned int threads;	    /* of this process */
	struct sigaction sig[NSIG]; /* every signal's action */
	sigset_t mask;		    /* blocked signals */
};

static void traces_take(struct traces *t)
{
	int s;

	memset(t, 0, sizeof(*t));
	t->fds = entries_of("/proc/self/fd");
	t->threads = entries_of("/proc/self/task");
	for (s = 1; s < NSIG; s++)
		sigaction(s, NULL, &t->sig[s]);
	sigprocmask(SIG_BLOCK, NULL, &t->mask);
}

static void traces_same(const struct traces *a, const struct traces *b)
{
	int s;

	th_eq(a->fds, b->fds);
	th_eq(a->threads, b->threads);
	for (s = 1; s < NSIG; s++)
		th_ptr_eq(a->sig[s].sa_handler, b->sig[s].sa_handler);
	th_check(!memcmp(&a->mask, &b->mask, sizeof(a->mask)));
	th_check(!maps_name("/memfd:"));
}

static void contract_L4_no_side_effects(struct th_self *self)
{
	struct fi_info *h = hints_new(), *info;
	struct traces before, after;
	struct fid_fabric *fabric;
	int i;

	(void)self;
	traces_take(&before);
	for (i = 0; i < 3; i++) {
		info = one_match(h);
		traces_take(&after);
		traces_same(&before, &after);
		th_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
		traces_take(&after);
		traces_same(&before, &after);
		th_ok(fi_close(&fabric->fid));
		fi_freeinfo(info);
	}
	th_ok(fi_getinfo(FI_VERSION(1, 17), NULL, "4711", FI_SOURCE, h, &info));
	traces_take(&after);
	traces_same(&before, &after);
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* No signal handler and no mask at work either. */
static void contract_L4_no_handlers(struct th_self *self)
{
	struct traces before, after;
	struct th_stack a, b;
	uint64_t rx;
	int s;

	(void)self;
	traces_take(&before);
	th_pair_open(&a, &b, NULL);
	th_trecv(&b, &rx, 8, 1, 0, &rx);
	th_post(&a, fi_tinject(a.ep, "12345678", 8, a.peers[1], 1));
	th_rx_ok(&b);
	traces_take(&after);
	for (s = 1; s < NSIG; s++)
		th_ptr_eq(before.sig[s].sa_handler, after.sig[s].sa_handler);
	th_check(!memcmp(&before.mask, &after.mask, sizeof(after.mask)));
	th_pair_close(&a, &b);
}

static const struct CMUnitTest getinfo_tests[] = {
	TH_CASE(profile, 1, 10),
	TH_CASE(case_T33_caps, 1, 10),
	TH_CASE(case_T33_caps_impossible, 1, 10),
	TH_CASE(case_T33_mr_mode, 1, 10),
	TH_CASE(case_T33_strict_mr_mode, 1, 10),
	TH_CASE(case_T33_old_mr_mode, 1, 10),
	TH_CASE(case_T33_old_local_mr, 1, 10),
	TH_CASE(case_T33_old_keys, 1, 10),
	TH_CASE(mode_bits, 1, 10),
	TH_CASE(case_T33_api_versions, 1, 10),
	TH_CASE(threading_echoed, 1, 10),
	TH_CASE(progress_echoed, 1, 10),
	TH_CASE(av_type_and_rm, 1, 10),
	TH_CASE(case_T33_limits, 1, 10),
	TH_CASE(orders_and_flags, 1, 10),
	TH_CASE(names_and_formats, 1, 10),
	TH_CASE(attr_only, 1, 10),
	TH_CASE(contract_L4_no_side_effects, 1, 10),
	TH_CASE(contract_L4_no_handlers, 1, 10),
};

TH_MAIN(getinfo_tests)
