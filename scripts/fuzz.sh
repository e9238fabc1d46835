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
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
cache=$(go env GOCACHE)/fuzz/github.com/spillway-go/spillway
export time parts cache

fuzz() { # fuzz PROGRAM FOLDER TARGET
	# Minimizing an input that reaches new code may by default take a minute, in which
	# no new input is tried: limit it. One worker: folders run side by side.
	local log=$1.log span=$time
	# Up to Go 1.26 a target may fail with nothing but "context deadline exceeded"
	# when its time is up (go.dev/issue/75804). Only that, and only if no failing
	# input was found, is tried again.
	for _ in 1 2 3; do
		if (cd "$2" && "$1" -test.run='^$' -test.fuzztime="$span" -test.fuzzminimizetime=20x -test.parallel=1 -test.fuzzcachedir="$cache/$2" -test.fuzz="^$3\$") >"$log" 2>&1 </dev/null; then
			if ! grep -q 'execs: ' "$log"; then
				grep -q 'baseline coverage' "$log" || break # the target is not in this build
				span=60s                                    # its seeds took all of the time
				continue
			fi
			echo "$2 $3 $(grep -oE 'execs: [0-9]+' "$log" | tail -n 1)"
			return 0
		fi
		if grep -q 'Failing input' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
			break
		fi
	done
	cat "$log" >&2
	echo "fuzz target $3 failed: go test -run='^\$' -fuzz='^$3\$' $2" >&2
	return 1
}

# folder builds one program for all targets of a folder, since linking takes longer than
# they run, without what debuggers need.
folder() { # folder NUMBER FOLDER TARGET...
	local program=$parts/$1 in=$2 target
	shift 2
	if ! go test -c -fuzz=. -vet=off -ldflags=-w -o "$program" "$in" </dev/null >"$program.log" 2>&1; then
		cat "$program.log" >&2
		return 1
	fi
	for target in "$@"; do
		fuzz "$program" "$in" "$target" || return 1
	done
	rm "$program"
}
export -f fuzz folder

grep -rnoE --include='*_test.go' '^func Fuzz\w+' . | sed -E 's|^(.*)/[^/]+:[0-9]+:func (Fuzz\w+)$|\1 \2|' | sort -u |
	awk '$1 != last { if (last) print line; last = $1; line = ++n " " $1 } { line = line " " $2 } END { if (last) print line }' >"$parts/folders" || true
if [ ! -s "$parts/folders" ]; then
	echo 'no fuzz targets found: check the search in scripts/fuzz.sh' >&2
	exit 1
fi
xargs -P "$(nproc)" -L 1 bash -c 'folder "$@" || exit 255' folder <"$parts/folders"
