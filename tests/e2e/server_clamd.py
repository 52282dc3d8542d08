#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clamd of the matrix: our own signature base, a small tree of files, unmodified clamdscan."""
import base64
import gzip
import hashlib
import io
import pathlib
import random
import re
import socket
import struct
import subprocess
import tarfile
import zipfile

import _harness as h
import _matrix as m

MARK = b"crane-body-signature-7f3a"         # found anywhere (.ndb)
WHOLE = b"known by the hash of the whole file\n" * 9   # found by size and hash (.hdb)
STOCK = "/etc/clamav/clamd.conf"


def text(rng, size):
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randrange(2, 9)))
             for _ in range(200)]
    made = b""
    while len(made) < size:
        made += b" ".join(rng.choices(words, k=12)) + b"\n"
    return made[:size]


def zipped(inner):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("first.txt"), b"nothing to see\n" * 40)
        archive.writestr(zipfile.ZipInfo("second.bin"), inner)
    return file.getvalue()


def tarred(inner):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("inner.bin")
        info.size = len(inner)
        archive.addfile(info, io.BytesIO(inner))
    return file.getvalue()


def mail(inner):
    return (b"From: a@example.org\r\nTo: b@example.org\r\nSubject: a file\r\nMIME-Version: 1.0\r\n"
            b"Content-Type: application/octet-stream; name=\"a.bin\"\r\n"
            b"Content-Transfer-Encoding: base64\r\n\r\n"
            + base64.encodebytes(inner).replace(b"\n", b"\r\n"))


def page(inner):
    return b"<html><head><title>t</title></head><body><p>" + inner + b"</p></body></html>\n"


WRAPPINGS = {"txt": bytes, "zip": zipped, "gz": lambda b: gzip.compress(b, mtime=0),
             "tar": tarred, "eml": mail, "html": page}


def file_of(rng, wrapping, infected):
    body = text(rng, rng.randrange(500, 20000))
    if infected:
        at = rng.randrange(len(body))
        body = body[:at] + MARK + body[at:]
    return WRAPPINGS[wrapping](body)


class Clamd(m.Server):
    name = "clamd"
    version_of = "clamav-daemon"
    programs = ("clamd", "clamdscan")
    requests = (64, 800)
    native_users = ("clamav",)

    def prepare(self):
        for name in ("db", "tree", "sent"):
            (self.work / name).mkdir()
        md5 = hashlib.md5(WHOLE).hexdigest()
        (self.work / "db" / "own.hdb").write_text(f"{md5}:{len(WHOLE)}:Crane.Whole\n")
        (self.work / "db" / "own.ndb").write_text(f"Crane.Body:0:*:{MARK.hex()}\n")
        self.configuration = self.work / "clamd.conf"
        self.configuration.write_text(self.stock())
        self.expected = {}
        for client in range(m.CLIENTS):
            self.make_files(client)
        m.natively(["chown", "-R", "clamav:clamav", self.work])

    def stock(self):
        """Debian's configuration, on our port and in our directory."""
        kept = re.sub(r"(?m)^(LocalSocket|FixStale|DatabaseDirectory|LogFile )(?!.*Unlock).*\n", "",
                      pathlib.Path(STOCK).read_text())
        return kept + (f"TCPSocket {self.port}\nTCPAddr 127.0.0.1\nLogFile {self.work}/clamd.log\n"
                       f"DatabaseDirectory {self.work}/db\n")

    def make_files(self, client):
        """A directory that the server reads, and one that the client sends."""
        rng = random.Random(client)
        for place in ("tree", "sent"):
            directory = self.work / place / f"c{client}"
            directory.mkdir()
            for i, wrapping in enumerate([*WRAPPINGS, *WRAPPINGS]):
                path = directory / f"f{i:02}.{wrapping}"
                infected = rng.random() < 0.4
                path.write_bytes(file_of(rng, wrapping, infected))
                self.expected[str(path)] = "Crane.Body.UNOFFICIAL" if infected else None
            path = directory / "whole.bin"
            path.write_bytes(WHOLE)
            self.expected[str(path)] = "Crane.Whole.UNOFFICIAL"

    def program(self):
        return ["clamd", "-c", str(self.configuration)]

    def native_program(self):
        return [*self.program(), "--foreground=true"]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def asked(self, command):
        with self.connect() as client:
            client.sendall(b"z" + command + b"\0")
            return b"".join(iter(lambda: client.recv(65536), b"")).rstrip(b"\0").decode()

    def ready(self):
        try:
            return self.asked(b"PING") == "PONG"
        except OSError:
            return False

    def load(self, requests):
        """Each client in turn: --multiscan of its tree, a session, --stream of its files.

        In the middle a thread reloads the signatures while other threads scan.
        """
        return m.parallel(self.client, requests, "scan")

    def client(self, who, share, took):
        wrong = []
        rng = random.Random(1000 + who)
        for i in range(share):
            if who == 0 and i == share // 2 and self.asked(b"RELOAD") != "RELOADING":
                wrong.append("it does not reload its signatures")
            with took():
                if i % 4 == 0:
                    wrong += self.scan(self.work / "tree" / f"c{who}", "--multiscan")
                elif i % 4 == 2:
                    wrong += self.scan(self.work / "sent" / f"c{who}", "--stream")
                else:
                    wrong += self.session(rng)
        return [f"client {who}: {what}" for what in wrong]

    def scan(self, directory, how):
        """clamdscan over a directory reports all infected files, and no others."""
        done = subprocess.run(["clamdscan", "-c", str(self.configuration), how, str(directory)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120, check=False)
        found = dict(re.findall(r"(?m)^(\S+): (\S+) FOUND$", done.stdout))
        wanted = {path: name for path, name in self.expected.items()
                  if name and path.startswith(f"{directory}/")}
        if found == wanted and done.returncode == (1 if wanted else 0):
            return []
        return [f"clamdscan {how} ended with {done.returncode}: {done.stdout[-800:]}"]

    def session(self, rng):
        """New files, all sent before the first verdict is read."""
        infected = [rng.random() < 0.5 for _ in range(6)]
        with self.connect() as client:
            client.sendall(b"zIDSESSION\0")
            for wrapping, bad in zip(WRAPPINGS, infected):
                body = file_of(rng, wrapping, bad)
                client.sendall(b"zINSTREAM\0" + struct.pack(">I", len(body)) + body + bytes(4))
            verdicts = {}
            file = client.makefile("rb")
            received = b""
            while len(verdicts) < len(infected):
                received += file.read1(4096) or b"?: the connection ended\0"
                *whole, received = received.split(b"\0")
                verdicts.update(line.decode().split(": ", 1) for line in whole)
            client.sendall(b"zEND\0")
        wanted = {str(i + 1): "stream: Crane.Body.UNOFFICIAL FOUND" if bad else "stream: OK"
                  for i, bad in enumerate(infected)}
        return [] if verdicts == wanted else [f"session: {verdicts} instead of {wanted}"]

    def state(self):
        """Threads, queue and memory, as clamd counts them."""
        stats = self.asked(b"STATS")
        pools = re.search(r"POOLS: \d+", stats)
        threads = re.search(r"THREADS: .*", stats)
        if not pools or not threads:
            raise h.Failure(f"STATS: {stats}")
        return f"{self.asked(b'VERSION')}, {pools[0]}, {threads[0]}"


KINDS = (Clamd,)

if __name__ == "__main__":
    h.run_scenario("server_clamd", lambda scenario: m.prove(scenario, KINDS))
