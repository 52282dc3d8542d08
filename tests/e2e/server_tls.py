#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TLS of the matrix: the same keys on every replica, so that even the ciphertext is equal."""
import re
import subprocess

import _apache
import _harness as h
import _matrix as m


def make_certificate(work):
    """A new key and certificate for localhost."""
    key, certificate = work / "server.key", work / "server.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", str(key), "-out", str(certificate)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    key.chmod(0o644)
    return key, certificate


class Apache(_apache.Apache):
    name = "apache2 event, TLS"
    programs = ("apache2", "ab", "curl", "openssl")
    modules = ("ssl", "socache_shmcb")
    scheme = "https"
    requests = (100, 4000)
    measured = 4000

    def prepare(self):
        key, certificate = make_certificate(self.work)
        self.certificate = certificate
        self.more = (f"SSLSessionCache shmcb:{self.work}/sessions(512000)\nSSLEngine on\n"
                     f"SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n")
        super().prepare()

    def curl(self, path, *more):
        done = subprocess.run(["curl", "-sS", "--cacert", str(self.certificate), *more,
                               f"https://localhost:{self.port}/{path}"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        if done.returncode != 0:
            raise h.Failure(f"curl {path}: {done.stderr.decode()}")
        return done.stdout

    def ready(self):
        try:
            return len(self.curl("1k.html")) == 1024
        except h.Failure:
            return False

    def same(self, path):
        for version in ("--tlsv1.3", "--tls-max=1.2"):
            if self.curl(path, *version.split("=")) != (self.root / path).read_bytes():
                raise h.Failure(f"{self.name}: {path} by {version} differs from the file")

    def state(self):
        """A session that is resumed by its ticket: all replicas have the same key."""
        saved = self.work / "session"
        results = []
        for option in ("-sess_out", "-sess_in"):
            done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.port}",
                                   "-tls1_2", option, str(saved)], input=b"", timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            results.append(re.search(r"^(New|Reused), ", done.stdout.decode(), re.M)[1])
        if results != ["New", "Reused"]:
            raise h.Failure(f"{self.name}: the session was not resumed: {results}")
        return f"session tickets: {', '.join(results)}"


class Redis(m.Server):
    name = "redis-server, TLS"
    version_of = "redis-server"
    programs = ("redis-server", "redis-benchmark", "redis-cli", "openssl")
    requests = (800, 20000)
    measured = 80000

    def prepare(self):
        self.key, self.certificate = make_certificate(self.work)

    def program(self):
        return ["redis-server", "--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1",
                "--save", "", "--tls-cert-file", str(self.certificate), "--tls-key-file",
                str(self.key), "--tls-ca-cert-file", str(self.certificate), "--tls-auth-clients",
                "no", "--enable-debug-command", "yes"]

    def client(self, program, *words):
        done = subprocess.run([program, "--tls", "--cacert", str(self.certificate), "-h",
                               "localhost", "-p", str(self.port), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=280)
        if done.returncode != 0:
            raise h.Failure(f"{program} {words}: {done.stdout}")
        return done.stdout.strip()

    def ready(self):
        try:
            return self.client("redis-cli", "PING") == "PONG"
        except h.Failure:
            return False

    def load(self, requests):
        text = self.client("redis-benchmark", "-n", str(requests), "-c", str(m.CLIENTS), "-t",
                           "set,get", "-r", "1000", "--csv")
        rows = re.findall(r'^"(\w+)","([\d.]+)","[\d.]+","[\d.]+","([\d.]+)","[\d.]+","([\d.]+)"',
                          text, re.M)
        if len(rows) != 2:
            raise h.Failure(f"redis-benchmark printed {text}")
        return [(what, *map(float, numbers)) for what, *numbers in rows]

    def state(self):
        self.client("redis-cli", "SET", "secret", "kept")
        if self.client("redis-cli", "GET", "secret") != "kept":
            raise h.Failure(f"{self.name}: the value that was set is missing")
        return f"{self.client('redis-cli', 'DBSIZE')} keys, DEBUG DIGEST " + \
            self.client("redis-cli", "DEBUG", "DIGEST")


KINDS = (Apache, Redis)

if __name__ == "__main__":
    h.run_scenario("server_tls", lambda scenario: m.prove(scenario, KINDS))
