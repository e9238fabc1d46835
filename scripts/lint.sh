#!/usr/bin/env bash
# Runs the linters over all modules: vet, staticcheck in the version that
# tools/pinned/go.mod pins, and the modernizers of the Go toolchain. All are given the tag
# of the soak: with it every file is built but one of a single constant.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
go vet -tags=soak work || failed=1

staticcheck=$(GOWORK=off go -C tools/pinned tool -n staticcheck)
"$staticcheck" -tags=soak work || failed=1

# Not stringsbuilder: for the few lines of a report, += reads better than a Builder.
if ! go fix -tags=soak -stringsbuilder=false -diff work; then
	echo 'older idioms: run go fix -tags=soak -stringsbuilder=false work' >&2
	failed=1
fi
exit "$failed"
