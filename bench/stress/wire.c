/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages between the processes of a group.
 */
#include "bench/stress/wire.h"

#include <errno.h>
#include <sys/socket.h>

int stress_wire_put(int fd, const void *data, size_t len)
{
	ssize_t n;

	do
		n = send(fd, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -EPIPE;
}

int stress_wire_get(int fd, void *data, size_t len)
{
	ssize_t n = recv(fd, data, len, MSG_DONTWAIT);

	if (n == (ssize_t)len)
		return 1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return -EPIPE;
}
