#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completes the pages that the programs print of their own options (--print-page), and makes
group.toml(5) of GROUP_FILE.md. Each command writes the page to standard output.

  pages.py man PAGE REFERENCE.md     a manual page with a section EXIT STATUS: of the page's notes,
                                     or for crane-run and crane-node of tables in REFERENCE.md
  pages.py bash|zsh FILE PAGE        a completion that also offers names of groups and profiles;
                                     PAGE is the program's manual page
  pages.py group-file GROUP_FILE.md  group.toml(5)
"""
import pathlib
import re
import sys

STATUS = re.compile(r"Exit status: (.*?)(?=\n\.fi)", re.S)
ITEM = re.compile(r"(?:^|[;,] )(\d+(?: to \d+)?) ")
# crane-ctl reports only running groups and those whose data last, in its table's first column.
GROUPS = "crane-ctl list 2> /dev/null | awk 'NR > 1 { print $1 }'"
MORE = ", \\fBcrane\\-backup\\fR(1), \\fBgroup.toml\\fR(5)"
TABLES = {"crane-run": 1, "crane-node": 2}   # tables below "Exit status and messages"


# --- man(7) from Markdown -------------------------------------------------------------------------

def plain(text):
    """A text of a manual page: without links and marks, escaped for roff."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("\\|", "|")
    parts = re.split(r"`([^`]*)`|\*\*([^*]*)\*\*", text)
    out = ""
    for at, part in enumerate(parts):
        if not part:
            continue
        escaped = part.replace("\\", "\\e").replace("-", "\\-")
        out += escaped if at % 3 == 0 else f"\\fB{escaped}\\fR"
    return re.sub(r"^([.'])", r"\\&\1", out, flags=re.M)


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables(text):
    """The rows of each table, without its head."""
    found = re.findall(r"^\|.*\n\|[ :|-]+\n((?:\|.*\n)+)", text, re.M)
    return [[cells(line) for line in body.splitlines()] for body in found]


def section(text, heading):
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def item(head, text):
    return f".TP\n{head}\n{text}\n"


# --- the exit statuses of a program ---------------------------------------------------------------

def statuses_of_tables(reference, count):
    found = tables(section(reference, "Exit status and messages"))[:count]
    if len(found) != count:
        raise SystemExit("pages: REFERENCE.md lacks a table of exit statuses")
    rows = [row for table in (found if count == 1 else found[::-1]) for row in table]
    return "".join(item(plain(row[0]), "\n.br\n".join(map(plain, row[1:]))) for row in rows)


def statuses_of_notes(notes):
    parts = ITEM.split(" ".join(notes.split()).rstrip("."))
    return "".join(item(number, text) for number, text in zip(parts[1::2], parts[2::2]))


def with_statuses(page, reference):
    name = re.search(r"^\.SH NAME\n(\S+)", page, re.M)[1].replace("\\-", "-")
    notes = STATUS.search(page)
    if not notes:
        raise SystemExit(f"pages: the page of {name} has no exit status")
    count = TABLES.get(name)
    made = statuses_of_tables(reference, count) if count else statuses_of_notes(notes[1])
    page = page.replace(notes[0] + "\n", "").replace(".SH NOTES\n.nf\n.fi\n", "")
    page = page.replace(".SH SEE ALSO\n", f'.SH "EXIT STATUS"\n{made}.SH SEE ALSO\n')
    return page.rstrip("\n") + MORE + "\n"


# --- completion -----------------------------------------------------------------------------------

def levels_with_group(page):
    """The commands to which the name of an existing group may be given."""
    commands = re.findall(r"^\.SS (.*)\n((?:(?!\.S[SH]).*\n)*)", page, re.M)
    return {" " + name.replace("\\-", "-") for name, body in commands if "\\fB[GROUP]\\fR" in body}


def profiles_of(page):
    found = re.search(r"^\\fB\\-\\-profile\\fR.*\n[^:\n]*: (.*)", page, re.M)
    return found[1].replace("\\-", "-").replace(", ", " ") if found else None


def with_names(completion, page, shell):
    def words(text):
        if shell == "bash":
            return f"mapfile -t COMPREPLY < <(compgen -W {text} -- \"${{COMP_WORDS[COMP_CWORD]}}\")"
        return f"compadd -- {text}"
    for level in levels_with_group(page):
        begins = rf"(    '{re.escape(level)}'\) .*?"
        if shell == "bash":   # double quotes, because the names are found when the user asks
            completion = re.sub(rf"{begins}compgen -W )'([^']*)'",
                                lambda m: f'{m[1]}"$({GROUPS}) {m[2]}"', completion)
        else:
            completion = re.sub(rf"{begins}compadd --)", lambda m: f"{m[1]} $({GROUPS})",
                                completion)
    cases = ""
    if profiles := profiles_of(page):
        text = f"'{profiles}'" if shell == "bash" else profiles
        cases += f"    --profile) {words(text)}; return ;;\n"
        text = f"\"$({GROUPS})\"" if shell == "bash" else f"$({GROUPS})"
        cases += f"    --name) {words(text)}; return ;;\n"
    return completion.replace("    *) ;;\n  esac\n", f"{cases}    *) ;;\n  esac\n")


# --- group.toml(5) --------------------------------------------------------------------------------

def row_of(row, head):
    """An entry for a key; `head` has the names of the columns."""
    said = dict(zip(head, row))
    default = said.get("default", "")
    is_required = default.startswith("required")
    about = f" ({'' if is_required else 'default: '}{plain(default)})" if default else ""
    return item(plain(said["key"]) + about, plain(said["meaning"]))


def group_file(text):
    body = text.split("\n", 1)[1]
    out = ('.TH GROUP.TOML 5 "" "Crane" "Crane"\n.SH NAME\ngroup.toml \\- a group of Crane\n'
           ".SH DESCRIPTION\n")
    for block in re.split(r"\n{2,}", body.strip()):
        lines = block.splitlines()
        if lines[0].startswith("## "):
            out += f'.SH "{plain(lines[0][3:])}"\n'
        elif lines[0].startswith("|"):
            out += "".join(row_of(cells(line), cells(lines[0])) for line in lines[2:])
        else:
            out += ".PP\n" + plain("\n".join(lines)) + "\n"
    return out + ('.SH "SEE ALSO"\n\\fBcrane\\-node\\fR(1), \\fBcrane\\-ctl\\fR(1), '
                  "\\fBcrane\\-run\\fR(1)\n")


def main(words):
    texts = [pathlib.Path(word).read_text() for word in words[1:]]
    if words[0] == "man":
        page = with_statuses(*texts)
    elif words[0] == "group-file":
        page = group_file(*texts)
    else:
        page = with_names(*texts, words[0])
    sys.stdout.write(page)


main(sys.argv[1:])
