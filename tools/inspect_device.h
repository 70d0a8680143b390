/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A device as a whole. One thread.
 */
#ifndef SHRIMP_INSPECT_DEVICE_H
#define SHRIMP_INSPECT_DEVICE_H

#include "tools/inspect.h"

/*
 * Reads all of @d, of which tables, and as far as they were found mailbox and
 * arena, are open, and the header has been read (insp_header_read()).
 */
void insp_device_read(struct insp_device *d, const struct insp_want *w);

/* Closes the files and frees what was read. Zeroed is not accepted: fd 0. */
void insp_device_free(struct insp_device *d);

#endif /* SHRIMP_INSPECT_DEVICE_H */
