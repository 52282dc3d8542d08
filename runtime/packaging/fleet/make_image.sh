#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a container image of the Debian packages in BUILT/deb (`make deb`), with podman or buildah.
# Usage: make_image.sh BUILT, with these in the environment:
#   IMAGE  the name of the image (crane:VERSION)
#   CRIU   not empty: with LXC and a CRIU in it, for checkpoints in privileged containers
#   BASE   the image to begin with (debian:bookworm-slim)
#   EXTRA  more packages: a server
# Exit: 0 done; 3 podman and buildah are missing, or there are no packages; otherwise the tool's.
set -eu

built=$(realpath "${1:?the build tree}")
here=$(dirname "$(realpath "$0")")
tool=$(command -v podman || command -v buildah) || {
  echo "make_image: podman and buildah are missing; install one: apt-get install buildah" >&2
  exit 3
}
set -- "$built"/deb/crane_*_amd64.deb
[ -e "$1" ] || { echo "make_image: $built/deb has no package; make it: make deb" >&2; exit 3; }
version=$(dpkg-deb -f "$1" Version)
image=${IMAGE:-crane:$version}
"$tool" build -t "$image" -f "$here/Containerfile" --build-arg "CRIU=${CRIU:-}" \
  --build-arg "EXTRA=${EXTRA:-}" ${BASE:+--build-arg "BASE=$BASE"} "$built/deb"
echo "$image: push it to your registry: ${tool##*/} push $image REGISTRY/$image"
