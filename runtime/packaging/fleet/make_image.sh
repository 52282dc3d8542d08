#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a container image of the Debian packages in BUILT/deb (`make deb`), with podman or buildah.
# Usage: make_image.sh BUILT, or make_image.sh --check: is a tool there? In the environment:
#   IMAGE  the name of the image (crane:VERSION)
#   CRIU   not empty: with LXC and a CRIU in it, for checkpoints in privileged containers
#   BASE   the image to begin with; debootstrap: Debian's packages instead of an image (default:
#          debian:bookworm-slim, and debootstrap if no registry provides it)
#   EXTRA  more packages: a server
# Exit: 0 done; 3 a tool is missing, there are no packages, or no base; otherwise the tool's.
set -eu

SLIM=debian:bookworm-slim OF_PACKAGES=localhost/crane-base:bookworm
here=$(dirname "$(realpath "$0")")

fail() { # fail TEXT
  echo "make_image: $1" >&2
  exit 3
}

# The steps of the build run in a chroot, so that they need no program that runs containers.
build() { # build NAME FOLDER ARGS
  name=$1 folder=$2
  shift 2
  "$tool" build -t "$name" --isolation chroot "$@" "$folder"
}

# Makes the image OF_PACKAGES: Debian's minimal system, with its security updates.
bootstrap() {
  command -v debootstrap > /dev/null ||
    fail "debootstrap is missing; install it (apt-get install debootstrap), or set BASE to an image"
  [ "$(id -u)" = 0 ] ||
    fail "debootstrap needs root; run make image as root, or set BASE to an image"
  work=$(mktemp -d "$built/image.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM
  mirror=$("$here/../../../checkpoint/get_criu.sh" --mirrors /etc/apt | grep '/debian/*$' |
    head -n 1) || true
  [ -n "$mirror" ] ||
    fail "apt names no mirror of Debian; add one to /etc/apt/sources.list, or set BASE to an image"
  echo "make_image: makes $OF_PACKAGES with debootstrap, from $mirror"
  debootstrap --variant=minbase bookworm "$work/root" "$mirror" > "$work/log" 2>&1 || {
    status=$?
    tail -n 5 "$work/log" >&2
    exit "$status"
  }
  {
    echo "deb $mirror bookworm main"
    echo "deb $mirror bookworm-updates main"
    echo "deb ${mirror%/}-security bookworm-security main"
  } > "$work/root/etc/apt/sources.list"
  # Fetched packages are no part of an image.
  echo 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };' \
    > "$work/root/etc/apt/apt.conf.d/clean"
  rm -rf "$work/root/var/cache/apt/archives"/*.deb "$work/root/var/lib/apt/lists"/*
  mkdir "$work/context"
  tar -C "$work/root" --exclude='./dev/*' -cf "$work/context/root.tar" .
  printf '%s\n' 'FROM scratch' 'ADD root.tar /' \
    'RUN apt-get update && apt-get -y dist-upgrade && rm -rf /var/lib/apt/lists/*' 'CMD ["bash"]' \
    > "$work/context/Containerfile"
  build "$OF_PACKAGES" "$work/context"
}

tool=$(command -v podman || command -v buildah) ||
  fail "podman and buildah are missing; install one: apt-get install buildah"
[ "${1:-}" != --check ] || exit 0
built=$(realpath "${1:?the build tree}")
set -- "$built"/deb/crane_*_amd64.deb
[ -e "$1" ] || fail "$built/deb has no package; make it: make deb"
version=$(dpkg-deb -f "$1" Version)
image=${IMAGE:-crane:$version} base=${BASE:-}
if [ -z "$base" ]; then
  base=$SLIM
  said=$("$tool" pull "$SLIM" 2>&1) || {
    echo "make_image: no registry provides $SLIM: $(echo "$said" | tail -n 1)" >&2
    base=debootstrap
  }
fi
if [ "$base" = debootstrap ]; then
  bootstrap
  base=$OF_PACKAGES
fi
build "$image" "$built/deb" -f "$here/Containerfile" --build-arg "CRIU=${CRIU:-}" \
  --build-arg "EXTRA=${EXTRA:-}" --build-arg "BASE=$base"
echo "$image: push it to your registry: ${tool##*/} push $image REGISTRY/$image"
