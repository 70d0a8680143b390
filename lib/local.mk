# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# The libfabric face of the device, and the plugin made of both.

noinst_LTLIBRARIES += lib/libshrimp-core.la

lib_libshrimp_core_la_CPPFLAGS = $(AM_CPPFLAGS) $(NDEBUG_CPPFLAGS)
lib_libshrimp_core_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
lib_libshrimp_core_la_SOURCES = \
	lib/agent.c \
	lib/agent.h \
	lib/atomic.c \
	lib/atomic.h \
	lib/av.c \
	lib/av.h \
	lib/cntr.c \
	lib/cntr.h \
	lib/coll.c \
	lib/cq.c \
	lib/cq.h \
	lib/domain.c \
	lib/domain.h \
	lib/endpoint.c \
	lib/endpoint.h \
	lib/eq.c \
	lib/eq.h \
	lib/fabric.c \
	lib/fabric.h \
	lib/fid.c \
	lib/fid.h \
	lib/fork.c \
	lib/fork.h \
	lib/info.c \
	lib/info.h \
	lib/local.c \
	lib/local.h \
	lib/local_ops.c \
	lib/mem.c \
	lib/mem.h \
	lib/mr.c \
	lib/mr.h \
	lib/mr_async.c \
	lib/mr_batch.c \
	lib/mr_cache.c \
	lib/mr_cache.h \
	lib/mr_cache_stats.c \
	lib/mr_change.c \
	lib/mr_ext.c \
	lib/mr_ext.h \
	lib/mr_index.c \
	lib/mr_index.h \
	lib/mr_keep.c \
	lib/mr_monitor.c \
	lib/mr_monitor.h \
	lib/mr_query.c \
	lib/msg.c \
	lib/msg.h \
	lib/odp.c \
	lib/odp.h \
	lib/peer.c \
	lib/peer.h \
	lib/poll.c \
	lib/poll.h \
	lib/polled.c \
	lib/polled.h \
	lib/progress.c \
	lib/progress.h \
	lib/prov.c \
	lib/refs.h \
	lib/rma.c \
	lib/rma.h \
	lib/rma_ask.c \
	lib/rma_run.c \
	lib/rx.c \
	lib/rx.h \
	lib/rx_lane.c \
	lib/rx_post.c \
	lib/rx_reach.c \
	lib/serve.c \
	lib/service.c \
	lib/service.h \
	lib/settings.c \
	lib/settings.h \
	lib/slab.c \
	lib/slab.h \
	lib/stats.c \
	lib/stats.h \
	lib/tagged.c \
	lib/tx.c \
	lib/tx.h \
	lib/tx_peer.c \
	lib/tx_progress.c \
	lib/wait.c \
	lib/wait.h \
	lib/window.c \
	lib/window.h \
	lib/window_post.c \
	lib/window_watch.c

# nodelete: threads and exit handlers of the provider outlive a dlclose().
# defs: a plugin with a missing symbol is skipped by libfabric in silence, so
# the link must fail instead (sanitizers leave symbols to their runtime).
lib_libshrimp_fi_la_SOURCES =
lib_libshrimp_fi_la_LIBADD = \
	lib/libshrimp-core.la \
	shm/librnic.la \
	$(CORE_LIBS)
lib_libshrimp_fi_la_LDFLAGS = \
	$(AM_LDFLAGS) \
	-module \
	-avoid-version \
	-shared \
	-export-symbols-regex '^fi_prov_ini$$' \
	-Wl,-z,nodelete
if !SANITIZER
lib_libshrimp_fi_la_LDFLAGS += -Wl,-z,defs
endif

UNIT_TESTS += \
	lib/av_test \
	lib/cntr_test \
	lib/cq_test \
	lib/info_test \
	lib/mr_cache_race_test \
	lib/mr_cache_test \
	lib/mr_index_test \
	lib/mr_keep_test \
	lib/mr_monitor_test \
	lib/odp_test \
	lib/settings_test \
	lib/slab_test \
	lib/stats_test \
	lib/wait_test

lib_mr_cache_race_test_SOURCES = \
	lib/mr_cache_kit.c \
	lib/mr_cache_kit.h \
	lib/mr_cache_race_test.c \
	shm/trap_kit.c \
	shm/trap_kit.h
lib_mr_cache_test_SOURCES = \
	lib/mr_cache_kit.c \
	lib/mr_cache_kit.h \
	lib/mr_cache_test.c
lib_mr_keep_test_SOURCES = \
	lib/mr_cache_kit.c \
	lib/mr_cache_kit.h \
	lib/mr_keep_test.c
lib_mr_monitor_test_SOURCES = \
	lib/mr_monitor_test.c \
	shm/trap_kit.c \
	shm/trap_kit.h
lib_odp_test_SOURCES = \
	lib/mr_cache_kit.c \
	lib/mr_cache_kit.h \
	lib/odp_test.c
lib_odp_test_LDFLAGS = \
	$(AM_LDFLAGS) \
	-Wl,--wrap=calloc \
	-Wl,--wrap=rnic_monitor_join \
	-Wl,--wrap=rnic_watch_arm
lib_stats_test_SOURCES = \
	lib/mr_cache_kit.c \
	lib/mr_cache_kit.h \
	lib/stats_test.c
