/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Abstract UNIX sockets.
 */
#include "shm/sock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shm/log.h"

enum {
	BACKLOG = 128,	    /* connections not yet accepted */
	NAP_NS = 1000000,   /* between tries while the backlog is full */
	NAME_MAX_LEN = 100, /* longest name */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* An address with a leading zero byte; its length, 0 if @name is too long. */
static socklen_t make_name(struct sockaddr_un *u, const char *name)
{
	size_t n = strlen(name);

	*u = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (n > NAME_MAX_LEN)
		return 0;
	memcpy(u->sun_path + 1, name, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Makes the address of @name, and a socket. */
static int new_socket(struct sockaddr_un *u, socklen_t *len, const char *name)
{
	int fd = -ENAMETOOLONG;

	*len = make_name(u, name);
	if (*len) {
		fd = socket(AF_UNIX,
			    SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			fd = -errno;
	}
	if (fd < 0)
		rnic_log(RNIC_LOG_WARN, "socket @%s: %s", name, strerror(-fd));
	return fd;
}

int rnic_sock_listen(const char *name)
{
	struct sockaddr_un u;
	socklen_t len;
	int fd = new_socket(&u, &len, name);
	int err;

	if (fd < 0)
		return fd;
	if (!bind(fd, (struct sockaddr *)&u, len) && !listen(fd, BACKLOG))
		return fd;
	err = errno;
	if (err != EADDRINUSE)
		rnic_log(RNIC_LOG_WARN, "listen on @%s: %s", name,
			 strerror(err));
	close(fd);
	return -err;
}

/* Who is at the other end; -EACCES if it is another user. */
static int check_peer(int fd, const char *what, struct ucred *peer)
{
	socklen_t len = sizeof(*peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len))
		return -errno;
	if (peer->uid == geteuid())
		return 0;
	rnic_log(RNIC_LOG_WARN,
		 "%s: the other end runs as user %u, we as "
		 "user %u: refused",
		 what, peer->uid, geteuid());
	return -EACCES;
}

/* connect(2) until the backlog has room or @timeout_ms are over. */
static int connect_until(int fd, const struct sockaddr_un *u, socklen_t len,
			 int timeout_ms)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t start = now_ms();

	for (;;) {
		if (!connect(fd, (const struct sockaddr *)u, len))
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (timeout_ms >= 0 && now_ms() - start >= (uint64_t)timeout_ms)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
}

int rnic_sock_connect(const char *name, int timeout_ms, struct ucred *peer)
{
	struct sockaddr_un u;
	socklen_t len;
	int fd = new_socket(&u, &len, name);
	int ret;

	if (fd < 0)
		return fd;
	ret = connect_until(fd, &u, len, timeout_ms);
	if (!ret)
		ret = check_peer(fd, name, peer);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int rnic_sock_accept(int lfd, struct ucred *peer)
{
	for (;;) {
		int fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0)
			return -errno;
		if (!check_peer(fd, "accept", peer))
			return fd;
		close(fd);
	}
}

/* Waits for @events. 0, -ETIMEDOUT, or -errno. */
static int wait_for(int fd, short events, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t start = now_ms(), gone = 0;
	int n;

	do {
		n = poll(&p, 1, timeout_ms < 0 ? -1 : timeout_ms - (int)gone);
		if (n >= 0 || errno != EINTR)
			return n > 0 ? 0 : n ? -errno : -ETIMEDOUT;
		gone = now_ms() - start;
	} while (timeout_ms < 0 || gone < (uint64_t)timeout_ms);
	return -ETIMEDOUT;
}

/* Room for the control message of RNIC_SOCK_FDS descriptors. */
union control {
	struct cmsghdr align;				   /* alignment */
	char buf[CMSG_SPACE(RNIC_SOCK_FDS * sizeof(int))]; /* room */
};

int rnic_sock_send(int fd, const void *msg, size_t len, const int *fds,
		   int nfds, int timeout_ms)
{
	struct iovec iov = { .iov_base = (void *)(unsigned long)msg,
			     .iov_len = len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control c = { 0 };
	int ret = wait_for(fd, POLLOUT, timeout_ms);

	if (ret || nfds > RNIC_SOCK_FDS)
		return ret ? ret : -EINVAL;
	if (nfds) {
		struct cmsghdr *m;

		h.msg_control = c.buf;
		h.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		m = CMSG_FIRSTHDR(&h);
		m->cmsg_level = SOL_SOCKET;
		m->cmsg_type = SCM_RIGHTS;
		m->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(m), fds, (size_t)nfds * sizeof(int));
	}
	if (sendmsg(fd, &h, MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return errno == EPIPE ? -ECONNRESET : -errno;
}

/*
 * Hands over the first *@nfds descriptors of @h, closes the others. Returns
 * how many there were.
 */
static size_t take_fds(struct msghdr *h, int *fds, int *nfds, bool keep)
{
	int room = nfds ? *nfds : 0, got = 0;
	size_t all = 0;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(h); m; m = CMSG_NXTHDR(h, m)) {
		size_t n = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		all += n;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(m) + i * sizeof(int),
			       sizeof(int));
			if (keep && got < room)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	if (nfds)
		*nfds = got;
	return all;
}

int rnic_sock_recv(int fd, void *msg, size_t len, int *fds, int *nfds,
		   int timeout_ms)
{
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	union control c;
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.buf,
			    .msg_controllen = sizeof(c.buf) };
	int ret = wait_for(fd, POLLIN, timeout_ms);
	ssize_t n;
	size_t all;

	if (ret)
		return ret;
	n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (n == 0)
		ret = -ECONNRESET;
	else if ((size_t)n != len || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		ret = -EPROTO;
	all = take_fds(&h, fds, nfds, !ret);
	/* cut though there was room: no number was free for the rest */
	if ((size_t)n == len && h.msg_flags & MSG_CTRUNC && all < RNIC_SOCK_FDS)
		ret = -EMFILE;
	return ret;
}
