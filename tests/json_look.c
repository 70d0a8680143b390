/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * A reader of JSON that goes over the text each time: enough for tests.
 */
#define _GNU_SOURCE
#include "json_look.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

enum { DEEPEST = 32 }; /* brackets in brackets */

static const char *blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* The end of the string at @p, or NULL if it is none. */
static const char *string_end(const char *p)
{
	if (*p++ != '"')
		return NULL;
	for (; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p != '\\')
			continue;
		p++;
		if (!*p || !strchr("\"\\/bfnrtu", *p))
			return NULL;
		if (*p == 'u' && strspn(p + 1, "0123456789abcdefABCDEF") < 4)
			return NULL;
	}
	return p + 1;
}

static const char *number_end(const char *p)
{
	const char *digits = *p == '-' ? p + 1 : p;
	size_t n = strspn(digits, "0123456789");

	if (!n || (n > 1 && *digits == '0'))
		return NULL;
	p = digits + n;
	if (*p == '.') {
		n = strspn(p + 1, "0123456789");
		return n ? p + 1 + n : NULL;
	}
	return p;
}

static const char *word_end(const char *p)
{
	static const char *const word[] = { "true", "false", "null" };

	for (int i = 0; i < 3; i++)
		if (!strncmp(p, word[i], strlen(word[i])))
			return p + strlen(word[i]);
	return NULL;
}

static const char *value_end(const char *p, int deep);

/* One element of what @open begins; NULL if it is not right. */
static const char *element_end(const char *p, char open, int deep)
{
	if (open == '{') {
		p = string_end(p);
		if (!p || *(p = blanks(p)) != ':')
			return NULL;
		p = blanks(p + 1);
	}
	return value_end(p, deep + 1);
}

static const char *value_end(const char *p, int deep)
{
	char open = *p, close = open == '{' ? '}' : ']';

	if (open == '"')
		return string_end(p);
	if (open == '-' || isdigit((unsigned char)open))
		return number_end(p);
	if (open != '{' && open != '[')
		return word_end(p);
	if (deep == DEEPEST)
		return NULL;
	p = blanks(p + 1);
	if (*p == close)
		return p + 1;
	for (;;) {
		p = element_end(p, open, deep);
		if (!p)
			return NULL;
		p = blanks(p);
		if (*p == close)
			return p + 1;
		if (*p != ',')
			return NULL;
		p = blanks(p + 1);
	}
}

bool json_valid(const char *text)
{
	const char *end = value_end(blanks(text), 0);

	return end && !*blanks(end);
}

/* True if the element at @p is the one that @name, of @len, names. */
static bool named(const char *p, char open, unsigned int i, const char *name,
		  size_t len)
{
	if (open == '{')
		return (size_t)(string_end(p) - p) == len + 2 &&
		       !strncmp(p + 1, name, len);
	return strtoul(name, NULL, 10) == i;
}

/* The value that @name, of @len, names in the object or array at @p. */
static const char *step(const char *p, const char *name, size_t len)
{
	char open = *p;

	if (open != '{' && open != '[')
		return NULL;
	p = blanks(p + 1);
	for (unsigned int i = 0; *p != '}' && *p != ']'; i++) {
		if (*p == ',')
			p = blanks(p + 1);
		if (named(p, open, i, name, len))
			return open == '[' ? p
					   : blanks(blanks(string_end(p)) + 1);
		p = blanks(element_end(p, open, 0));
	}
	return NULL;
}

const char *json_at(const char *text, const char *path)
{
	const char *p = blanks(text);

	while (p && *path) {
		size_t len = strcspn(path, ".");

		p = step(p, path, len);
		path += len;
		path += *path == '.';
	}
	return p;
}

static const char *need(const char *text, const char *path)
{
	const char *p = json_at(text, path);

	if (!p)
		th_fail(__FILE__, __LINE__, "no %s in %.2000s", path, text);
	return p;
}

uint64_t json_number(const char *text, const char *path)
{
	const char *p = need(text, path);

	if (*p == 't' || *p == 'f')
		return *p == 't';
	return strtoull(*p == '"' ? p + 1 : p, NULL, 0);
}

bool json_is(const char *text, const char *path, const char *want)
{
	const char *p = need(text, path);
	size_t len = strlen(want);

	return *p == '"' && !strncmp(p + 1, want, len) && p[len + 1] == '"';
}

unsigned int json_length(const char *text, const char *path)
{
	const char *p = need(text, path);
	unsigned int n = 0;

	if (*p != '[')
		th_fail(__FILE__, __LINE__, "%s is no array", path);
	for (p = blanks(p + 1); *p != ']'; n++) {
		if (*p == ',')
			p = blanks(p + 1);
		p = blanks(value_end(p, 0));
	}
	return n;
}
