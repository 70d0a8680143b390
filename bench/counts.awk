# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
#
# The totals that shrimp's domains appended to FI_SHRIMP_STATS, summed: messages
# and bytes sent, by the path that carried the payload. Variable: json (0 or 1).
# Exit status 1 if no domain counted a message.

/^shrimp-stats=/ {
	for (i = 2; i <= NF; i++) {
		eq = index($i, "=")
		word = substr($i, 1, eq - 1)
		if (word !~ /^tx_(msgs|bytes)_/)
			continue
		path = word
		sub(/^tx_(msgs|bytes)_/, "", path)
		if (!(path in seen)) {
			seen[path] = 1
			order[++paths] = path
		}
		if (word ~ /^tx_msgs_/) {
			msgs[path] += substr($i, eq + 1)
			total += substr($i, eq + 1)
		} else {
			bytes[path] += substr($i, eq + 1)
		}
	}
}

END {
	if (json)
		printf "{"
	else
		printf "%-10s %14s %18s\n", "path", "messages", "bytes"
	for (i = 1; i <= paths; i++) {
		path = order[i]
		if (json)
			printf "%s\"%s\": {\"messages\": %.0f, \"bytes\": %.0f}",
			       (i > 1 ? ", " : ""), path, msgs[path], bytes[path]
		else if (msgs[path])
			printf "%-10s %14.0f %18.0f\n", path, msgs[path],
			       bytes[path]
	}
	if (json)
		print "}"
	exit total ? 0 : 1
}
