# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
# shellcheck shell=bash
#
# Takes turns between programs that obey orders (control.h), with a raw probe
# before and after each batch. Sourced by mpi-compare and fi-compare, which set
#   own peer second targets known    for the table; known: transports there are
#   transport_check NAME             0, or 1 after saying what is missing
#   transport_exec NAME DIR          replaces the shell by the program
#   batches_list                     prints "KIND SIZE" lines
# and call driver_main "$@".

: "${about:?}" "${own:?}" "${peer:?}" "${known:?}" "${targets:?}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
builddir=${SHRIMP_BUILDDIR:-}
wanted=
rounds=0
ms=20
probe_ms=4
span_max=0
near_wait=0
best=0
cpus=
json=0
quick=0
declare -A pid order0 order1 result
alive=()
tmp=
status=0

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
	say "$*"
	exit 1
}

# ---- what is there ---------------------------------------------------

builddir_find() {
	local dir

	for dir in "$builddir" "$PWD" "$here/.."; do
		if [ -n "$dir" ] && [ -x "$dir/bench/raw-probe" ]; then
			builddir=$(cd "$dir" && pwd)
			return
		fi
	done
	die "bench/raw-probe not found: run make, then name the build tree in" \
		"SHRIMP_BUILDDIR (now \"${SHRIMP_BUILDDIR:-}\")"
}

program_check() {
	[ -x "$builddir/bench/$1" ] && return
	say "$builddir/bench/$1 is missing: ${2:-run make}"
	return 1
}

provider_check() {
	[ -e "$builddir/lib/.libs/libshrimp-fi.so" ] && return
	say "$builddir/lib/.libs/libshrimp-fi.so is missing: run make"
	return 1
}

# ---- jobs ------------------------------------------------------------

# The program of one transport, with nothing inherited but its own folder.
job_start() {
	local dir=$tmp/$1

	mkdir "$dir" || die "cannot make $dir"
	mkfifo "$dir/order.0" "$dir/order.1" "$dir/result" ||
		die "cannot make FIFOs in $dir"
	(transport_exec "$1" "$dir") </dev/null >"$dir/log" 2>&1 &
	pid[$1]=$!
}

# After all jobs have started, so that none inherits another one's FIFOs.
job_open() {
	local fd dir=$tmp/$1

	exec {fd}<>"$dir/order.0" && order0[$1]=$fd
	exec {fd}<>"$dir/order.1" && order1[$1]=$fd
	exec {fd}<>"$dir/result" && result[$1]=$fd
}

# One line of a job into $reply; fails when it has ended or after $2 seconds. A
# read that times out in the middle of a line leaves its beginning in $line.
job_read() {
	local waited line part=

	for ((waited = 0; waited < $2; waited++)); do
		if read -r -t 1 -u "${result[$1]}" line; then
			reply=$part$line
			return
		fi
		part+=$line
		kill -0 "${pid[$1]}" 2>/dev/null || break
	done
	# What it wrote before it ended may still be there.
	read -r -t 0.1 -u "${result[$1]}" line && reply=$part$line
}

job_order() {
	printf '%s\n' "$2" >&"${order0[$1]}"
	printf '%s\n' "$2" >&"${order1[$1]}"
}

job_drop() {
	local name keep=()

	if [ -s "$tmp/$1/log" ]; then
		say "$1 stopped: $2; the end of its output:"
		tail -n 15 "$tmp/$1/log" | sed 's/^/    /' >&2
	else
		say "$1 stopped: $2; it printed nothing: are the cores busy" \
			"with other work?"
	fi
	for name in "${alive[@]}"; do
		[ "$name" = "$1" ] || keep+=("$name")
	done
	alive=("${keep[@]}")
	status=1
}

job_end() {
	local left

	[ -n "${order0[$1]:-}" ] && job_order "$1" quit
	for ((left = 50; left; left--)); do
		kill -0 "${pid[$1]}" 2>/dev/null || break
		sleep 0.1
	done
	if [ "$left" = 0 ]; then
		kill "${pid[$1]}" 2>/dev/null
		sleep 1
		kill -KILL "${pid[$1]}" 2>/dev/null
	fi
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]"
}

# shellcheck disable=SC2317 # called by trap
driver_cleanup() {
	local name

	trap - EXIT
	for name in "${!pid[@]}"; do
		job_end "$name"
	done
	[ -z "$tmp" ] || rm -rf "$tmp"
}

# ---- batches ---------------------------------------------------------

probe_run() {
	local word

	read -r probe word < <("$builddir/bench/raw-probe" --ms "$probe_ms" \
		${cpus:+--cpus "$cpus"})
	[ -n "$word" ] || die "raw-probe failed"
}

batch_run() {
	local kind size value least clean rest before=$probe

	job_order "$1" "$2 $3 $ms"
	if ! job_read "$1" 20; then
		job_drop "$1" "no answer to \"$2 $3\" in 20 s"
		return
	fi
	probe_run
	[ "$reply" = "error not supported" ] && return
	read -r kind size value least clean rest <<<"$reply"
	if [ "$kind" != "$2" ]; then
		job_drop "$1" "\"$reply\" as answer to \"$2 $3\""
		return
	fi
	((best)) && value=$least
	echo "$kind $size $1 $value $before $probe $clean" >>"$tmp/samples"
}

round_run() {
	local kind size name

	probe_run
	while read -r kind size; do
		for name in "${alive[@]}"; do
			batch_run "$name" "$kind" "$size"
		done
	done < <(batches_list)
}

