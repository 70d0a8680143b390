#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# killed.sh [NRANKS...]: jobs in which one rank kills itself at a random moment.
# SHRIMP_KILL_ROUNDS jobs per number of ranks [2; 1 with SHRIMP_QUICK=1, 100
# with SHRIMP_LONG=1], beginning with the seed SHRIMP_KILL_SEED [random].

set -u
[ $# -gt 0 ] || set -- 2 4 8
here=$(cd "$(dirname "$0")" && pwd)
rounds=2
[ "${SHRIMP_QUICK:-}" != 1 ] || rounds=1
[ "${SHRIMP_LONG:-}" != 1 ] || rounds=100
rounds=${SHRIMP_KILL_ROUNDS:-$rounds}
first=${SHRIMP_KILL_SEED:-$RANDOM}

for ((seed = first; seed < first + rounds; seed++)); do
	"$here/run-mpi" -k killed "$@" -- --seed "$seed" || exit
done
