# SPDX-License-Identifier: Apache-2.0
"""Common parts of the matrix's web servers: pages, ab's load, and the right answers."""
import pathlib

import _harness as h
import _matrix as m

AB_LEAST = 64   # with 50 requests or fewer, ab's table of percentiles reads beyond its data


def make_pages(work):
    """The directory of static pages of every web server: 1 KB and 1 MB."""
    pages = work / "www"
    pages.mkdir()
    (pages / "1k.html").write_bytes(b"x" * 1023 + b"\n")
    (pages / "1m.bin").write_bytes(bytes(i * 7 % 251 for i in range(1 << 20)))
    return pages


def parts_of(answer):
    """Returns (status, {header: value}, body) of an answer that ended with the connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    status = int(first.split()[1]) if first.startswith("HTTP/") else 0
    return status, {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}, body


def get(port, path, more=""):
    """Like parts_of; raises h.Failure if there is no HTTP answer."""
    request = f"GET {path} HTTP/1.0\r\nHost: crane.test\r\n{more}\r\n"
    answer = h.http(port, request.encode())
    status, headers, body = parts_of(answer)
    if not status:
        raise h.Failure(f"{path}: no HTTP answer: {answer[:200]!r}")
    return status, headers, body


class Web(m.Server):
    """A web server: `root` has its pages, `pages` is ab's load: (path, share, keep alive)."""

    pages = (("1k.html", 1.0, False), ("1k.html", 4.0, True), ("1m.bin", 0.1, False),
             ("1m.bin", 0.15, True))
    requests = (400, 10000)
    measured = 20000
    scheme = "http"

    def prepare(self):
        self.root = make_pages(self.work)

    def ready(self):
        try:
            return get(self.port, "/1k.html")[0] == 200
        except (OSError, h.Failure):
            return False

    def same(self, path):
        """Checks that a static page equals its file."""
        status, _, body = get(self.port, "/" + path)
        wanted = pathlib.Path(self.root / path).read_bytes()
        if status != 200 or body != wanted:
            raise h.Failure(f"{self.name}: {path}: status {status}, {len(body)} bytes of "
                            f"{len(wanted)}")

    def count_of(self, requests, share):
        return max(int(requests * share), AB_LEAST)

    def requests_made(self, requests, rows):
        return sum(self.count_of(requests, share) for _, share, _ in self.pages)

    def load(self, requests):
        rows = []
        for path, share, keep_alive in self.pages:
            count = self.count_of(requests, share)
            result = h.ab(f"{self.scheme}://127.0.0.1:{self.port}/{path}", count, m.CLIENTS,
                          keep_alive, one_length=(self.root / path).exists())
            if not h.ab_good(result, count):
                raise h.Failure(f"{self.name}: {result['command']}: status {result['status']}, "
                                f"{result['text']}")
            rows.append((path + (", keep-alive" if keep_alive else ""), result["rate"],
                         result["p50"], result["p99"]))
        for path in {path for path, *_ in self.pages}:
            if (self.root / path).exists():
                self.same(path)
        return rows


def make_listing(directory):
    """A directory with a listing that shows order, sizes and times; created in no order."""
    directory.mkdir()
    for n in (7, 3, 11, 1, 9, 0, 5, 2, 10, 8, 4, 6):
        (directory / f"file{n:02}.txt").write_bytes(b"y" * n * 100)


def listing(port, path):
    """Checks that a server's listing of a make_listing directory names every file."""
    status, _, body = get(port, path)
    names = [f"file{n:02}.txt" for n in range(12)]
    missing = [name for name in names if name.encode() not in body]
    if status != 200 or missing:
        raise h.Failure(f"{path}: status {status}, {missing} are missing: {body[:300]!r}")
    return f"a listing of {len(names)} files, {len(body)} bytes"
