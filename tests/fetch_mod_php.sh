#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian's libapache2-mod-php8.2 into DIRECTORY and prints where its module lies. The
# package is not installed: its scripts would switch the machine's apache to another process model.
# Usage: fetch_mod_php.sh DIRECTORY. Exit: 0, or 1 when it cannot be had, with the reason.
set -eu

place=${1:?a directory}
module="$place/usr/lib/apache2/modules/libphp8.2.so"
if [ ! -e "$module" ]; then
  mkdir -p "$place"
  cd "$place"
  # As root apt gives the download to a user of its own, who may not write here.
  apt-get -qq -o APT::Sandbox::User=root download libapache2-mod-php8.2 >/dev/null 2>&1 || {
    echo "libapache2-mod-php8.2 cannot be downloaded"
    exit 1
  }
  dpkg-deb -x libapache2-mod-php8.2_*.deb .
  rm -f libapache2-mod-php8.2_*.deb
  cd - >/dev/null
fi
[ -e "$module" ] || {
  echo "the package libapache2-mod-php8.2 has no $module"
  exit 1
}
echo "$module"
