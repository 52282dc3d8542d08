#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gerbera of the matrix: web pages, adding files, UPnP's Browse, the files themselves."""
import hashlib
import html
import http.client
import json
import pathlib
import random
import re
import socket
import xml.etree.ElementTree as ET

import _harness as h
import _matrix as m

STOCK = "/etc/gerbera/config.xml"
INDEX = "/usr/share/gerbera/web/index.html"
NAME = "media of the matrix"
UDN = "uuid:11111111-2222-3333-4444-555555555555"
SERVICE = "urn:schemas-upnp-org:service:ContentDirectory:1"
DIDL = "{urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/}"
CLASSES = {"mp3": "object.item.audioItem.musicTrack", "ogg": "object.item.audioItem.musicTrack",
           "mkv": "object.item.videoItem", "txt": "object.item"}
BROWSE = """<?xml version="1.0" encoding="utf-8"?>
<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"
 s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>
<u:Browse xmlns:u="{service}"><ObjectID>{number}</ObjectID>
<BrowseFlag>BrowseDirectChildren</BrowseFlag><Filter>*</Filter>
<StartingIndex>{start}</StartingIndex><RequestedCount>{count}</RequestedCount>
<SortCriteria></SortCriteria></u:Browse></s:Body></s:Envelope>
"""


