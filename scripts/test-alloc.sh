#!/usr/bin/env bash
# Runs without the race detector the tests that it would change or make too long, in every
# module but the root one, of which the gate runs all tests without it: those with Alloc in their
# name, and those that check raceEnabled or call soak.WithoutRace, or the whole package where a
# helper checks it. Its arguments are flags of go test. (The race detector makes sync.Pool drop
# objects, adds allocations of its own, and ends programs that show a data race.)
set -euo pipefail
cd "$(dirname "$0")/.."

others=$(bash scripts/modules.sh | sed -n "s|^$PWD/|./|p" | paste -sd '|')
# Lines "FOLDER TEST", with . for all tests of a folder.
found=$(grep -rlE --include='*_test.go' '^func Test\w*Alloc|raceEnabled|usage\.Race|soak\.WithoutRace\(' . | grep -v '_soak_test\.go$' | xargs awk '
	FNR == 1 || /^}/ { name = "" }
	/^func / { name = ""; if (match($0, /^func (Test|Example|Fuzz)[A-Za-z0-9_]*/)) name = substr($0, 6, RLENGTH - 5) }
	/^func Test[A-Za-z0-9_]*Alloc/ || /raceEnabled|usage\.Race|soak\.WithoutRace\(/ && !/^const raceEnabled/ {
		folder = FILENAME; sub(/\/[^\/]*$/, "", folder)
		print folder, name == "" ? "." : name
	}' | grep -E "^($others)[/ ]" | sort -u)
if [ "$(wc -l <<<"$found")" -lt 20 ]; then
	echo 'hardly any test of allocations found: check the search in scripts/test-alloc.sh' >&2
	exit 1
fi
whole=$(awk '$2 == "." { print $1 }' <<<"$found")
some=$(awk '$2 != "." { print $1 }' <<<"$found" | sort -u | grep -vxF "$whole" || true)
names=$(awk '$2 != "." { print $2 }' <<<"$found" | sort -u | paste -sd '|')
[ -z "$some" ] || go test "$@" -run "^($names)\$" $some
[ -z "$whole" ] || go test "$@" $whole
