#!/usr/bin/env bash
# Checks what the modules that users import ask of a service:
#
#	bash scripts/adapters.sh [--whole]
#
# Each module is tested outside the workspace, with the versions of its go.mod: the oldest that it
# works with. The tests of modules around NATS take minutes: they are compiled, only their
# examples run, and all run with --whole. The workspace, where the rest of the gate runs, takes the
# newest versions, those that the examples, the lab or go.work ask for. Then an otherwise empty
# service imports all packages of the module, and what that adds to the service's go.mod is
# compared with docs/packages.md.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD self=github.com/spillway-go/spillway
adapters=$(printf '%s\n' admissiongrpc clusterlimit jobqueue jobqueue/outbox metricsotel metricsprom routegin)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# What asks for the newest versions.
newest=$(printf '%s\n' go.work lab/go.mod cmd/spillway/go.mod lab/contestants/go.mod examples/*/go.mod)
export GOWORK=off

# The module in folder $1 in an otherwise empty service in $work/$1.
service() {
	local folder
	mkdir -p "$work/$1"
	{
		printf 'module service\n\n%s\n\n' "$(grep '^go ' "$1/go.mod")"
		for folder in '' $(sed -nE "s,^[[:space:]]*(require )?$self(/[^ ]+) v.*,\2,p" "$1/go.mod") "/$1"; do
			printf 'replace %s => %s\n' "$self$folder" "$root$folder"
		done
		printf 'require %s v0.0.0\n' "$self" "$self/$1"
	} >"$work/$1/go.mod"
	{
		printf 'package main\n\n'
		go -C "$1" list -f '{{if ne .Name "main"}}import _ "{{.ImportPath}}"{{end}}' ./... | grep -v /internal/
		printf 'func main() {}\n'
	} >"$work/$1/main.go"
	go -C "$work/$1" mod tidy 2>"$work/said" || {
		cat "$work/said" >&2
		return 1
	}
}

# The row of the table for the module in folder $1.
row() {
	local path version its=() others=()
	service "$1"
	while read -r path version; do
		if grep -Eq "^[[:space:]]+$path v" "$work/$1/go.mod"; then
			its+=("$path $version")
		else
			others+=("$path $version")
		fi
		if ! grep -qE "^([[:space:]]*|replace )$path " $newest; then
			echo "$1: nothing asks for a newer $path, so it is tested with the oldest version only: let go.work replace it" >&2
			return 1
		fi
	done < <(sed -n 's/^require //; s/^[[:space:]]*\([^ ]*\.[^ ]* v[^ ]*\)$/\1/p' "$1/go.mod" | grep -v "^$self[/ ]")
	list() { printf '%s, ' "$@" | sed 's/, $//'; }
	printf '| [%s](../%s) | %s | %s | %d |\n' "$1" "$1" "$(list "${its[@]}")" "$(list "${others[@]}")" \
		"$(sed -n '/^require/,/^)/p' "$work/$1/go.mod" | grep -v "$self" | grep -c ' v')"
}

for adapter in $adapters; do
	tests=
	[[ " clusterlimit jobqueue jobqueue/outbox " != *" $adapter "* || ${1-} = --whole ]] || tests=-run=^Example
	go -C "$adapter" test $tests ./... || failed=1
	row "$adapter" >>"$work/table" || failed=1
done
sed -n '/^<!-- adapters -->$/,/^<!-- \/adapters -->$/p' docs/packages.md | grep '^| \[' >"$work/listed" || true
if ! diff "$work/listed" "$work/table"; then
	echo 'the table of docs/packages.md is not up to date: copy the lines marked > into it' >&2
	failed=1
fi
exit "$failed"
