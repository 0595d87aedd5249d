#!/usr/bin/env bash
# Runs every fuzz target for a while and fails when one finds something.
#
#   scripts/fuzz.sh [DURATION] [PATTERN]    5s and all targets by default
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-5s} pattern=${2:-.}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

ran=0 failed=0
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	# The default of 60 s to shrink each interesting input leaves no time to fuzz.
	args=(-run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 10x "$package")
	status=0
	go test "${args[@]}" >"$log" 2>&1 || status=$?
	# At the end of its time the tool now and then reports its own deadline as a
	# failure (seen with Go 1.26.8); a finding always names its input.
	if [ "$status" != 0 ] && grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
		status=0
	fi
	ran=$((ran + 1))
	if [ "$status" = 0 ]; then
		execs=$(grep -o 'execs: [0-9]*' "$log" | tail -1 || true)
		printf '  %-28s %-30s %s\n' "$package" "$target" "${execs:-too short a time to begin}"
	else
		failed=$((failed + 1))
		printf '  %-28s %-30s FAILED\n' "$package" "$target"
		cat "$log"
	fi
done < <(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's#^\./##; s#:[0-9]+:func #:#' | grep -E "$pattern" | sort)
echo "fuzz: $ran targets for $duration each, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" = 0 ]
