#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slapd (OpenLDAP, back_mdb) of the matrix."""
import hashlib

import _harness as h
import _ldap as ldap
import _matrix as m

SUFFIX = "dc=example,dc=org"
PEOPLE = f"ou=people,{SUFFIX}"
ADMIN = (f"cn=admin,{SUFFIX}", "secret")
BASE = 100          # entries made before the first start
ATTRIBUTES = ("objectClass", "uid", "cn", "sn", "mail")   # all clients change "description"
SCHEMAS = ("core", "cosine", "nis", "inetorgperson")


def configuration(work):
    """The configuration that slapd's package sets up, before it becomes slapd.d: schemas, database,
    indices."""
    return "".join(f"include /etc/ldap/schema/{name}.schema\n" for name in SCHEMAS) + (
        f"pidfile {work}/slapd.pid\nargsfile {work}/slapd.args\nmodulepath /usr/lib/ldap\n"
        "moduleload back_mdb\nsizelimit unlimited\ntool-threads 1\ndatabase mdb\n"
        f"suffix {SUFFIX}\nrootdn {ADMIN[0]}\nrootpw {ADMIN[1]}\ndirectory {work}/data\n"
        "index objectClass eq\nindex cn,uid eq\nindex uidNumber,gidNumber eq\n"
        # The default of 10 MiB is full after about 400 loads.
        "checkpoint 512 30\nmaxsize 268435456\n")


def person(uid, mail):
    return {"objectClass": ["inetOrgPerson"], "uid": [uid], "cn": [f"Person {uid}"],
            "sn": ["Person"], "mail": [mail]}


def base_entries():
    yield SUFFIX, {"objectClass": ["top", "dcObject", "organization"], "o": ["Example"],
                   "dc": ["example"]}
    yield PEOPLE, {"objectClass": ["organizationalUnit"], "ou": ["people"]}
    for i in range(BASE):
        yield f"uid=p{i},{PEOPLE}", person(f"p{i}", f"p{i}@example.org")


class Slapd(m.Server):
    name = "slapd"
    version_of = "slapd"
    programs = ("slapd", "slapadd")
    requests = (320, 8000)
    measured = 16000
    native_users = ("openldap",)

    def prepare(self):
        self.loads = 0
        (self.work / "data").mkdir()
        (self.work / "slapd.d").mkdir()
        (self.work / "slapd.conf").write_text(configuration(self.work))
        ldif = "\n".join(f"dn: {dn}\n" + "".join(f"{k}: {v}\n" for k, values in a.items()
                                                  for v in values) for dn, a in base_entries())
        config = ["-f", self.work / "slapd.conf"]
        m.natively(["slapadd", *config], ldif)
        m.natively(["slaptest", *config, "-F", self.work / "slapd.d"])
        m.natively(["chown", "-R", "openldap:openldap", self.work])

    def program(self):
        return ["slapd", "-F", str(self.work / "slapd.d"), "-h",
                f"ldap://127.0.0.1:{self.port}/"]

    def native_program(self):
        return [*self.program(), "-d", "0", "-u", "openldap", "-g", "openldap"]

    def ready(self):
        try:
            with ldap.Ldap(self.port, 2) as client:
                return client.search(SUFFIX, "uid", "p0")[0] == ldap.SUCCESS
        except OSError:
            return False

    def load(self, requests):
        """New connections; each finds two people, and adds, changes, finds and deletes its own
        entry."""
        self.loads += 1
        return m.parallel(self.client, requests, "search/add/modify/delete")

    def client(self, who, share, took):
        wrong = []

        def timed(what, expected, call, *words):
            with took():
                got = call(*words)
            if got != expected:
                wrong.append(f"client {who}: {what}: {got} instead of {expected}")

        for i in range(share // 8):
            uid = f"c{who}-{self.loads}-{i}"
            dn = f"uid={uid},{PEOPLE}"
            with ldap.Ldap(self.port) as client:
                timed("bind", ldap.SUCCESS, client.bind, *ADMIN)
                for other in (f"p{(who * 31 + i * 7) % BASE}", f"p{(who + i) % BASE}"):
                    timed("search", (0, {f"uid={other},{PEOPLE}":
                                         person(other, f"{other}@example.org")}),
                          client.search, SUFFIX, "uid", other, ATTRIBUTES)
                timed("add", ldap.SUCCESS, client.add, dn, person(uid, "first@example.org"))
                timed("modify", ldap.SUCCESS, client.replace, dn, "mail", "second@example.org")
                timed("search", (0, {dn: person(uid, "second@example.org")}),
                      client.search, PEOPLE, "uid", uid, ATTRIBUTES)
                timed("modify", ldap.SUCCESS, client.replace, f"uid=p{i % BASE},{PEOPLE}",
                      "description", f"seen by {who}")
                if i % 2:
                    timed("delete", ldap.SUCCESS, client.delete, dn)
                else:
                    timed("search", (0, {}), client.search, PEOPLE, "uid", f"{uid}-nobody")
        return wrong

    def state(self):
        """Every attribute of every entry, including those that slapd creates (entryUUID,
        entryCSN)."""
        with ldap.Ldap(self.port) as client:
            client.bind(*ADMIN)
            code, found = client.search(SUFFIX, wanted=("*", "+"))
        digest = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]
        return f"{len(found)} entries (result {code}), SHA-256 {digest}"


KINDS = (Slapd,)

if __name__ == "__main__":
    h.run_scenario("server_slapd", lambda scenario: m.prove(scenario, KINDS))
