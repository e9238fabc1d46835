#!/usr/bin/env bash
# Runs a long check only if something that its result depends on has changed since it last
# passed:
#
#	bash scripts/when-changed.sh release
#
# A checksum of those inputs is in scripts/checked/NAME. A check that passes writes the
# checksum there: commit that file with the change. What is not committed is not checked.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

name=${1:?which check}
case $name in
release) # the modules' requirements, what their packages import, and what makes the release
	command=(bash scripts/release.sh --dry-run v0.0.0-rehearsal)
	inputs() {
		go env GOVERSION
		grep '^## ' CHANGELOG.md | head -n 1
		git ls-files -z -- go.work '*go.mod' '*go.sum' scripts/release.sh tools/pinned cmd/spillway/main.go | xargs -0 sha256sum
		git ls-files -z -- '*.go' | xargs -0 grep -HE '^(import[[:space:]]+|	)([[:alnum:]_.]+[[:space:]]+)?"[^" ]+"([[:space:]]*//.*)?$|^//go:(embed|build) ' |
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
dirty=$(git status --porcelain)
"${command[@]}"
if [ -n "$dirty" ]; then
	echo "$name: passed for the last commit, and the changes after it were not looked at: commit, and run it again"
	exit 0
fi
mkdir -p scripts/checked
echo "$sum" >"$file"
echo "$name: passed; commit $file, so that it is skipped until its inputs change"
