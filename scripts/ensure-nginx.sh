#!/usr/bin/env bash
# Makes sure that the proxy for the tests behind it is installed. Installs Debian's
# package if it has permission, and starts nothing.
set -euo pipefail
PATH=$PATH:/usr/sbin # where Debian has it

if path=$(command -v nginx); then
	echo "nginx: $path"
	exit 0
fi

if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	if apt-get -qq update && apt-get -qq install -y --no-install-recommends nginx >/dev/null && command -v nginx; then
		exit 0
	fi
	echo 'nginx: apt-get could not install it; see its message above, or install it by hand' >&2
	exit 1
fi
echo 'nginx: not found, and not root on Debian: install it (apt-get install nginx), then try again' >&2
exit 1
