/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_getinfo(3): whether hints can be met, and the one info that meets them.
 *
 * Each check answers whether a part of the hints is within what we offer;
 * each fill writes the same part of the answer. Infos are made by
 * fi_allocinfo() only, since a newer library may have larger structs.
 */
#include "lib/info.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/endpoint.h"
#include "lib/service.h"
#include "lib/settings.h"

#define MSG_DIRS (FI_SEND | FI_RECV)
#define RMA_DIRS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define DIR_CAPS (MSG_DIRS | RMA_DIRS)
#define PRIMARY_CAPS                                                           \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | DIR_CAPS |                  \
	 FI_DIRECTED_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define SECONDARY_CAPS (FI_MULTI_RECV | FI_SOURCE | FI_FENCE | FI_RMA_EVENT)
#define ALL_CAPS       (PRIMARY_CAPS | SECONDARY_CAPS)
#define TX_CAPS                                                                \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ |         \
	 FI_WRITE | FI_FENCE)
#define RX_CAPS                                                                \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ |  \
	 FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE |      \
	 FI_RMA_EVENT)
#define COMM_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)

#define TX_OP_FLAGS                                                            \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |                      \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE |     \
	 FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE)
#define RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE)

#define MSG_ORDER                                                              \
	(FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW |                  \
	 FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |           \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW |     \
	 FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW)

/* ---- checks: can these hints be met ---- */

static bool tx_ok(const struct fi_tx_attr *h)
{
	return !h ||
	       (!(h->caps & ~(TX_CAPS | COMM_CAPS | RX_CAPS)) &&
		!(h->op_flags & ~TX_OP_FLAGS) && !(h->msg_order & ~MSG_ORDER) &&
		!h->comp_order && h->inject_size <= SHRIMP_INJECT_SIZE &&
		h->size <= SHRIMP_SIZE_MAX && h->iov_limit <= SHRIMP_IOV_MAX &&
		h->rma_iov_limit <= SHRIMP_IOV_MAX);
}

static bool rx_ok(const struct fi_rx_attr *h)
{
	return !h ||
	       (!(h->caps & ~(RX_CAPS | COMM_CAPS | TX_CAPS)) &&
		!(h->op_flags & ~RX_OP_FLAGS) && !(h->msg_order & ~MSG_ORDER) &&
		!h->comp_order && h->size <= SHRIMP_SIZE_MAX &&
		h->iov_limit <= SHRIMP_IOV_MAX);
}

static bool ep_ok(const struct fi_ep_attr *h)
{
	return !h ||
	       ((h->type == FI_EP_UNSPEC || h->type == FI_EP_RDM) &&
		(!h->protocol || h->protocol == SHRIMP_PROTOCOL) &&
		h->max_msg_size <= SHRIMP_MAX_MSG_SIZE && h->tx_ctx_cnt <= 1 &&
		h->rx_ctx_cnt <= 1 && !h->auth_key_size && !h->msg_prefix_size);
}

/* A name of an fi_info is ours, or not given. */
static bool name_ok(const char *hint, const char *ours)
{
	return !hint || !strcmp(hint, ours);
}

static bool domain_ok(const struct fi_domain_attr *h)
{
	return !h || (name_ok(h->name, "shrimp0") &&
		      h->av_type <= FI_AV_TABLE && h->cq_data_size <= 8 &&
		      h->mr_key_size <= 8 && h->max_ep_tx_ctx <= 1 &&
		      h->max_ep_rx_ctx <= 1 && !h->max_ep_stx_ctx &&
		      !h->max_ep_srx_ctx && h->mr_iov_limit <= SHRIMP_IOV_MAX &&
		      h->cq_cnt <= SHRIMP_OBJECTS && h->ep_cnt <= RNIC_EP_MAX &&
		      h->cntr_cnt <= SHRIMP_OBJECTS && !h->auth_key_size &&
		      !(h->caps & ~COMM_CAPS));
}

