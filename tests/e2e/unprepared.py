#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers without a profile, as Debian's packages set them up: vsftpd (its own limits, namespaces
that it does not get, a directory below /run, connections to its clients), dovecot (named pipes in
both directions, sockets reached from another root), dnsmasq (control messages). Each serves eight
clients, loses the leader's node, and serves eight more."""
import os
import shutil

import _harness as h
from _unprepared import run, tell

VSFTPD = """listen=YES
listen_port={port}
anonymous_enable=YES
anon_root={work}/ftp
xferlog_enable=NO
seccomp_sandbox=NO
background=NO
pasv_min_port={passive}
pasv_max_port={passive_end}
connect_from_port_20=YES
ftp_data_port={data}
"""
DOVECOT = """base_dir = {work}/run
log_path = /dev/stderr
protocols = imap
ssl = no
disable_plaintext_auth = no
listen = 0.0.0.0
mail_location = maildir:{work}/mail/%u
first_valid_uid = 0
first_valid_gid = 0
mail_uid = mail
mail_gid = mail
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={work}/mail/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
"""
DNSMASQ = """port={port}
no-resolv
no-hosts
no-daemon
user=root
address=/example.test/192.0.2.7
txt-record=words.example.test,some words
"""


class Vsftpd:
    name, programs = "vsftpd", ("vsftpd", "curl")

    def __init__(self, work):
        self.port = h.free_port()
        (work / "ftp").mkdir()
        (work / "ftp" / "file").write_text("what it serves\n" * 500)
        # Below the ports of outgoing connections; vsftpd gives up after ten taken ports.
        passive = 10000 + os.getpid() % 100 * 100
        self.configuration = work / "vsftpd.conf"
        self.configuration.write_text(VSFTPD.format(port=self.port, work=work, passive=passive,
                                                    passive_end=passive + 99,
                                                    data=h.free_port()))
        self.command = ["/usr/sbin/vsftpd", str(self.configuration)]

    def client(self, number):
        active = ("-P", "-") if number % 2 else ()  # the server connects, from its data port
        done = run("curl", "-sS", *active, f"ftp://127.0.0.1:{self.port}/file")
        return done.stdout.count("what it serves") == 500, f"{number}: {done.stdout[-300:]}"


class Dovecot:
    name, programs = "dovecot", ("dovecot", "curl")

    def __init__(self, work):
        self.port = h.free_port()
        (work / "mail").mkdir()
        shutil.chown(work / "mail", "mail", "mail")
        self.configuration = work / "dovecot.conf"
        self.configuration.write_text(DOVECOT.format(port=self.port, work=work))
        self.message = work / "message"
        self.message.write_text("Subject: a message\n\nits text\n")
        self.command = ["/usr/sbin/dovecot", "-F", "-c", str(self.configuration)]

    def client(self, number):
        place = f"imap://127.0.0.1:{self.port}/INBOX"
        user = ("-u", f"user{number}:secret")
        put = run("curl", "-sS", *user, "-T", self.message, place)
        got = run("curl", "-sS", *user, f"{place};MAILINDEX=1")
        return put.returncode == 0 and "its text" in got.stdout, \
            f"{number}: {put.stdout[-300:]} {got.stdout[-300:]}"


class Dnsmasq:
    name, programs = "dnsmasq", ("dnsmasq", "dig")

    def __init__(self, work):
        self.port = h.free_port()
        self.configuration = work / "dnsmasq.conf"
        self.configuration.write_text(DNSMASQ.format(port=self.port))
        self.command = ["/usr/sbin/dnsmasq", "--keep-in-foreground", "-C",
                        str(self.configuration)]

    def client(self, number):
        ask = ("dig", "+tcp", "+short", "+tries=1", "+time=20", "-p", self.port, "@127.0.0.1")
        address = run(*ask, f"a{number}.example.test")
        words = run(*ask, "txt", "words.example.test")
        return "192.0.2.7" in address.stdout and "some words" in words.stdout, \
            f"{number}: {address.stdout[-300:]} {words.stdout[-300:]}"


tell("unprepared", (Vsftpd, Dovecot, Dnsmasq))
