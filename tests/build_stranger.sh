#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles and links one test program, with the flags of its line `// build: -static` last.
# Usage: build_stranger.sh SOURCE PROGRAM COMPILER FLAG...
set -eu
source=$1 program=$2
shift 2
# shellcheck disable=SC2046
exec "$@" -MMD -MP -MF "$program.d" -MT "$program" "$source" -L"$(dirname "$program")" \
  $(sed -n 's|^// build: ||p' "$source") -o "$program"
