#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs Crane's programs, parts and documents below $DESTDIR$PREFIX, or removes them again.
# Usage: install.sh install|uninstall BUILT, with PREFIX and DESTDIR in the environment.
# BUILT: the build tree. Programs find their parts relative to themselves
# (runtime/setup/preflight.h), so the installation may be moved.
# Exit: 0 done; 1 a part is not built, or a file cannot be written.
set -eu

action=${1:?install or uninstall}
built=${2:?the build tree}
root=${DESTDIR:-}${PREFIX:?}
source=$(dirname "$(realpath "$0")")/../..

ANSWERS=runtime/control/answers.md
PROGRAMS="crane-run crane-ctl crane-node crane-diff crane-replay"
PARTS="libcrane.so criu_shim.so"
UNITS="crane@.service crane-run@.service crane-backup@.service crane-backup@.timer"
MONITORING="crane-alerts.yml crane-dashboard.json haproxy.cfg prometheus.yml"
# Files for engines that place replicas; users copy and change them.
FLEET="Containerfile $(cd "$source/runtime/packaging/fleet" && find kubernetes -type f)"
# Installed in the same folders, so that the links between them work.
DOCUMENTS="README.md CHANGELOG.md LICENSE checkpoint/OPERATING.md eval/RESULTS.md hints/README.md
  proxy/analysis/README.md proxy/record/README.md proxy/replay/README.md runtime/control/README.md
  runtime/launcher/BACKUPS.md runtime/launcher/GUARANTEES.md runtime/launcher/HOSTS.md
  runtime/launcher/OPERATING.md runtime/launcher/REFERENCE.md runtime/launcher/UPGRADES.md
  runtime/launcher/WATCHING.md
  runtime/packaging/fleet/README.md eval/demo.svg eval/page.png
  runtime/setup/GROUP_FILE.md"

put() { # put MODE FILE PLACE
  [ -e "$2" ] || { echo "install: $2 is missing: build it first (make programs)" >&2; exit 1; }
  install -D -m "$1" "$2" "$root/$3"
}

# Replaces the paths of the programs in a unit.
put_unit() { # put_unit FILE PLACE
  put 644 "$source/runtime/packaging/systemd/$1" "$2/$1"
  sed -i "s|@BIN@|$PREFIX/bin|; s|@DOCUMENTS@|$PREFIX/share/doc/crane|" "$root/$2/$1"
}

put_backup() { # put_backup FOLDER
  put 755 "$1/crane-backup" bin/crane-backup
  put 644 "$1/crane-backup.1" share/man/man1/crane-backup.1
  put 644 "$1/crane-backup.bash" share/bash-completion/completions/crane-backup
  put 644 "$1/crane-backup.zsh" share/zsh/site-functions/_crane-backup
  put 644 "$1/backup.conf" share/crane/backup.conf
}

# A document keeps the text of its links to files that are not installed.
cut_links() { # cut_links DOCUMENT
  folder=$(dirname "$root/share/doc/crane/$1")
  grep -oE '\]\([^):#]+[)#]' "$root/share/doc/crane/$1" | sed 's/^](//; s/[)#]$//' | sort -u |
    while read -r target; do
      [ ! -e "$folder/$target" ] || continue
      pattern=$(echo "$target" | sed 's/[.]/\\./g')
      sed -i -E "s|\\[([^]]*)\\]\\($pattern(#[^)]*)?\\)|\\1|g" "$root/share/doc/crane/$1"
    done
}

put_all() {
  for name in $PROGRAMS; do put 755 "$built/$name" "bin/$name"; done
  for name in $PARTS; do put 644 "$built/$name" "lib/crane/$name"; done
  put 755 "$source/checkpoint/get_criu.sh" lib/crane/get_criu.sh
  put 644 "$source/hints/crane.h" include/crane.h
  for name in $UNITS; do put_unit "$name" lib/systemd/system; done
  for name in $PROGRAMS; do
    put 644 "$built/pages/$name.man" "share/man/man1/$name.1"
    put 644 "$built/pages/$name.bash" "share/bash-completion/completions/$name"
    put 644 "$built/pages/$name.zsh" "share/zsh/site-functions/_$name"
  done
  put_backup "$source/runtime/packaging/backup"
  put 644 "$built/pages/group.toml.man" share/man/man5/group.toml.5
  put_unit crane.conf lib/tmpfiles.d
  for name in $MONITORING; do
    put 644 "$source/runtime/packaging/monitoring/$name" "share/crane/monitoring/$name"
  done
  put 755 "$source/runtime/packaging/fleet/crane-entry" lib/crane/crane-entry
  put 755 "$source/runtime/packaging/fleet/ocf/crane" lib/ocf/resource.d/crane/crane
  for name in $FLEET; do put 644 "$source/runtime/packaging/fleet/$name" "share/crane/$name"; done
  chmod 755 "$root/share/crane/kubernetes/crane-pods"
  put 644 "$built/pages/answers.schema.json" share/crane/answers.schema.json
  put 644 "$built/pages/answers.md" "share/doc/crane/$ANSWERS"
  for name in $DOCUMENTS; do put 644 "$source/$name" "share/doc/crane/$name"; done
  for name in $DOCUMENTS; do
    case "$name" in *.md) cut_links "$name" ;; esac
  done
}

# Keeps folders that other packages use, and our folders if they contain other files.
take_all() {
  for name in $PROGRAMS crane-backup; do rm -f "$root/bin/$name"; done
  for name in $PARTS get_criu.sh crane-entry; do rm -f "$root/lib/crane/$name"; done
  rm -f "$root/include/crane.h" "$root/lib/tmpfiles.d/crane.conf" \
    "$root/share/man/man5/group.toml.5" "$root/share/crane/backup.conf"
  for name in $UNITS; do rm -f "$root/lib/systemd/system/$name"; done
  for name in $PROGRAMS crane-backup; do
    rm -f "$root/share/man/man1/$name.1" "$root/share/bash-completion/completions/$name" \
      "$root/share/zsh/site-functions/_$name"
  done
  for name in $MONITORING; do rm -f "$root/share/crane/monitoring/$name"; done
  for name in $FLEET; do rm -f "$root/share/crane/$name"; done
  rm -f "$root/lib/ocf/resource.d/crane/crane" "$root/share/crane/answers.schema.json"
  for name in $DOCUMENTS $ANSWERS; do rm -f "$root/share/doc/crane/$name"; done
  for folder in share/doc/crane share/crane lib/crane lib/ocf/resource.d/crane; do
    [ ! -d "$root/$folder" ] || find "$root/$folder" -depth -type d -empty -delete
  done
}

case "$action" in
  install) put_all ;;
  uninstall) take_all ;;
  *) echo "usage: $0 install|uninstall BUILT" >&2; exit 2 ;;
esac
