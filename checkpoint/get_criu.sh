#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Finds a CRIU that works on this kernel and makes DIRECTORY/criu run it (checkpoint/criu.h).
# Debian 12's CRIU is too old for current kernels.  So the script fetches one from a newer Debian,
# through the mirror that this system's apt uses, and unpacks the packages into DIRECTORY with their
# own C library.  It does not change the system's apt, dpkg and libraries, nor a CRIU in DIRECTORY
# that works.
# Usage: get_criu.sh [--untried] [DIRECTORY]; the default is where installed programs look
# (checkpoint/criu.h).  --untried: for an image, which is made where CRIU need not work; the script
# takes the first CRIU that runs, but not this system's.
# Exit: 0 DIRECTORY/criu works; 1 no CRIU works, and the script prints the reason.
# `get_criu.sh --mirrors /etc/apt` prints the mirrors that it would use.
set -u

# Prints where apt gets main archives from, in both formats of its sources.
mirrors() {  # mirrors ETC_APT
  local paragraphs=("$1"/sources.list.d/*.sources)
  { awk '
      function done() { if (on && suites !~ /security/) print uris; on = 1; uris = suites = "" }
      FNR == 1 || /^[ \t]*$/ { done() }
      { field = tolower($1) }
      field == "uris:" { $1 = ""; uris = $0 }
      field == "suites:" { suites = $0 }
      field == "enabled:" && tolower($2) == "no" { on = 0 }
      END { done() }' "${paragraphs[@]}" 2>/dev/null
    sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) +([^ ]+) .*\<main\>.*/\2 \3/p' "$1/sources.list" \
      "$1"/sources.list.d/*.list 2>/dev/null | awk '$2 !~ /security/ { print $1 }'
  } | tr -s ' ' '\n' | awk 'NF && !seen[$0]++'
}

if [ "${1:-}" = --mirrors ]; then
  mirrors "$2"
  exit 0
fi

untried='' works=works
if [ "${1:-}" = --untried ]; then
  untried=1 works='runs, untried'
  shift
fi
place=$(realpath -m "${1:-/var/lib/crane-criu}")
suites="trixie forky sid"
here=$(dirname "$(realpath "$0")")
shim=$here/criu_shim.c
[ -e "$shim" ] || shim=$here/criu_shim.so
machine=$(uname -m)-linux-gnu
work=
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say() { echo "get_criu: $*"; }

# Tests what `criu check` cannot: dumps a process with a listening socket, and restores it after its
# end.  It has namespaces of its own as a replica's server has: their settings are below /proc/sys,
# which a container may have read-only, and only the restore writes them.  It has none of the files
# that this script inherited, which CRIU may be unable to dump.
round_trip() {
  local criu=$1 dir=$work/trial pid
  local options=(-D "$dir" -v1 --network-lock skip)
  rm -rf "$dir"
  mkdir -p "$dir"
  setsid unshare --uts --ipc python3 -c '
import os, signal, socket
os.closerange(3, os.sysconf("SC_OPEN_MAX"))
s = socket.create_server(("127.0.0.1", 0))
open("'"$dir"'/ready", "w").close()
signal.pause()' < /dev/null > /dev/null 2>&1 &
  pid=$!
  for _ in $(seq 500); do [ -e "$dir/ready" ] && break; sleep 0.01; done
  if ! "$criu" dump -t $pid -o dump.log "${options[@]}" > "$dir/out" 2>&1; then
    kill -9 $pid
    wait $pid
  else
    wait $pid
    if "$criu" restore -o restore.log --restore-detached "${options[@]}" > "$dir/out" 2>&1; then
      kill -9 $pid
      return 0
    fi
  fi 2>/dev/null
  # CRIU goes on without more descriptors; machines may withhold the capability for them from root.
  why=$(cat "$dir"/{restore.log,dump.log,out} 2>/dev/null | grep Error |
    grep -m1 -v RLIMIT_NOFILE | cut -c1-200)
  return 1
}

# works CRIU: sets `version`; else `why`.
works() {
  version=$("$1" --version 2>/dev/null | sed -n 's/^Version: //p')
  [ -n "$version" ] || { why="it does not run"; return 1; }
  [ "$(id -u)" = 0 ] && [ -z "$untried" ] || return 0
  why=$("$1" check 2>&1) || { why=$(grep -m1 Error <<< "$why"); return 1; }
  # The restored process needs its old number, which another process may have taken.  So try twice.
  round_trip "$1" || round_trip "$1"
}

