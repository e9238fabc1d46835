#!/usr/bin/env bash
# Runs a command with the programs of the tests, and stops at its end those that it had
# to start:
#
#	bash scripts/with-programs.sh COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/programs.sh
: "${1:?which command}"

parts=$(mktemp -d)
chmod a+x "$parts" # the server of PostgreSQL has a user of its own
trap 'stop_programs "$parts"' EXIT
start_programs "$parts"
find_programs "$parts"
"$@"
