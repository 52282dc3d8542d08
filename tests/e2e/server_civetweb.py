#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""civetweb (Mongoose's maintained fork) of the matrix: fifty threads, files, listings and CGI."""
import _harness as h
import _matrix as m
import _web

SCRIPT = """#!/bin/sh
echo "Content-Type: text/plain"
echo
echo "pid $$ at $(date +%s.%N)"
env | sort
"""


class Civetweb(_web.Web):
    name = "civetweb"
    version_of = "civetweb"
    programs = ("civetweb", "ab")
    # Natively it waits 40 ms before each answer to a kept connection.
    pages = (("1k.html", 1.0, False), ("1k.html", 1.0, True), ("1m.bin", 0.1, False),
             ("1m.bin", 0.15, True))
    measured = 10000

    def prepare(self):
        super().prepare()
        _web.make_listing(self.root / "list")
        script = self.root / "script.cgi"
        script.write_text(SCRIPT)
        script.chmod(0o755)

    def program(self):
        return ["civetweb", "-listening_ports", str(self.port), "-document_root", str(self.root),
                "-enable_keep_alive", "yes", "-access_log_file", str(self.work / "access.log"),
                "-error_log_file", str(self.work / "error.log")]

    def state(self):
        status, headers, _ = _web.get(self.port, "/1k.html")
        if status != 200 or not headers.get("etag"):
            raise h.Failure(f"civetweb: no ETag: {headers}")
        body = _web.get(self.port, "/script.cgi?words")[2].decode()
        if "QUERY_STRING=words" not in body or not body.startswith("pid "):
            raise h.Failure(f"civetweb: the script printed {body[:300]!r}")
        return (f"{_web.listing(self.port, '/list/')}, ETag {headers['etag']}; "
                f"a script: {body.splitlines()[0]}")


KINDS = (Civetweb,)

if __name__ == "__main__":
    h.run_scenario("server_civetweb", lambda scenario: m.prove(scenario, KINDS))
