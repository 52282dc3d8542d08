#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks a package of Debian's into DIRECTORY and prints where FILE of it lies. It is not
# installed: libapache2-mod-php8.2 would switch the machine's apache to another process model,
# postfix would take the place of another mail server.
# Usage: fetch_package.sh PACKAGE FILE DIRECTORY. Exit: 0, or 1 when it cannot be had, with the
# reason.
set -eu

package=${1:?a package}
place=${3:?a directory}
file="$place/${2:?a file of it}"
if [ ! -e "$file" ]; then
  mkdir -p "$place"
  cd "$place"
  # As root apt gives the download to a user of its own, who may not write here.
  apt-get -qq -o APT::Sandbox::User=root download "$package" >/dev/null 2>&1 || {
    echo "$package cannot be downloaded"
    exit 1
  }
  dpkg-deb -x "$package"_*.deb .
  rm -f "$package"_*.deb
  cd - >/dev/null
fi
[ -e "$file" ] || {
  echo "the package $package has no $file"
  exit 1
}
echo "$file"
