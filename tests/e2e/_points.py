# SPDX-License-Identifier: Apache-2.0
"""Tick points of a program, for crane-solo --slices: many more than a leader would choose.

A tick point is a direct call in the program's own text, or a stretch of instructions in a loop. The
stretch must have room for the jump to a stub, and no jump may lead into it; in a function with a
jump table it is a single instruction. The runtime refuses instructions that it cannot move.
"""
import re
import subprocess

POINTS_MAX = 64     # dmt::kTickPointsMax
ENTRY_BYTES, BYTES_MAX = 5, 19   # the last one: ticks::kReplacedMax
# One line of objdump -d -w: address, bytes, instruction.
LINE = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
TARGET = re.compile(r"^\S+ +(?:\S+ )*?([0-9a-f]+) <")


def build_id(program):
    """The build id in the form of a point file, or None."""
    notes = subprocess.run(["readelf", "-nW", str(program)], capture_output=True, text=True,
                           check=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]{16})", notes)
    return int.from_bytes(bytes.fromhex(found[1]), "little") if found else None


def functions_of(program):
    """Returns [(address, bytes, text)] for each function of .text"""
    lines = subprocess.run(["objdump", "-dw", "--section=.text", str(program)],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    functions = [[]]
    for line in lines:
        found = LINE.match(line)
        if found:
            functions[-1].append((int(found[1], 16), len(found[2].split()), found[3]))
        elif FUNCTION.match(line):
            functions.append([])
    return functions


def is_jump(text):
    return text.startswith(("j", "loop", "bnd j", "notrack j"))


def target_of(text):
    found = TARGET.match(text)
    return int(found[1], 16) if found else None


def loops_of(code):
    """Returns [(first address, address after the end)] from the target of a backward jump to the
    jump"""
    loops = []
    for address, size, text in code:
        target = target_of(text) if is_jump(text) else None
        if target is not None and target <= address and address - target < 4096:
            loops.append((target, address + size))
    return loops


def stretches(code, targets):
    """Returns [(address, bytes, whether the loop is innermost)] of stretches in loops of a
    function: as many instructions as the entry of a stub needs; only the first may be one of
    `targets`"""
    loops = sorted(loops_of(code))
    innermost = [(low, high) for low, high in loops
                 if not any(low <= a and b <= high and (a, b) != (low, high) for a, b in loops)]
    has_table = any(is_jump(text) and "*" in text for _, _, text in code)
    found, at = [], 0
    while at < len(code):
        size, end = 0, at
        while end < len(code) and size < ENTRY_BYTES:
            address, length, text = code[end]
            wrong = is_jump(text) or text.startswith(("call", "ret", "rdtsc", "syscall", "ud2"))
            if wrong or (end > at and (has_table or address in targets)):
                break
            size, end = size + length, end + 1
        first = code[at][0]
        within = [any(low <= first and first + size <= high for low, high in some)
                  for some in (loops, innermost)]
        if ENTRY_BYTES <= size <= BYTES_MAX and within[0]:
            found.append((first, size, within[1]))
            at = end
        else:
            at += 1
    return found


def spread(all_of_them, most):
    count = min(most, len(all_of_them))
    return [all_of_them[i * len(all_of_them) // count] for i in range(count)]


def write_points(program, path, call_ps, loop_ps, inner_ps):
    """Writes points of calls, loops and innermost loops with these weights (0: no such points).
    Returns their number."""
    build = build_id(program)
    functions = functions_of(program) if build else []
    targets = {target_of(text) for code in functions for _, _, text in code
               if is_jump(text) or text.startswith("call")}
    calls, loops = [], []
    for code in functions:
        calls += [(address, size, 1, call_ps) for address, size, text in code
                  if call_ps and size == ENTRY_BYTES and text.startswith("call ")]
        weighed = [(*place, inner_ps if is_inner else loop_ps)
                   for *place, is_inner in stretches(code, targets)]
        loops += [(address, size, 0, weight) for address, size, weight in weighed if weight]
    of_loops = spread(loops, max(POINTS_MAX // 2, POINTS_MAX - len(calls)))
    points = sorted(spread(calls, POINTS_MAX - len(of_loops)) + of_loops)
    path.write_text("".join(f"{build:016x} {address:x} {size} {dead} {weight}\n"
                            for address, size, dead, weight in points))
    return len(points)
