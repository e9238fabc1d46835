#!/usr/bin/env bash
# Runs the linters over all modules: staticcheck in the version that
# internal/tools/go.mod pins, and the modernizers of the Go toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck=$(GOWORK=off go -C internal/tools tool -n staticcheck)
"$staticcheck" work

if ! go fix -diff work; then
	echo 'older idioms: run go fix work' >&2
	exit 1
fi
