# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# The emulated device. No libfabric in here.

noinst_LTLIBRARIES += shm/librnic.la

shm_librnic_la_CPPFLAGS = $(AM_CPPFLAGS) $(NDEBUG_CPPFLAGS)
shm_librnic_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
shm_librnic_la_SOURCES = \
	shm/aop.c \
	shm/aop.h \
	shm/arena.c \
	shm/arena.h \
	shm/arena_map.c \
	shm/arena_map.h \
	shm/atomic.h \
	shm/compiler.h \
	shm/copy.c \
	shm/copy.h \
	shm/device.c \
	shm/device.h \
	shm/fence.c \
	shm/fence.h \
	shm/grace.c \
	shm/grace.h \
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
	shm/mpt.c \
	shm/mpt.h \
	shm/mtt.c \
	shm/mtt.h \
	shm/pin.c \
	shm/pin.h \
	shm/pool.c \
	shm/pool.h \
	shm/proc.c \
	shm/proc.h \
	shm/reach.c \
	shm/reach.h \
	shm/reader.c \
	shm/reader.h \
	shm/remote.c \
	shm/remote.h \
	shm/segment.c \
	shm/segment.h \
	shm/sock.c \
	shm/sock.h \
	shm/topo.c \
	shm/topo.h \
	shm/vm.c \
	shm/vm.h \
	shm/vma.c \
	shm/vma.h \
	shm/window.c \
	shm/window.h

UNIT_TESTS += \
	shm/aop_test \
	shm/arena_map_test \
	shm/arena_test \
	shm/copy_test \
	shm/fence_test \
	shm/grace_test \
	shm/heap_test \
	shm/identity_test \
	shm/lane_test \
	shm/lock_test \
	shm/log_test \
	shm/match_test \
	shm/mpt_test \
	shm/mtt_test \
	shm/pin_test \
	shm/pool_test \
	shm/proc_test \
	shm/reader_test \
	shm/remote_test \
	shm/segment_test \
	shm/sock_test \
	shm/topo_test \
	shm/vm_test \
	shm/vma_test \
	shm/window_test

# All interleavings of the fence of shm/grace.h, and of what breaks it.
EXTRA_PROGRAMS = shm/fence_model
shm_fence_model_SOURCES = shm/fence_model.c
shm_fence_model_LDADD =
CLEANFILES += shm/fence_model$(EXEEXT)

check-model: shm/fence_model$(EXEEXT)
	shm/fence_model$(EXEEXT)

# It takes less than a second.
check-local: check-model

.PHONY: check-model
