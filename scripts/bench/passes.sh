#!/bin/bash
# Compares the CPU seconds of `gsd-mcp passes` with those of satellite.js (npm)
# and Skyfield (Debian's python3-skyfield), in one run on one core, whole
# processes: London, mask 0, low orbits of testdata's snapshot of the whole
# catalogue. Exits 1 when it is less than 12 times as fast as satellite.js with
# 2000 satellites over 24 hours, or when its cost does not grow linearly.
#
#   scripts/bench/passes.sh [--quick] [--full]
#
# --quick leaves out 72 hours and Skyfield; --full lets Skyfield do 2000
# satellites over 72 hours too, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
quick=0 full=0
for arg in "$@"; do
	case $arg in
	--quick) quick=1 ;;
	--full) full=1 ;;
	*) echo "usage: scripts/bench/passes.sh [--quick] [--full]" >&2; exit 2 ;;
	esac
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$dir/gsd-mcp" ./cmd/gsd-mcp
gunzip -c testdata/orbits/active_20260812.tle.gz >"$dir/all.tle"
for n in 20 200 2000; do
	awk -v n=$n 'NR%3==1{a=$0} NR%3==2{b=$0} NR%3==0{ if (substr($0,53,11)+0 > 11.25) {print a; print b; print; if (++c == n) exit} }' "$dir/all.tle" >"$dir/$n.tle"
done

js=0
if command -v node >/dev/null && command -v npm >/dev/null; then
	cp scripts/bench/passes/satellitejs.mjs "$dir/"
	if (cd "$dir" && npm install --silent --no-audit --no-fund --prefix "$dir" satellite.js@7 >/dev/null 2>&1); then
		js=1
	fi
fi
[ $js = 1 ] || echo "no satellite.js: needs node, npm and the package satellite.js" >&2
sky=0
if [ $quick = 0 ]; then
	python=/usr/bin/python3
	"$python" -c 'import skyfield' 2>/dev/null && sky=1 || echo "no Skyfield: needs python3-skyfield" >&2
fi

start=2026-08-12T12:00:00Z
core=$(awk '/^Cpus_allowed_list/ {split($2, a, /[-,]/); print a[1]}' /proc/self/status)

# cpu COMMAND...: user and system seconds of the fastest of $runs, on one core.
runs=3
cpu() {
	local best= t
	for ((i = 0; i < runs; i++)); do
		t=$( { TIMEFORMAT='%U %S'; time GOMAXPROCS=1 taskset -c "$core" "$@" >"$dir/out" 2>"$dir/err"; } 2>&1 | awk '{print $1 + $2}')
		if [ -z "$best" ] || awk "BEGIN {exit !($t < $best)}"; then best=$t; fi
	done
	echo "$best"
}

ours() { cpu "$dir/gsd-mcp" passes --elements "$1" --lat 51.5074 --lon -0.1278 --alt 25 --from $start --hours "$2" --csv; }

declare -A got
printf '%10s %6s %9s %9s %14s %14s\n' satellites hours passes gsd-mcp satellite.js Skyfield
hours="24"
[ $quick = 1 ] || hours="24 72"
for n in 20 200 2000; do
	for h in $hours; do
		runs=3
		g=$(ours "$dir/$n.tle" "$h")
		passes=$(($(wc -l <"$dir/out") - 1))
		got[$n,$h]=$g
		j=- s=-
		runs=1
		if [ $js = 1 ]; then
			[ "$n" = 2000 ] && [ "$h" = 24 ] && runs=2
			j=$(cpu node "$dir/satellitejs.mjs" "$dir/$n.tle" $start "$h")
			got[js,$n,$h]=$j
			j="$j ($(awk "BEGIN {printf \"%.0fx\", $j / $g}"))"
		fi
		runs=1
		if [ $sky = 1 ] && { [ "$n" -lt 2000 ] || [ "$h" = 24 ] || [ $full = 1 ]; }; then
			s=$(cpu "$python" scripts/bench/passes/skyfield_passes.py "$dir/$n.tle" $start "$h")
			s="$s ($(awk "BEGIN {printf \"%.0fx\", $s / $g}"))"
		fi
		printf '%10d %6d %9d %9.3f %14s %14s\n' "$n" "$h" "$passes" "$g" "$j" "$s"
	done
done
runs=2
g=$(ours "$dir/all.tle" 24)
n=$(grep -c '^1 ' "$dir/all.tle")
printf '%10d %6d %9d %9.3f   the whole catalogue\n' "$n" 24 $(($(wc -l <"$dir/out") - 1)) "$g"

bad=0
base=${got[20,24]}
slope=$(awk "BEGIN {a = (${got[2000,24]} - ${got[200,24]}) / 1800; printf \"%.3f\", (($g - ${got[2000,24]}) / ($n - 2000)) / a}")
echo "cost of one more satellite, beyond 2000 over below: $slope (1 is linear; the rest of the catalogue has high orbits too)"
awk "BEGIN {exit !($slope < 2)}" || bad=1
if [ $quick = 0 ]; then
	slope=$(awk "BEGIN {printf \"%.2f\", (${got[2000,72]} - $base) / (${got[2000,24]} - $base)}")
	echo "cost of 72 hours over that of 24, without the start: $slope (3 is linear)"
	awk "BEGIN {exit !($slope < 3.6)}" || bad=1
fi
if [ $js = 1 ]; then
	ratio=$(awk "BEGIN {printf \"%.1f\", ${got[js,2000,24]} / ${got[2000,24]}}")
	echo "2000 satellites, 24 hours, one core: $ratio times as fast as satellite.js (at least 12)"
	awk "BEGIN {exit !($ratio >= 12)}" || bad=1
fi
exit $bad
