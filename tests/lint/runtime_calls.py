#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of libc and every system call that a language's runtime uses has one class.

runtime_calls.txt lists the calls of the runtimes.  The class of a call comes from the two tables of
runtime/preload; runtime_reasons.txt has the others, with a reason.  The lint fails if a call has no
class, if an entry of runtime_reasons.txt matches no call or a call that a table answers already, or
if runtime/preload/RUNTIMES.md is not current.

usage: runtime_calls.py            the lint; needs no runtime
       runtime_calls.py --write    writes RUNTIMES.md
       runtime_calls.py --collect  reads the installed runtimes and rewrites runtime_calls.txt
"""
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(__file__).with_name("runtime_calls.txt")
REASONS = pathlib.Path(__file__).with_name("runtime_reasons.txt")
ROWS = [ROOT / f"runtime/preload/ground/{name}.def" for name in ("interposed",
                                                                "interposed_hosts",
                                                                "interposed_terminals",
                                                                "interposed_machine")]
NUMBERS = ROOT / "runtime/preload/trap/system_calls.def"
TABLE = ROOT / "runtime/preload/RUNTIMES.md"

CLASSES = ("operation", "answered", "harmless", "refused", "gap")
# kinds of interposed.def
OF_KIND = {"turn": "operation", "input": "operation", "process": "operation", "time": "answered",
           "random": "answered", "local": "answered", "refused": "refused"}
BOUNDED = "BOUNDED in system_calls.def: never blocks, and only its caller sees the result"
PASSED = "not answered: PASSED in system_calls.def; the kernel does it, and it is counted"
ALIAS = "not answered: a second name of a function with a row"

# Debian's packages of each runtime; for Go its source is read.
PACKAGES = {"C++": ["libstdc++6", "libgcc-s1"],
            "CPython": ["python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"],
            "Erlang": ["erlang-base"],
            "Node": ["nodejs"],
            "OpenJDK": ["openjdk-17-jre-headless"]}


# --- what is installed  --------------------------------------------------------------------------
def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def version_of(package):
    # Without epoch and packaging revision: they do not change the calls.
    whole = said("dpkg-query", "-f", "${Version}", "-W", package)
    return whole.partition(":")[2 if ":" in whole else 0].partition("-")[0]


def programs_of(packages):
    for name in sorted(set(said("dpkg", "-L", *packages).splitlines())):
        path = pathlib.Path(name)
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield name


def symbols(path, *which):
    """Yields (address or "", type, name, version) of dynamic symbols."""
    for line in said("nm", "-D", *which, path).splitlines():
        *address, kind, name = line.split()
        name, _, version = name.partition("@")
        yield (address or [""])[0], kind, name, version


def numbers():
    header = said("sh", "-c", "echo '#include <asm/unistd_64.h>' | cc -E -dM -")
    return {int(n): name for name, n in re.findall(r"#define __NR_(\w+) (\d+)", header)}


def calls_of(path, named):
    """Returns the system calls in a program's code: their number is moved into eax before
    `syscall`, or into edi before libc's syscall(). Computed numbers are not found."""
    found, known, in_plt = set(), {}, False
    low = {f"r{n}": f"r{n}" for n in range(8, 16)} | {f"r{n}d": f"r{n}" for n in range(8, 16)}
    for r in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"):
        low |= {f"e{r}": r, f"r{r}": r}
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], text=True,
                          stdout=subprocess.PIPE) as shown:
        for line in shown.stdout:
            if line.startswith("Disassembly"):
                in_plt = ".plt" in line
            code = line.split("\t")[1].strip() if "\t" in line else ""
            if not code:
                known = {}
                continue
            if code.startswith("syscall") and known.get("ax") in named:
                found.add(named[known["ax"]])
            elif re.match(r"(call|jmp) .*<syscall@", code) and not in_plt:
                if known.get("di") in named:
                    found.add(named[known["di"]])
            if code.startswith("call"):
                known = {r: n for r, n in known.items() if r in ("bx", "bp", "r12", "r13", "r14",
                                                                "r15")}
            elif code.startswith("syscall"):
                known.pop("ax", None)
            elif m := re.match(r"mov +\$0x([0-9a-f]+),%(\w+)$", code):
                if m[2] in low:
                    known[low[m[2]]] = int(m[1], 16)
            elif m := re.match(r"xor +%(\w+),%\1$", code):
                if m[1] in low:
                    known[low[m[1]]] = 0
            elif m := re.match(r"mov +%(\w+),%(\w+)$", code):
                if m[2] in low:
                    known[low[m[2]]] = known.get(low.get(m[1]))
            elif not re.match(r"cmp|test|push|j", code):
                if m := re.search(r"%(\w+)$", code):
                    known.pop(low.get(m[1]), None)
    return found


