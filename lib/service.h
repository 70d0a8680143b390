/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Rendezvous by name on one node, without a third party: an endpoint opened
 * from fi_getinfo(node, service, FI_SOURCE) listens under (user, service);
 * fi_getinfo(node, service, 0) returns an address that names the service,
 * resolved at its first use.
 *
 * No state; any thread. The answer comes with the server's progress.
 */
#ifndef SHRIMP_SERVICE_H
#define SHRIMP_SERVICE_H

#include "shm/layout.h"

/*
 * The address that names @service on @node, which must be this node (NULL
 * is). Returns 0, -FI_ENODATA (another node), -FI_EINVAL (no service, or one
 * longer than the address holds).
 */
int shrimp_service_addr(const char *node, const char *service,
			struct rnic_addr *addr);

/* True if @node is NULL or names this node. */
bool shrimp_node_is_local(const char *node);

/*
 * Starts to listen under @service. Returns 0 with *@lfd, -FI_EADDRINUSE, or
 * another negative code. The caller closes @lfd.
 */
int shrimp_service_bind(const char *service, int *lfd);

/* Tells those who wait at @lfd that the endpoint is @self. Never blocks. */
void shrimp_service_serve(int lfd, const struct rnic_addr *self);

/*
 * One try to find the endpoint behind @service. *@conn is -1 at first and
 * kept between tries; the caller closes it if it gives up. Returns 0 with
 * *@out, -FI_EAGAIN (not there, or not answered yet), -FI_EACCES.
 */
int shrimp_service_try(const char *service, int *conn, struct rnic_addr *out);

#endif /* SHRIMP_SERVICE_H */
