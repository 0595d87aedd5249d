#!/bin/sh
# Kill the daemon and the broker with SIGKILL while events flow, cut the power of the outbox's disk, catch up with three
# days offline over a long link, and count what is lost.
#   scripts/hub-torture.sh [--kills N] [--broker-kills N] [--power-cuts N] [--no-offline]     default 50, 20 and 20
# Needs Go and mosquitto; the power cuts need root and mkfs.ext4, and are skipped without. Takes about six minutes. Exits 1
# when an event is lost, out of order, or duplicated more than the window allows, or when catching up takes too long.
set -eu
kills=50
broker=20
cuts=20
offline='|^TestThreeDays'
while [ $# -gt 0 ]; do
  case "$1" in
  --kills) kills=${2:?--kills wants a number}; shift 2 ;;
  --broker-kills) broker=${2:?--broker-kills wants a number}; shift 2 ;;
  --power-cuts) cuts=${2:?--power-cuts wants a number}; shift 2 ;;
  --no-offline) offline=; shift ;;
  -h | --help) sed -n '2,6s/^# //p' "$0"; exit 0 ;;
  *) echo "hub-torture.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
# go test's exit code would be lost in the pipe to tee.
{
  GSD_POWER_CUTS=$cuts go test -count=1 -timeout 60m -v -run '^TestPowerCut' ./internal/state/ || echo "FAILED: internal/state"
  GSD_REQUIRE_PEERS=1 GSD_TORTURE=1 GSD_KILLS=$kills GSD_BROKER_KILLS=$broker \
    go test -count=1 -timeout 60m -v -run "^TestKilled(Daemon|Broker)$offline" ./internal/hub/ || echo "FAILED: internal/hub"
} 2>&1 | tee "$out"
if grep -q '^FAILED' "$out"; then failed=1; fi
echo
grep -E '_test.go:[0-9]+: [0-9]+ (kills|power cuts|events)|--- (SKIP|FAIL)' "$out" | sed 's/^ *[a-z_]*\.go:[0-9]*: //' || true
exit $failed
