#!/usr/bin/env bash
# Prints the folder of every module: those of the workspace, and the one that
# pins the tools, which stays outside so that it cannot raise anyone's versions.
set -euo pipefail
cd "$(dirname "$0")/.."

go list -m -f '{{.Dir}}'
echo "$PWD/internal/tools"
