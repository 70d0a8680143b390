#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# mpi4py_remap.sh [NRANKS...]: a Python program of Debian's python3-mpi4py whose
# buffers come and go, over shrimp with the registration cache: with the
# monitor that the kernel has, and, as nobody tells of memory, with none.

set -u
[ $# -gt 0 ] || set -- 2 3
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3
"$python" -c 'import mpi4py' 2>/dev/null || {
	echo "mpi4py: skipped: no mpi4py (Debian: python3-mpi4py)"
	exit 77
}
for monitor in uffd off; do
	# with no monitor nothing is kept
	cached=
	[ $monitor = off ] || cached=-C
	"$here/run-mpi" -c $cached -e FI_SHRIMP_MR_CACHE=all \
		-e FI_SHRIMP_MR_CACHE_MONITOR=$monitor "$python" "$@" -- \
		"$here/py_remap.py" || exit
done
