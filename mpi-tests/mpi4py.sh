#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# mpi4py.sh [NRANKS...]: a Python program of Debian's python3-mpi4py over shrimp.

set -u
[ $# -gt 0 ] || set -- 2 3 4 8
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3
"$python" -c 'import mpi4py' 2>/dev/null || {
	echo "mpi4py: skipped: no mpi4py (Debian: python3-mpi4py)"
	exit 77
}
exec "$here/run-mpi" -c "$python" "$@" -- "$here/py_data.py"
