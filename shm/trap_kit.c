/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The allocator of a test program that must see who calls it.
 */
#include "shm/trap_kit.h"

#include <stdlib.h>

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
void *__libc_malloc(size_t n);		 /* libc's own */
void *__libc_calloc(size_t n, size_t m); /* likewise */
void *__libc_realloc(void *p, size_t n); /* likewise */
void __libc_free(void *p);		 /* likewise */

void *malloc(size_t n)
{
	kit_trap();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t m)
{
	kit_trap();
	return __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
	kit_trap();
	return __libc_realloc(p, n);
}

void free(void *p)
{
	kit_trap();
	__libc_free(p);
}
#endif
