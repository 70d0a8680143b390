/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Abstract UNIX sockets (no name in any file system) between processes of
 * one user: attach sockets and services. Sequenced packets, never blocking
 * longer than said (signals do not prolong it; below 0: without end),
 * close-on-exec, both sides check the other's user.
 *
 * No state; any thread.
 */
#ifndef RNIC_SOCK_H
#define RNIC_SOCK_H

#include <stddef.h>
#include <sys/socket.h>

enum { RNIC_SOCK_FDS = 8 }; /* descriptors in a message, at most */

/*
 * Listens on @name, of at most 100 characters. Returns the descriptor,
 * -EADDRINUSE (not logged: the caller may take another name), or another
 * negative errno (logged).
 */
int rnic_sock_listen(const char *name);

/*
 * Connects to @name; @timeout_ms while its backlog is full. *@peer is who
 * listens. Returns the descriptor, -ECONNREFUSED (nobody, not logged),
 * -ETIMEDOUT, -EACCES (another user, logged), or another negative errno.
 */
int rnic_sock_connect(const char *name, int timeout_ms, struct ucred *peer);

/*
 * Accepts a connection of the same user; others are closed and logged.
 * Returns the descriptor, -EAGAIN (none), or another negative errno.
 */
int rnic_sock_accept(int lfd, struct ucred *peer);

/*
 * Sends @len bytes and @nfds descriptors as one packet. Returns 0,
 * -ETIMEDOUT, -ECONNRESET, or another negative errno. Never SIGPIPE.
 */
int rnic_sock_send(int fd, const void *msg, size_t len, const int *fds,
		   int nfds, int timeout_ms);

/*
 * Receives a packet of exactly @len bytes, and up to *@nfds descriptors into
 * @fds (both may be NULL: none wanted; more are closed). Returns 0 with
 * *@nfds set, -ETIMEDOUT, -ECONNRESET (closed), -EPROTO (another size), -EMFILE
 * (too few descriptors are free here), with no descriptor kept.
 */
int rnic_sock_recv(int fd, void *msg, size_t len, int *fds, int *nfds,
		   int timeout_ms);

#endif /* RNIC_SOCK_H */
