# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# Samples to a table: one line of input is
#   KIND SIZE TRANSPORT VALUE PROBE_BEFORE PROBE_AFTER CLEAN
# with the two probes in ns of half a round trip, and the number of parts of the
# batch in which nobody else had a core. A batch counts as near or far when both
# its probes say so and do not differ by more than 35 %, and a part was clean.
#
# Variables: names (transports, in the order of columns), own, peer (of the
# ratio), second (of the last column, may be empty), targets
# ("KIND:SIZE:MOST ..."), json (0 or 1).

function label(kind)
{
	if (kind == "lat")
		return "one way, us"
	if (kind == "bw")
		return "bandwidth, MB/s"
	if (kind == "rate")
		return "rate, M/s"
	return "fi_t" kind ", us"
}

# The median of a list of numbers, written one after the other.
function median(list,    v, n, i, j, t)
{
	n = split(list, v, " ")
	if (!n)
		return ""
	for (i = 2; i <= n; i++) {
		t = v[i] + 0
		for (j = i - 1; j > 0 && v[j] + 0 > t; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
	if (n % 2)
		return v[(n + 1) / 2] + 0
	return (v[n / 2] + v[n / 2 + 1]) / 2
}

function class_of(a, b)
{
	if (a > b * 1.35 || b > a * 1.35)
		return ""
	if (a <= 75 && b <= 75)
		return "near"
	return a > 75 && b > 75 ? "far" : ""
}

function figure(x)
{
	if (x == "")
		return "-"
	if (x < 10)
		return sprintf("%.3f", x)
	return sprintf(x < 1000 ? "%.1f" : "%.0f", x)
}

function ratio(a, b)
{
	return a == "" || b == "" || b == 0 ? "" : a / b
}

# Whether a target is met: "" if there is none, or no ratio to judge.
function verdict(class, row, r)
{
	if (class != "near" || !(row in target) || r == "")
		return ""
	return r <= target[row] ? "yes" : "NO"
}

function row_text(class, row,    part, i, r, line)
{
	split(row, part, ":")
	line = sprintf("%-15s %7d", label(part[1]), part[2])
	for (i = 1; i <= columns; i++)
		line = line sprintf(" %*s", width(i),
				    figure(value[class, row, name[i]]))
	r = ratio(value[class, row, own], value[class, row, peer])
	line = line sprintf(" %*s %7s %3s", ratio_width(peer),
			    r == "" ? "-" : sprintf("%.2f", r),
			    class == "near" && (row in target) ? \
			    sprintf("%.2f", target[row]) : "-",
			    verdict(class, row, r))
	if (second != "") {
		r = ratio(value[class, row, own], value[class, row, second])
		line = line sprintf(" %*s", ratio_width(second),
				    r == "" ? "-" : sprintf("%.3f", r))
	}
	sub(/ +$/, "", line)
	print line
}

function width(i)
{
	return length(name[i]) > 7 ? length(name[i]) : 7
}

# Of a column whose head is "/" and the name @of, the divisor.
function ratio_width(of)
{
	return length(of) > 4 ? length(of) + 1 : 5
}

function section_text(class,    i, line)
{
	printf "%s cores: one cache line takes %s ns one way; %d batches\n",
	       class, figure(median(probes[class])), count[class]
	line = sprintf("%-15s %7s", "message", "bytes")
	for (i = 1; i <= columns; i++)
		line = line sprintf(" %*s", width(i), name[i])
	line = line sprintf(" %*s %7s %3s", ratio_width(peer), "/" peer,
			    "at most", "met")
	if (second != "")
		line = line sprintf(" %*s", ratio_width(second), "/" second)
	print line
	for (i = 1; i <= rows; i++)
		if ((class, order[i]) in has)
			row_text(class, order[i])
	print ""
}

function row_json(class, row,    part, i, r, line)
{
	split(row, part, ":")
	line = sprintf("{\"kind\": \"%s\", \"size\": %d", part[1], part[2])
	for (i = 1; i <= columns; i++)
		if (value[class, row, name[i]] != "")
			line = line sprintf(", \"%s\": %.6g, \"%s_n\": %d",
					    name[i],
					    value[class, row, name[i]],
					    name[i], n[class, row, name[i]])
	r = ratio(value[class, row, own], value[class, row, peer])
	if (r != "")
		line = line sprintf(", \"ratio\": %.4f", r)
	if (verdict(class, row, r) != "")
		line = line sprintf(", \"target\": %.4f, \"met\": %s",
				    target[row], verdict(class, row, r) == \
				    "yes" ? "true" : "false")
	return line "}"
}

function section_json(class,    i, between)
{
	printf "\"%s\": {\"raw_ns\": %s, \"batches\": %d, \"rows\": [", class,
	       figure(median(probes[class])), count[class]
	for (i = 1; i <= rows; i++) {
		if (!((class, order[i]) in has))
			continue
		printf "%s\n  %s", between, row_json(class, order[i])
		between = ","
	}
	printf "]}"
}

BEGIN {
	columns = split(names, name, " ")
	i = split(targets, pair, " ")
	for (; i > 0; i--) {
		split(pair[i], part, ":")
		target[part[1] ":" part[2]] = part[3]
	}
}

NF == 7 {
	row = $1 ":" $2
	if (!(row in seen)) {
		seen[row] = 1
		order[++rows] = row
	}
	if (!$7) {
		disturbed++
		next
	}
	class = class_of($5, $6)
	if (class == "") {
		dropped++
		next
	}
	count[class]++
	has[class, row] = 1
	probes[class] = probes[class] " " $5
	all[class, row, $3] = all[class, row, $3] " " $4
	n[class, row, $3]++
}

END {
	for (key in all)
		value[key] = median(all[key])
	if (json) {
		printf "{\"own\": \"%s\", \"peer\": \"%s\", \"dropped\": %d, " \
		       "\"disturbed\": %d", own, peer, dropped, disturbed
		for (i = 1; i <= 2; i++) {
			class = i == 1 ? "near" : "far"
			if (count[class]) {
				printf ",\n "
				section_json(class)
			}
		}
		print "}"
	} else {
		if (count["near"])
			section_text("near")
		if (count["far"])
			section_text("far")
		if (!count["near"])
			print "The cores were never near: no target applies."
		if (dropped)
			printf "%d batches dropped: the distance of the " \
			       "cores changed while they ran.\n", dropped
		if (disturbed)
			printf "%d batches dropped: other programs had the " \
			       "cores.\n", disturbed
	}
}
