#!/usr/bin/env bash
# Fails and names the files that gofmt would change.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	printf '%s\nnot formatted: run gofmt -w on these files\n' "$unformatted" >&2
	exit 1
fi
