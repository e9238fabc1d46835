#!/usr/bin/env bash
# The benchmarks that match a pattern, as go test -bench takes it, of every module. Only packages
# that have one are built.
#
#	bash scripts/bench.sh AcquireDone
set -euo pipefail
cd "$(dirname "$0")/.."

bench=${1:-.}
packages=$(grep -roE --include='*_test.go' '^func Benchmark[[:alnum:]_]*' . |
  PATTERN=${bench%%/*} awk -F ':func ' '$2 ~ ENVIRON["PATTERN"] { sub("/[^/]*$", "", $1); print $1 }' | sort -u)
if [ -z "$packages" ]; then
  echo "no benchmark matches $bench: their names: grep -r 'func Benchmark' ." >&2
  exit 2
fi
# shellcheck disable=SC2086 # a folder has no spaces
exec go test -run='^$' -bench="$bench" -benchmem $packages
