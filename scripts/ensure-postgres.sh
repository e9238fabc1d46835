#!/usr/bin/env bash
# Makes sure that there is a PostgreSQL for tests and experiments:
#
#	bash scripts/ensure-postgres.sh FOLDER [SETTING=VALUE...]
#
# and writes the URL of its superuser to FOLDER/address. A server that answers at
# SPILLWAY_POSTGRES, or on the usual port or socket, is used if it takes as many
# connections as lab/postgres says that it must. Otherwise one is started with its
# data in FOLDER, on a free port of the loopback interface; its process id is in
# FOLDER/pid and the caller must stop it (kill -INT, which does not wait for
# clients). The settings are for one that is started. Installs Debian's package if it
# has permission.
set -euo pipefail
mkdir -p "${1:?where to write the address}"
folder=$(cd "$1" && pwd)
umask 077 # the address holds a password
most=$(sed -nE 's/^\s*ServerConnections = ([0-9]+)$/\1/p' "$(dirname "$0")/../lab/postgres/postgres.go")
: "${most:?ServerConnections is not in lab/postgres/postgres.go}"

# able URL: whether what answers there is enough. The password goes to psql by the
# environment: everybody sees a command line.
able() {
	local url=$1 login='' query
	query="SELECT current_setting('max_connections')::int >= $most AND current_setting('is_superuser')::bool"
	if [[ $url =~ ^([a-z]+://[^:@/]*):([^@/]*)@(.*)$ ]]; then
		login=${BASH_REMATCH[2]//%/\\x}
		url=${BASH_REMATCH[1]}@${BASH_REMATCH[3]}
	fi
	[ "$(PGPASSWORD=${login:+$(printf '%b' "$login")} PGCONNECT_TIMEOUT=5 psql -wXAtqc "$query" -d "$url" 2>/dev/null)" = t ]
}

found() {
	echo "$1" >"$folder/address"
	echo 'postgres: a server answers'
	exit 0
}

programs() { # the folder of initdb and pg_ctl, which Debian keeps out of PATH
	local dir
	for dir in $(pg_config --bindir 2>/dev/null) $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
		if [ -x "$dir/initdb" ]; then
			echo "$dir"
			return
		fi
	done
	return 1
}

if ! command -v psql >/dev/null || ! programs >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo 'postgres: no server and psql found, and not root on Debian: install them (apt-get install postgresql), then try again' >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get -qq update && apt-get -qq install -y --no-install-recommends postgresql >/dev/null; } || ! programs >/dev/null; then
		echo 'postgres: apt-get could not install postgresql; see its message above, or install it by hand' >&2
		exit 1
	fi
fi

if [ -n "${SPILLWAY_POSTGRES:-}" ]; then
	if able "$SPILLWAY_POSTGRES"; then
		found "$SPILLWAY_POSTGRES"
	fi
	echo "postgres: no superuser of a server with max_connections of $most or more at SPILLWAY_POSTGRES: correct it, or unset the variable" >&2
	exit 1
fi
for url in postgres://postgres@127.0.0.1:5432/postgres 'postgres:///postgres?host=/var/run/postgresql'; do
	if able "$url"; then
		found "$url"
	fi
done

# The server refuses to run as root.
as_server() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=postgres --regid=postgres --init-groups "$@"
	else
		"$@"
	fi
}

bin=$(programs)
data=$folder/data
mkdir "$data"
head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$data.password"
touch "$folder/log"
if [ "$(id -u)" = 0 ]; then
	chmod a+x "$folder"
	chown postgres: "$data" "$data.password" "$folder/log"
fi
if ! (cd / && as_server "$bin/initdb" -D "$data" -U postgres -A scram-sha-256 --pwfile="$data.password" -E UTF8 --locale=C) >"$folder/initdb.log" 2>&1; then
	echo "postgres: initdb failed; the user that runs the server must be able to reach $folder:" >&2
	tail -n 5 "$folder/initdb.log" >&2
	exit 1
fi
{
	echo "listen_addresses = '127.0.0.1'"
	echo "unix_socket_directories = '$data'"
	echo "max_connections = $most"
	echo 'shared_buffers = 64MB'
	[ $# = 1 ] || printf '%s\n' "${@:2}"
} >>"$data/postgresql.conf"

# Another process may take the port first: then the server ends, and the next port
# is tried.
for _ in 1 2 3 4 5; do
	port=$((20000 + RANDOM % 10000))
	if (cd / && as_server "$bin/pg_ctl" start -w -s -D "$data" -l "$folder/log" -o "-p $port") >/dev/null 2>&1; then
		head -n 1 "$data/postmaster.pid" >"$folder/pid"
		echo "postgres: started $bin/postgres"
		password=$(cat "$data.password")
		rm "$data.password"
		found "postgres://postgres:$password@127.0.0.1:$port/postgres"
	fi
done
echo 'postgres: could not start a server; the end of its log:' >&2
tail -n 5 "$folder/log" >&2
exit 1
