#!/usr/bin/env bash
# Fails and shows what go mod tidy would change in any module.
set -euo pipefail
cd "$(dirname "$0")/.."

modules=$(bash scripts/modules.sh)
for module in $modules; do
	if ! GOWORK=off go -C "$module" mod tidy -diff; then
		echo "not tidy: run go mod tidy in $module" >&2
		exit 1
	fi
done
