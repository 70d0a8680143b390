/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What the provider offers, fi_getinfo(3), and its limits.
 */
#ifndef SHRIMP_INFO_H
#define SHRIMP_INFO_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define SHRIMP_PROVIDER_VERSION FI_VERSION(0, 1)
/* Numbers of our own; the top bit says that a provider made them up. */
#define SHRIMP_ADDR_FORMAT  (UINT32_C(1) << 31 | UINT32_C(0x73686d))
#define SHRIMP_PROTOCOL	    SHRIMP_ADDR_FORMAT
#define SHRIMP_INJECT_SIZE  ((size_t)4096)
#define SHRIMP_MAX_MSG_SIZE ((size_t)1 << 40)

enum {
	SHRIMP_TX_SIZE = 4096,	   /* nominal: queues grow */
	SHRIMP_RX_SIZE = 4096,	   /* nominal: queues grow */
	SHRIMP_SIZE_MAX = 1 << 20, /* larger hints are not met */
	SHRIMP_OBJECTS = 65536,	   /* CQs, counters of a domain */
};

/*
 * mr_mode of clients before API 1.5, set alone; libfabric 2 warns of the
 * names.
 */
enum {
	SHRIMP_MR_BASIC = 1 << 0,    /* virtual addresses, our keys */
	SHRIMP_MR_SCALABLE = 1 << 1, /* offsets, keys of the client */
};

/* Their mode bit for what FI_MR_LOCAL says today; likewise. */
#define SHRIMP_LOCAL_MR (UINT64_C(1) << 55)

/* What libfabric knows us by. */
extern struct fi_provider shrimp_prov;

/*
 * fi_getinfo(3) of the provider: one info or -FI_ENODATA. Any thread; no
 * side effects (contract L4). The caller frees *@info by fi_freeinfo().
 */
int shrimp_getinfo(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info);

#endif /* SHRIMP_INFO_H */
