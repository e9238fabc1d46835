#!/usr/bin/env bash
# Vets the library and the command for the systems that they are not tested on.
set -euo pipefail
cd "$(dirname "$0")/.."

for platform in linux/arm64 darwin/arm64 windows/amd64; do
	echo "$platform"
	export GOOS=${platform%/*} GOARCH=${platform#*/}
	go vet ./...
	go -C lab vet ./cmd/spillway
done
