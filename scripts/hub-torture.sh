#!/bin/sh
# Kill the daemon and the broker with SIGKILL while events flow, and count what is lost.
#   scripts/hub-torture.sh [--kills N] [--broker-kills N]     default 50 and 20
# Needs Go and mosquitto. Exits 1 when an event is lost, out of order, or duplicated more than the window allows.
set -eu
kills=50
broker=20
while [ $# -gt 0 ]; do
  case "$1" in
  --kills) kills=${2:?--kills wants a number}; shift 2 ;;
  --broker-kills) broker=${2:?--broker-kills wants a number}; shift 2 ;;
  -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
  *) echo "hub-torture.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
GSD_REQUIRE_PEERS=1 GSD_KILLS=$kills GSD_BROKER_KILLS=$broker \
  go test -count=1 -timeout 60m -v -run '^TestKilled(Daemon|Broker)' ./internal/hub/