def calls_of_go(named):
    """Returns the system calls of Go's standard library: SYS_ names, and used ..Trap numbers."""
    listed = said("env", "GOOS=linux", "GOARCH=amd64", "go", "list", "-deps", "-f",
                  "{{range .GoFiles}}{{$.Dir}}/{{.}}\n{{end}}{{range .SFiles}}{{$.Dir}}/{{.}}\n"
                  "{{end}}", "std")
    found, traps, uses = set(), {}, collections.Counter()
    for name in listed.split():
        if not re.search(r"/src/(syscall|runtime|internal|os|net|time|crypto)/", name):
            continue
        if "zsysnum_" in name:  # the numbers of all Linux system calls
            continue
        text = re.sub(r"//(?!sys).*", "", pathlib.Path(name).read_text())
        found |= {s.lower() for s in re.findall(r"\bSYS_(\w+)", text)}
        traps |= dict(re.findall(r"\b(\w+Trap)\s+(?:uintptr\s*)?= (\d+)", text))
        uses.update(re.findall(r"\b\w+Trap\b", text))
    found |= {named[int(n)] for trap, n in traps.items() if uses[trap] > 1}
    return found & set(named.values())


def libc():
    return next(p for p in programs_of(["libc6"]) if p.endswith("/libc.so.6"))


def wrapped(words):
    return textwrap.fill(" ".join(sorted(words)), 98, initial_indent="  ", subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)


def collect():
    named, path, rows = numbers(), libc(), set(functions_by_row())
    exported, at = set(), collections.defaultdict(set)
    for address, kind, name, version in symbols(path, "--defined-only"):
        if kind in "TWi" and re.match(r"@GLIBC_[0-9]", version):  # the default version
            exported.add(name)
            at[address].add(name)
    aliases = {f"{one}={min(names & rows)}" for names in at.values() if names & rows
               for one in names - rows}
    sections = {"glibc": (f"libc6 {version_of('libc6')}", exported, calls_of(path, named))}
    for runtime, packages in PACKAGES.items():
        functions, calls = set(), set()
        for program in programs_of(packages):
            functions |= {name for _, _, name, version in symbols(program, "--undefined-only")
                          if version.startswith("GLIBC_") and name in exported}
            calls |= calls_of(program, named)
        sections[runtime] = (f"{packages[0]} {version_of(packages[0])}", functions, calls)
    release = said("go", "env", "GOVERSION").strip()
    sections["Go"] = (f"the standard library of {release}", set(), calls_of_go(named))
    text = ["# Calls of the runtimes: functions of libc.so.6 that they import (glibc: exports",
            "# in their default version), and system calls in their code or, for Go, its source.",
            "# An alias is a second name of a function that has a row in interposed.def.",
            "# Written by runtime_calls.py --collect."]
    for runtime, (source, functions, calls) in sorted(sections.items()):
        text += ["", f"[{runtime}] {source}"]
        for what, words in (("functions", functions), ("calls", calls),
                            ("aliases", aliases if runtime == "glibc" else ())):
            if words:
                text += [f"{what}:", wrapped(words)]
    DATA.write_text("\n".join(text) + "\n")


# --- the tables and the reasons  -----------------------------------------------------------------
def functions_by_row():
    """Returns {function: kind}."""
    text = "".join(path.read_text() for path in ROWS)
    found = re.findall(r"^INTERPOSE[A-Z_]*\(\s*(\w+)\s*,\s*(\w+)", text, re.M)
    return {name: kind for kind, name in found}


def calls_by_row():
    """Returns {system call: (row's kind, function)}."""
    found = re.findall(r"^([A-Z]+)\((\w+)(?:, (\w+))?\)", NUMBERS.read_text(), re.M)
    return {name: (kind, function) for kind, name, function in found}


