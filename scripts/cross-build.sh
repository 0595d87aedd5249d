#!/usr/bin/env bash
# Builds the four binaries that stations run, into dist/, and checks each: the
# right machine, static, small enough. Needs Go, git and coreutils.
#
#   scripts/cross-build.sh [VERSION]     VERSION defaults to git describe
#   TARGETS="arm64 amd64" scripts/cross-build.sh
#
# armv6 runs on every Pi (Zero and 1 included); armv7 on the Pi 2 and later with
# a 32-bit system; arm64 on the Pi 3 and later with a 64-bit one.
set -euo pipefail
cd "$(dirname "$0")/.."

# A megabyte is 1 000 000 bytes. A field technician copies the binary over a
# phone's link, and a Zero reads it from a slow card at every start.
LIMIT_arm64=10500000

# What keeps the binary small: no HTTP/2 (nothing here needs it), and no inlining
# but in the package that computes orbits. Measured on arm64: 12.26 MB plain, 10.49
# with both. The file grows in steps of 64 kB, by segment, and the next step is over
# the limit: see docs/dependencies.md before adding anything.
TAGS=nethttpomithttp2
GCFLAGS=(-gcflags=all=-l -gcflags=gsd-mcp/internal/passes=)

version=${1:-$(git describe --tags --always --dirty 2>/dev/null || echo 0.0.0-unknown)}
targets=${TARGETS:-arm64 armv7 armv6 amd64}

# bytes FILE OFFSET COUNT prints a little-endian number from a file.
bytes() { od -An -v -t u1 -j "$2" -N "$3" "$1" | tr -s ' \n' '\n' | awk 'NF { n += $1 * 256 ^ i++ } END { printf "%d", n }'; }

# check_elf FILE MACHINE fails unless FILE is a Linux executable for MACHINE (the
# ELF number) that asks for no interpreter and no shared library.
check_elf() {
	local file=$1 machine=$2 class at size count i type
	if [ "$(od -An -c -N 4 "$file" | tr -d ' ')" != '177ELF' ]; then
		echo "error: $file is not an ELF file" >&2
		return 1
	fi
	class=$(bytes "$file" 4 1)
	if [ "$(bytes "$file" 18 2)" != "$machine" ]; then
		echo "error: $file is for ELF machine $(bytes "$file" 18 2), want $machine" >&2
		return 1
	fi
	if [ "$class" = 2 ]; then
		at=$(bytes "$file" 32 8) size=$(bytes "$file" 54 2) count=$(bytes "$file" 56 2)
	else
		at=$(bytes "$file" 28 4) size=$(bytes "$file" 42 2) count=$(bytes "$file" 44 2)
	fi
	for ((i = 0; i < count; i++)); do
		type=$(bytes "$file" $((at + i * size)) 4)
		if [ "$type" = 2 ] || [ "$type" = 3 ]; then # PT_DYNAMIC, PT_INTERP
			echo "error: $file is not static (program header $i has type $type)" >&2
			return 1
		fi
	done
}

mkdir -p dist
failed=0 sizes=""
for target in $targets; do
	case $target in
	arm64) goarch=arm64 goarm="" machine=183 ;;
	armv7) goarch=arm goarm=7 machine=40 ;;
	armv6) goarch=arm goarm=6 machine=40 ;;
	amd64) goarch=amd64 goarm="" machine=62 ;;
	*)
		echo "error: unknown target $target; known: arm64 armv7 armv6 amd64" >&2
		exit 2
		;;
	esac
	out=dist/gsd-mcp-linux-$target
	CGO_ENABLED=0 GOOS=linux GOARCH=$goarch GOARM=$goarm \
		go build -trimpath -tags "$TAGS" "${GCFLAGS[@]}" -ldflags "-s -w -X main.version=$version" -o "$out" ./cmd/gsd-mcp
	check_elf "$out" "$machine" || failed=1
	size=$(stat -c %s "$out")
	limit_name=LIMIT_$target
	limit=${!limit_name:-}
	sizes+=$(awk -v t="$target" -v s="$size" -v l="$limit" 'BEGIN { printf "%-6s %10d bytes  %5.2f MB%s", t, s, s / 1e6, l == "" ? "" : sprintf("  (limit %.1f MB)", l / 1e6) }')$'\n'
	if [ -n "$limit" ] && [ "$size" -gt "$limit" ]; then
		echo "error: $out has $size bytes, the limit is $limit; see docs/dependencies.md for what weighs what" >&2
		failed=1
	fi
done
echo "gsd-mcp $version, static:"
printf '%s' "$sizes"
exit "$failed"
