#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A child whose stack overflows dies of SIGSEGV, its parent sees that, and the group continues."""
import os
import shutil
import socket
import subprocess

import _harness as h

OVERFLOWS = 1000


def ask(port, byte):
    """The answer to one byte; empty if this client's process died."""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(byte)
        received = b""
        while True:
            try:
                part = client.recv(64)
            except ConnectionResetError:
                return received
            if not part:
                return received
            received += part


def overflows(scenario):
    port = h.free_port()
    program = [str(scenario.out / "e2e/overflow_server"), str(port)]
    with h.Group(scenario, program, port=port, record=True) as group:
        # A thread, a null pointer, and plain overflows; an overflow that is handled kills no
        # process.
        wrong = [byte for byte in (b"t", b"n", b"o") if ask(port, byte) != b""]
        scenario.check(not wrong, "a child that crashes answers nothing", repr(wrong))
        scenario.check(ask(port, b"h") == b"handled\n",
                       "a thread handles its overflows on its own alternate stack")
        for _ in range(OVERFLOWS - 3):
            if ask(port, b"o") != b"":
                raise h.Failure("a child that overflows its stack answered")
        died = ask(port, b"c")
        scenario.check(died == f"{OVERFLOWS}\n".encode(),
                       f"the parent saw {OVERFLOWS} children die of SIGSEGV", repr(died))
        group.settle()
        scenario.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))
        group.stop()
        status, text = group.diff()
        scenario.check(status == 0, "outputs are equal", text)


GO = """package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

import "C"

func deep(n int) int {
	var room [256]byte
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + int(room[1])
}

func main() {
	listener, err := net.Listen("tcp4", "0.0.0.0:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			continue
		}
		var all sync.WaitGroup
		for i := 0; i < 20; i++ {
			all.Add(1)
			go func() {
				defer all.Done()
				defer func() { recover() }()
				time.Sleep(time.Millisecond)
				deep(1000)
				var none *int
				*none = 1
			}()
		}
		all.Wait()
		runtime.GC()
		fmt.Fprintln(client, "20 recovered")
		client.Close()
	}
}
"""


def go_server(scenario):
    """Go's goroutines begin with 2 KB of stack, where no signal frame of the kernel has room."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go or not shutil.which("gcc"):
        print("go is not installed: its program is not run")
        return
    source = scenario.work / "server.go"
    source.write_text(GO)
    program = scenario.work / "go-server"
    built = subprocess.run([go, "build", "-o", str(program), str(source)], cwd=scenario.work,
                           env={**os.environ, "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod"},
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if built.returncode != 0:
        print(f"go build does not work here: {built.stdout.decode()[-500:]}")
        return
    scenario.work.chmod(0o755)
    port = h.free_port()
    with h.Group(scenario, [str(program), str(port)], port=port) as group:
        for i in range(5):
            reply = ask(port, b"x")
            scenario.check(reply == b"20 recovered\n", f"the Go program answers client {i}",
                           repr(reply))
        scenario.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))


def body(scenario):
    overflows(scenario)
    if scenario.full:  # go build takes a minute or two
        go_server(scenario)


if __name__ == "__main__":
    h.run_scenario("overflow", body)
