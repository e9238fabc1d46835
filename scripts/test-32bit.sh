#!/usr/bin/env bash
# Runs the tests of packages that count bits, or that keep 64-bit values for sync/atomic, where an int has
# 32 bits: as programs for 386 if this kernel runs them, and otherwise as programs for ARM in an emulator,
# which is installed if this script has permission. (That emulator cannot run Go programs for 386.) Its
# arguments are flags of go test.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(./histogram ./internal/gate ./internal/places ./objectpool ./retrybudget ./route/...)
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
printf 'package main\n\nfunc main() {}\n' >"$probe/main.go"
GOARCH=386 go build -o "$probe/386" "$probe/main.go"
if "$probe/386" 2>/dev/null; then
	GOARCH=386 go test "$@" "${packages[@]}"
	exit
fi
if ! command -v qemu-arm >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo 'This kernel runs no programs for 386, and there is no qemu-arm: install it (apt-get install qemu-user), then try again.' >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get -qq update && apt-get -qq install -y --no-install-recommends qemu-user; } >/dev/null
fi
GOARCH=arm go test "$@" -exec qemu-arm "${packages[@]}"
