# Sourced by scripts that need the programs of the tests: browser, Redis, nginx and
# PostgreSQL.
#
#	. scripts/programs.sh
#	trap 'stop_programs FOLDER' EXIT
#	start_programs FOLDER [SETTING=VALUE...]     settings of a PostgreSQL that is started
#	find_programs FOLDER                         exports where they are

# start_programs installs, finds or starts them. Those that it starts have their process
# ids in FOLDER.
start_programs() {
	bash scripts/ensure-chromium.sh &&
		bash scripts/ensure-nginx.sh &&
		bash scripts/ensure-redis.sh "$1" &&
		bash scripts/ensure-postgres.sh "$1/postgres" "${@:2}"
}

find_programs() {
	SPILLWAY_REDIS=$(cat "$1/address")
	SPILLWAY_POSTGRES=$(cat "$1/postgres/address")
	export SPILLWAY_REDIS SPILLWAY_POSTGRES
}

# stop_programs ends what was started, and removes FOLDER.
stop_programs() {
	local file pid
	for file in "$1"/pid "$1"/*/pid; do
		[ -f "$file" ] || continue
		pid=$(cat "$file")
		kill -INT "$pid" || true
		for _ in $(seq 100); do # it may still write to its folder
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.05
		done
	done
	rm -rf "$1"
}
