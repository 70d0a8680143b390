/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Messages of the device. Who decides an error says it once, with object,
 * value and cause; callers pass the code up.
 */
#ifndef RNIC_LOG_H
#define RNIC_LOG_H

enum rnic_log_level {
	RNIC_LOG_WARN,	/* something did not work as asked */
	RNIC_LOG_INFO,	/* a decision worth knowing */
	RNIC_LOG_DEBUG, /* steps */
};

/*
 * Writes one message, without newline, at most 512 bytes. Any thread; no
 * lock, no allocation of its own. errno is kept.
 */
void rnic_log(enum rnic_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Where messages go from now on; NULL: warnings to stderr. Set before other
 * threads log.
 */
void rnic_log_sink(void (*sink)(enum rnic_log_level level, const char *msg));

#endif /* RNIC_LOG_H */
