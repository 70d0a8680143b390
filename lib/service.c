/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Rendezvous by name.
 */
#include "lib/service.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shm/log.h"
#include "shm/sock.h"

enum {
	SERVE_BATCH = 16, /* clients answered in one call */
	HOST_MAX = 256,	  /* longest host name */
};

/* ---- which node ---- */

static bool same_address(const struct sockaddr *sa, int family,
			 const void *addr)
{
	if (!sa || sa->sa_family != family)
		return false;
	if (family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)sa)->sin_addr,
			       addr, sizeof(struct in_addr));
	return !memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, addr,
		       sizeof(struct in6_addr));
}

/* One of our interfaces has @addr. */
static bool is_interface(int family, const void *addr)
{
	struct ifaddrs *list, *i;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next)
		found = same_address(i->ifa_addr, family, addr);
	freeifaddrs(list);
	return found;
}

static bool is_our_number(const char *node)
{
	struct in6_addr a6;
	struct in_addr a4;

	if (inet_pton(AF_INET, node, &a4) == 1)
		return ntohl(a4.s_addr) >> 24 == IN_LOOPBACKNET ||
		       is_interface(AF_INET, &a4);
	if (inet_pton(AF_INET6, node, &a6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&a6) || is_interface(AF_INET6, &a6);
	return false;
}

/* Our host name, with or without its domain. */
static bool is_our_name(const char *node)
{
	char host[HOST_MAX] = "";
	size_t n;

	if (gethostname(host, sizeof(host) - 1))
		return false;
	n = strcspn(host, ".");
	return !strcmp(node, host) ||
	       (strlen(node) == n && !strncmp(node, host, n));
}

bool shrimp_node_is_local(const char *node)
{
	return !node || !*node || !strcmp(node, "localhost") ||
	       is_our_name(node) || is_our_number(node);
}

int shrimp_service_addr(const char *node, const char *service,
			struct rnic_addr *addr)
{
	if (!shrimp_node_is_local(node))
		return -FI_ENODATA;
	if (!service || !*service || strlen(service) >= sizeof(addr->service))
		return -FI_EINVAL;
	memset(addr, 0, sizeof(*addr));
	addr->magic = RNIC_MAGIC_ADDR;
	addr->version = RNIC_VERSION;
	addr->kind = RNIC_ADDR_SERVICE;
	addr->uid = geteuid();
	strcpy(addr->service, service);
	return 0;
}

/* ---- who ---- */

static void socket_name(char *buf, size_t room, const char *service)
{
	snprintf(buf, room, "shrimp-svc-%u-%.48s", geteuid(), service);
}

int shrimp_service_bind(const char *service, int *lfd)
{
	char name[96];
	int fd;

	socket_name(name, sizeof(name), service);
	fd = rnic_sock_listen(name);
	if (fd < 0) {
		rnic_log(RNIC_LOG_WARN, "service %s: %s", service,
			 fd == -EADDRINUSE ? "another endpoint has it"
					   : strerror(-fd));
		return fd;
	}
	*lfd = fd;
	return 0;
}

void shrimp_service_serve(int lfd, const struct rnic_addr *self)
{
	for (int i = 0; i < SERVE_BATCH; i++) {
		struct ucred peer;
		int fd = rnic_sock_accept(lfd, &peer);

		if (fd < 0)
			return;
		/* a client that has gone does not matter */
		rnic_sock_send(fd, self, sizeof(*self), NULL, 0, 0);
		close(fd);
	}
}

int shrimp_service_try(const char *service, int *conn, struct rnic_addr *out)
{
	struct ucred peer;
	char name[96];
	int ret;

	if (*conn < 0) {
		socket_name(name, sizeof(name), service);
		ret = rnic_sock_connect(name, 0, &peer);
		if (ret < 0)
			return ret == -EACCES ? -FI_EACCES : -FI_EAGAIN;
		*conn = ret;
	}
	ret = rnic_sock_recv(*conn, out, sizeof(*out), NULL, NULL, 0);
	if (ret == -ETIMEDOUT)
		return -FI_EAGAIN;
	close(*conn);
	*conn = -1;
	if (ret || out->magic != RNIC_MAGIC_ADDR ||
	    out->kind != RNIC_ADDR_ENDPOINT)
		return -FI_EAGAIN;
	return 0;
}
