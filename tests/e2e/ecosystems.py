#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers without a profile, one from each of five ecosystems: gunicorn (processes that fork from a
master, Python threads in each), node (worker_threads, each with its own event loop), Java (a thread
pool next to the virtual machine's threads), mosquitto (one loop for all clients), varnish (a child
that loads code compiled by gcc). Each serves eight clients, loses the leader's node, and serves
eight more."""
import platform

import _harness as h
from _unprepared import WSGI, Hashing, fetch, run, tell

JDK = "/usr/lib/jvm/java-17-openjdk-" + {"x86_64": "amd64", "aarch64": "arm64"}.get(
    platform.machine(), "") + "/bin"
NODE = """const { Worker, isMainThread, parentPort } = require('worker_threads');
const { createHash } = require('crypto');
if (isMainThread) {
  const workers = [0, 1, 2, 3].map(() => new Worker(__filename)), waiting = new Map();
  let next = 0;
  for (const worker of workers)
    worker.on('message', ({ id, text }) => { waiting.get(id).end(text); waiting.delete(id); });
  require('http').createServer((request, response) => {
    waiting.set(++next, response);
    workers[next % workers.length].postMessage({ id: next, path: request.url });
  }).listen(PORT, '127.0.0.1');
} else {
  parentPort.on('message', ({ id, path }) => parentPort.postMessage(
    { id, text: path + ' ' + createHash('sha256').update(path).digest('hex') }));
}
"""
JAVA = """import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.Executors;

public class Server {
    public static void main(String[] words) throws Exception {
        var server = HttpServer.create(
            new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            try (exchange) {
                var path = exchange.getRequestURI().getPath();
                var hash = MessageDigest.getInstance("SHA-256").digest(path.getBytes());
                var text = (path + " " + HexFormat.of().formatHex(hash)).getBytes();
                exchange.sendResponseHeaders(200, text.length);
                exchange.getResponseBody().write(text);
            } catch (java.security.NoSuchAlgorithmException missing) {
                throw new IllegalStateException(missing);
            }
        });
        server.start();
    }
}
"""
MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
persistence false
user root
log_dest stderr
"""
VARNISH = """vcl 4.1;
import std;
backend none none;
sub vcl_recv {
    return (synth(200));
}
sub vcl_synth {
    set resp.body = req.url + " " + std.toupper(req.url);
    return (deliver);
}
"""


class Gunicorn(Hashing):
    name, programs = "gunicorn", ("gunicorn", "curl")

    def prepare(self):
        (self.work / "pages.py").write_text(WSGI)
        self.command = ["/usr/bin/gunicorn", "-k", "gthread", "--workers", "2", "--threads", "4",
                        "--chdir", str(self.work), "-b", f"127.0.0.1:{self.port}",
                        "pages:application"]


class Node(Hashing):
    name, programs = "node", ("node", "curl")

    def prepare(self):
        script = self.work / "server.js"
        script.write_text(NODE.replace("PORT", str(self.port)))
        self.command = ["/usr/bin/node", str(script)]


class Java(Hashing):
    name, programs = "java", (f"{JDK}/javac", "curl")

    def prepare(self):
        source = self.work / "Server.java"
        source.write_text(JAVA)
        compiled = run(f"{JDK}/javac", "-d", self.work, source)
        if compiled.returncode != 0:
            raise h.Failure(f"javac: {compiled.stdout[-300:]}")
        self.command = [f"{JDK}/java", "-cp", str(self.work), "Server", str(self.port)]


class Mosquitto:
    name, programs = "mosquitto", ("mosquitto", "mosquitto_pub", "mosquitto_sub")

    def __init__(self, work):
        self.port = h.free_port()
        configuration = work / "mosquitto.conf"
        configuration.write_text(MOSQUITTO.format(port=self.port))
        self.command = ["/usr/sbin/mosquitto", "-c", str(configuration)]

    def client(self, number):
        topic = ("-h", "127.0.0.1", "-p", self.port, "-q", "1", "-t", f"topic/{number}")
        put = run("mosquitto_pub", *topic, "-r", "-m", f"message {number}")
        got = run("mosquitto_sub", *topic, "-C", "1", "-W", "30")
        return put.returncode == 0 and got.stdout == f"message {number}\n", \
            f"{number}: {put.stdout[-300:]} {got.stdout[-300:]}"


class Varnish:
    name, programs = "varnish", ("varnishd", "gcc", "curl")

    def __init__(self, work):
        self.port = h.free_port()
        configuration = work / "synth.vcl"
        configuration.write_text(VARNISH)
        self.command = ["/usr/sbin/varnishd", "-F", "-a", f"127.0.0.1:{self.port}", "-n",
                        str(work / "instance"), "-f", str(configuration), "-s", "malloc,16m"]

    def client(self, number):
        text = fetch(self.port, number)
        return text == f"/page{number} /PAGE{number}", f"{number}: {text[-300:]}"


KINDS = (Gunicorn, Node, Java, Mosquitto, Varnish)

if __name__ == "__main__":
    tell("ecosystems", KINDS)
