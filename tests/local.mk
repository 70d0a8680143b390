# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# Tests that need several processes or libfabric. One program per subject.

check_LTLIBRARIES += tests/libharness.la

tests_libharness_la_SOURCES = \
	tests/atomic_ref.c \
	tests/atomic_ref.h \
	tests/cache_kit.c \
	tests/cache_kit.h \
	tests/env_probe.c \
	tests/env_probe.h \
	tests/harness.c \
	tests/harness.h \
	tests/harness_fi.c \
	tests/json_look.c \
	tests/json_look.h \
	tests/kill_steps.c \
	tests/kill_steps.h \
	tests/odp_kit.c \
	tests/odp_kit.h \
	tests/quiet_map.h \
	tests/raw_kit.c \
	tests/raw_kit.h \
	tests/rma_kit.c \
	tests/rma_kit.h \
	tests/scribble.c \
	tests/scribble.h

FABRIC_TESTS += \
	tests/atomic \
	tests/atomic_cases \
	tests/av \
	tests/cache \
	tests/cache_acquire \
	tests/cache_cases \
	tests/cache_process \
	tests/cache_thread \
	tests/cancel \
	tests/close \
	tests/cntr \
	tests/completion \
	tests/cq \
	tests/endpoint \
	tests/env_guest \
	tests/env_hostile \
	tests/env_limits \
	tests/env_restricted \
	tests/env_settings \
	tests/eq_wait_poll \
	tests/flow \
	tests/getinfo \
	tests/hang \
	tests/harness_test \
	tests/held \
	tests/inspect \
	tests/keycache \
	tests/key_life \
	tests/kill_life \
	tests/kill_peer \
	tests/kill_restart \
	tests/kill_rma \
	tests/kill_storm \
	tests/lane_hostile \
	tests/local \
	tests/local_regions \
	tests/matching \
	tests/mr_async \
	tests/mr_life \
	tests/mr_query \
	tests/msg \
	tests/mtt_pages \
	tests/multi_recv \
	tests/negative \
	tests/numa \
	tests/objects \
	tests/odp \
	tests/order \
	tests/peek \
	tests/quick \
	tests/quick_source \
	tests/region \
	tests/region_race \
	tests/region_stress \
	tests/rma \
	tests/rma_corners \
	tests/rma_events \
	tests/rma_calls \
	tests/rma_cases \
	tests/rma_contract \
	tests/rma_hostile \
	tests/rma_many \
	tests/rma_quick \
	tests/rma_stress \
	tests/rma_ways \
	tests/scale_first_contact \
	tests/self \
	tests/service \
	tests/spaces \
	tests/tagged \
	tests/threads \
	tests/trunc \
	tests/unmap \
	tests/wait \
	tests/windows \
	tests/windows_odp

tests_cache_thread_SOURCES = \
	shm/trap_kit.c \
	shm/trap_kit.h \
	tests/cache_thread.c
tests_negative_SOURCES = \
	tests/negative.c \
	tests/negative.h \
	tests/negative_model.c \
	tests/negative_post.c
tests_region_stress_SOURCES = \
	shm/reach_kit.c \
	shm/reach_kit.h \
	tests/region_stress.c

QUICK_TESTS += \
	tests/getinfo \
	tests/msg \
	tests/tagged

# kill_mpi starts MPI programs, and skips where they are not built.
KILL_TESTS += tests/kill_mpi

# On an emulated machine of four nodes; what runs there is listed in the script.
numa_tests = \
	shm/backing_test$(EXEEXT) \
	shm/numa_test$(EXEEXT) \
	shm/topo_test$(EXEEXT) \
	tests/mtt_pages$(EXEEXT) \
	tests/numa$(EXEEXT) \
	tests/region$(EXEEXT) \
	tests/rma$(EXEEXT)
EXTRA_DIST += tests/check-numa

check-numa: lib/libshrimp-fi.la $(numa_tests)
	SHRIMP_BUILDDIR='$(abs_top_builddir)' $(top_srcdir)/tests/check-numa

.PHONY: check-numa
EXTRA_DIST += \
	tests/check-broken \
	tests/kill_mpi
