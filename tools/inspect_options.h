/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The command line of shrimp-inspect.
 */
#ifndef SHRIMP_INSPECT_OPTIONS_H
#define SHRIMP_INSPECT_OPTIONS_H

#include "tools/inspect.h"

/* What the program is to do. */
enum insp_action {
	INSP_SHOW,    /* as the options say */
	INSP_HELP,    /* print the help */
	INSP_VERSION, /* print the version */
	INSP_WRONG,   /* wrong usage; a message was printed */
};

struct insp_options {
	pid_t pid;   /* 0: list all */
	bool json;   /* for programs */
	int wait_ms; /* between two looks; 0: one look only */
	struct insp_want want;
};

/* Reads the command line. One thread. */
enum insp_action insp_options(int argc, char **argv, struct insp_options *o);

/* The help. */
extern const char insp_help[];

#endif /* SHRIMP_INSPECT_OPTIONS_H */
