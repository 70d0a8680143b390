/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages: formatted on the stack, handed to the sink.
 */
#include "shm/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum { MSG_MAX = 512 };

static void to_stderr(enum rnic_log_level level, const char *msg)
{
	if (level == RNIC_LOG_WARN)
		fprintf(stderr, "shrimp: %s\n", msg);
}

/* Written once, before other threads log. */
static void (*current)(enum rnic_log_level, const char *) = to_stderr;

void rnic_log_sink(void (*sink)(enum rnic_log_level level, const char *msg))
{
	current = sink ? sink : to_stderr;
}

void rnic_log(enum rnic_log_level level, const char *fmt, ...)
{
	int saved = errno;
	char msg[MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	current(level, msg);
	errno = saved;
}
