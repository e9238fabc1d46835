#!/usr/bin/env bash
# Makes a release of every module of the workspace:
#
#	bash scripts/release.sh v0.1.0             the branch release/v0.1.0 and its tags; nothing is pushed
#	bash scripts/release.sh --dry-run v0.1.0   the same without a network, and nothing of it is kept
#	bash scripts/release.sh --artefacts DIR …  also the archives, lists of modules and images of scripts/artefacts.sh,
#	                                           in DIR; of a dry run, too, which needs a network then
#
# All work is done in a temporary clone, so that a failure leaves the repository as it was. There
# the modules lose the lines of go.mod that a release must not have, those first that others
# require, and require each other at the version. No tag exists yet, so they come from zips of the
# clone, which are what the tags will be. Each module is then checked outside the
# workspace, and the command is installed as a user does it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD self=github.com/spillway-go/spillway

fail() { # fail SENTENCE: what is wrong with the input, and what to do
	printf 'release: %s\n' "$1" >&2
	exit 2
}

dry= artefacts=
while [[ ${1:-} = --* ]]; do
	case $1 in
	--dry-run) dry=yes ;;
	--artefacts)
		[ $# -gt 2 ] || fail 'name a folder after --artefacts, and the version'
		mkdir -p "$2"
		artefacts=$(cd "$2" && pwd)
		shift
		;;
	*) fail "there is no $1: see the top of scripts/release.sh" ;;
	esac
	shift
done
[ $# -eq 1 ] || fail 'say one version, as in: bash scripts/release.sh --dry-run v0.1.0'
version=$1
[[ $version =~ ^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$ ]] ||
	fail "$version is no version of these modules: want one such as v0.1.0 or v1.2.0-rc.1 (v2 would need other module paths)"

folders=$(sed -n 's/^\t\(\.[^ ]*\)$/\1/p' go.work)
path_of() { [ "$1" = . ] && echo "$self" || echo "$self/${1#./}"; }
tag_of() { [ "$1" = . ] && echo "$version" || echo "${1#./}/$version"; }

[ -n "$dry" ] || [ -z "$(git status --porcelain)" ] || fail 'there are changes that are not committed: commit them, or put them aside with git stash -u'
for folder in $folders; do
	! git rev-parse -q --verify "refs/tags/$(tag_of "$folder")" >/dev/null || fail "the tag $(tag_of "$folder") exists: a released version never changes, take the next one"
done
! git rev-parse -q --verify "refs/heads/release/$version" >/dev/null || fail "the branch release/$version exists: remove it with git branch -D release/$version to begin again"
awk -v version="$version" -v dry="$dry" '$1 == "##" && ($2 == version || dry && $2 == "Unreleased") { found = 1 } END { exit !found }' CHANGELOG.md ||
	fail "CHANGELOG.md has no section \"## $version\": call what is unreleased by that name"
[ -n "$dry" ] || cmp -s docs/api/current.txt docs/api/released.txt ||
	fail 'docs/api/released.txt is not what this release exports: cp docs/api/current.txt docs/api/released.txt, and commit it'

# What an attempt before this one left in the module cache, or in the go command's index of it, would
# be taken for the release.
export GODEBUG=goindex=0
cache=$(go env GOMODCACHE)
forget() {
	local folder path
	for folder in $folders; do
		path=$(path_of "$folder")
		[ ! -d "$cache/$path@$version" ] || chmod -R u+w "$cache/$path@$version"
		rm -rf "$cache/$path@$version" "$cache/cache/download/$path/@v/$version".* "$cache/cache/download/$path/@v/list"
	done
	[ ! -d "$cache/$self" ] || find "$cache/$self" -type d -empty -delete
}
work=$(mktemp -d)
trap 'forget; rm -rf "$work"' EXIT
forget

export GOWORK=off
go -C tools/pinned build -o "$work/modzip" ./modzip
proxy=$(go env GOPROXY) sumdb=$(go env GOSUMDB)
export GOPROXY="file://$work/proxy,${proxy}" GONOSUMDB=$self
[ -z "$dry" ] || export GOPROXY="file://$work/proxy,off" GOSUMDB=off

name=$(git config user.name || git log -1 --format=%cn) email=$(git config user.email || git log -1 --format=%ce)
git clone -q --shared . "$work/clone"
cd "$work/clone"
git config user.name "$name"
git config user.email "$email"
git checkout -q -b "release/$version"

requires() { grep -Eq "^[[:space:]]*(require )?$(path_of "$2") v" "$1/go.mod"; } # requires FOLDER FOLDER
order=$(for folder in $folders; do
	echo "$folder $folder"
	for other in $folders; do
		! requires "$folder" "$other" || echo "$other $folder"
	done
done | tsort)

for folder in $order; do
	edits=()
	for other in $folders; do
		edits+=("-dropreplace=$(path_of "$other")")
		if requires "$folder" "$other"; then
			edits+=("-require=$(path_of "$other")@$version")
		fi
	done
	go -C "$folder" mod edit "${edits[@]}"
	if ! go -C "$folder" mod tidy 2>"$work/said"; then
		cat "$work/said" >&2
		[ -z "$dry" ] || fail "a dry run uses no network, and a module may be missing from the cache: run bash scripts/tidy.sh with a network, then try again"
		exit 1
	fi
	# Nobody could install a program of a module with an exclude. Without it tidy may need a module
	# that a dry run cannot fetch.
	excluded=$(sed -n 's/^exclude \([^ ]*\) \([^ ]*\)$/-dropexclude=\1@\2/p' "$folder/go.mod")
	if [ -n "$excluded" ]; then
		git add -A
		go -C "$folder" mod edit $excluded
		if ! go -C "$folder" mod tidy 2>"$work/said"; then
			cat "$work/said" >&2
			[ -n "$dry" ] || exit 1
			git checkout -q -- "$folder"
			echo "$folder keeps its exclude in this dry run"
		fi
	fi
	git add -A
	"$work/modzip" "$PWD" "$(git write-tree)" "$folder" "$(path_of "$folder")" "$version" "$work/proxy"
	echo "$(path_of "$folder") is ready"
done
# A dry run only looks whether every import is found: to compile all that is required takes minutes.
for folder in $order; do
	if [ -n "$dry" ]; then
		go -C "$folder" list -deps -test ./... >"$work/found"
	else
		go -C "$folder" vet ./...
	fi
done
(cd "$work" && GOBIN="$work/bin" go install "$self/cmd/spillway@$version")
[ "$("$work/bin/spillway" version | cut -d ' ' -f 2)" = "$version" ] || fail "the installed command is not $version: $("$work/bin/spillway" version)"

if [ -n "$artefacts" ]; then
	TOOLS_PROXY=$proxy TOOLS_SUMDB=$sumdb bash "$root/scripts/artefacts.sh" "$version" "$artefacts"
fi

git commit -q -m "release: $version"
tags=()
for folder in $order; do
	tags+=("$(tag_of "$folder")")
	git tag -a -m "$(path_of "$folder") $version" "$(tag_of "$folder")"
done
echo "tags, in order: ${tags[*]}"
if [ -n "$dry" ]; then
	echo 'this was a dry run: nothing was kept'
	exit
fi
git -C "$root" fetch -q --tags "$PWD" "release/$version:release/$version"
echo "to publish it: git push origin release/$version ${tags[*]}"
