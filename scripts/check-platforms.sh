#!/usr/bin/env bash
# Checks the library and the command for the systems that they are not tested on, and the
# library for a processor of 32 bits, where an int holds less.
set -euo pipefail
cd "$(dirname "$0")/.."

GOWORK=off go -C tools/pinned run ./platforms ../.. darwin/arm64,windows/amd64 ./... ./cmd/spillway
GOWORK=off go -C tools/pinned run ./platforms ../.. linux/386 ./...
