# SPDX-License-Identifier: Apache-2.0
"""Programs outside a group that know nothing of Crane: servers that record their requests, and
clients that check each answer."""
import contextlib
import http.client
import http.server
import socketserver
import ssl
import threading

import _harness as h

SECONDS = 90   # a client waits for an answer; a group may have to recover meanwhile


def answer_to(path):
    return (path * (1 + len(path) * 7919 % 400)).encode()


def body_of(path):
    return path.encode() * (1 + len(path) * 31 % 37 * 23)


def nginx_of(work, name, http, workers=2):
    """Writes an nginx configuration with `http` in its block of that name; returns the command."""
    path = work / f"{name}.conf"
    path.write_text(f"""user root;
daemon off;
worker_processes {workers};
pid {work}/{name}.pid;
error_log {work}/{name}.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  {http}
}}
""")
    return ["nginx", "-c", str(path)]


def nginx_before(backend, work, name, listen, more="", pool="keepalive 4;"):
    """An nginx that forwards the requests at `listen`."""
    return nginx_of(work, name, f"""{more}
  upstream backend {{ server {backend}; {pool} }}
  server {{
    listen {listen};
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_next_upstream off;
    }}
  }}""")


class HttpBackend:
    """An HTTP server at `address` that answers a path with answer(path), and remembers the bodies
    of its requests."""

    def __init__(self, server, address, answer):
        self.lock, self.heard, self.connections = threading.Lock(), {}, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                with outer.lock:
                    outer.connections += 1

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with outer.lock:
                    outer.heard.setdefault(self.path, []).append(body)
                text = answer(self.path)
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        class Server(server):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                pass   # a connection ends with its group

        self.server = Server(address, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def heard_twice(self):
        with self.lock:
            return [path for path, bodies in self.heard.items() if len(bodies) != 1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Outside:
    """A TCP server with a thread for each connection; keeps all requests until the end."""

    def __init__(self):
        self.lock, self.connections = threading.Lock(), 0
        self.heard, self.broken = {}, []   # requests by subject; incomplete requests
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self):
                with outer.lock:
                    outer.connections += 1
                try:
                    outer.serve(self.rfile, self.wfile, self.connection)
                except OSError:
                    pass   # a connection ends with its group; the recorded requests matter

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, heard, said, connection):
        raise NotImplementedError

    def hears(self, about, request):
        with self.lock:
            self.heard.setdefault(about, []).append(request)

    def has_heard(self, all_of):
        with self.lock:
            return all(about in self.heard for about in all_of)

    def take_heard(self):
        with self.lock:
            heard, self.heard = self.heard, {}
        return heard

    def is_whole(self, about, request):
        return request.endswith(body_of(about))

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Web(Outside):
    """Answers each path with its own text, and keeps the exact bytes of each request."""

    def serve(self, heard, said, connection):
        while True:
            request, length = b"", 0
            while not request.endswith(b"\r\n\r\n"):
                line = heard.readline()
                if not line:
                    break
                request += line
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not request:
                return
            body = heard.read(length)
            if not request.endswith(b"\r\n\r\n") or len(body) < length:
                with self.lock:
                    self.broken.append(request + body)
                return
            path = request.split(b" ", 2)[1].decode().removeprefix(f"http://127.0.0.1:{self.port}")
            self.hears(path, request + body)
            text = answer_to(path)
            said.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


class Client:
    """Sends requests until it must end, or `most` times. A subclass defines how to open a
    connection, and how to send the n-th request, which returns a key and an answer."""
    pause = 0.02   # after each answer, so that a recovering replica can catch up

    def __init__(self, number, most=None):
        self.number, self.most = number, most
        self.answers, self.bad, self.ends = {}, "", threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def open(self):
        raise NotImplementedError

    def ask(self, connection, count):
        raise NotImplementedError

    def run(self):
        try:
            with contextlib.closing(self.open()) as connection:
                while not self.ends.is_set() and len(self.answers) != self.most:
                    key, answer = self.ask(connection, len(self.answers))
                    self.answers[key] = answer
                    self.ends.wait(self.pause)
        except (OSError, http.client.HTTPException, ValueError, h.Failure) as error:
            self.bad = f"client {self.number}, after {len(self.answers)}: {error!r}"

    def count(self):
        return len(self.answers)

    def start(self):
        self.thread.start()

    def end(self):
        """Ends the client and returns its problem, or ''."""
        self.ends.set()
        self.thread.join(2 * SECONDS)
        return f"client {self.number} still waits" if self.thread.is_alive() else self.bad


class WebClient(Client):
    """One connection if the server `keeps` it; answers[path] is the status, the headers without the
    time, and the body."""

    def __init__(self, port, number, most=None, *, prefix="", certificate=None, keeps=True):
        super().__init__(number, most)
        self.port, self.prefix, self.certificate, self.keeps = port, prefix, certificate, keeps

    def open(self):
        if not self.certificate:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        trust = ssl.create_default_context(cafile=self.certificate)
        trust.check_hostname = False   # the certificate names localhost, not 127.0.0.1
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=SECONDS, context=trust)

    def request(self, connection, path):
        connection.request("POST", self.prefix + path, body_of(path), {"Host": "outside.test"})

    def is_right(self, path, status, text):
        return status == 200 and text == answer_to(path)

    def ask(self, connection, count):
        path = f"/{self.number}/{count}"
        self.request(connection, path)
        answer = connection.getresponse()
        text = answer.read()
        if not self.is_right(path, answer.status, text):
            raise ValueError(f"{path}: status {answer.status}, {len(text)} bytes")
        if not self.keeps:
            connection.close()   # the next request opens it again
        headers = [(k, v) for k, v in answer.getheaders() if k.lower() != "date"]
        return path, (answer.status, headers, text)


class Crowd:
    """Clients that start and end together; its count is that of the slowest client."""

    def __init__(self, clients):
        self.clients = list(clients)

    @property
    def bad(self):
        return "; ".join(client.bad for client in self.clients if client.bad)

    @property
    def answers(self):
        return {key: answer for client in self.clients for key, answer in client.answers.items()}

    def count(self):
        return min(client.count() for client in self.clients)

    def start(self):
        for client in self.clients:
            client.start()

    def join(self):
        for client in self.clients:
            client.thread.join(SECONDS)

    def end(self):
        for client in self.clients:
            client.ends.set()
        return "; ".join(text for text in [client.end() for client in self.clients] if text)

    def summary(self):
        total = sum(client.count() for client in self.clients)
        return f"{len(self.clients)} clients: {total} requests"
