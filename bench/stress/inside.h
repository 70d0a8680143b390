/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The inside of a process of shrimp-stress: what scenarios do not see.
 */
#ifndef BENCH_STRESS_INSIDE_H
#define BENCH_STRESS_INSIDE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_shrimp.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "bench/stress/options.h"
#include "bench/stress/stress.h"
#include "bench/stress/wire.h"

enum {
	STRESS_WINDOW = 4 << 20, /* bytes of a process's window */
	STRESS_GUARD = 64,	 /* bytes beside what is used of it */
	STRESS_LINES = 256,	 /* lines of the log that are kept */
	STRESS_LINE = 120,	 /* bytes of a line, with its end */
	STRESS_REQUESTS = 64,	 /* under way at most */
	STRESS_FILES = 32,	 /* memory files that are open */
};

/**
 * What a process did lately: written by it alone, read by the driver when it
 * waits for the driver, or does not move any more, or is dead. Shared memory.
 */
struct stress_log {
	uint64_t lines; /* written so far */
	char line[STRESS_LINES][STRESS_LINE];
};

/** An operation under way; its address is what libfabric is given. */
struct stress_req {
	struct fi_context2 context; /* libfabric's */
	bool used;		    /* under way, or not yet looked at */
	bool done;		    /* completed */
	int err;		    /* FI_ code of the completion, 0: success */
	uint64_t len;		    /* of it, if it is a receive */
};

/** A domain and an endpoint. */
struct stress_side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer[STRESS_RANKS];	/* by rank */
	fi_addr_t second[STRESS_RANKS]; /* their other endpoints */
	bool rma;			/* fi_read and fi_write are there */
	bool delivery;			/* a completion is a delivery */
	bool threads;			/* FI_THREAD_SAFE */
	const struct fi_ops_shrimp_cache *cache; /* or NULL */
	const struct fi_ops_shrimp_mr *mrs;	 /* or NULL */
	char name[STRESS_NAME_MAX];		 /* of the endpoint */
	size_t name_len;
	struct stress_req req[STRESS_REQUESTS];
};

/** Another process of the group. */
struct stress_partner {
	int fd;			   /* to it; -1: this process, or gone */
	struct stress_hello hello; /* what it said */
};

struct stress_churn;

struct stress {
	const struct stress_options *o;	  /* of the run */
	const struct stress_scenario *of; /* whose turn it is, or NULL */
	uint32_t act;			  /* and which go */
	void *state;			  /* made by its set up */
	struct stress_log *log;		  /* own */
	int rank;			  /* of this process */
	int size;			  /* of the group */
	int fd;				  /* to the driver */
	int trace;			  /* file of --trace, or -1 */
	int offer;			  /* FI_MR_ bits that are offered */
	struct stress_partner partner[STRESS_RANKS];
	struct stress_side main;  /* always open */
	struct stress_side other; /* stress_second_open() */
	struct stress_mr window;  /* that others may use */
	struct stress_mr bounce;  /* for what others ask for */
	uint64_t shown_at;	  /* of the window, in use */
	uint64_t shown_len;
	struct stress_churn *churn; /* threads beside, or NULL */
	unsigned char *slots;	    /* their first byte */
	bool hole[STRESS_SLOTS][STRESS_SLOT / STRESS_PAGE]; /* unmapped */
	int file[STRESS_FILES]; /* memory files; 0: none */
	unsigned int files;	/* opened so far */
	bool told_notify;	/* changes are told */
	uint64_t keys;		/* last key that was requested */
	uint64_t spare_key;	/* that was closed; 0: none */
	/* the step */
	uint64_t number;	   /* of the step, 0: none yet */
	uint64_t streams;	   /* that it had so far */
	uint64_t matches;	   /* tags of messages used so far, ever */
	uint64_t chance;	   /* state of stress_random() */
	struct stress_count count; /* what it did */
	int status;		   /* of it: 0, STRESS_SKIP, STRESS_FAILED */
	char text[STRESS_TEXT];	   /* what is wrong, or why it was skipped */
	int flow;		   /* partner that has one; -1: none */
};

/* Time in ns after which @seconds have passed; more in slow builds. */
uint64_t stress_deadline(const struct stress *s, unsigned int seconds);

/* Whether it has passed. */
bool stress_late(uint64_t deadline);

/* The name of an FI_ code, positive or negative. */
const char *stress_code(long code);

/*
 * The wait of all waits: makes progress on all that is open and, now and
 * then, gives the core away.
 */
void stress_relax(struct stress *s, unsigned int *polls);

/* The counters of the first domain. False: the provider has none. */
bool stress_counters(const struct stress *s, struct fi_shrimp_stats *st);

#endif
