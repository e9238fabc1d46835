#!/usr/bin/env bash
# Makes sure that there is a Redis for the tests of the cache:
#
#	bash scripts/ensure-redis.sh FOLDER
#
# and writes its host:port to FOLDER/address. A server that answers at
# SPILLWAY_REDIS or on the usual port is used. Otherwise one is started on a free
# port of the loopback interface, without persistence; its process id is in
# FOLDER/pid and the caller must stop it. Installs Debian's package if it has
# permission.
set -euo pipefail
folder=${1:?where to write the address}
mkdir -p "$folder"

answers() { # answers HOST:PORT
	local reply=
	exec 3<>"/dev/tcp/${1%:*}/${1##*:}" || return 1
	printf 'PING\r\n' >&3
	read -r -t 2 reply <&3 || true
	exec 3>&-
	[[ $reply == +PONG* ]]
} 2>/dev/null

found() {
	echo "redis: $1 answers"
	echo "$1" >"$folder/address"
	exit 0
}

address=${SPILLWAY_REDIS:-127.0.0.1:6379}
if (answers "$address"); then
	found "$address"
fi
if [ -n "${SPILLWAY_REDIS:-}" ]; then
	echo "redis: nothing answers at SPILLWAY_REDIS=$SPILLWAY_REDIS: start it, or unset the variable" >&2
	exit 1
fi

server() { command -v redis-server || command -v valkey-server; }
if ! server >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo 'redis: no server found, and not root on Debian: install one (apt-get install redis-server), then try again' >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get -qq update && apt-get -qq install -y --no-install-recommends redis-server >/dev/null; } || ! server >/dev/null; then
		echo 'redis: apt-get could not install redis-server; see its message above, or install it by hand' >&2
		exit 1
	fi
	if (answers "$address"); then # the package may have started it
		found "$address"
	fi
fi

# Another process may take the port first: then the server ends, and the next port
# is tried.
for _ in 1 2 3 4 5; do
	port=$((20000 + RANDOM % 10000))
	"$(server)" --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$folder" \
		>"$folder/log" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 100); do
		if ! kill -0 "$pid" 2>/dev/null; then
			break
		fi
		# Check the log too: the answer may come from another process on that port.
		if grep -qs 'eady to accept connections' "$folder/log" && (answers "127.0.0.1:$port"); then
			echo "$pid" >"$folder/pid"
			echo "redis: started $(server)"
			found "127.0.0.1:$port"
		fi
		sleep 0.05
	done
	kill "$pid" 2>/dev/null || true
done
echo 'redis: could not start a server; the end of its log:' >&2
tail -n 5 "$folder/log" >&2
exit 1
