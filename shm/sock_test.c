/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Sockets: names, users, packets, descriptors, time limits.
 */
#include "shm/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/log.h"

enum {
	LIMIT_S = 60,	/* the whole program ends by then */
	NOBODY = 65534, /* a user without rights */
	SKIP = 77,	/* a child could not set up its case */
	SOON_MS = 2000, /* a time limit of 100 ms is over by then */
};

static unsigned int logged;

static void count(enum rnic_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
	logged++;
}

/* A connection, each end as its process has it. */
struct pair {
	char name[64];
	int listener;
	int a;		     /* connected */
	int b;		     /* accepted */
	struct ucred sees_b; /* what the connected end was told */
	struct ucred sees_a; /* what the accepting end was told */
};

static void make_name(char name[64])
{
	static unsigned int n;

	snprintf(name, 64, "shrimp-sock-test-%d-%u", getpid(), n++);
}

static int setup(void **state)
{
	static struct pair p;

	*state = &p;
	logged = 0;
	rnic_log_sink(count);
	make_name(p.name);
	p.listener = rnic_sock_listen(p.name);
	p.a = rnic_sock_connect(p.name, 0, &p.sees_b);
	p.b = rnic_sock_accept(p.listener, &p.sees_a);
	return p.listener < 0 || p.a < 0 || p.b < 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	rnic_log_sink(NULL);
	close(p->listener);
	if (p->a >= 0)
		close(p->a);
	if (p->b >= 0)
		close(p->b);
	return 0;
}

static void hang_up(int *fd)
{
	close(*fd);
	*fd = -1;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool is_ours(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC &&
	       fcntl(fd, F_GETFL) & O_NONBLOCK;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- names ---- */

static void both_know_each_other(void **state)
{
	struct pair *p = *state;

	assert_int_equal(p->sees_a.uid, geteuid());
	assert_int_equal(p->sees_a.pid, getpid());
	assert_int_equal(p->sees_b.uid, geteuid());
	assert_int_equal(p->sees_b.pid, getpid());
	assert_true(is_ours(p->listener) && is_ours(p->a) && is_ours(p->b));
	assert_int_equal(rnic_sock_accept(p->listener, &p->sees_a), -EAGAIN);
	assert_int_equal(logged, 0);
}

/* In the kernel's list with an @, so in no file system. */
static void name_is_abstract(void **state)
{
	struct pair *p = *state;
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512], want[80];
	bool found = false;

	assert_non_null(f);
	snprintf(want, sizeof(want), " @%s\n", p->name);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, want) != NULL;
	fclose(f);
	assert_true(found);
}

static void names_collide(void **state)
{
	struct pair *p = *state;
	int fds = count_fds();

	assert_int_equal(rnic_sock_listen(p->name), -EADDRINUSE);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(logged, 0);
}

static void names_have_a_length(void **state)
{
	struct ucred peer;
	char name[102];
	int fd;

	(void)state;
	memset(name, 'x', sizeof(name));
	name[101] = '\0';
	assert_int_equal(rnic_sock_listen(name), -ENAMETOOLONG);
	assert_int_equal(rnic_sock_connect(name, 0, &peer), -ENAMETOOLONG);
	assert_int_equal(logged, 2);
	name[100] = '\0';
	fd = rnic_sock_listen(name);
	assert_true(fd >= 0);
	close(fd);
}

static void nobody_listens(void **state)
{
	struct pair *p = *state;
	struct ucred peer;
	int fds = count_fds();

	assert_int_equal(rnic_sock_connect("shrimp-no-such-name", 100, &peer),
			 -ECONNREFUSED);
	assert_int_equal(count_fds(), fds);
	close(p->listener);
	assert_int_equal(rnic_sock_connect(p->name, 0, &peer), -ECONNREFUSED);
	assert_int_equal(logged, 0);
	p->listener = rnic_sock_listen(p->name);
	assert_true(p->listener >= 0);
}

