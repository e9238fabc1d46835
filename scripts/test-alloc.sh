#!/usr/bin/env bash
# Runs without the race detector the tests whose results it would change: in every
# module the packages with a test that has Alloc in its name or checks raceEnabled. (The
# race detector makes sync.Pool drop objects, adds allocations of its own, and ends
# programs that show a data race.)
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t folders < <(grep -rlE --include='*_test.go' '^func Test\w*Alloc|raceEnabled' . | xargs -n1 dirname | sort -u)
if [ ${#folders[@]} = 0 ]; then
	echo 'no tests of allocations found: check the search in scripts/test-alloc.sh' >&2
	exit 1
fi
go test "${folders[@]}"
