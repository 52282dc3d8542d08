#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fake crane-node for the launcher's tests: speaks the control protocol, runs no server.

It continues when its crane-run is gone, and lets the next one supervise it.  Requests of crane-run
for members and checkpoints are recorded in <dir>/asked-<k>.  Variables in the configured
environment select its behaviour:
  FAKE_PORT=n    requests a listener for port n; the leader answers every client "replica <k>"
  FAKE_EXIT=n    every replica reports that its server exited with status n
  FAKE_FATAL=k   replica k reports a fatal error (status 68: the server never checked in)
  FAKE_DIE=k     replica k kills itself when the file <dir>/die appears
  FAKE_STUBBORN=k  replica k ignores "stop"
  FAKE_WORDS=1   when <dir>/say-<k> appears, replica k sends its content and removes it; after
                 "removed" it ends with status 71, after "drained" with 0 once <dir>/end-<k>
                 appears, after "fatal" with its code
"""
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys


def main():
    config = json.load(open(sys.argv[sys.argv.index("--config") + 1]))
    play = dict(v.split("=", 1) for v in config["env"] if v.startswith("FAKE_"))
    me, home = config["replica"], f"{config['dir']}/r{config['replica']}"
    control = socket.socket(fileno=int(sys.argv[sys.argv.index("--control-fd") + 1]))

    # As in the memory of a real node's log.
    memory = f"{config['shm_dir']}/consensus/r{me}"
    os.makedirs(memory, exist_ok=True)
    held = open(f"{memory}/lock", "w")
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.path.exists(f"{home}/control.sock"):
        os.unlink(f"{home}/control.sock")
    door.bind(f"{home}/control.sock")
    door.listen(4)

    def say(**message):
        if control:
            with contextlib.suppress(ConnectionError):   # crane-run is gone: the loop sees it
                control.send(json.dumps(message).encode())

    def introduce():
        say(t="role", role="leader" if me == 0 else "follower", view=1)
        say(t="server", pid=os.getpid())
        say(t="ready")

    if play.get("FAKE_FATAL") == str(me):
        say(t="fatal", code=68, message="the server did not load libcrane.so")
        return 68
    with open(f"{home}/server.log", "a") as log:
        log.write("hello from the server\n")
    introduce()
    if "FAKE_PORT" in play:
        say(t="listen", port=int(play["FAKE_PORT"]), address="127.0.0.1", backlog=5)
    if "FAKE_EXIT" in play:
        say(t="exit", status=int(play["FAKE_EXIT"]), reason="exited")
    listener, leaves = None, None
    words, end = f"{config['dir']}/say-{me}", f"{config['dir']}/end-{me}"
    while True:
        if "FAKE_WORDS" in play and os.path.exists(words):
            message = json.load(open(words))
            say(**message)
            os.unlink(words)
            leaves = {"removed": 71, "drained": 0,
                      "fatal": message.get("code")}.get(message["t"], leaves)
        if leaves is not None and (leaves != 0 or os.path.exists(end)):
            return leaves
        readable = select.select([s for s in (control, door) if s]
                                 + ([listener] if listener and me == 0 else []), [], [], 0.02)[0]
        if play.get("FAKE_DIE") == str(me) and os.path.exists(f"{config['dir']}/die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if listener in readable:
            client, _ = listener.accept()
            client.sendall(f"replica {me}\n".encode())
            client.close()
        if door in readable:   # the next crane-run
            control = door.accept()[0]
            assert json.loads(control.recv(4096))["do"] == "supervise"
            control.send(b'{"ok": true, "message": "taken over"}')
            if listener:
                has = {"t": "listener", "address": "127.0.0.1", "port": int(play["FAKE_PORT"])}
                socket.send_fds(control, [json.dumps(has).encode()], [listener.fileno()])
            introduce()
            continue
        if not control or control not in readable:
            continue
        try:
            data, fds, _, _ = socket.recv_fds(control, 65536, 1)
        except ConnectionResetError:   # crane-run was killed before it had read all
            data = b""
        if not data:   # crane-run is gone
            control = None
            continue
        message = json.loads(data)
        if message["t"] in ("member", "checkpoint"):
            with open(f"{config['dir']}/asked-{me}", "a") as asked:
                asked.write(data.decode() + "\n")
        if message["t"] == "stop" and play.get("FAKE_STUBBORN") != str(me):
            return 0
        if message["t"] == "listener":
            listener = socket.socket(fileno=fds[0])


sys.exit(main())
