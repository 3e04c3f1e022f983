#!/usr/bin/env python3
"""Does a room read from bottom to top: do no two files call each other?

    check_circles.py [ROOT]

A file calls another where it names a function that the other defines and that is
not static; the functions of a table count as called where the table is. Files that
call each other, directly or by way of others, are a circle:

  * a circle through files of different rooms is a fault;
  * a circle within a room is one, unless tests/style/call_circles.txt lists exactly
    its files, with a reason. A line that is not needed any more is a fault, too.

Reads the .c files of src/, partition/ and cuda/. Violations are printed as
FILE:LINE: MESSAGE; the message shows a shortest way around, with a call for each step.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from check_includes import room_of  # noqa: E402
from checks import bare, main, read_allowed  # noqa: E402

FOLDERS = ("src", "partition", "cuda")
ALLOW_LIST = "tests/style/call_circles.txt"

DEFINITION = re.compile(r"^(static )?(?! )[\w *]*?\b(gs_\w+)\s*\([^;{}]*\)\s*\{", re.M)


def read_calls(root):
    """{file: {file that it calls: [a function, its line]}}, files by their paths from `root`."""
    code = {p.relative_to(root).as_posix(): bare(p.read_text(encoding="utf-8", errors="replace"))
            for folder in FOLDERS for p in sorted((root / folder).rglob("*.c"))}
    home, calls = {}, {name: {} for name in code}
    own = {name: {m.group(2) for m in DEFINITION.finditer(text)} for name, text in code.items()}
    for name, text in code.items():
        home.update({m.group(2): name for m in DEFINITION.finditer(text) if not m.group(1)})
    for name, text in code.items():
        for m in re.finditer(r"\bgs_\w+", text):
            to = home.get(m.group(0), name)
            if to != name and m.group(0) not in own[name] and to not in calls[name]:
                calls[name][to] = m.group(0), text.count("\n", 0, m.start()) + 1
    return calls


def reached(calls, start):
    """{file reached from `start`: the file before it on a shortest way}."""
    before, row = {}, [start]
    while row:
        following = []
        for name in row:
            for to in calls[name]:
                if to not in before:
                    before[to] = name
                    following.append(to)
        row = following
    return before


def circles(calls):
    """Sets of files that reach each other, as (files in order, a shortest way around from the first)."""
    ways = {name: reached(calls, name) for name in calls}
    seen = set()
    for name in calls:
        files = [to for to in calls if to in ways[name] and name in ways[to]]
        if name in seen or not files:
            continue
        seen.update(files)
        way, at = [name], ways[name][name]
        while at != name:
            way.insert(0, at)
            at = ways[name][at]
        yield files, [name, *way]


def files_of(line):
    """The files of a line of the list, in order."""
    files, _, reason = line.partition(":")
    return tuple(sorted(files.split())) if len(files.split()) > 1 and reason.strip() else None


def check(root):
    calls = read_calls(root)
    allowed, faults = read_allowed(root / ALLOW_LIST, files_of, "FILE FILE ...: REASON")
    for files, way in circles(calls):
        rooms = sorted({str(room_of(root / name, root)) for name in files})
        if allowed.pop(tuple(sorted(files)), None) is not None and len(rooms) == 1:
            continue
        steps = [f"{a}:{calls[a][b][1]} calls {calls[a][b][0]}() of {b}" for a, b in zip(way, way[1:])]
        where = f"of rooms {' and '.join(rooms)}" if len(rooms) > 1 else f"and no line in {ALLOW_LIST} has exactly them"
        faults.append((root / files[0], calls[way[0]][way[1]][1],
                       f"{len(files)} files call each other, {where}: {', '.join(files)}; {'; '.join(steps)}"))
    for files, number in allowed.items():
        faults.append((root / ALLOW_LIST, number, f"{', '.join(files)} are no circle (any more); take the line out"))
    return faults


if __name__ == "__main__":
    main(check)
