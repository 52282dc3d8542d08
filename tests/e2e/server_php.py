#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PHP of the matrix: behind apache2 by CGI and php-fpm, inside it (mod_php), behind civetweb."""
import pathlib
import re
import shutil
import subprocess

import _apache
import _harness as h
import _installed
import _matrix as m
import _web
import server_civetweb

FULL = 552000   # rounds: about 70 ms
PAGE = """<?php
ini_set('session.save_path', dirname(__DIR__) . '/sessions');
session_start();
$_SESSION['seen'] = ($_SESSION['seen'] ?? 0) + 1;
for ($i = 0, $x = 'crane'; $i < (int)($_GET['n'] ?? 1); $i++) $x = md5($x);
$name = tempnam(dirname(__DIR__) . '/sessions', 'page');
echo "result $x\\n", 'time ', time(), ' ', microtime(true), ' ', hrtime(true), "\\n",
  'random ', rand(), ' ', random_int(0, 1 << 40), ' ', uniqid(), ' ', uniqid('', true), "\\n",
  'process ', getmypid(), ' ', memory_get_usage(), ' ', spl_object_hash(new stdClass), "\\n",
  "file $name ", fileinode($name), ' ', filemtime($name), ' ', fileinode(__FILE__), "\\n",
  'session ', session_id(), ' ', $_SESSION['seen'], "\\n";
unlink($name);
"""


class Page:
    """A page that computes, and prints values that natively differ from run to run."""
    requests = (64, 120)
    measured = 120
    static = 100.0   # pages of 1 KB per page that computes

    def prepare(self):
        sessions = self.work / "sessions"
        sessions.mkdir()
        sessions.chmod(0o1777)
        super().prepare()
        (self.root / "page.php").write_text(PAGE)

    def ready(self):
        """PHP's own server may start after apache2."""
        return super().ready() and _web.get(self.port, "/page.php?n=1")[0] == 200

    def load(self, requests):
        rounds = FULL if requests > self.requests[0] else FULL // 10
        self.pages = ((f"page.php?n={rounds}", 1.0, False), ("1k.html", self.static, True))
        return super().load(requests)

    def session(self):
        """Two requests of one session."""
        cookie, seen = "", []
        for _ in range(2):
            status, headers, body = _web.get(self.port, "/page.php?n=1", cookie)
            said = body.decode()
            if status != 200 or "result b02673583fb6330b60064133ce6e3b1e" not in said:
                raise h.Failure(f"{self.name}: status {status}: {said[:300]}")
            seen.append(re.search(r"session (\S+) (\d+)", said).groups())
            cookie = cookie or f"Cookie: {headers['set-cookie'].split(';')[0]}\r\n"
        if seen[0][0] != seen[1][0] or seen[1][1] != "2":
            raise h.Failure(f"{self.name}: not one session: {seen}")
        return f"session {seen[0][0]}"

    def state(self):
        return f"{super().state()}; {self.session()}"


class Php(Page, _apache.Apache):
    """PHP behind apache2, or in it."""


# Its processes share no data that a page computes with, because opcache does not keep scripts in
# shared memory.
DETACHED = ("--detach", "any-computation")


class PhpCgi(Php):
    name = "apache2 event, php-cgi"
    version_of = "php8.2-cgi"
    programs = ("apache2", "ab", "php-cgi8.2")
    modules = ("cgid", "actions")

    def prepare(self):
        # Debian's serve-cgi-bin.conf sets where scripts are.
        self.more = (f"ScriptSock {self.work}/cgisock\n"
                     f"SetEnv PHP_INI_SCAN_DIR {_installed.php(self.work)}\n"
                     '<FilesMatch "\\.php$">\nSetHandler application/x-httpd-php\n</FilesMatch>\n'
                     "Action application/x-httpd-php /cgi-bin/php8.2\n")
        super().prepare()


class PhpFpm(Php):
    """Two servers in one container, both started by a script."""
    name = "apache2 event, php-fpm"
    version_of = "php8.2-fpm"
    programs = ("apache2", "ab", "php-fpm8.2")
    modules = ("proxy", "proxy_fcgi")
    options = ("--profile", "apache2", *DETACHED)

    def prepare(self):
        socket = f"{self.work}/fpm.sock"
        self.more = ('<FilesMatch "\\.php$">\n'
                     f'SetHandler "proxy:unix:{socket}|fcgi://localhost"\n</FilesMatch>\n')
        super().prepare()
        stock = pathlib.Path("/etc/php/8.2/fpm/pool.d/www.conf")
        pool = _installed.replaced(stock.read_text(), stock, ("/run/php/php8.2-fpm.sock", socket))
        fpm = self.work / "fpm.conf"
        fpm.write_text(f"[global]\npid = {self.work}/fpm.pid\nerror_log = {self.work}/fpm.log\n"
                       + pool + "\nphp_admin_flag[opcache.enable] = off\n")
        self.script = self.work / "start"
        self.script.write_text(f'#!/bin/sh\nPHP_INI_SCAN_DIR={_installed.php(self.work)} '
                               f'php-fpm8.2 --nodaemonize --fpm-config {fpm} &\n'
                               'exec apache2 "$@"\n')
        self.script.chmod(0o755)

    def program(self):
        return [str(self.script), "-f", str(self.conf)]


class ModPhp(Php):
    """Debian's module, unpacked: installing it would change the machine's own apache2."""
    name = "apache2 prefork, mod_php"
    version_of = "php8.2-cgi"
    mpm = "prefork"
    options = DETACHED

    def prepare(self):
        fetched = m.unpacked("libapache2-mod-php8.2", "usr/lib/apache2/modules/libphp8.2.so")
        module = self.work / "libphp8.2.so"
        shutil.copy(fetched, module)
        self.more = (f"LoadModule php_module {module}\nPHPIniDir /etc/php/8.2/cgi\n"
                     "php_admin_flag opcache.enable off\n"
                     '<FilesMatch "\\.php$">\nSetHandler application/x-httpd-php\n</FilesMatch>\n')
        super().prepare()


class PhpCivetweb(Page, server_civetweb.Civetweb):
    """A process of php-cgi for each request."""
    name = "civetweb, php-cgi"
    programs = ("civetweb", "ab", "php-cgi8.2")
    static = 10.0

    def program(self):
        return [*super().program(), "-cgi_interpreter", shutil.which("php-cgi8.2")]

    def state(self):
        return self.session()


KINDS = (PhpCgi, PhpFpm, PhpCivetweb, ModPhp)   # a kind that may be left out comes last

if __name__ == "__main__":
    h.run_scenario("server_php", lambda scenario: m.prove(scenario, KINDS))
