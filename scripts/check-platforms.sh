#!/usr/bin/env bash
# Checks the library and the command for the systems that they are not tested on. No code
# depends on the processor, so each system is checked for one.
set -euo pipefail
cd "$(dirname "$0")/.."

GOWORK=off go -C internal/tools run ./platforms ../.. darwin/arm64,windows/amd64 ./... ./lab/cmd/spillway
