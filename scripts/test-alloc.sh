#!/usr/bin/env bash
# Runs without the race detector the tests whose results it would change: the whole
# root module, and in the other modules every package with a test that has Alloc in
# its name or checks raceEnabled. (The race detector makes sync.Pool drop objects,
# adds allocations of its own, and ends programs that show a data race.)
set -euo pipefail
cd "$(dirname "$0")/.."

go test ./...

root=$PWD
modules=$(go list -m -f '{{.Dir}}')
for module in $modules; do
	[ "$module" = "$root" ] && continue
	packages=$(grep -rlE --include='*_test.go' '^func Test\w*Alloc|raceEnabled' "$module" | xargs -r -n1 dirname | sort -u || true)
	if [ -n "$packages" ]; then
		# shellcheck disable=SC2086 # one argument a package
		go test $packages
	fi
done