def read_data():
    """Returns {runtime: {"source", "functions", "calls", "aliases"}}."""
    data, runtime, what = {}, "", ""
    for line in DATA.read_text().splitlines():
        if line.startswith("["):
            runtime, _, source = line[1:].partition("] ")
            data[runtime] = {"source": source, "functions": set(), "calls": set(),
                             "aliases": set()}
        elif line.endswith(":"):
            what = line[:-1]
        elif line.startswith("  "):
            data[runtime][what] |= set(line.split())
    return data


class Group:
    """A class of functions or system calls, with its reason and its names and patterns."""
    def __init__(self, sort, kind, reason):
        self.sort, self.kind, self.reason, self.entries = sort, kind, reason, []


def read_reasons():
    groups = []
    for line in REASONS.read_text().splitlines():
        line = line.partition("#")[0].rstrip()
        if m := re.match(r"\[(functions|calls) (\w+)\] (.+)", line):
            groups.append(Group(*m.groups()))
        elif line.startswith("    "):
            groups[-1].reason += " " + line.strip()
        elif line:
            groups[-1].entries += line.split()
    return groups


class Judge:
    """Finds the class of each name. `bad` collects the mistakes."""
    def __init__(self, data):
        self.rows, self.by_number = functions_by_row(), calls_by_row()
        self.groups, self.used, self.bad = read_reasons(), set(), []
        self.aliases = dict(a.split("=") for one in data.values() for a in one["aliases"])
        self.exact = {}
        for group in self.groups:
            if group.kind not in CLASSES:
                self.bad.append(f"runtime_reasons.txt: there is no class {group.kind}")
            if not group.entries:
                self.bad.append(f"runtime_reasons.txt: a group without names: {group.reason}")
            for entry in group.entries:
                if "*" not in entry and self.exact.setdefault((group.sort, entry), group) != group:
                    self.bad.append(f"runtime_reasons.txt: {entry} has two reasons")
                if group.entries.count(entry) > 1:
                    self.bad.append(f"runtime_reasons.txt: {entry} occurs twice")

    def fixed(self, sort, name):
        """Returns (class, reason) from a table, or None."""
        if sort == "functions":
            return (OF_KIND[self.rows[name]], "") if name in self.rows else None
        kind, function = self.by_number.get(name, ("", ""))
        if kind in ("OPERATION", "QUIET"):
            return OF_KIND[self.rows[function]], ""
        return {"SPECIAL": ("operation", ""), "REFUSED": ("refused", "")}.get(kind)

    def reasoned(self, sort, name):
        group = self.exact.get((sort, name))
        if group:
            self.used.add((sort, name))
            return group.kind, group.reason
        if sort == "functions" and name in self.aliases:
            return "gap", ALIAS
        kind = self.by_number.get(name, ("", ""))[0]
        if kind in ("BOUNDED", "PASSED"):
            return ("harmless", BOUNDED) if kind == "BOUNDED" else ("gap", PASSED)
        found = [(g, e) for g in self.groups if g.sort == sort for e in g.entries
                 if "*" in e and fnmatch.fnmatchcase(name, e)]
        self.used |= {(sort, e) for _, e in found}
        if len({id(g) for g, _ in found}) > 1:
            self.bad.append(f"runtime_reasons.txt: {name} is {' and '.join(e for _, e in found)}")
        return (found[0][0].kind, found[0][0].reason) if found else None

    def judge(self, sort, name):
        answer = self.fixed(sort, name)
        if answer and (sort, name) in self.exact:
            self.bad.append(f"runtime_reasons.txt: {name} has a row now")
            self.used.add((sort, name))
        return answer or self.reasoned(sort, name)

    def unused(self):
        return [f"runtime_reasons.txt: {entry} matches no call of a runtime"
                for g in self.groups for entry in g.entries if (g.sort, entry) not in self.used]


# --- the table that is shown  --------------------------------------------------------------------
def folded(names, patterns):
    """Returns the names; a pattern replaces more than two names that match it."""
    left, shown = set(names), []
    for pattern in patterns:
        fits = {n for n in left if fnmatch.fnmatchcase(n, pattern)}
        if "*" in pattern and len(fits) > 2:
            shown.append(f"{pattern} ({len(fits)})")
            left -= fits
    return sorted(shown) + sorted(left)


