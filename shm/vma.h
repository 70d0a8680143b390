/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The mappings of this process, as the kernel lists them.
 *
 * No page is touched. Linux 6.11 answers one question with one ioctl (under
 * a microsecond); before it the text of /proc/self/maps is read each time,
 * which costs more the more mappings there are. What is said may have changed
 * when the caller hears it.
 */
#ifndef RNIC_VMA_H
#define RNIC_VMA_H

#include <stdbool.h>
#include <stdint.h>

/* A mapping. */
struct rnic_vma {
	uint64_t start; /* first address */
	uint64_t end;	/* last address + 1 */
	int prot;	/* PROT_READ | PROT_WRITE | PROT_EXEC, as mapped */
	bool shared;	/* MAP_SHARED; it then has a file */
	uint64_t dev;	/* st_dev of its file, 0: none */
	uint64_t ino;	/* st_ino of its file */
	uint64_t off;	/* byte of the file at @start */
	uint64_t page;	/* bytes of its pages; 0: not known (text) */
};

/*
 * The mapping that holds @addr or, if none does, the first after it. Any
 * thread, no lock; may allocate and do file I/O; keeps one descriptor open
 * for good, which a fork child does not use. Returns 0 with *@v, -ENOENT (no
 * mapping there nor after), or -EIO if /proc cannot be read (logged).
 */
int rnic_vma_next(uint64_t addr, struct rnic_vma *v);

/*
 * True if the mapping that holds @addr is of a memfd, by its name; else, or
 * if there is none, false. Costs, and is called, as rnic_vma_next().
 */
bool rnic_vma_is_memfd(uint64_t addr);

/*
 * True if the one-ioctl way works here; rnic_vma_next() is cheap then. Any
 * thread.
 */
bool rnic_vma_fast(void);

/* What we add to the mappings of the process. */
struct rnic_vma_budget {
	uint64_t caused; /* mappings: by pins and watches */
	uint64_t limit;	 /* a quarter of vm.max_map_count */
};

/*
 * Sets *@b, and returns true if there may be @more. The calls of a program
 * fail when there are no more mappings: so we stop before (contract R4). Two
 * threads that ask at the same time may both be told so. Any thread; file I/O
 * at the first call.
 */
bool rnic_vma_room(uint64_t more, struct rnic_vma_budget *b);

/* There are @n mappings more, or fewer, of our making. Any thread. */
void rnic_vma_count(int64_t n);

/* For tests: another limit; 0: the kernel's quarter. */
void rnic_vma_limit(uint64_t mappings);

/* For tests: never the ioctl from now on, as on older kernels. */
void rnic_vma_text_only(bool on);

#endif /* RNIC_VMA_H */
