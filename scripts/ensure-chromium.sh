#!/usr/bin/env bash
# Makes sure that the browser for the tests of the report is installed. Installs
# Debian's package if it has permission.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
	if path=$(command -v "$name"); then
		echo "chromium: $path"
		exit 0
	fi
done

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	if apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null && command -v chromium; then
		exit 0
	fi
	echo 'chromium: apt-get could not install it; see its message above, or install a Chromium by hand' >&2
	exit 1
fi
echo 'chromium: not found, and not root on Debian: install it (apt-get install chromium), then try again' >&2
exit 1
