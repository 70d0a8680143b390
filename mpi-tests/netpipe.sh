#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# netpipe.sh: Debian's NetPIPE for Open MPI over shrimp, 2 ranks: its
# integrity check, and its ways to send and receive.

set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$(command -v NPopenmpi) || {
	echo "netpipe: skipped: no NPopenmpi (Debian: netpipe-openmpi)"
	exit 77
}
rounds=5
[ "${SHRIMP_QUICK:-}" != 1 ] || rounds=3
dir=$(mktemp -d "${TMPDIR:-/tmp}/netpipe.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT

# NetPIPE writes np.out; the last size it does is the first above LIMIT.
go()
{
	local last=$1 limit=$2

	shift 2
	"$here/run-mpi" -c -l "$last" "$program" 2 -- -o "$dir/np.out" \
		-n "$rounds" -u "$limit" "$@" >"$dir/log" || {
		cat "$dir/log"
		exit 1
	}
	echo "ok netpipe $*: $(tail -n 1 "$dir/log")"
}

go ' 35:  786433 bytes .* Integrity check passed' 1048576 -i
go ' 35:  786433 bytes .* Integrity check passed' 1048576 -i -a
go '105: 1048579 bytes' 1048576
go '105: 1048579 bytes' 1048576 -a
go '105: 1048579 bytes' 1048576 -z
go '105: 1048579 bytes' 1048576 -S
go '105: 1048579 bytes' 1048576 -2 -a
