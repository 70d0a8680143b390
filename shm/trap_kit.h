/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The allocator of a test program that must see who calls it: malloc(),
 * calloc(), realloc() and free() are libc's own behind kit_trap().
 *
 * In sanitizer builds, which have an allocator of their own, nothing calls
 * kit_trap().
 */
#ifndef RNIC_TRAP_KIT_H
#define RNIC_TRAP_KIT_H

/* 1: kit_trap() is called. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { KIT_TRAPS = 0 };
#else
enum { KIT_TRAPS = 1 };
#endif

/*
 * The program's: ends it by abort(3) if this thread may not call the
 * allocator now. Any thread, early and late; must not allocate.
 */
void kit_trap(void);

#endif /* RNIC_TRAP_KIT_H */
