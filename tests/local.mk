# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# Tests that need several processes or libfabric. One program per subject.

check_LTLIBRARIES += tests/libharness.la

tests_libharness_la_SOURCES = \
	tests/env_probe.c \
	tests/env_probe.h \
	tests/harness.c \
	tests/harness.h \
	tests/harness_fi.c \
	tests/kill_steps.c \
	tests/kill_steps.h

FABRIC_TESTS += \
	tests/av \
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
	tests/kill_life \
	tests/kill_peer \
	tests/kill_restart \
	tests/kill_storm \
	tests/matching \
	tests/msg \
	tests/multi_recv \
	tests/objects \
	tests/order \
	tests/peek \
	tests/quick \
	tests/quick_source \
	tests/region \
	tests/rma \
	tests/scale_first_contact \
	tests/self \
	tests/service \
	tests/tagged \
	tests/threads \
	tests/trunc \
	tests/wait

QUICK_TESTS += \
	tests/getinfo \
	tests/msg \
	tests/tagged

# kill_mpi starts MPI programs, and skips where they are not built.
KILL_TESTS += tests/kill_mpi
EXTRA_DIST += tests/kill_mpi
