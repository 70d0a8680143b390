/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key cache policy none: nothing is kept, each lookup walks the tables.
 */
#include "shm/keycache.h"

const struct rnic_keycache_ops rnic_keycache_none = {
	.name = "none",
};
