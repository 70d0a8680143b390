/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A list of message sizes as users write it.
 */
#include "bench/sizes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* Reads one entry and moves *text to the character behind it. */
static int size_parse(size_t *size, const char **text)
{
	unsigned long long value;
	unsigned int shift = 0;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno || value > BENCH_SIZE_LIMIT)
		return -EINVAL;
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	if (value << shift > BENCH_SIZE_LIMIT)
		return -EINVAL;
	*size = (size_t)(value << shift);
	*text = shift ? end + 1 : end;
	return 0;
}

int bench_sizes_parse(struct bench_sizes *sizes, const char *text)
{
	struct bench_sizes list = { .n = 0 };
	int rc;

	for (;; text++) {
		if (list.n == BENCH_SIZES_MAX)
			return -EINVAL;
		rc = size_parse(&list.byte[list.n], &text);
		if (rc)
			return rc;
		list.n++;
		if (!*text)
			break;
		if (*text != ',')
			return -EINVAL;
	}
	*sizes = list;
	return 0;
}

size_t bench_sizes_largest(const struct bench_sizes *sizes)
{
	size_t largest = 0;
	size_t i;

	for (i = 0; i < sizes->n; i++)
		if (sizes->byte[i] > largest)
			largest = sizes->byte[i];
	return largest;
}
