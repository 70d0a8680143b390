/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Finds processes with shrimp devices, in /proc. One thread.
 *
 * A device is found by its tables: a memory file of that name among the
 * descriptors of a process, whose header names this process. Its other files
 * are found by the inode numbers in the header. Files are opened for reading
 * only, and only if they cannot shrink.
 */
#ifndef SHRIMP_INSPECT_FIND_H
#define SHRIMP_INSPECT_FIND_H

#include "tools/inspect.h"

/*
 * Reads process @pid with its devices, as @w says, into *@p. Returns 0, also
 * if it has none; -ESRCH: there is no such process; -EACCES: it does not let
 * us look at its descriptors; or what /proc said. *@p is to be freed
 * whatever is returned.
 */
int insp_process_read(pid_t pid, const struct insp_want *w,
		      struct insp_process *p);

/* Frees what was read. Zeroed is accepted. */
void insp_process_free(struct insp_process *p);

/*
 * Reads all processes of this user that have devices into *@l, by pid.
 * Returns 0, or a negative errno: /proc cannot be read.
 */
int insp_list_read(const struct insp_want *w, struct insp_list *l);

/* Frees what was read. Zeroed is accepted. */
void insp_list_free(struct insp_list *l);

#endif /* SHRIMP_INSPECT_FIND_H */
