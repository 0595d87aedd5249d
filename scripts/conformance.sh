#!/bin/sh
# conformance.sh [REVISION ...]: put internal/mcp through the official MCP
# conformance suite, by default for 2025-11-25 and 2026-07-28.
#
# The suite speaks HTTP only and asks for tools by name, so two helpers are built
# with the tag "conformance": a shim from HTTP to stdio and a server with the
# fixtures. It needs npm and node; node 22 is fetched when the system's is older.
# Set GSD_CONFORMANCE_DIR to keep what npm fetches between runs.
#
# Prints the figures last. Exit 0: every scored scenario passes but those of
# features that we decline. 1: another one fails. 2: wrong usage.
set -eu
SUITE=@modelcontextprotocol/conformance@0.2.0-alpha.12

# Scenarios of features that this server declines, by revision:
# logging goes to the station's log and never to a client; the server asks its
# client for nothing (sampling, elicitation as requests), a person answers at the
# station. The 2026-07-28 suite has none of these.
declined() {
	case $1 in
	2025-11-25) echo logging-set-level tools-call-with-logging tools-call-sampling \
		tools-call-elicitation elicitation-sep1034-defaults elicitation-sep1330-enums ;;
	2026-07-28) ;;
	*) echo "conformance.sh: no list of declined features for revision $1; known are 2025-11-25 and 2026-07-28" >&2; exit 2 ;;
	esac
}

missing() {
	echo "conformance.sh: skipped: needs $1 (Debian package $2)" >&2
	[ "${GSD_REQUIRE_PEERS:-}" = 1 ] && exit 1
	exit 0
}

[ $# -gt 0 ] || set -- 2025-11-25 2026-07-28
for rev in "$@"; do declined "$rev" >/dev/null; done
command -v npm >/dev/null || missing npm npm
command -v node >/dev/null || missing node nodejs

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
shim=
trap '[ -z "$shim" ] || kill "$shim" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
peers=${GSD_CONFORMANCE_DIR:-$work/peers}
mkdir -p "$peers"

node=node
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 22 ]; then
	node=$peers/node_modules/node/bin/node
	[ -x "$node" ] || npm install --silent --no-audit --no-fund --prefix "$peers" node@22 >&2
fi
suite=$peers/node_modules/@modelcontextprotocol/conformance/dist/index.js
[ -f "$suite" ] || npm install --silent --no-audit --no-fund --prefix "$peers" $SUITE >&2

(cd "$root" && go build -tags conformance -o "$work/fixture" ./internal/mcp/conformance/fixture &&
	go build -tags conformance -o "$work/shim" ./internal/mcp/conformance/shim)

bad=0
: >"$work/figures"
for rev in "$@"; do
	rm -f "$work/addr" # the last revision's
	"$work/shim" "$work/fixture" >"$work/addr" 2>"$work/shim.log" &
	shim=$!
	i=0
	until [ -s "$work/addr" ]; do
		i=$((i + 1))
		[ $i -lt 100 ] || { echo "conformance.sh: the shim does not listen" >&2; cat "$work/shim.log" >&2; exit 1; }
		sleep 0.1
	done
	timeout 600 "$node" "$suite" server --url "http://$(cat "$work/addr")/mcp" \
		--requirements "$rev" -o "$work/results" >"$work/out" 2>&1 || true # judged below
	kill $shim && wait $shim 2>/dev/null || true
	shim=
	# "Not scored" names come after the summary; they do not count.
	awk -v declined="$(declined "$rev")" -v rev="$rev" '
		/^=== SUMMARY/ { s = 1; next }
		/^Not scored/ { s = 2; next }
		s == 1 && /^(✓|✗) / { name = $2; sub(/:$/, "", name); mark[name] = $1; order[++n] = name }
		s == 2 && /^  (✓|✗) / { delete mark[$2] }
		END {
			split(declined, d, " "); for (i in d) skip[d[i]] = 1
			for (i = 1; i <= n; i++) {
				name = order[i]
				if (!(name in mark)) continue
				scored++
				if (mark[name] == "✓") { passed++; continue }
				if (name in skip) { declinedN++; print rev ": declined: " name; continue }
				failed++; print rev ": FAILED: " name
			}
			if (!scored) { print rev ": FAILED: the suite gave no result"; exit 1 }
			printf "%s: %d of %d scored scenarios pass, %d declined, %d failed\n", rev, passed, scored, declinedN, failed
			exit failed > 0
		}' "$work/out" >>"$work/figures" || { bad=1; tail -n 90 "$work/out" >&2; tail -n 20 "$work/shim.log" >&2; }
done
cat "$work/figures"
exit $bad
