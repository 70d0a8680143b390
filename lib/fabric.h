/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Fabric: holds the settings, opens everything that needs no device.
 */
#ifndef SHRIMP_FABRIC_H
#define SHRIMP_FABRIC_H

#include <rdma/fabric.h>

#include "lib/settings.h"
#include "shm/atomic.h"

struct shrimp_fabric {
	struct fid_fabric fid;	    /* first: what clients hold */
	struct shrimp_settings set; /* as the environment said at open */
	rnic_a32 refs;		    /* domains, EQs, wait sets */
	uint32_t api;		    /* API version of the client */
	bool inherited;		    /* we are a fork's child */
};

/*
 * fi_fabric(3). Returns 0, -FI_EINVAL (a setting is wrong: said on stderr;
 * another fabric's name), -FI_ENOMEM. Any thread.
 */
int shrimp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		       void *context);

#endif /* SHRIMP_FABRIC_H */
