#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nginx of the matrix: a master and two workers, Debian's configuration."""
import os
import subprocess

import _harness as h
import _installed
import _matrix as m
import _web


class Nginx(_web.Web):
    name = "nginx"
    version_of = "nginx"
    programs = ("nginx", "ab")
    more = ""   # in the server's block

    def prepare(self):
        super().prepare()
        self.conf = self.work / "nginx.conf"
        self.conf.write_text(_installed.nginx(
            f"server {{ listen {self.port}; root {self.root}; index index.html; {self.more} "
            'add_header X-Seen "$pid $msec $request_id"; '
            "location / { try_files $uri $uri/ =404; } location /list/ { autoindex on; } }",
            ("worker_processes auto;", "worker_processes 2;"),
            ("/run/nginx.pid", f"{self.work}/nginx.pid"), ("/var/log/nginx", str(self.work))))
        _web.make_listing(self.root / "list")

    def program(self):
        return ["nginx", "-c", str(self.conf)]

    def native_program(self):
        return self.program() + ["-g", "daemon off;"]

    def workers(self, requests=40):
        """The pids of the workers that answered `requests` clients."""
        return {_web.get(self.port, "/1k.html")[1]["x-seen"].split()[0] for _ in range(requests)}

    def state(self):
        return _web.listing(self.port, "/list/")


class NginxThreads(Nginx):
    name = "nginx, aio threads"
    more = "aio threads;"


KINDS = (Nginx, NginxThreads)


def reload(scenario):
    """An operator's SIGHUP under load: all replicas get new workers at the same turn."""
    server = Nginx(m.place_of(scenario, Nginx), h.free_port())
    with h.Group(scenario, server.command, port=server.port, record=True,
                 options=["--perturb", "1"]) as group:
        h.wait_until(server.ready, 60, "nginx answers")
        before = server.workers()
        done = subprocess.run([str(scenario.out / "crane-ctl"), "--dir", str(group.home), "signal",
                               "HUP"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=20)
        scenario.check(done.returncode == 0, "crane-ctl signal HUP", done.stdout)
        server.load(200)
        h.wait_until(lambda: not before & server.workers(8), 60, "only new workers answer")
        group.settle(120)
        group.stop()
        text = scenario.check_equal(group, what="nginx, reloaded: every byte is equal, pids too")
        scenario.say(f"nginx, reloaded: {text}")


def body(scenario):
    m.prove(scenario, KINDS)
    if h.can_contain() and os.environ.get("CRANE_KIND", "") in "nginx, reload":
        reload(scenario)


if __name__ == "__main__":
    h.run_scenario("server_nginx", body)
