/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * fi_getinfo() of the provider, called without libfabric's core: what
 * matches, what comes back, which nodes are ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/info.h"
#include "shm/layout.h"

static const uint32_t api = FI_VERSION(1, 17);

static struct fi_info *hints_new(void)
{
	struct fi_info *h = fi_allocinfo();

	assert_non_null(h);
	return h;
}

static struct fi_info *match(const struct fi_info *h)
{
	struct fi_info *info = NULL;

	assert_int_equal(shrimp_getinfo(api, NULL, NULL, 0, h, &info), 0);
	assert_non_null(info);
	assert_null(info->next);
	return info;
}

static void matches(const struct fi_info *h)
{
	fi_freeinfo(match(h));
}

static void no_match(const struct fi_info *h)
{
	struct fi_info *info = NULL;

	assert_int_equal(shrimp_getinfo(api, NULL, NULL, 0, h, &info),
			 -FI_ENODATA);
	assert_null(info);
}

/* ---- the profile ---- */

static void check_profile(const struct fi_info *i)
{
	uint64_t all = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_RMA |
		       FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |
		       FI_REMOTE_WRITE | FI_RMA_EVENT | FI_DIRECTED_RECV |
		       FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM |
		       FI_REMOTE_COMM;

	assert_int_equal(i->caps & all, all);
	assert_int_equal(i->mode | i->tx_attr->mode | i->rx_attr->mode, 0);
	assert_int_equal(i->ep_attr->type, FI_EP_RDM);
	assert_true(i->ep_attr->max_msg_size >= SHRIMP_MAX_MSG_SIZE);
	assert_int_equal(i->ep_attr->mem_tag_format >> 63, 1);
	assert_true(i->tx_attr->inject_size >= 4096);
	assert_int_equal(i->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
	assert_int_equal(i->rx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
	assert_int_equal(i->tx_attr->msg_order & (FI_ORDER_SAR | FI_ORDER_SAW |
						  FI_ORDER_RAS | FI_ORDER_WAS),
			 0);
	assert_int_equal(i->domain_attr->threading, FI_THREAD_SAFE);
	assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
	assert_int_equal(i->domain_attr->cq_data_size, 8);
	assert_int_equal(i->domain_attr->max_ep_tx_ctx, 1);
	assert_int_equal(i->domain_attr->av_type, FI_AV_UNSPEC);
	assert_int_equal(i->domain_attr->mr_mode, 0);
}

/* Names: Open MPI compares them unseen; the core sets that of the provider. */
static void check_names(const struct fi_info *i)
{
	assert_string_equal(i->fabric_attr->name, "shrimp");
	assert_string_equal(i->domain_attr->name, "shrimp0");
	assert_null(i->fabric_attr->prov_name);
	assert_int_equal(i->addr_format, SHRIMP_ADDR_FORMAT);
	assert_int_equal(i->src_addrlen, sizeof(struct rnic_addr));
	assert_non_null(i->src_addr);
	assert_null(i->dest_addr);
	assert_null(i->nic);
}

static void info_profile(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	for (int k = 0; k < 2; k++) {
		i = match(k ? h : NULL);
		check_profile(i);
		check_names(i);
		fi_freeinfo(i);
	}
	fi_freeinfo(h);
}

/* What came back is a hint that gives the same again. */
static void info_is_its_own_hint(void **state)
{
	struct fi_info *a = match(NULL), *b = match(a);

	(void)state;
	assert_int_equal(a->caps, b->caps);
	assert_int_equal(a->tx_attr->caps, b->tx_attr->caps);
	assert_int_equal(a->rx_attr->caps, b->rx_attr->caps);
	assert_int_equal(a->tx_attr->msg_order, b->tx_attr->msg_order);
	assert_int_equal(a->ep_attr->protocol, b->ep_attr->protocol);
	fi_freeinfo(a);
	fi_freeinfo(b);
}

/* Any part of the hints may be absent. */
static void info_parts_may_be_null(void **state)
{
	struct fi_info h = { .caps = FI_MSG };

	(void)state;
	matches(&h);
}

/* ---- capabilities ---- */

static void info_caps(void **state)
{
	static const uint64_t primary = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
	static const struct {
		uint64_t ask; /* caps of the hints */
		uint64_t get; /* at least these */
	} row[] = {
		{ FI_MSG, FI_MSG | FI_SEND | FI_RECV },
		{ FI_TAGGED, FI_TAGGED | FI_SEND | FI_RECV },
		{ FI_MSG | FI_SEND, FI_MSG | FI_SEND },
		{ FI_TAGGED | FI_RECV, FI_TAGGED | FI_RECV },
		{ FI_MSG | FI_MULTI_RECV | FI_SOURCE | FI_FENCE,
		  FI_MSG | FI_MULTI_RECV | FI_SOURCE | FI_FENCE },
		{ FI_TAGGED | FI_DIRECTED_RECV | FI_REMOTE_COMM | FI_LOCAL_COMM,
		  FI_TAGGED | FI_DIRECTED_RECV | FI_REMOTE_COMM |
			  FI_LOCAL_COMM },
	};
	struct fi_info *h = hints_new();

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct fi_info *i;

		h->caps = row[k].ask;
		i = match(h);
		assert_int_equal(i->caps & row[k].get, row[k].get);
		assert_int_equal(i->caps & primary & ~row[k].ask, 0);
		assert_int_equal(i->tx_attr->caps & ~i->caps, 0);
		assert_int_equal(i->rx_attr->caps & ~i->caps, 0);
		fi_freeinfo(i);
	}
	fi_freeinfo(h);
}

static void info_caps_that_nobody_has(void **state)
{
	static const uint64_t none[] = { FI_HMEM,	  FI_MULTICAST,
					 FI_TRIGGER,	  FI_COLLECTIVE,
					 FI_NAMED_RX_CTX, FI_SHARED_AV };
	struct fi_info *h = hints_new();

	(void)state;
	for (size_t k = 0; k < sizeof(none) / sizeof(*none); k++) {
		h->caps = FI_MSG | none[k];
		no_match(h);
		h->caps = 0;
		h->tx_attr->caps = none[k];
		no_match(h);
		h->tx_attr->caps = 0;
	}
	fi_freeinfo(h);
}

/* ---- limits ---- */

static void limit(struct fi_info *h, size_t *field, size_t most)
{
	*field = most;
	matches(h);
	*field = most + 1;
	no_match(h);
	*field = 0;
}

static void info_limits(void **state)
{
	struct fi_info *h = hints_new();

	(void)state;
	limit(h, &h->tx_attr->inject_size, SHRIMP_INJECT_SIZE);
	limit(h, &h->tx_attr->iov_limit, 16);
	limit(h, &h->tx_attr->size, SHRIMP_SIZE_MAX);
	limit(h, &h->rx_attr->iov_limit, 16);
	limit(h, &h->rx_attr->size, SHRIMP_SIZE_MAX);
	limit(h, &h->ep_attr->max_msg_size, SHRIMP_MAX_MSG_SIZE);
	limit(h, &h->ep_attr->tx_ctx_cnt, 1);
	limit(h, &h->ep_attr->rx_ctx_cnt, 1);
	limit(h, &h->domain_attr->cq_data_size, 8);
	limit(h, &h->domain_attr->mr_key_size, 8);
	limit(h, &h->domain_attr->max_ep_tx_ctx, 1);
	limit(h, &h->domain_attr->max_ep_rx_ctx, 1);
	limit(h, &h->domain_attr->max_ep_stx_ctx, 0);
	fi_freeinfo(h);
}

static void info_sizes_are_echoed(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	h->tx_attr->size = 100000;
	h->rx_attr->size = 7;
	i = match(h);
	assert_int_equal(i->tx_attr->size, 100000);
	assert_true(i->rx_attr->size >= 7);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* ---- attributes ---- */

static void info_echoes(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	h->domain_attr->control_progress = FI_PROGRESS_AUTO;
	h->domain_attr->av_type = FI_AV_MAP;
	h->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	h->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	h->tx_attr->msg_order = FI_ORDER_SAS;
	i = match(h);
	assert_int_equal(i->domain_attr->threading, FI_THREAD_DOMAIN);
	assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_AUTO);
	assert_int_equal(i->domain_attr->control_progress, FI_PROGRESS_AUTO);
	assert_int_equal(i->domain_attr->av_type, FI_AV_MAP);
	assert_int_equal(i->tx_attr->op_flags, h->tx_attr->op_flags);
	assert_int_equal(i->rx_attr->op_flags, h->rx_attr->op_flags);
	assert_int_equal(i->tx_attr->msg_order, FI_ORDER_SAS);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* Modes are offers: none is needed, and that is what comes back. */
static void info_modes_are_cleared(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	h->mode = ~UINT64_C(0);
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				  FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				  FI_MR_ENDPOINT | FI_MR_HMEM;
	i = match(h);
	assert_int_equal(i->mode, 0);
	assert_int_equal(i->domain_attr->mr_mode, FI_MR_ALLOCATED);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

static void info_flags_and_orders_that_nobody_has(void **state)
{
	struct fi_info *h = hints_new();

	(void)state;
	h->tx_attr->op_flags = FI_COMMIT_COMPLETE;
	no_match(h);
	h->tx_attr->op_flags = 0;
	h->rx_attr->op_flags = FI_INJECT;
	no_match(h);
	h->rx_attr->op_flags = 0;
	h->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
	no_match(h);
	h->tx_attr->msg_order = 0;
	h->rx_attr->comp_order = FI_ORDER_STRICT;
	no_match(h);
	fi_freeinfo(h);
}

static void info_types_and_names(void **state)
{
	struct fi_info *h = hints_new();

	(void)state;
	h->ep_attr->type = FI_EP_MSG;
	no_match(h);
	h->ep_attr->type = FI_EP_DGRAM;
	no_match(h);
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->name = strdup("shrimp0");
	h->fabric_attr->name = strdup("shrimp");
	h->addr_format = SHRIMP_ADDR_FORMAT;
	h->ep_attr->protocol = SHRIMP_PROTOCOL;
	matches(h);
	h->domain_attr->name[6] = '1';
	no_match(h);
	h->domain_attr->name[6] = '0';
	h->fabric_attr->name[0] = 'S';
	no_match(h);
	h->fabric_attr->name[0] = 's';
	h->addr_format = FI_SOCKADDR_IN;
	no_match(h);
	h->addr_format = FI_FORMAT_UNSPEC;
	h->ep_attr->protocol = FI_PROTO_SHM;
	no_match(h);
	fi_freeinfo(h);
}

/* ---- nodes and services ---- */

static int ask(const char *node, const char *service, uint64_t flags,
	       struct fi_info **i)
{
	*i = NULL;
	return shrimp_getinfo(api, node, service, flags, NULL, i);
}

static void info_nodes(void **state)
{
	char host[256] = "";
	const char *ours[] = { NULL,	    "localhost", "127.0.0.1",
			       "127.9.8.7", "::1",	 host };
	static const char *const others[] = { "192.0.2.1", "2001:db8::1",
					      "no-such-host.invalid" };
	struct fi_info *i;

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	for (size_t k = 0; k < sizeof(ours) / sizeof(*ours); k++)
		for (int source = 0; source < 2; source++) {
			uint64_t flags = source ? FI_SOURCE : 0;

			assert_int_equal(ask(ours[k], "7471", flags, &i), 0);
			fi_freeinfo(i);
		}
	for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++) {
		assert_int_equal(ask(others[k], "7471", 0, &i), -FI_ENODATA);
		assert_int_equal(ask(others[k], NULL, FI_SOURCE, &i),
				 -FI_ENODATA);
		assert_null(i);
	}
}

static void check_service(const void *addr, size_t len, const char *service)
{
	const struct rnic_addr *a = addr;

	assert_non_null(a);
	assert_int_equal(len, sizeof(*a));
	assert_int_equal(a->magic, RNIC_MAGIC_ADDR);
	assert_int_equal(a->version, RNIC_VERSION);
	assert_int_equal(a->kind, RNIC_ADDR_SERVICE);
	assert_int_equal(a->uid, geteuid());
	assert_string_equal(a->service, service);
}

static void info_services(void **state)
{
	char longest[48];
	struct fi_info *i;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[47] = '\0';
	assert_int_equal(ask(NULL, "7471", FI_SOURCE, &i), 0);
	check_service(i->src_addr, i->src_addrlen, "7471");
	assert_null(i->dest_addr);
	fi_freeinfo(i);
	assert_int_equal(ask("localhost", longest, 0, &i), 0);
	check_service(i->dest_addr, i->dest_addrlen, longest);
	fi_freeinfo(i);
}

static void info_services_that_cannot_be(void **state)
{
	char name[49];
	struct fi_info *i;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[48] = '\0';
	assert_int_equal(ask(NULL, name, 0, &i), -FI_ENODATA);
	assert_int_equal(ask(NULL, name, FI_SOURCE, &i), -FI_ENODATA);
	assert_int_equal(ask(NULL, "", FI_SOURCE, &i), -FI_ENODATA);
	assert_null(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info_profile),
		cmocka_unit_test(info_is_its_own_hint),
		cmocka_unit_test(info_parts_may_be_null),
		cmocka_unit_test(info_caps),
		cmocka_unit_test(info_caps_that_nobody_has),
		cmocka_unit_test(info_limits),
		cmocka_unit_test(info_sizes_are_echoed),
		cmocka_unit_test(info_echoes),
		cmocka_unit_test(info_modes_are_cleared),
		cmocka_unit_test(info_flags_and_orders_that_nobody_has),
		cmocka_unit_test(info_types_and_names),
		cmocka_unit_test(info_nodes),
		cmocka_unit_test(info_services),
		cmocka_unit_test(info_services_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