near_seen() {
	awk '$5 <= 75 && $6 <= 75 && $7 { n++ } END { exit n > 200 ? 0 : 1 }' \
		"$tmp/samples"
}

rounds_run() {
	local i begin=$SECONDS

	for ((i = 1;; i++)); do
		[ ${#alive[@]} -gt 0 ] || break
		round_run
		[ -t 2 ] && printf '\rround %d: cores at %s ns ' "$i" \
			"$probe" >&2
		((span_max && SECONDS - begin >= span_max)) && break
		((i < rounds)) && continue
		((SECONDS - begin < near_wait)) || break
		near_seen && break
	done
	[ -t 2 ] && printf '\n' >&2
	say "$i rounds of $ms ms batches in $((SECONDS - begin)) s"
}

# ---- the program -----------------------------------------------------

driver_usage() {
	cat <<END
usage: ${0##*/} [options]
$about
  --quick            few rounds, under a minute on idle cores
  --transports LIST  of $known
                     (those that are there, $own and $peer in any case)
  --sizes LIST       message sizes in bytes, K and M allowed
  --rounds N         batches of each kind, size and transport (41; quick: 9)
  --ms N             length of a batch in milliseconds (20)
  --cpus A,B         the two cores (the first two)
  --near-wait S      go on for up to S seconds until the cores were near
  --best             take the fastest part of each batch instead of the
                     median one
  --json             one JSON object instead of the table
  --help             this text
A raw probe (one cache line back and forth) runs before and after each batch.
Batches whose probes differ by more than 35 % are dropped, and those in which
other programs took the cores all the time; near (at most 75 ns) and far are
reported apart; figures are medians. Columns /NAME are ratios, $own to NAME.
SHRIMP_BUILDDIR names the build tree.
END
}

number_check() {
	[[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || die "$1 needs a number, not \"$2\""
}

options_parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--quick) quick=1 ;;
		--json) json=1 ;;
		--best) best=1 ;;
		--help | -h)
			driver_usage
			exit 0
			;;
		--transports | --sizes | --rounds | --ms | --cpus | --near-wait)
			[ $# -gt 1 ] || die "$1 needs a value"
			option_set "$1" "$2"
			shift
			;;
		*)
			driver_usage >&2
			die "unknown option \"$1\""
			;;
		esac
		shift
	done
	if [ "$rounds" = 0 ]; then
		rounds=$((quick ? 9 : 41))
	fi
	((quick)) && span_max=40
	return 0
}

option_set() {
	case $1 in
	--transports) wanted=${2//,/ } ;;
	--sizes) sizes=$2 ;;
	--cpus) cpus=$2 ;;
	--rounds) number_check "$1" "$2" && rounds=$2 ;;
	--ms) number_check "$1" "$2" && ms=$2 ;;
	--near-wait) number_check "$1" "$2" && near_wait=$2 ;;
	esac
}

# Sizes as plain numbers, one a line.
sizes_expand() {
	local size

	for size in ${1//,/ }; do
		case $size in
		*[KkMm]) [[ ${size%?} =~ ^[0-9]+$ ]] || die "size \"$size\"?" ;;
		*) [[ $size =~ ^[0-9]+$ ]] || die "size \"$size\"?" ;;
		esac
		case $size in
		*[Kk]) echo $((${size%?} << 10)) ;;
		*[Mm]) echo $((${size%?} << 20)) ;;
		*) echo "$size" ;;
		esac
	done
}

transports_choose() {
	local name

	for name in ${wanted:-$known}; do
		[[ " $known " == *" $name "* ]] ||
			die "no transport \"$name\"; there are: $known"
		if transport_check "$name"; then
			alive+=("$name")
		elif [ -n "$wanted" ] || [ "$name" = "$own" ] ||
			[ "$name" = "$peer" ]; then
			die "$name cannot be measured"
		else
			say "$name is left out"
		fi
	done
}

jobs_start() {
	local name

	for name in "${alive[@]}"; do
		job_start "$name"
	done
	for name in "${alive[@]}"; do
		job_open "$name"
	done
	for name in "${alive[@]}"; do
		job_read "$name" 30 || reply=
		[ "$reply" = ready ] || job_drop "$name" "did not start"
	done
}

jobs_end() {
	local name

	for name in "${!pid[@]}"; do
		job_end "$name"
	done
}

report() {
	awk -v names="$shown" -v own="$own" -v peer="$peer" \
		-v second="$second" -v targets="$targets" -v json="$json" \
		-f "$here/table.awk" "$tmp/samples"
	[ -s "$tmp/stats" ] || return 0
	((json)) || echo "What the shrimp device counted as sent:"
	awk -v json="$json" -f "$here/counts.awk" "$tmp/stats"
}

driver_main() {
	options_parse "$@"
	builddir_find
	sizes=$(sizes_expand "$sizes") || exit 1
	transports_choose
	shown=${alive[*]}
	[[ " $shown " == *" $second "* ]] || second=
	tmp=$(mktemp -d "${TMPDIR:-/tmp}/shrimp-bench.XXXXXX") ||
		die "no temporary folder"
	trap driver_cleanup EXIT
	trap 'exit 130' INT TERM HUP
	: >"$tmp/samples"
	say "starting: $shown"
	jobs_start
	rounds_run
	jobs_end
	report || status=1
	exit "$status"
}