def own_address():
    """The source address of packets to other hosts."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("203.0.113.1", 9))
        return probe.getsockname()[0]


class Gerbera(m.Server):
    name = "gerbera"
    version_of = "gerbera"
    programs = ("gerbera",)
    requests = (96, 1600)
    native_users = ("gerbera",)

    def prepare(self):
        # libupnp accepts no port below 49152; outgoing connections use none above 61000.
        self.port = h.free_port(61001, 65000)
        self.host = "127.0.0.1"
        (self.work / "home").mkdir()
        self.configuration = self.work / "config.xml"
        self.configuration.write_text(self.stock())
        self.share = max(self.requests) // m.CLIENTS // 6 + 1
        for client in range(m.CLIENTS):
            for i in range(self.share):
                self.make_files(client, i)
        m.natively(["chown", "-R", "gerbera:gerbera", self.work])

    def stock(self):
        """Debian's configuration, in our directory, with its web interface and a fixed name."""
        text = pathlib.Path(STOCK).read_text()
        for pattern, value in ((r"<home>.*</home>", f"<home>{self.work}/home</home>"),
                               (r"<udn/>", f"<udn>{UDN}</udn>"),
                               (r"<name>.*</name>", f"<name>{NAME}</name>"),
                               (r'<ui enabled="no"', '<ui enabled="yes"')):
            text, times = re.subn(pattern, value, text, count=1)
            if times != 1:
                raise h.Failure(f"{STOCK} has no {pattern}")
        return text

    def directory(self, client, i):
        return self.work / "media" / f"c{client}" / f"d{i}"

    def make_files(self, client, i):
        rng = random.Random(client * 1000 + i)
        directory = self.directory(client, i)
        directory.mkdir(parents=True)
        for kind in CLASSES:
            for n in range(rng.randrange(1, 3)):
                body = rng.randbytes(rng.randrange(1, 9000))
                (directory / f"{kind}-{n}.{kind}").write_bytes(b"ID3" + body)

    def program(self):
        return ["gerbera", "-c", str(self.configuration), "-p", str(self.port)]

    def native_program(self):
        return ["setpriv", "--reuid=gerbera", "--regid=gerbera", "--init-groups", *self.program()]

    def native_address(self):
        """It listens on the address of its interface, not on loopback."""
        return own_address()

    # --- asking -----------------------------------------------------------------------------------

    def ask(self, path, body=None, headers=None):
        """One request on a separate connection: status and body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request("POST" if body else "GET", path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as wrong:
            raise h.Failure(f"{path}: {type(wrong).__name__}: {wrong}") from wrong
        finally:
            connection.close()

    def web(self, **words):
        """The web interface's JSON protocol."""
        query = "&".join(f"{k}={v}" for k, v in words.items())
        status, body = self.ask(f"/content/interface?{query}")
        answer = json.loads(body)
        if status != 200 or not answer.get("success"):
            raise h.Failure(f"{query}: status {status}, {body[:300]}")
        return answer

    def browse(self, number, start=0, count=0):
        """The children of an object: [(is a container, id, title, class, size, address)]."""
        body = BROWSE.format(service=SERVICE, number=number, start=start, count=count)
        status, text = self.ask("/upnp/control/cds", body.encode(), {
            "Content-Type": 'text/xml; charset="utf-8"', "SOAPACTION": f'"{SERVICE}#Browse"'})
        result = re.search(rb"<Result>(.*)</Result>\s*<NumberReturned>(\d+)<", text, re.S)
        if status != 200 or not result:
            raise h.Failure(f"Browse of {number}: status {status}, {text[:600]}")
        found = []
        for e in ET.fromstring(html.unescape(result[1].decode())):
            title, kind = (e.find(f"{{{ns}}}{tag}").text for ns, tag in (
                ("http://purl.org/dc/elements/1.1/", "title"),
                ("urn:schemas-upnp-org:metadata-1-0/upnp/", "class")))
            res = e.find(f"{DIDL}res")
            found.append((e.tag == f"{DIDL}container", e.get("id"), title, kind,
                          int(res.get("size")) if res is not None else 0,
                          res.text if res is not None else ""))
        if len(found) != int(result[2]):
            raise h.Failure(f"Browse of {number}: {len(found)} objects, it reports {result[2]}")
        return found

    def find(self, path):
        """The container of a directory below "PC Directory", or None."""
        if path not in self.numbers:
            above = self.find(path.parent)
            for child in self.browse(above) if above else ():
                if child[0] and child[2] == path.name:
                    self.numbers[path] = child[1]
        return self.numbers.get(path)

    def ready(self):
        self.numbers = {pathlib.Path("/"): "1"}   # of the directories' containers
        for find in (lambda: "127.0.0.1", own_address):
            try:
                self.host = find()
                return self.ask("/description.xml")[0] == 200
            except OSError:
                continue
        return False

    # --- the load ---------------------------------------------------------------------------------

    def load(self, requests):
        """Each client in turn: the page, the description, adding a directory, Browse, two files."""
        return m.parallel(self.client, requests, "page/description/add/browse/file")

    def client(self, who, share, took):
        wrong = []
        session = self.web(req_type="auth", action="get_sid")["sid"]
        for i in range(share // 6):
            with took():
                page = self.ask("/")
            if page != (200, pathlib.Path(INDEX).read_bytes()):
                wrong.append(f"/: status {page[0]}, {len(page[1])} bytes")
            with took():
                status, text = self.ask("/description.xml")
            if status != 200 or UDN.encode() not in text or NAME.encode() not in text:
                wrong.append(f"/description.xml: status {status}, {text[:300]}")
            wrong += self.directory_of(who, i, session, took)
        return [f"client {who}: {what}" for what in wrong]

    def directory_of(self, who, i, session, took):
        """Adds a directory, finds all its content, and fetches two of its files."""
        path = self.directory(who, i)
        with took():
            self.web(req_type="add", sid=session, object_id=str(path).encode().hex())
        wanted = {f.name: (CLASSES[f.suffix[1:]], f.stat().st_size) for f in path.iterdir()}
        found = []

        def all_there():
            number = self.find(path)
            found[:] = self.browse(number) if number else []
            return len(found) == len(wanted)

        h.wait_until(all_there, 90, f"the files of {path} are there")
        number = self.find(path)
        with took():
            some = self.browse(number, 1, 2)
        if some != found[1:3]:
            return [f"Browse from 1, 2 objects: {some} instead of {found[1:3]}"]
        if {f[2]: f[3:5] for f in found} != wanted:
            return [f"{path}: {found} instead of {wanted}"]
        wrong = []
        for item in found[:2]:
            with took():
                status, body = self.ask(re.sub(r"^http://[^/]*", "", item[5]))
            if (status, body) != (200, (path / item[2]).read_bytes()):
                wrong.append(f"{item[5]}: status {status}, {len(body)} bytes")
        return wrong

    def state(self):
        """Every object of the database, found by Browse from the root."""
        objects, left = [], ["0"]
        while left:
            number = left.pop()
            for found in self.browse(number):
                objects.append((number, *found))
                if found[0]:
                    left.append(found[1])
        digest = hashlib.sha256(repr(objects).encode()).hexdigest()[:16]
        return f"{len(objects)} objects, SHA-256 {digest}"


KINDS = (Gerbera,)

if __name__ == "__main__":
    h.run_scenario("server_gerbera", lambda scenario: m.prove(scenario, KINDS))
