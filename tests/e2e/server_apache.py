#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apache2 of the matrix: Debian's configuration under each of its process models, and CGI."""
import _apache
import _harness as h
import _matrix as m
import _web

SCRIPT = """#!/bin/sh
# Prints the environment that a script sees.
echo "Content-Type: text/plain"
echo
echo "pid $$ of $PPID at $(date +%s.%N)"
ls -lin --time-style=full-iso ../www/list
env | sort
"""

class Event(_apache.Apache):
    name = "apache2 event"


class Worker(_apache.Apache):
    name = "apache2 worker"
    mpm = "worker"
    listens = 2


class Prefork(_apache.Apache):
    name = "apache2 prefork"
    mpm = "prefork"
    listens = 2


class Cgid(_apache.Apache):
    """A daemon of mod_cgid starts the scripts, over a unix socket."""
    name = "apache2 event, CGI"
    modules = ("cgid",)
    pages = (("cgi/script", 0.2, False),)
    requests = (320, 2500)
    measured = 4000

    def prepare(self):
        scripts = self.work / "cgi"
        scripts.mkdir()
        (scripts / "script").write_text(SCRIPT)
        (scripts / "script").chmod(0o755)
        sock = f"ScriptSock {self.work}/cgisock\n" if "cgid" in self.modules else ""
        self.more = (f"{sock}ScriptAlias /cgi/ {scripts}/\n<Directory {scripts}>\n"
                     "Require all granted\n</Directory>\n")
        super().prepare()

    def state(self):
        body = _web.get(self.port, "/cgi/script?words")[2].decode()
        wanted = ("QUERY_STRING=words", "file07.txt", "SERVER_SOFTWARE=Apache", "pid ")
        missing = [words for words in wanted if words not in body]
        if missing:
            raise h.Failure(f"{self.name}: the script did not print {missing}: {body[:500]}")
        return f"{super().state()}; a script: {body.splitlines()[0]}"


class Cgi(Cgid):
    """Each child starts its scripts."""
    name = "apache2 prefork, CGI"
    mpm = "prefork"
    modules = ("cgi",)


KINDS = (Event, Worker, Prefork, Cgid, Cgi)

if __name__ == "__main__":
    h.run_scenario("server_apache", lambda scenario: m.prove(scenario, KINDS))
