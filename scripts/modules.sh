#!/usr/bin/env bash
# Prints the folder of every module: those of the workspace, and the one that pins
# the tools, which is outside it so that it does not raise versions there.
set -euo pipefail
cd "$(dirname "$0")/.."

go list -m -f '{{.Dir}}'
echo "$PWD/tools/pinned"