static void full_backlog_times_out(void **state)
{
	struct pair *p = *state;
	struct ucred peer;
	int fd[300], n = 0, fds;
	uint64_t start;

	while (n < 300 && (fd[n] = rnic_sock_connect(p->name, 0, &peer)) >= 0)
		n++;
	assert_in_range(n, 100, 299);
	assert_int_equal(fd[n], -ETIMEDOUT);
	fds = count_fds();
	start = now_ms();
	assert_int_equal(rnic_sock_connect(p->name, 100, &peer), -ETIMEDOUT);
	assert_in_range(now_ms() - start, 100, SOON_MS);
	assert_int_equal(count_fds(), fds);
	while (n)
		close(fd[--n]);
}

/* ---- packets ---- */

static void packet_arrives(void **state)
{
	struct pair *p = *state;
	char got[6] = "";

	assert_int_equal(rnic_sock_send(p->a, "hello", 6, NULL, 0, 0), 0);
	assert_int_equal(rnic_sock_recv(p->b, got, 6, NULL, NULL, 0), 0);
	assert_string_equal(got, "hello");
	assert_int_equal(rnic_sock_send(p->b, "world", 6, NULL, 0, 0), 0);
	assert_int_equal(rnic_sock_recv(p->a, got, 6, NULL, NULL, 0), 0);
	assert_string_equal(got, "world");
}

static void another_size_is_refused(void **state)
{
	struct pair *p = *state;
	char got[6] = "";

	assert_int_equal(rnic_sock_send(p->a, "hello", 5, NULL, 0, 0), 0);
	assert_int_equal(rnic_sock_recv(p->b, got, 6, NULL, NULL, 0), -EPROTO);
	assert_int_equal(rnic_sock_send(p->a, "hello!!", 7, NULL, 0, 0), 0);
	assert_int_equal(rnic_sock_recv(p->b, got, 6, NULL, NULL, 0), -EPROTO);
	/* each was taken whole */
	assert_int_equal(rnic_sock_recv(p->b, got, 6, NULL, NULL, 0),
			 -ETIMEDOUT);
}

static void closed_end_is_reset(void **state)
{
	struct pair *p = *state;
	char got[2];

	hang_up(&p->b);
	/* no signal: it would end this program */
	assert_int_equal(rnic_sock_send(p->a, "x", 1, NULL, 0, 0), -ECONNRESET);
	assert_int_equal(rnic_sock_recv(p->a, got, 1, NULL, NULL, 0),
			 -ECONNRESET);
}

static void unread_packets_reset(void **state)
{
	struct pair *p = *state;
	char got[2];

	assert_int_equal(rnic_sock_send(p->a, "x", 1, NULL, 0, 0), 0);
	hang_up(&p->b);
	assert_int_equal(rnic_sock_recv(p->a, got, 1, NULL, NULL, 0),
			 -ECONNRESET);
}

static void last_words_are_heard(void **state)
{
	struct pair *p = *state;
	char got[2] = "";

	assert_int_equal(rnic_sock_send(p->a, "x", 1, NULL, 0, 0), 0);
	hang_up(&p->a);
	assert_int_equal(rnic_sock_recv(p->b, got, 1, NULL, NULL, 0), 0);
	assert_int_equal(*got, 'x');
	assert_int_equal(rnic_sock_recv(p->b, got, 1, NULL, NULL, 0),
			 -ECONNRESET);
}

/* ---- descriptors ---- */

