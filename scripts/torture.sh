#!/usr/bin/env bash
# The full counts: what .ci/run does a tenth of. For a quiet machine and an
# evening; prints its figures last and fails when a bound is not met.
#
#   scripts/torture.sh
#
# FUZZ       time per fuzz target           default 2m; FuzzDecide gets five times that
# CHECKS     cases per property             default 20000
# REPEAT     runs of all tests, shuffled    default 10
# KILLS      restarts of the hub under load default 100
set -euo pipefail
cd "$(dirname "$0")/.."
fuzz=${FUZZ:-2m} checks=${CHECKS:-20000} repeat=${REPEAT:-10} kills=${KILLS:-100}

figures=""
# part NAME COMMAND... runs a part and keeps its verdict for the end.
failed=0
part() {
	local name=$1 start=$SECONDS verdict=passed
	shift
	echo "== $name"
	"$@" || verdict=FAILED failed=1
	figures+=$(printf '%-44s %-7s %5d s' "$name" "$verdict" $((SECONDS - start)))$'\n'
}

# properties runs the tests of every package that has rapid properties, with
# many cases of each.
properties() {
	local packages
	packages=$(grep -rlE --include='*_test.go' '"pgregory.net/rapid"' . | xargs -n1 dirname | sort -u)
	# shellcheck disable=SC2086 # one word per package
	go test -timeout 3h $packages -args -rapid.checks="$checks" -rapid.nofailfile
}

decide() {
	local seconds=$fuzz
	case $fuzz in
	*m) seconds=$((${fuzz%m} * 300))s ;;
	*s) seconds=$((${fuzz%s} * 5))s ;;
	esac
	scripts/fuzz.sh "$seconds" 'FuzzDecide$'
}

part "properties, $checks cases each" properties
part "the gate, fuzzed five times as long" decide
part "every other fuzz target for $fuzz" scripts/fuzz.sh "$fuzz" 'Fuzz([^D]|D[^e]|De[^c])'
part "all tests $repeat times, shuffled" env GSD_REQUIRE_PEERS="${GSD_REQUIRE_PEERS:-}" go test -timeout 3h -count "$repeat" -shuffle on ./...
part "ten simulated days on a damaged wire" env GSD_TORTURE=1 go test -timeout 1h -count 1 -run "TestADayOnADamagedWire" ./internal/station
part "all tests with the race detector" go test -timeout 3h -race -count 2 ./...
part "the hub, $kills kills" scripts/hub-torture.sh --kills "$kills"

echo
printf '%s' "$figures"
exit "$failed"
