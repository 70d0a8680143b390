/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Key caches of a device's execution contexts. One thread.
 */
#ifndef SHRIMP_INSPECT_CACHE_H
#define SHRIMP_INSPECT_CACHE_H

#include "tools/inspect.h"

/*
 * Adds up the caches of all contexts that have ever been; @each: keeps each
 * in @d->cache. The number of entries is what the header leaves room for.
 */
void insp_caches_read(struct insp_device *d, bool each);

#endif /* SHRIMP_INSPECT_CACHE_H */
