# SPDX-License-Identifier: Apache-2.0
"""A small LDAP client (RFC 4511): its own BER, one connection, reads every answer completely."""
import socket

BIND, SEARCH, MODIFY, ADD, DELETE = 0x60, 0x63, 0x66, 0x68, 0x4A
ENTRY, DONE_OF_SEARCH = 0x64, 0x65
SUCCESS = 0


def tlv(tag, body):
    size = len(body)
    if size < 0x80:
        return bytes([tag, size]) + body
    wide = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(wide)]) + wide + body


def text(value, tag=0x04):
    return tlv(tag, value.encode())


def number(value, tag=0x02):
    return tlv(tag, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def sequence(*parts):
    return tlv(0x30, b"".join(parts))


def strings(values):
    return tlv(0x31, b"".join(text(v) for v in values))


def split(data):
    """Returns [(tag, body)] of the elements in `data`."""
    found, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            wide = size & 0x7F
            size, at = int.from_bytes(data[at:at + wide], "big"), at + wide
        found.append((tag, data[at:at + size]))
        at += size
    return found


class Ldap:
    """Raises OSError when the connection breaks; operations return LDAP's result code."""

    def __init__(self, port, seconds=20.0):
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)
        self.socket.settimeout(seconds)
        self.stream = self.socket.makefile("rb")
        self.last = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.sendall(sequence(number(self.last + 1), tlv(0x42, b"")))   # unbind
        self.stream.close()
        self.socket.close()

    def exactly(self, size):
        data = self.stream.read(size)
        if len(data) != size:
            raise ConnectionError("the server closed the connection")
        return data

    def message(self):
        head = self.exactly(2)
        size = head[1]
        if size & 0x80:
            size = int.from_bytes(self.exactly(size & 0x7F), "big")
        (_, name), (tag, body) = split(self.exactly(size))[:2]
        if int.from_bytes(name, "big") != self.last:
            raise ConnectionError(f"an answer to {name.hex()} instead of {self.last}")
        return tag, body

    def ask(self, operation):
        self.last += 1
        self.socket.sendall(sequence(number(self.last), operation))

    def result(self, operation):
        self.ask(operation)
        return split(self.message()[1])[0][1][0]

    def bind(self, name="", password=""):
        return self.result(tlv(BIND, number(3) + text(name) + text(password, 0x80)))

    def add(self, dn, attributes):
        pairs = [sequence(text(k), strings(v)) for k, v in attributes.items()]
        return self.result(tlv(ADD, text(dn) + sequence(*pairs)))

    def replace(self, dn, attribute, *values):
        change = sequence(number(2, 0x0A), sequence(text(attribute), strings(values)))
        return self.result(tlv(MODIFY, text(dn) + sequence(change)))

    def delete(self, dn):
        return self.result(text(dn, DELETE))

    def search(self, base, attribute=None, value=None, wanted=("*",)):
        """Returns (result code, {dn: {attribute: [values]}}) of the whole subtree."""
        found = {}
        wish = sequence(text(attribute), text(value)) if attribute else None
        filters = bytes([0xA3]) + wish[1:] if wish else text("objectClass", 0x87)
        self.ask(tlv(SEARCH, text(base) + number(2, 0x0A) + number(0, 0x0A) + number(0)
                     + number(0) + tlv(0x01, b"\0") + filters
                     + sequence(*(text(w) for w in wanted))))
        while True:
            tag, body = self.message()
            if tag == DONE_OF_SEARCH:
                return split(body)[0][1][0], found
            if tag == ENTRY:
                (_, dn), (_, pairs) = split(body)
                parts = [split(pair) for _, pair in split(pairs)]
                found[dn.decode()] = {name.decode(): [v.decode() for _, v in split(values)]
                                      for (_, name), (_, values) in parts}
