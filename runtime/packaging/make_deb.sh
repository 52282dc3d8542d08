#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages of a build tree, and their source package, in BUILT/deb.
# Usage: make_deb.sh BUILT, or make_deb.sh --check: are the tools there? Exit: 0 done; 3 a tool is
# missing; otherwise dpkg-buildpackage's.
set -eu

for tool in dh:debhelper dpkg-buildpackage:dpkg-dev; do
  command -v "${tool%:*}" > /dev/null || {
    echo "make_deb: ${tool#*:} is missing; install it: apt-get install debhelper dpkg-dev" >&2
    exit 3
  }
done
[ "${1:-}" != --check ] || exit 0
built=$(realpath "${1:?the build tree}")
cd "$(dirname "$(realpath "$0")")/../.."

version=$(sed -nE '1s/.*\((.*)\).*/\1/p' runtime/packaging/debian/changelog)
sources="$built/deb/crane-$version"
rm -rf "$built/deb"
mkdir -p "$sources"
tar -c --exclude=./out --exclude=./compile_commands.json --exclude=./.git --exclude=__pycache__ . |
  tar -x -C "$sources"
cp -r runtime/packaging/debian "$sources/debian"
cd "$sources"
# -d: the build used the libraries of this machine, from any package.
CRANE_BUILT=$built dpkg-buildpackage -us -uc -d > "$built/deb/log" 2>&1 || {
  status=$?
  tail -n 20 "$built/deb/log" >&2
  exit $status
}
cd ..
rm -rf "$sources"
ls ./*.deb
