# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# The emulated device. No libfabric in here.

noinst_LTLIBRARIES += shm/librnic.la

shm_librnic_la_CPPFLAGS = $(AM_CPPFLAGS) $(NDEBUG_CPPFLAGS)
shm_librnic_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
shm_librnic_la_SOURCES = \
	shm/atomic.h \
	shm/compiler.h \
	shm/copy.c \
	shm/copy.h \
	shm/device.c \
	shm/device.h \
	shm/fence.c \
	shm/fence.h \
	shm/heap.c \
	shm/heap.h \
	shm/identity.c \
	shm/identity.h \
	shm/lane.c \
	shm/lane.h \
	shm/layout.h \
	shm/lock.c \
	shm/lock.h \
	shm/log.c \
	shm/log.h \
	shm/match.c \
	shm/match.h \
	shm/pool.c \
	shm/pool.h \
	shm/proc.c \
	shm/proc.h \
	shm/remote.c \
	shm/remote.h \
	shm/segment.c \
	shm/segment.h \
	shm/sock.c \
	shm/sock.h \
	shm/topo.c \
	shm/topo.h \
	shm/window.c \
	shm/window.h

UNIT_TESTS += \
	shm/copy_test \
	shm/fence_test \
	shm/heap_test \
	shm/identity_test \
	shm/lane_test \
	shm/lock_test \
	shm/log_test \
	shm/match_test \
	shm/pool_test \
	shm/proc_test \
	shm/remote_test \
	shm/segment_test \
	shm/sock_test \
	shm/topo_test \
	shm/window_test
