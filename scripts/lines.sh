#!/usr/bin/env bash
# Prints how many lines of code and of tests each folder has: lines of Go that are neither blank
# nor a comment only. What a tool generated does not count, nor what is in testdata. A folder whose
# name ends in "test" helps tests, and counts as tests.
#
#	bash scripts/lines.sh            the folders of the first level, and the sum
#	bash scripts/lines.sh lab load   the folders below these
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files -- '*.go' | grep -v '/testdata/' | xargs -s 900000 awk -v below="$*" '
	FNR == 1 {
		generated = 0
		depth = split(FILENAME, part, "/")
		folder = depth > 1 ? part[1] : "."
		if (index(" " below " ", " " folder " ")) {
			folder = FILENAME
			sub("/[^/]*$", "", folder)
		}
		test = FILENAME ~ /_test\.go$|test\/[^\/]*$/
	}
	/^\/\/ Code generated/ { generated = 1 }
	generated || /^[[:space:]]*(\/\/.*)?$/ { next }
	test { tests[folder]++; allTests++; folders[folder]; next }
	{ code[folder]++; allCode++; folders[folder] }
	END {
		if (below == "") printf "%-60s %7d code %7d tests\n", "all", allCode, allTests
		for (f in folders)
			if (below == "" || index(f, "/")) printf "%-60s %7d code %7d tests\n", f, code[f], tests[f] | "sort"
	}'
