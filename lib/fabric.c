/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Fabric objects.
 */
#include "lib/fabric.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/domain.h"
#include "lib/eq.h"
#include "lib/fid.h"
#include "lib/info.h"
#include "lib/refs.h"
#include "lib/stats.h"
#include "lib/wait.h"

static int fabric_close(struct fid *fid)
{
	struct shrimp_fabric *f = (struct shrimp_fabric *)fid;

	if (f->inherited)
		return -FI_EOPBADSTATE;
	if (shrimp_ref_count(&f->refs))
		return -FI_EBUSY;
	shrimp_settings_free(&f->set);
	free(f);
	return 0;
}

static int fabric_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	(void)context;
	return shrimp_stats_ops_open(fid, name, flags, ops);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = shrimp_no_bind,
	.control = shrimp_no_control,
	.ops_open = fabric_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_pep **pep, void *context)
{
	(void)fabric, (void)info, (void)pep, (void)context;
	return -FI_ENOSYS;
}

/* The flags ask for a peer domain, which there is none of. */
static int domain2(struct fid_fabric *fabric, struct fi_info *info,
		   struct fid_domain **dom, uint64_t flags, void *context)
{
	if (flags)
		return -FI_ENOSYS;
	return shrimp_domain_open(fabric, info, dom, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = shrimp_domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = shrimp_eq_open,
	.wait_open = shrimp_waitset_open,
	.trywait = shrimp_trywait,
	.domain2 = domain2,
};

int shrimp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context)
{
	struct shrimp_fabric *f;
	int ret;

	if (attr->name && strcmp(attr->name, "shrimp"))
		return -FI_EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	ret = shrimp_settings_load(&f->set);
	if (ret) {
		free(f);
		return ret;
	}
	f->api = attr->api_version;
	f->fid.fid.fclass = FI_CLASS_FABRIC;
	f->fid.fid.context = context;
	f->fid.fid.ops = &fid_ops;
	f->fid.ops = &fabric_ops;
	*fabric = &f->fid;
	return 0;
}