static bool hints_ok(const struct fi_info *h)
{
	if (!h)
		return true;
	return ep_ok(h->ep_attr) && !(h->caps & ~ALL_CAPS) &&
	       (h->addr_format == FI_FORMAT_UNSPEC ||
		h->addr_format == SHRIMP_ADDR_FORMAT) &&
	       tx_ok(h->tx_attr) && rx_ok(h->rx_attr) &&
	       domain_ok(h->domain_attr) &&
	       (!h->fabric_attr || name_ok(h->fabric_attr->name, "shrimp"));
}

/* ---- the answer ---- */

/* fi_getinfo(3): a capability without direction means all of them. */
static uint64_t caps_for(const struct fi_info *h)
{
	uint64_t caps = (h && h->caps ? h->caps : ALL_CAPS) | SECONDARY_CAPS;

	if (caps & (FI_MSG | FI_TAGGED) && !(caps & MSG_DIRS))
		caps |= MSG_DIRS;
	if (caps & (FI_RMA | FI_ATOMIC) && !(caps & RMA_DIRS))
		caps |= RMA_DIRS;
	if (!(caps & (FI_RMA | FI_ATOMIC)))
		caps &= ~(uint64_t)FI_RMA_EVENT;
	return caps;
}

static size_t size_for(size_t hint, size_t nominal)
{
	return hint ? hint : nominal;
}

static void fill_tx(struct fi_tx_attr *a, const struct fi_tx_attr *h,
		    uint64_t caps)
{
	a->caps = h && h->caps ? h->caps : caps & TX_CAPS;
	a->mode = 0;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = h && h->msg_order ? h->msg_order : MSG_ORDER;
	a->comp_order = 0;
	a->inject_size = SHRIMP_INJECT_SIZE;
	a->size = size_for(h ? h->size : 0, SHRIMP_TX_SIZE);
	a->iov_limit = SHRIMP_IOV_MAX;
	a->rma_iov_limit = SHRIMP_IOV_MAX;
}

static void fill_rx(struct fi_rx_attr *a, const struct fi_rx_attr *h,
		    uint64_t caps)
{
	a->caps = h && h->caps ? h->caps : caps & RX_CAPS;
	a->mode = 0;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = h && h->msg_order ? h->msg_order : MSG_ORDER;
	a->comp_order = 0;
	a->total_buffered_recv = 0;
	a->size = size_for(h ? h->size : 0, SHRIMP_RX_SIZE);
	a->iov_limit = SHRIMP_IOV_MAX;
}

static void fill_ep(struct fi_ep_attr *a)
{
	a->type = FI_EP_RDM;
	a->protocol = SHRIMP_PROTOCOL;
	a->protocol_version = 1;
	a->max_msg_size = SHRIMP_MAX_MSG_SIZE;
	a->msg_prefix_size = 0;
	a->max_order_raw_size = SHRIMP_MAX_MSG_SIZE;
	a->max_order_war_size = SHRIMP_MAX_MSG_SIZE;
	a->max_order_waw_size = SHRIMP_MAX_MSG_SIZE;
	a->mem_tag_format = ~UINT64_C(0);
	a->tx_ctx_cnt = 1;
	a->rx_ctx_cnt = 1;
}

/* MANUAL unless AUTO is asked for; then it is true. */
static enum fi_progress progress_for(enum fi_progress hint)
{
	return hint == FI_PROGRESS_UNSPEC ? FI_PROGRESS_MANUAL : hint;
}

static bool is_old_mr_mode(int mode)
{
	return mode == SHRIMP_MR_BASIC || mode == SHRIMP_MR_SCALABLE;
}

/*
 * fi_mr(3): of the bits that are offered those come back that are needed: what
 * FI_SHRIMP_MR_MODE asks for. The modes before API 1.5 are kept; offered with
 * other bits, which they must not be, they mean nothing. Such a client that
 * leaves the choice to us gets one of the two.
 */
