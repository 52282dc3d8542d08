#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Porcupine's judge. Usage: build.sh PROGRAM CACHE, a folder for Go. Without Go, or when its
# module cannot be fetched, it leaves the program out, says why and succeeds.
program=$1 cache=$2
command -v go > /dev/null || { echo 'linear-porcupine is left out: no go (golang-go)'; exit 0; }
cd "$(dirname "$0")" || exit
GOPATH=$cache GOCACHE=$cache/cache GOFLAGS=-modcacherw CGO_ENABLED=0 \
  timeout 300 go build -o "$program" . || echo 'linear-porcupine is left out: see above'
