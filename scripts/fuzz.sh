#!/usr/bin/env bash
# Runs every fuzz target of every module for a while:
#
#	bash scripts/fuzz.sh [TIME]     TIME as go test -fuzztime takes it, default 5s
#
# A failing input is kept below the package's testdata/fuzz and becomes a test
# case once committed.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-5s}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Minimizing an input that reaches new code may by default take a minute, in which
# no new input is tried: limit it.
flags=(-run='^$' -fuzztime="$time" -fuzzminimizetime=20x)

fuzz() { # fuzz FOLDER TARGET
	# Up to Go 1.26 a target may fail with nothing but "context deadline exceeded"
	# when its time is up (go.dev/issue/75804). Only that, and only if no failing
	# input was found, is tried again.
	for _ in 1 2 3; do
		if go test "${flags[@]}" -fuzz="^$2\$" "$1" >"$log" 2>&1 </dev/null; then
			echo "  $(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
			return 0
		fi
		if grep -q 'Failing input' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
			break
		fi
	done
	cat "$log" >&2
	echo "fuzz target $2 failed: go test -run='^\$' -fuzz='^$2\$' $1" >&2
	return 1
}

targets=$(grep -rnoE --include='*_test.go' '^func Fuzz\w+' . | sed -E 's|^(.*)/[^/]+:[0-9]+:func (Fuzz\w+)$|\1 \2|' | sort -u || true)
if [ -z "$targets" ]; then
	echo 'no fuzz targets found: check the search in scripts/fuzz.sh' >&2
	exit 1
fi
while read -r folder target; do
	echo "$folder $target"
	fuzz "$folder" "$target"
done <<<"$targets"
