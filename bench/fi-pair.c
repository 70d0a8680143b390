/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * One libfabric RDM endpoint that exchanges tagged messages with one peer.
 */
#include "bench/fi-pair.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/clock.h"

enum {
	TAG = 7,
	POLLS = 1 << 16, /* empty polls between two looks at the clock */
	STUCK_S = 10,	 /* nothing for so long: the peer is gone */
};

/* The name of an endpoint as it goes over the socket. */
struct name {
	uint64_t len;		       /* bytes used */
	char bytes[BENCH_FI_NAME_MAX]; /* as fi_getname() gave them */
};

static int complain(const char *what, int rc)
{
	fprintf(stderr, "%s: %s\n", what, fi_strerror(-rc));
	return rc;
}

static struct fi_info *hints_make(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->fabric_attr->prov_name = strdup(provider);
	if (hints->fabric_attr->prov_name)
		return hints;
	fi_freeinfo(hints);
	return NULL;
}

static int info_get(struct bench_fi_pair *pair, const char *provider)
{
	struct fi_info *hints = hints_make(provider);
	const char *path = getenv("FI_PROVIDER_PATH");
	int rc;

	if (!hints)
		return complain("hints", -FI_ENOMEM);
	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &pair->info);
	fi_freeinfo(hints);
	if (rc)
		fprintf(stderr,
			"libfabric has no provider \"%s\" for tagged messages "
			"between RDM endpoints (FI_PROVIDER_PATH is %s): %s\n",
			provider, path ? path : "not set", fi_strerror(-rc));
	return rc;
}

static int domain_open(struct bench_fi_pair *pair)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .count = 2 };
	int rc;

	rc = fi_fabric(pair->info->fabric_attr, &pair->fabric, NULL);
	if (rc)
		return complain("fi_fabric", rc);
	rc = fi_domain(pair->fabric, pair->info, &pair->domain, NULL);
	if (rc)
		return complain("fi_domain", rc);
	av_attr.type = pair->info->domain_attr->av_type;
	rc = fi_av_open(pair->domain, &av_attr, &pair->av, NULL);
	if (rc)
		return complain("fi_av_open", rc);
	rc = fi_cq_open(pair->domain, &cq_attr, &pair->cq, NULL);
	return rc ? complain("fi_cq_open", rc) : 0;
}

static int endpoint_open(struct bench_fi_pair *pair)
{
	int rc;

	rc = fi_endpoint(pair->domain, pair->info, &pair->ep, NULL);
	if (rc)
		return complain("fi_endpoint", rc);
	rc = fi_ep_bind(pair->ep, &pair->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(pair->ep, &pair->cq->fid,
				FI_TRANSMIT | FI_RECV);
	if (rc)
		return complain("fi_ep_bind", rc);
	rc = fi_enable(pair->ep);
	return rc ? complain("fi_enable", rc) : 0;
}

int bench_fi_open(struct bench_fi_pair *pair, const char *provider)
{
	int rc;

	rc = info_get(pair, provider);
	if (!rc)
		rc = domain_open(pair);
	if (!rc)
		rc = endpoint_open(pair);
	return rc;
}

static int whole_read(int fd, void *data, size_t size)
{
	char *at = data;
	ssize_t n;

	for (; size; at += n, size -= (size_t)n) {
		n = read(fd, at, size);
		if (n <= 0)
			return -FI_EIO;
	}
	return 0;
}

static int names_swap(struct bench_fi_pair *pair, int fd, struct name *peer)
{
	struct name own = { .len = 0 };
	size_t len = sizeof(own.bytes);
	int rc;

	rc = fi_getname(&pair->ep->fid, own.bytes, &len);
	if (rc)
		return complain("fi_getname", rc);
	own.len = len;
	if (write(fd, &own, sizeof(own)) != sizeof(own) ||
	    whole_read(fd, peer, sizeof(*peer)))
		return complain("the other process is gone", -FI_EIO);
	return 0;
}

int bench_fi_meet(struct bench_fi_pair *pair, int fd)
{
	struct name peer;
	int rc;

	rc = names_swap(pair, fd, &peer);
	if (rc)
		return rc;
	rc = fi_av_insert(pair->av, peer.bytes, 1, &pair->peer, 0, NULL);
	if (rc != 1)
		return complain("fi_av_insert", rc < 0 ? rc : -FI_EINVAL);
	return 0;
}

static int error_read(struct bench_fi_pair *pair)
{
	struct fi_cq_err_entry entry = { .err = FI_EOTHER };
	ssize_t rc = fi_cq_readerr(pair->cq, &entry, 0);

	if (rc < 0)
		return complain("fi_cq_readerr", (int)rc);
	return complain("error completion", -entry.err);
}

/* One look; returns completions seen, 0 for none, or a negative code. */
static inline int completion_read(struct bench_fi_pair *pair)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc = fi_cq_read(pair->cq, &entry, 1);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc == -FI_EAVAIL)
		return error_read(pair);
	if (rc < 0)
		return complain("fi_cq_read", (int)rc);
	if (entry.op_context == &pair->rx_context)
		pair->rx_pending--;
	else
		pair->tx_pending--;
	return 1;
}