static void descriptors_arrive(void **state)
{
	struct pair *p = *state;
	int pipe_fd[2], got[RNIC_SOCK_FDS], n = RNIC_SOCK_FDS, fds;
	char c = 0;

	assert_int_equal(pipe(pipe_fd), 0);
	fds = count_fds();
	assert_int_equal(rnic_sock_send(p->a, "x", 1, pipe_fd, 2, 0), 0);
	assert_int_equal(rnic_sock_recv(p->b, &c, 1, got, &n, 0), 0);
	assert_int_equal(n, 2);
	assert_int_equal(count_fds(), fds + 2);
	assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(got[1], "y", 1), 1);
	assert_int_equal(read(pipe_fd[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(got[0]);
	close(got[1]);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

/* Sends four descriptors, takes at most @room, expects @got of them. */
static void send_four(struct pair *p, size_t len, int room, int ret, int got)
{
	int four[4] = { 0, 1, 2, 0 }, in[4], n = room, fds = count_fds();
	char buf[8];

	assert_int_equal(rnic_sock_send(p->a, "12345678", len, four, 4, 0), 0);
	assert_int_equal(rnic_sock_recv(p->b, buf, 4, room ? in : NULL,
					room ? &n : NULL, 0),
			 ret);
	assert_int_equal(count_fds(), fds + got);
	assert_int_equal(n, got);
	while (n)
		close(in[--n]);
}

static void unwanted_descriptors_are_closed(void **state)
{
	struct pair *p = *state;

	send_four(p, 4, 4, 0, 4);
	send_four(p, 4, 2, 0, 2);
	send_four(p, 4, 0, 0, 0);
	/* packets of another size keep none */
	send_four(p, 3, 4, -EPROTO, 0);
	send_four(p, 5, 4, -EPROTO, 0);
}

/* That is no fault of the other end, and may pass. */
static void no_free_number_is_told(void **state)
{
	struct rlimit all, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = all;
	few.rlim_cur = (rlim_t)dup(0) + 2;
	close((int)few.rlim_cur - 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	send_four(*state, 4, 4, -EMFILE, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	send_four(*state, 4, 4, 0, 4);
}

/* More than a message of ours can have, sent by a stranger. */
static void cut_control_is_refused(void **state)
{
	struct pair *p = *state;
	char c = 'x', buf[CMSG_SPACE(20 * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = buf,
			    .msg_controllen = sizeof(buf) };
	struct cmsghdr *m = CMSG_FIRSTHDR(&h);
	int in[RNIC_SOCK_FDS], n = RNIC_SOCK_FDS, fds = count_fds();

	m->cmsg_level = SOL_SOCKET;
	m->cmsg_type = SCM_RIGHTS;
	/* twenty zeros: descriptor 0 */
	m->cmsg_len = CMSG_LEN(20 * sizeof(int));
	assert_int_equal(sendmsg(p->a, &h, 0), 1);
	assert_int_equal(rnic_sock_recv(p->b, &c, 1, in, &n, 0), -EPROTO);
	assert_int_equal(n, 0);
	assert_int_equal(count_fds(), fds);
}

static void too_many_are_not_sent(void **state)
{
	struct pair *p = *state;
	int many[RNIC_SOCK_FDS + 1] = { 0 }, n = RNIC_SOCK_FDS;
	int in[RNIC_SOCK_FDS];
	char c;

	assert_int_equal(
		rnic_sock_send(p->a, "x", 1, many, RNIC_SOCK_FDS + 1, 0),
		-EINVAL);
	assert_int_equal(rnic_sock_send(p->a, "x", 1, many, RNIC_SOCK_FDS, 0),
			 0);
	assert_int_equal(rnic_sock_recv(p->b, &c, 1, in, &n, 0), 0);
	assert_int_equal(n, RNIC_SOCK_FDS);
	while (n)
		close(in[--n]);
}

/* ---- time ---- */

static void limits_are_kept(void **state)
{
	struct pair *p = *state;
	char big[4096] = { 0 };
	uint64_t start = now_ms();
	int ret = 0;

	assert_int_equal(rnic_sock_recv(p->a, big, 1, NULL, NULL, 100),
			 -ETIMEDOUT);
	assert_in_range(now_ms() - start, 99, SOON_MS);
	for (int i = 0; i < 10000 && !ret; i++)
		ret = rnic_sock_send(p->a, big, sizeof(big), NULL, 0, 0);
	assert_int_equal(ret, -ETIMEDOUT);
	start = now_ms();
	assert_int_equal(rnic_sock_send(p->a, big, sizeof(big), NULL, 0, 100),
			 -ETIMEDOUT);
	assert_in_range(now_ms() - start, 99, SOON_MS);
}

static void ignore(int sig)
{
	(void)sig;
}

/* Runs with a signal every 20 ms. */
static int interrupted(struct pair *p)
{
	struct sigaction sa = { .sa_handler = ignore };
	struct itimerval every = { { 0, 20000 }, { 0, 20000 } };
	uint64_t start = now_ms();
	char c;

	if (sigaction(SIGALRM, &sa, NULL) ||
	    setitimer(ITIMER_REAL, &every, NULL))
		return SKIP;
	if (rnic_sock_recv(p->a, &c, 1, NULL, NULL, 100) != -ETIMEDOUT)
		return 1;
	return now_ms() - start < 99 || now_ms() - start > SOON_MS ? 2 : 0;
}

static void signals_do_not_prolong(void **state)
{
	struct pair *p = *state;
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(interrupted(p));
	}
	assert_true(pid > 0);
	/* its alarm is the timer: this one ends the wait */
	for (int ms = 0; ms < 2 * SOON_MS; ms += 10) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		usleep(10000);
		if (ms + 10 >= 2 * SOON_MS) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
		}
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void waits_for_what_comes(void **state)
{
	struct pair *p = *state;
	pid_t pid = fork();
	int status;
	char c = 0;

	if (!pid) {
		usleep(50000);
		_exit(rnic_sock_send(p->b, "x", 1, NULL, 0, 0) ? 1 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(rnic_sock_recv(p->a, &c, 1, NULL, NULL, -1), 0);
	assert_int_equal(c, 'x');
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- users ---- */

/* As another user, connects to @name and listens on @name-. */
static int stranger(const char *name, int ready, int stop)
{
	char own[80], c;
	struct ucred peer;
	int lfd;

	if (setgid(NOBODY) || setuid(NOBODY))
		return SKIP;
	logged = 0;
	if (rnic_sock_connect(name, 0, &peer) != -EACCES || logged != 1)
		return 1;
	snprintf(own, sizeof(own), "%s-", name);
	lfd = rnic_sock_listen(own);
	if (lfd < 0 || write(ready, "x", 1) != 1 || read(stop, &c, 1) != 1)
		return 2;
	/* the other one has connected, and hung up when it saw who we are */
	logged = 0;
	if (rnic_sock_accept(lfd, &peer) != -EAGAIN || logged != 1)
		return 3;
	return 0;
}

static void strangers_are_refused(void **state)
{
	struct pair *p = *state;
	int ready[2], stop[2], status, fds;
	char own[80], c;
	struct ucred peer;
	pid_t pid;

	if (geteuid())
		skip();
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(stop), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(LIMIT_S);
		_exit(stranger(p->name, ready[1], stop[0]));
	}
	assert_true(pid > 0);
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	fds = count_fds();
	assert_int_equal(rnic_sock_accept(p->listener, &peer), -EAGAIN);
	assert_int_equal(logged, 1);
	snprintf(own, sizeof(own), "%s-", p->name);
	assert_int_equal(rnic_sock_connect(own, 0, &peer), -EACCES);
	assert_int_equal(logged, 2);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(write(stop[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(stop[0]);
	close(stop[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_know_each_other),
		TEST(name_is_abstract),
		TEST(names_collide),
		TEST(names_have_a_length),
		TEST(nobody_listens),
		TEST(full_backlog_times_out),
		TEST(packet_arrives),
		TEST(another_size_is_refused),
		TEST(closed_end_is_reset),
		TEST(unread_packets_reset),
		TEST(last_words_are_heard),
		TEST(descriptors_arrive),
		TEST(unwanted_descriptors_are_closed),
		TEST(no_free_number_is_told),
		TEST(cut_control_is_refused),
		TEST(too_many_are_not_sent),
		TEST(limits_are_kept),
		TEST(signals_do_not_prolong),
		TEST(waits_for_what_comes),
		TEST(strangers_are_refused),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
