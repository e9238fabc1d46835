#!/usr/bin/env bash
# Makes what a release offers beside its modules:
#
#	bash scripts/artefacts.sh v0.1.0 DIR
#
# for Linux, macOS and Windows on amd64 and arm64 an archive with the commands (spillway, and queue
# of the durable jobs), for each archive a list of its modules (CycloneDX), for each processor a
# container image of spillway from scratch, and SHA256SUMS of all.
#
# The commands are built from the modules as the go command fetches them, so that everybody can make the
# same files again with the same version of Go, and compare the sums. Nothing in the files depends on the
# machine or the time. scripts/release.sh --artefacts DIR calls this script for a version that is not
# published yet.
set -euo pipefail
cd "$(dirname "$0")/.."
self=github.com/spillway-go/spillway
crane=github.com/google/go-containerregistry/cmd/crane@v0.22.1
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

fail() { # fail SENTENCE
	printf 'artefacts: %s\n' "$1" >&2
	exit 2
}

[ $# -eq 2 ] || fail 'say a version and a folder, as in: bash scripts/artefacts.sh v0.1.0 /tmp/spillway'
version=$1 number=${1#v}
mkdir -p "$2"
out=$(cd "$2" && pwd)
[ -z "$(ls -A "$out")" ] || fail "$out is not empty"
for program in tar gzip zip sha256sum; do
	command -v "$program" >/dev/null || fail "$program is not installed"
done

work=$(mktemp -d)
registry=
trap '[ -z "$registry" ] || kill "$registry"; rm -rf "$work"' EXIT
export GOWORK=off GOFLAGS='' CGO_ENABLED=0
cache=$(go env GOMODCACHE)
(
	cd "$work" # where no go.mod says otherwise
	GOPROXY=${TOOLS_PROXY:-$(go env GOPROXY)} GOSUMDB=${TOOLS_SUMDB:-$(go env GOSUMDB)} GOBIN=$work go install -trimpath "$crane"
	GOPROXY=${TOOLS_PROXY:-$(go env GOPROXY)} GOSUMDB=${TOOLS_SUMDB:-$(go env GOSUMDB)} GOBIN=$work go install -trimpath "$cyclonedx"
)

packed() { # packed FOLDER ARCHIVE: the files in an order, of an owner and a time that say nothing
	find "$1" -exec touch -h -d '1980-01-01 00:00:00Z' {} +
	case $2 in
	*.zip) (cd "$1" && find . -type f | LC_ALL=C sort | TZ=UTC zip -q -X -@ "$2") ;;
	*) tar --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@315532800 -C "$1" -cf - . | gzip -9 -n >"$2" ;;
	esac
}

for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	os=${platform%/*} arch=${platform#*/} exe='' kind=tar.gz
	[ "$os" != windows ] || exe=.exe kind=zip
	name=spillway_${number}_${os}_$arch
	mkdir -p "$work/$name"
	(
		cd "$work"
		export GOOS=$os GOARCH=$arch GOMODCACHE=$cache GOPATH=$work/path # the go command refuses GOBIN for other systems
		go install -trimpath -ldflags=-s "$self/cmd/spillway@$version"
		go install -trimpath -ldflags=-s "$self/jobqueue/cmd/queue@$version"
	)
	find "$work/path/bin" -type f -exec mv {} "$work/$name" \;
	cp LICENSE "$work/$name"
	packed "$work/$name" "$out/$name.$kind"
	for command in spillway queue; do
		"$work/cyclonedx-gomod" bin -json -noserial -notimestamp -version "$version" -output "$out/${command}_${number}_${os}_$arch.cdx.json" "$work/$name/$command$exe" 2>"$work/said" ||
			{ cat "$work/said" >&2; fail "there is no list of the modules of $name"; }
	done
	echo "$name.$kind is ready"
done

# The image has the command, the licence and an empty /tmp, and runs as a user without rights.
PORT=0 "$work/crane" registry serve >"$work/serves" 2>&1 &
registry=$!
until grep -q 'serving on port' "$work/serves"; do
	kill -0 "$registry" || fail "no registry: $(cat "$work/serves")"
	sleep 0.1
done
at=127.0.0.1:$(sed -n 's/.*serving on port \([0-9]*\).*/\1/p' "$work/serves")
for arch in amd64 arm64; do
	root=$work/image_$arch
	mkdir -p "$root/tmp"
	chmod 1777 "$root/tmp"
	cp "$work/spillway_${number}_linux_$arch/spillway" LICENSE "$root"
	packed "$root" "$root.tar.gz"
	"$work/crane" append -f "$root.tar.gz" -t "$at/spillway:$arch" >/dev/null 2>&1
	"$work/crane" mutate "$at/spillway:$arch" --set-platform "linux/$arch" --entrypoint /spillway --user 65532:65532 --workdir /tmp \
		-l "org.opencontainers.image.version=$number" -l 'org.opencontainers.image.licenses=Apache-2.0' \
		-t "spillway:$number-$arch" -o "$out/spillway_${number}_linux_$arch.image.tar"
	echo "spillway_${number}_linux_$arch.image.tar is ready: docker load -i it, then docker run --rm spillway:$number-$arch version"
done

(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "all is in $out; to compare with a release: sha256sum -c SHA256SUMS there"