# The shim answers two questions of CRIU that some machines refuse (criu_shim.c lists them).  Only
# CRIU loads it: by the loader's option, not through the environment.
write_wrapper() {  # write_wrapper LOADER LIBRARIES PROGRAM, relative to the wrapper or absolute
  cat > "$work/criu" << END
#!/bin/sh
# Written by checkpoint/get_criu.sh.
here=\${0%/*} # starts no process: clients of a server notice each one
if [ -L "\$0" ] || [ "\$here" = "\$0" ]; then here=\$(dirname "\$(readlink -f "\$0")"); fi
exec "$1" --preload "\$here/criu_shim.so" $2 "$3" "\$@"
END
  chmod 755 "$work/criu"
}

build_shim() {
  if [ ! -e "$here/criu_shim.c" ]; then  # installed, and built with the rest
    cp "$shim" "$work/criu_shim.so"
    return
  fi
  gcc -O2 -shared -fPIC -Wall -Wextra -Werror -nostdlib -o "$work/criu_shim.so" \
    "$here/criu_shim.c" 2> "$work/gcc.log" ||
    { why="its shim does not compile: $(head -n 1 "$work/gcc.log")"; return 1; }
}

system_criu() {
  local found
  found=$(PATH=$PATH:/usr/sbin:/sbin command -v criu) || { why="it is not installed"; return 1; }
  head -c 4 "$found" | grep -q ELF || { why="$found is not an ELF program"; return 1; }
  write_wrapper /lib64/ld-linux-x86-64.so.2 '' "$found"
  works "$work/criu"
}

# Debian's signature shows whether a mirror has Debian's releases.
fetch() {  # fetch MIRROR SUITE: the packages into $work/apt/cache/archives
  local apt=$work/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
  rm -rf "$apt"
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,parts}
  : > "$apt/status"
  echo "deb [signed-by=$key] $1 $2 main" > "$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts"
    -o "Dir::Etc::preferences=$apt/none" -o "Dir::Etc::preferencesparts=$apt/parts"
    -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
    -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none
    -o APT::Install-Recommends=false -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
    -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false -o Acquire::Retries=1
    -o Acquire::http::Timeout=20 -o APT::Update::Error-Mode=any)
  { timeout 300 apt-get "${options[@]}" -qq update &&
    timeout 300 apt-get "${options[@]}" -qq -y --download-only install criu; } \
    > "$work/apt.log" 2>&1 || {
    why=$(grep -m1 '^[EW]:' "$work/apt.log" || echo "apt gave no answer in time")
    return 1
  }
}

criu_of() {  # criu_of SUITE: its packages unpacked into $work/root
  local mirror fetched=
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
    { why="the package debian-archive-keyring is missing"; return 1; }
  why="apt has no source of a main archive"
  for mirror in $(mirrors /etc/apt); do fetch "$mirror" "$1" && fetched=1 && break; done
  [ -n "$fetched" ] || return 1
  rm -rf "$work/root"
  mkdir -p "$work/root"
  local package
  for package in "$work"/apt/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$work/root" || { why="$package does not unpack"; return 1; }
  done
  rm -rf "$work"/apt "$work"/root/usr/share "$work"/root/usr/{games,include,src} "$work/root/var"
  # shellcheck disable=SC2016
  write_wrapper '$here/root/usr/lib64/ld-linux-x86-64.so.2' \
    '--library-path "$here/root/usr/lib/'"$machine"':$here/root/lib/'"$machine"'"' \
    '$here/root/usr/sbin/criu'
  works "$work/criu"
}

install_it() {
  rm -rf "$place"
  mkdir -p "${place%/*}"
  rm -rf "$work/trial" "$work"/*.log
  chmod 755 "$work"
  mv "$work" "$place"
}

if [ "$(uname -m)" != x86_64 ]; then
  say "no CRIU: only x86_64 is supported"
  exit 1
fi
mkdir -p "${place%/*}"
work=$(mktemp -d "$place.XXXXXX")
if [ -x "$place/criu" ] && [ "$place/criu_shim.so" -nt "$shim" ] &&
  works "$place/criu"; then
  exit 0
fi
started=$SECONDS
build_shim || { say "no CRIU: $why"; exit 1; }
tried=
if [ -z "$untried" ] && system_criu; then
  install_it
  say "CRIU $version of this system works"
  exit 0
fi
tried="this system's: ${why:-not tried}"
for suite in $suites; do
  if criu_of "$suite"; then
    install_it
    say "CRIU $version of Debian $suite $works: $place ($(du -sh "$place" | cut -f1)," \
      "$((SECONDS - started)) s)"
    exit 0
  fi
  tried="$tried; Debian $suite's: $why"
done
say "no CRIU works on this machine, so there are no checkpoints of processes ($tried)"
exit 1
