/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Looks into JSON that a program has printed. No state; any thread.
 */
#ifndef SHRIMP_TESTS_JSON_LOOK_H
#define SHRIMP_TESTS_JSON_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* True if @text is one JSON value and nothing else but blanks. */
bool json_valid(const char *text);

/*
 * Where the value at @path begins in @text, which is valid: names joined by
 * dots, elements of arrays by their numbers, as "devices.0.mpt.live". NULL if
 * there is none.
 */
const char *json_at(const char *text, const char *path);

/*
 * The number at @path, or the string in hexadecimal ("0x..."); true is 1,
 * false 0. Ends the test as failed if there is none.
 */
uint64_t json_number(const char *text, const char *path);

/* True if the value at @path is the string @want, which needs no escapes. */
bool json_is(const char *text, const char *path, const char *want);

/* Elements of the array at @path; fails the test if it is none. */
unsigned int json_length(const char *text, const char *path);

#endif /* SHRIMP_TESTS_JSON_LOOK_H */
