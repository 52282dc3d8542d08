# SPDX-License-Identifier: Apache-2.0
"""The story of a postfix that forwards mail to another server: each accepted message arrives there
once."""
import re
import shutil
import smtplib

import _harness as h
import _matrix as m
import _outside as o
import _stories as s

# Its processes keep LD_LIBRARY_PATH, because its libraries are not where Debian installs them.
MAIN = """compatibility_level = 3.6
queue_directory = {work}/spool
data_directory = {work}/data
daemon_directory = {package}/usr/lib/postfix/sbin
command_directory = {package}/usr/sbin
shlib_directory = {package}/usr/lib/postfix
meta_directory = {work}/conf
import_environment = LD_LIBRARY_PATH LD_PRELOAD MAIL_CONFIG TZ
mail_owner = uucp
setgid_group = games
default_privs = nobody
myhostname = crane.test
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:{sink}
smtp_dns_support_level = disabled
smtpd_peername_lookup = no
smtpd_tls_security_level = none
smtp_tls_security_level = none
"""
# As in Debian's master.cf: service, private, wake-up, maximal processes, program.
SERVICES = (("cleanup", "n", "-", "0", "cleanup"), ("qmgr", "n", "300", "1", "qmgr"),
            ("rewrite", "-", "-", "-", "trivial-rewrite"), ("bounce", "-", "-", "0", "bounce"),
            ("defer", "-", "-", "0", "bounce"), ("trace", "-", "-", "0", "bounce"),
            ("verify", "-", "-", "1", "verify"), ("smtp", "-", "-", "-", "smtp"),
            ("relay", "-", "-", "-", "smtp"), ("error", "-", "-", "-", "error"),
            ("retry", "-", "-", "-", "error"), ("anvil", "-", "-", "1", "anvil"),
            ("scache", "-", "-", "1", "scache"), ("proxymap", "-", "-", "-", "proxymap"),
            ("flush", "n", "1000?", "0", "flush"))
QUEUES = ("active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming",
          "private", "saved", "trace")
# Lines that postfix adds to each message; they contain the time.
ADDED = re.compile(rb"^(Received|Message-Id|Date): [^\r]*\r\n([ \t][^\r]*\r\n)*", re.M)


def message(path):
    lines = "".join(f"line {n} of {path}\r\n" for n in range(1 + len(path) * 31 % 37 * 9))
    return f"Subject: {path}\r\n\r\n{lines}".encode()


class Sink(o.Outside):
    """A mail server that keeps all messages."""

    def serve(self, heard, said, connection):
        said.write(b"220 sink.test\r\n")
        for line in heard:
            command = line[:4].upper()
            if command == b"DATA":
                said.write(b"354 go on\r\n")
                if not self.take(heard):
                    return
            said.write(b"221 bye\r\n" if command == b"QUIT" else b"250 taken\r\n")
            if command == b"QUIT":
                return

    def take(self, heard):
        text = b""
        for line in heard:
            if line == b".\r\n":
                self.hears(re.search(rb"^Subject: (\S+)", text, re.M)[1].decode(),
                           ADDED.sub(b"", text))
                return True
            text += line
        with self.lock:
            self.broken.append(text)
        return False

    def is_whole(self, about, request):
        return request.endswith(message(about).partition(b"\r\n")[2])


class Sender(o.Client):
    """Sends ten messages on each connection."""
    pause = 0.2   # five processes handle each message

    def __init__(self, port, number, most):
        super().__init__(number, most)
        self.port = port

    def open(self):
        return smtplib.SMTP(timeout=o.SECONDS)

    def ask(self, connection, count):
        path = f"/{self.number}/{count}"
        if count % 10 == 0:
            connection.connect("127.0.0.1", self.port)
            connection.ehlo("client.test")
        refused = connection.sendmail("from@client.test", ["to@outside.test"], message(path))
        if count % 10 == 9:
            connection.quit()
        return path, refused


def postfix(scenario, changes):
    package = m.unpacked("postfix", "usr/lib/postfix/sbin/master").parents[4]
    sink, port = Sink(), h.free_port()
    work = scenario.work / "postfix"
    for name in ("conf", "data", "spool/pid", "spool/public", "spool/maildrop",
                 *(f"spool/{queue}" for queue in QUEUES)):
        (work / name).mkdir(parents=True)
    for name in ("data", *(f"spool/{queue}" for queue in QUEUES)):
        shutil.chown(work / name, "uucp")
        (work / name).chmod(0o700)
    for name, mode in (("public", 0o710), ("maildrop", 0o730)):
        shutil.chown(work / "spool" / name, "uucp", "games")
        (work / "spool" / name).chmod(mode)
    (work / "conf/main.cf").write_text(MAIN.format(work=work, package=package, sink=sink.port))
    (work / "conf/master.cf").write_text(
        f"127.0.0.1:{port} inet n - n - - smtpd\n" +
        "".join(f"{name} unix {private} - n {wake} {most} {program}\n"
                for name, private, wake, most, program in SERVICES))
    s.passes_on(scenario, changes, "postfix",
                ["/usr/bin/env", f"LD_LIBRARY_PATH={package}/usr/lib/postfix",
                 f"{package}/usr/lib/postfix/sbin/master", "-c", str(work / "conf"), "-d"],
                port=port, backend=sink, client=Sender)
