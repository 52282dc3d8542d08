#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A port that is taken on the host: a group does not start with it, and goes on when a client
makes the server open it later."""
import socket

import _harness as h

PORT_TAKEN = 105


def at_start(story, taken):
    group = h.Group(story, h.redis_program(taken), port=taken)
    try:
        group.start()
        story.check(False, "a group whose port is taken does not start")
    except h.Failure:
        status = group.process.wait(30)
        said = h.tail(group.log)
        story.check(status == PORT_TAKEN, f"at the start: status {PORT_TAKEN}", str(status))
        story.check(f"cannot listen on port: {taken}" in said or f"port {taken}" in said,
                    "it names the port", said)
    finally:
        group.kill_all()


def later(story, taken):
    port = h.free_port()
    with h.Group(story, h.redis_program(port), port=port) as group:
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers")
        client = h.Redis(port, 20)
        client("SET", "k", "v")
        client("CONFIG", "SET", "port", str(taken))
        answer = client("GET", "k")
        story.check(answer in (b"v", "v"), "a client asks for a taken port, and is served on",
                    repr(answer))
        client("CONFIG", "SET", "port", str(port))
        client.close()
        h.wait_until(lambda: h.redis_answers(port), 30, "redis answers on its own port again")
        group.settle()
        story.check(group.live() == [0, 1, 2], "all replicas live", h.tail(group.log))


def body(story):
    h.need("redis-server")
    with socket.socket() as owner:
        owner.bind(("0.0.0.0", h.free_port()))
        owner.listen(16)
        taken = owner.getsockname()[1]
        later(story, taken)
        at_start(story, taken)


h.tell("taken_port", body)