static int mr_mode_for(uint32_t version, int hint)
{
	int strict = shrimp_settings_mr_mode();
	bool nic = strict & FI_MR_VIRT_ADDR && strict & FI_MR_PROV_KEY;

	if (is_old_mr_mode(hint))
		return hint;
	if (!hint && FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return nic ? SHRIMP_MR_BASIC : SHRIMP_MR_SCALABLE;
	return hint & (FI_MR_ALLOCATED | strict);
}

/* The mode bits: one of before API 1.5, where FI_MR_LOCAL cannot be said. */
static uint64_t mode_for(const struct fi_info *h, int mr_mode)
{
	uint64_t offered = h ? h->mode : 0;

	return is_old_mr_mode(mr_mode) &&
			       shrimp_settings_mr_mode() & FI_MR_LOCAL
		       ? offered & SHRIMP_LOCAL_MR
		       : 0;
}

static void fill_domain(struct fi_domain_attr *a, uint32_t version,
			const struct fi_domain_attr *h)
{
	static const struct fi_domain_attr none;

	if (!h)
		h = &none;
	/* safe inside, so whatever the client wants to promise is fine */
	a->threading = h->threading ? h->threading : FI_THREAD_SAFE;
	a->control_progress = progress_for(h->control_progress);
	a->data_progress = progress_for(h->data_progress);
	a->resource_mgmt = FI_RM_ENABLED;
	a->av_type = h->av_type;
	a->mr_mode = mr_mode_for(version, h->mr_mode);
	a->mr_key_size = 8;
	a->cq_data_size = 8;
	a->cq_cnt = SHRIMP_OBJECTS;
	a->ep_cnt = RNIC_EP_MAX;
	a->tx_ctx_cnt = RNIC_EP_MAX;
	a->rx_ctx_cnt = RNIC_EP_MAX;
	a->max_ep_tx_ctx = 1;
	a->max_ep_rx_ctx = 1;
	a->cntr_cnt = SHRIMP_OBJECTS;
	a->mr_iov_limit = SHRIMP_IOV_MAX;
	a->caps = COMM_CAPS;
	a->mode = 0;
	a->max_err_data = 64;
}

static int fill_names(struct fi_info *info)
{
	info->domain_attr->name = strdup("shrimp0");
	/* Open MPI compares it without looking whether it is there */
	info->fabric_attr->name = strdup("shrimp");
	info->fabric_attr->prov_version = SHRIMP_PROVIDER_VERSION;
	return info->domain_attr->name && info->fabric_attr->name ? 0
								  : -FI_ENOMEM;
}

/* The name of a service as source or destination. */
static int fill_service(struct fi_info *info, const char *node,
			const char *service, uint64_t flags)
{
	struct rnic_addr addr, *copy;
	int ret;

	if (!shrimp_node_is_local(node))
		return -FI_ENODATA;
	/* mercury looks at the length; the name exists once enabled */
	info->src_addr = calloc(1, sizeof(*copy));
	if (!info->src_addr)
		return -FI_ENOMEM;
	info->src_addrlen = sizeof(*copy);
	if (!service)
		return 0;
	ret = shrimp_service_addr(node, service, &addr);
	if (ret)
		return -FI_ENODATA;
	if (flags & FI_SOURCE) {
		memcpy(info->src_addr, &addr, sizeof(addr));
	} else {
		copy = malloc(sizeof(*copy));
		if (!copy)
			return -FI_ENOMEM;
		*copy = addr;
		info->dest_addr = copy;
		info->dest_addrlen = sizeof(*copy);
	}
	return 0;
}

static void fill(struct fi_info *info, uint32_t version,
		 const struct fi_info *h)
{
	info->caps = caps_for(h);
	info->addr_format = SHRIMP_ADDR_FORMAT;
	fill_tx(info->tx_attr, h ? h->tx_attr : NULL, info->caps);
	fill_rx(info->rx_attr, h ? h->rx_attr : NULL, info->caps);
	fill_ep(info->ep_attr);
	fill_domain(info->domain_attr, version, h ? h->domain_attr : NULL);
	info->mode = mode_for(h, info->domain_attr->mr_mode);
}

int shrimp_getinfo(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **out)
{
	struct fi_info *info;
	int ret;

	if (!hints_ok(hints))
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	fill(info, version, hints);
	ret = fill_names(info);
	if (!ret)
		ret = fill_service(info, node, service, flags);
	if (ret) {
		fi_freeinfo(info);
		return ret;
	}
	*out = info;
	return 0;
}
