#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# hpcc.sh [NRANKS...]: Debian's HPC Challenge over shrimp on a small problem; all
# of its own checks must hold. At most 4 ranks: with more its RandomAccess posts
# several receives, may look at the last before the others, and then forgets
# what they hold, over any transport.

set -u
[ $# -gt 0 ] || set -- 2 3 4
here=$(cd "$(dirname "$0")" && pwd)
program=$(command -v hpcc) || {
	echo "hpcc: skipped: no hpcc (Debian: hpcc)"
	exit 77
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/hpcc.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
# The job runs in the folder of its files.
export FI_PROVIDER_PATH="${FI_PROVIDER_PATH:-$PWD/lib/.libs}"

# The input for a grid of P x Q processes.
input()
{
	cat <<-END
		HPLinpack benchmark input file
		shrimp
		HPL.out output file name (if any)
		8       device out
		1       number of problem sizes (N)
		400     Ns
		1       number of NBs
		40      NBs
		0       PMAP process mapping
		1       number of process grids (P x Q)
		$1      Ps
		$2      Qs
		16.0    threshold
		1       number of panel fact
		2       PFACTs
		1       number of recursive stopping criteria
		4       NBMINs
		1       number of panels in recursion
		2       NDIVs
		1       number of recursive panel fact.
		1       RFACTs
		1       number of broadcasts
		1       BCASTs
		1       number of lookahead depths
		1       DEPTHs
		2       SWAP
		64      swapping threshold
		0       L1 in form
		0       U in form
		1       Equilibration
		8       memory alignment in double
		##### separator #####
		0       additional problem sizes for PTRANS
		1200    values of N
		0       additional blocking sizes for PTRANS
		40      values of NB
	END
}

bad()
{
	cat "$dir/hpccoutf.txt" 2>/dev/null
	echo "FAIL hpcc: $*"
	exit 1
}

# A line that matches must be there @1 times at least.
need()
{
	[ "$(grep -c -E -e "$2" "$dir/hpccoutf.txt")" -ge "$1" ] ||
		bad "fewer than $1 lines '$2'"
}

check_output()
{
	need 1 '^Success=1$'
	need 1 '^End of HPC Challenge tests'
	need 1 '\|\|Ax-b\|\|.*PASSED$'
	need 5 '^WALL .* PASSED '
	need 4 '^Found 0 errors in .*\(passed\)'
	need 2 '^max\(\|x-x0\|\): [0-9.]+e-1[0-9]$'
	need 1 '^ *0 tests completed and failed residual checks,'
	! grep -E 'FAILED|^Node\(s\) with error [^0]' "$dir/hpccoutf.txt" ||
		bad "a check of its own failed"
}

grid()
{
	local p=1

	[ "$1" -lt 4 ] || p=2
	[ $(($1 % p)) = 0 ] || p=1
	input $p $(($1 / p))
}

cd "$dir" || exit 99
for n in "$@"; do
	[ "$n" -le 4 ] || bad "more than 4 ranks"
	rm -f hpccoutf.txt
	grid "$n" >hpccinf.txt
	"$here/run-mpi" -c -l '' "$program" "$n" >log || {
		cat log
		exit 1
	}
	check_output
	echo "ok hpcc: $n ranks, $(tail -n 1 log)"
done
