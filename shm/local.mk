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
	shm/backing.c \
	shm/backing.h \
	shm/breakage.h \
	shm/compiler.h \
	shm/copy.c \
	shm/copy.h \
	shm/device.c \
	shm/device.h \
	shm/exec.c \
	shm/exec.h \
	shm/fence.c \
	shm/fence.h \
	shm/grace.c \
	shm/grace.h \
	shm/heap.c \
	shm/heap.h \
	shm/identity.c \
	shm/identity.h \
	shm/keycache.c \
	shm/keycache.h \
	shm/keycache_clock.c \
	shm/keycache_lru.c \
	shm/keycache_none.c \
	shm/keycache_random.c \
	shm/lane.c \
	shm/lane.h \
	shm/layout.h \
	shm/lock.c \
	shm/lock.h \
	shm/log.c \
	shm/log.h \
	shm/match.c \
	shm/match.h \
	shm/monitor.c \
	shm/monitor.h \
	shm/mpt.c \
	shm/mpt.h \
	shm/mtt.c \
	shm/mtt.h \
	shm/numa.c \
	shm/numa.h \
	shm/odp.c \
	shm/odp.h \
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
	shm/space.c \
	shm/space.h \
	shm/topo.c \
	shm/topo.h \
	shm/tsan.h \
	shm/vm.c \
	shm/vm.h \
	shm/vma.c \
	shm/vma.h \
	shm/watch.c \
	shm/watch.h \
	shm/window.c \
	shm/window.h

UNIT_TESTS += \
	shm/aop_test \
	shm/arena_map_test \
	shm/arena_test \
	shm/backing_test \
	shm/copy_test \
	shm/exec_test \
	shm/fence_test \
	shm/grace_test \
	shm/heap_test \
	shm/hit_test \
	shm/identity_test \
	shm/keycache_test \
	shm/lane_test \
	shm/lock_test \
	shm/log_test \
	shm/match_model_test \
	shm/match_test \
	shm/monitor_test \
	shm/mpt_test \
	shm/mtt_test \
	shm/numa_test \
	shm/odp_test \
	shm/pin_test \
	shm/pool_test \
	shm/proc_test \
	shm/reach_test \
	shm/reader_test \
	shm/remote_test \
	shm/segment_test \
	shm/sock_test \
	shm/space_test \
	shm/topo_test \
	shm/vm_test \
	shm/vma_test \
	shm/window_test

# rng_kit.h is that of other tests as well.
shm_match_model_test_SOURCES = \
	shm/match_kit.h \
	shm/match_model_test.c \
	shm/rng_kit.h
shm_match_test_SOURCES = \
	shm/match_kit.h \
	shm/match_test.c

# These have children that change or end themselves.
shm_fence_test_SOURCES = \
	shm/child_kit.c \
	shm/child_kit.h \
	shm/fence_test.c
shm_grace_test_SOURCES = \
	shm/child_kit.c \
	shm/child_kit.h \
	shm/grace_test.c
shm_identity_test_SOURCES = \
	shm/child_kit.c \
	shm/child_kit.h \
	shm/identity_test.c
shm_pin_test_SOURCES = \
	shm/child_kit.c \
	shm/child_kit.h \
	shm/pin_test.c
shm_proc_test_SOURCES = \
	shm/child_kit.c \
	shm/child_kit.h \
	shm/proc_test.c
shm_segment_test_SOURCES = \
	shm/child_kit.c \
	shm/child_kit.h \
	shm/segment_test.c

# These need a device with keys and a reader.
shm_exec_test_SOURCES = \
	shm/exec_test.c \
	shm/reach_kit.c \
	shm/reach_kit.h
shm_hit_test_SOURCES = \
	shm/hit_test.c \
	shm/reach_kit.c \
	shm/reach_kit.h
shm_monitor_test_SOURCES = \
	shm/monitor_test.c \
	shm/reach_kit.c \
	shm/reach_kit.h \
	shm/trap_kit.c \
	shm/trap_kit.h
shm_odp_test_SOURCES = \
	shm/odp_test.c \
	shm/reach_kit.c \
	shm/reach_kit.h
shm_reach_test_SOURCES = \
	shm/reach_kit.c \
	shm/reach_kit.h \
	shm/reach_test.c
