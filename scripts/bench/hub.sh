#!/bin/bash
# How many events a second the outbox takes, each of them flushed to the disk
# before it counts, with 1, 10 and 100 callers at once; what is written for each;
# and the ratio to the FileStore of the MQTT library in the same run. (bbolt would
# be another dependency, so it is not compared.) Exits 1 when a single caller gets
# less than the FileStore with the flushes that it lacks, or when 100 callers get
# less than four times as much as one.
#
#   scripts/bench/hub.sh [DIR]
#
# DIR is on the disk to measure; default /var/tmp.
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
dir=$(mktemp -d "${1:-/var/tmp}/hub-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
kind=$(stat -f -c %T "$dir")
echo "disk: $dir is on $kind"
[ "$kind" != tmpfs ] || echo "hub.sh: $dir is in memory: give a directory on a disk, or the figures mean nothing" >&2
TMPDIR=$dir go test -run '^$' -bench '^Benchmark(Journal|PahoFileStore)$' -benchtime "${BENCHTIME:-2s}" ./internal/hub/ >"$dir/out"
awk '
/^Benchmark/ {
	name = $1
	sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
	for (i = 3; i < NF; i += 2) v[name, $(i + 1)] = $i
	order[++n] = name
}
END {
	printf "%-26s %10s %13s %13s %13s\n", "", "events/s", "events/flush", "bytes/event", "disk B/event"
	for (i = 1; i <= n; i++) {
		k = order[i]
		f = (k, "events/flush") in v ? sprintf("%.1f", v[k, "events/flush"]) : (k ~ /flushed/ ? "1.0" : "never")
		printf "%-26s %10.0f %13s %13.0f %13.0f\n", k, v[k, "events/s"], f, v[k, "B/event"], v[k, "diskB/event"]
	}
	one = v["Journal/batch=1", "events/s"]; ten = v["Journal/batch=10", "events/s"]; many = v["Journal/batch=100", "events/s"]
	plain = v["PahoFileStore/as-it-is", "events/s"]; flushed = v["PahoFileStore/flushed", "events/s"]
	if (!(one > 0 && ten > 0 && many > 0 && plain > 0 && flushed > 0)) { print "hub.sh: a figure is missing"; exit 1 }
	printf "times the FileStore with flushes: %.1f, %.1f, %.1f (batch 1, 10, 100; at least 1 for batch 1)\n", one / flushed, ten / flushed, many / flushed
	printf "times the FileStore as it is, without a flush: %.2f, %.2f, %.2f\n", one / plain, ten / plain, many / plain
	printf "100 callers over one: %.1f (at least 4)\n", many / one
	exit !(one >= flushed && many >= 4 * one)
}' "$dir/out" || { cat "$dir/out" >&2; exit 1; }