int bench_fi_wait(struct bench_fi_pair *pair, uint64_t rx_left)
{
	uint64_t give_up = 0;
	unsigned int polls = 0;
	int rc;

	while (pair->rx_pending > rx_left || pair->tx_pending) {
		rc = completion_read(pair);
		if (rc < 0)
			return rc;
		if (rc || ++polls % POLLS)
			continue;
		if (!give_up)
			give_up = bench_clock_ns() + STUCK_S * 1000000000ull;
		else if (bench_clock_ns() > give_up)
			return complain("no completion", -FI_ETIMEDOUT);
	}
	return 0;
}

int bench_fi_post(struct bench_fi_pair *pair, void *data, size_t size)
{
	ssize_t rc;

	do {
		rc = fi_trecv(pair->ep, data, size, NULL, FI_ADDR_UNSPEC, TAG,
			      0, &pair->rx_context);
	} while (rc == -FI_EAGAIN && completion_read(pair) >= 0);
	if (rc)
		return complain("fi_trecv", (int)rc);
	pair->rx_pending++;
	return 0;
}

int bench_fi_inject(struct bench_fi_pair *pair, const void *data, size_t size)
{
	ssize_t rc;

	do {
		rc = fi_tinject(pair->ep, data, size, pair->peer, TAG);
	} while (rc == -FI_EAGAIN && completion_read(pair) >= 0);
	return rc ? complain("fi_tinject", (int)rc) : 0;
}

int bench_fi_send(struct bench_fi_pair *pair, const void *data, size_t size)
{
	ssize_t rc;

	do {
		rc = fi_tsend(pair->ep, data, size, NULL, pair->peer, TAG,
			      &pair->tx_context);
	} while (rc == -FI_EAGAIN && completion_read(pair) >= 0);
	if (rc)
		return complain("fi_tsend", (int)rc);
	pair->tx_pending++;
	return 0;
}

static void fid_close(struct fid *fid, const char *what)
{
	int rc = fi_close(fid);

	if (rc)
		complain(what, rc);
}

void bench_fi_close(struct bench_fi_pair *pair)
{
	if (pair->ep)
		fid_close(&pair->ep->fid, "fi_close of the endpoint");
	if (pair->cq)
		fid_close(&pair->cq->fid, "fi_close of the queue");
	if (pair->av)
		fid_close(&pair->av->fid, "fi_close of the address vector");
	if (pair->domain)
		fid_close(&pair->domain->fid, "fi_close of the domain");
	if (pair->fabric)
		fid_close(&pair->fabric->fid, "fi_close of the fabric");
	if (pair->info)
		fi_freeinfo(pair->info);
	memset(pair, 0, sizeof(*pair));
}