def paragraph(text):
    return textwrap.fill(text, 190, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)


def table(data, judged, groups):
    text = ["# Calls of runtimes and their classes", "",
            "`tests/lint/runtime_calls.py --write` generates this file from the calls of runtimes "
            "(`tests/lint/runtime_calls.txt`),",
            "the two tables (`ground/interposed.def`, `trap/system_calls.def`) and the reasons "
            "(`tests/lint/runtime_reasons.txt`).",
            "`make lint` fails when the file is out of date or a call has no class.", "",
            "* operation: has a row of kind turn, input or process, or a SPECIAL number.",
            "* answered: has a row of kind time, random or local, or uses agreed state for the "
            "reason below.",
            "* harmless: needs no row, for the reason below.",
            "* refused: fails with a message, or as on a kernel without the call.",
            "* gap: not handled yet.", "",
            "For glibc the tables count all functions that it exports in their default version. "
            "Its system calls have the class",
            "that their number would have in a program; glibc itself calls them without a "
            "check, so its functions count.\n"
            "For the other runtimes the tables count the functions that they import.", ""]
    for sort, title in (("functions", "functions of libc"), ("calls", "system calls")):
        text += [f"| {title} | {' | '.join(CLASSES)} |", "| --- |" + " --- |" * len(CLASSES)]
        for runtime, one in data.items():
            if one[sort]:
                count = collections.Counter(judged[sort, n][0] for n in one[sort])
                text.append(f"| {runtime} ({one['source']}) | "
                            + " | ".join(str(count[c]) for c in CLASSES) + " |")
        text.append("")
    users = collections.defaultdict(list)
    for runtime, one in data.items():
        for sort in ("functions", "calls"):
            for name in one[sort]:
                if runtime != "glibc":
                    users[sort, name].append(runtime)
    patterns = collections.defaultdict(list)
    for group in groups:
        patterns[group.sort, group.kind, group.reason] += group.entries
    for kind in ("gap", "refused", "harmless", "answered"):
        text += [f"## {kind}", ""]
        for sort, title in (("functions", "Functions"), ("calls", "System calls")):
            by_reason = collections.defaultdict(list)
            for (of, name), (of_kind, reason) in judged.items():
                if (of, of_kind) == (sort, kind):
                    by_reason[reason].append(name)
            if kind == "answered":  # calls with a row need no second list
                by_reason.pop("", None)
            order = [g.reason for g in groups]
            for reason in sorted(by_reason, key=lambda r: order.index(r) if r in order else -1):
                names = by_reason[reason]
                if kind == "gap":
                    words = [f"{n} ({', '.join(users[sort, n])})" if users[sort, n] else n
                             for n in sorted(names)]
                else:
                    words = folded(names, patterns[sort, kind, reason])
                text.append(paragraph(f"* {title}, {reason or 'by its row'}: "
                                      + ", ".join(f"`{w}`" if " " not in w else
                                                  "`" + w.replace(" ", "` ", 1) for w in words)))
        text.append("")
    return "\n".join(text).rstrip("\n") + "\n"


def main():
    if "--collect" in sys.argv:
        collect()
        return 0
    data = read_data()
    judge, judged = Judge(data), {}
    for runtime, one in data.items():
        for sort in ("functions", "calls"):
            for name in sorted(one[sort]):
                if (sort, name) not in judged:
                    judged[sort, name] = judge.judge(sort, name)
                    if judged[sort, name] is None:
                        judge.bad.append(f"{runtime} uses {name} ({sort}), which has no class")
    bad = judge.bad + judge.unused()
    if not bad:
        wanted = table(data, judged, judge.groups)
        if "--write" in sys.argv:
            TABLE.write_text(wanted)
        elif not TABLE.exists() or TABLE.read_text() != wanted:
            bad.append(f"{TABLE.relative_to(ROOT)} is not current: "
                       "tests/lint/runtime_calls.py --write")
    print(*bad, sep="\n", end="\n" if bad else "")
    print("runtime_calls:", "FAILED" if bad else f"ok ({len(judged)} calls)")
    return bool(bad)


sys.exit(main())
