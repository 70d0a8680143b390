/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Endpoint places of a device, and the lanes into them with their reader
 * slots. One thread.
 */
#ifndef SHRIMP_INSPECT_LANES_H
#define SHRIMP_INSPECT_LANES_H

#include "tools/inspect.h"

/*
 * Reads all places that are in use or have counted something; @lanes: and
 * keeps their claimed lanes in @d->lane. Adds up @d->stats, open, claimed.
 * Without a mailbox there are counters only.
 */
void insp_places_read(struct insp_device *d, bool lanes);

#endif /* SHRIMP_INSPECT_LANES_H */
