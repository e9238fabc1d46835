#!/usr/bin/env bash
# Runs a long check only if something that its result depends on has changed since it last
# passed:
#
#	bash scripts/when-changed.sh release
#
# A checksum of those inputs is in scripts/checked/NAME. A check that passes writes it
# there: commit that file with the change.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:?which check}
case $name in
release) # the modules' requirements, what their packages import, and what makes the release
	command=(bash scripts/release.sh --dry-run v0.0.0-rehearsal)
	inputs() {
		go env GOVERSION
		git ls-files -z -- go.work '*go.mod' '*go.sum' scripts/release.sh internal/tools | xargs -0 sha256sum
		git ls-files -z -- '*.go' | xargs -0 grep -HE '^(import[[:space:]]+|	)([[:alnum:]_.]+[[:space:]]+)?"[^" ]+"$|^//go:embed ' |
			sed -E 's|/[^/:]*:|: |' | sort -u
	}
	;;
*)
	echo "when-changed: no check is called $name" >&2
	exit 2
	;;
esac

sum=$(inputs | sha256sum | cut -d ' ' -f 1)
file=scripts/checked/$name
if [ "$(cat "$file" 2>/dev/null)" = "$sum" ]; then
	echo "$name: skipped, since what its result depends on is as it was when it last passed: $sum (to run it all the same: ${command[*]})"
	exit 0
fi
"${command[@]}"
mkdir -p scripts/checked
echo "$sum" >"$file"
echo "$name: passed; commit $file, so that it is skipped until its inputs change"
