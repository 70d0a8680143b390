/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Builds that are broken on purpose, one guarantee each, to see that a test
 * fails: configure --with-break=NAME. make check-broken, run by hand, builds
 * and tries them all. In any other build every RNIC_BROKEN() is the constant 0,
 * and nothing of it is left in the code.
 *
 * A switch breaks what its name says in the place where it is kept, and shows
 * what its absence would allow, not more. tests/check-broken knows which test
 * must fail.
 */
#ifndef RNIC_BREAKAGE_H
#define RNIC_BREAKAGE_H

/* The switches; contract lines in brackets. */
enum rnic_break {
	RNIC_BREAK_none,	/* a build as it should be */
	RNIC_BREAK_fence,	/* a close waits for nobody (I1) */
	RNIC_BREAK_owner_fence, /* lanes are looked at, then it is odd (I1) */
	RNIC_BREAK_membarrier,	/* announced slots are not fenced (I1) */
	RNIC_BREAK_version,	/* a change restores the old version (I5, K2) */
	RNIC_BREAK_grace,	/* reuse under a reader (R2, I4) */
	RNIC_BREAK_quarantine,	/* slots are reused at once (I4) */
	RNIC_BREAK_publish,	/* the version before the fields (R2, R5) */
	RNIC_BREAK_bounds,	/* regions are a page longer (I2) */
	RNIC_BREAK_rights,	/* any key may do anything (R6) */
	RNIC_BREAK_generation,	/* a provider key is its slot (I4, R7) */
	RNIC_BREAK_binding,	/* an operation goes on in another one (I5) */
	RNIC_BREAK_pin_count,	/* the first unpin unlocks (R4) */
	RNIC_BREAK_event_order, /* events before the bytes (P5) */
	RNIC_BREAK_monitor_busy,  /* hits ignore the monitor at work (R12) */
	RNIC_BREAK_monitor_look,  /* hits do not ask the kernel (R12) */
	RNIC_BREAK_monitor_remap, /* mremap(2) is not told of (R12) */
	RNIC_BREAK_monitor_unmap, /* munmap(2) is not told of (R12) */
	RNIC_BREAK_cache_settled, /* kept without a last look (R12) */
	RNIC_BREAK_cache_close,	  /* a cached region stays open (I1) */
	RNIC_BREAK_nt_fence,	  /* streaming stores are not fenced (I1, P5) */
	RNIC_BREAK_local_rights,  /* any descriptor may do anything (R6) */
	RNIC_BREAK_window_busy,	  /* a region with windows is closed (W1) */
	RNIC_BREAK_paging_lost,	  /* a fault ends on what is gone (R11, R12) */
	RNIC_BREAK_paging_gone,	  /* unmapped pages stay present (R11, R12) */
	RNIC_BREAK_cached,	  /* hits do not look at the version (K2, I1) */
	RNIC_BREAK_failed_pin,	  /* a refused registration stays pinned (R3) */
	RNIC_BREAK_failed_table,  /* and keeps its table pages (R3) */
	RNIC_BREAK_batch_early,	  /* keys appear before all are sure (R10) */
	RNIC_BREAK_range_end,	  /* a piece goes on behind its range (R8) */
	RNIC_BREAK_overflow,	  /* the sum of a list may wrap (R8) */
	RNIC_BREAK_chunk,	  /* a piece is moved in one go (I3, I6) */
	RNIC_BREAK_error_bytes,	  /* an error says that nothing moved (I3) */
	RNIC_BREAK_dead_reader,	  /* the dead are waited for (I6) */
	RNIC_BREAK_stopped,	  /* the stopped are not, after 1 s (I6) */
	RNIC_BREAK_window_old,	  /* windows keep their pages (W1, I5) */
	RNIC_BREAK_frozen,	  /* misses ignore the monitor at work (R12) */
	RNIC_BREAK_monitor_wait,  /* it waits for nobody (R12) */
	RNIC_BREAK_monitor_settle, /* old events are for new regions (R12) */
	RNIC_BREAK_kept_copy,	/* an unmap leaves cached copies valid (R12) */
	RNIC_BREAK_gone_root,	/* a region keeps what was unmapped (R12) */
	RNIC_BREAK_window_told, /* and so does a window (W1, R12) */
	RNIC_BREAK_file_gen,	/* a file's number does not tell it (I1) */
	RNIC_BREAK_async_early, /* an event comes before its period (I1) */
	RNIC_BREAK_post_early,	/* a posted invalidation, too (W2) */
	RNIC_BREAK_chunk_len,	/* a peer's chunk has any length (L3) */
	RNIC_BREAK_ask_len,	/* a request has any operands (L3) */
	RNIC_BREAK_turns,	/* owners' atomics take no turns (P1) */
	RNIC_BREAK_last_look,	/* no look between arming and sleep (P3) */
};

#ifndef RNIC_BREAK
#define RNIC_BREAK RNIC_BREAK_none
#endif

/* True if this build is to break guarantee @name; a constant. */
#define RNIC_BROKEN(name) (RNIC_BREAK == RNIC_BREAK_##name)

#endif /* RNIC_BREAKAGE_H */
