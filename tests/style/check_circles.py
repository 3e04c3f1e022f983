#!/usr/bin/env python3
"""Does a room read from bottom to top: do no functions of different files call each other?

    check_circles.py [ROOT]

A function calls another where its body names it; a table names what stands between its braces, and who names the table
may call that. Functions that call each other, directly or by way of others, are a circle. One within a file is a
recursion, which its reader sees whole. One through several files is

  * a fault where the files are of different rooms;
  * a fault within a room, too, unless tests/style/call_circles.txt lists exactly its files, with a reason. A line that
    is not needed any more is a fault.

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

# A function's or a table's head, from the first column up to the brace that opens it.
HEAD = re.compile(r"^(?![ \t#}])(static )?[^;{}()=]*?\b(\w+)\s*(?:\([^;{}]*\)\s*|(?:\[[^\]]*\])*\s*=\s*)\{", re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*")


def definitions(code):
    """(name, static, first character, end) of each function and table of a file without comments."""
    at = 0
    while match := HEAD.search(code, at):
        depth, at = 1, match.end()
        while depth > 0 and at < len(code):
            depth += (code[at] == "{") - (code[at] == "}")
            at += 1
        yield match.group(2), match.group(1) is not None, match.end(), at


def read_calls(root):
    """{(file, name): {(file, name) that it names: its line}}, files by their paths from `root`."""
    code = {p.relative_to(root).as_posix(): bare(p.read_text(encoding="utf-8", errors="replace"))
            for folder in FOLDERS for p in sorted((root / folder).rglob("*.c"))}
    own = {name: list(definitions(text)) for name, text in code.items()}
    everyones = {d[0]: name for name, found in own.items() for d in found if not d[1] and d[0].startswith("gs_")}
    calls = {}
    for name, text in code.items():
        mine = {d[0] for d in own[name]}
        for caller, _, begin, end in own[name]:
            to = calls.setdefault((name, caller), {})
            for word in WORD.finditer(text, begin, end):
                home = name if word.group(0) in mine else everyones.get(word.group(0))
                if home is not None and (home, word.group(0)) not in to:
                    to[home, word.group(0)] = text.count("\n", 0, word.start()) + 1
    return calls


def reached(calls, start):
    """{what is reached from `start`: what is before it on a shortest way}."""
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


def knots(calls):
    """Sets of functions of which each reaches all others: Tarjan's strongly connected components, without recursion."""
    index, low, stack, on_stack = {}, {}, [], set()
    for root in calls:
        work = [] if root in index else [(root, iter(calls[root]))]
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            below = next((to for to in rest if to not in index or to in on_stack), None)
            if below is not None and below not in index:
                work.append((below, iter(calls[below])))
                continue
            if below is not None:
                low[node] = min(low[node], index[below])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                knot = set(stack[stack.index(node):])
                del stack[len(stack) - len(knot):]
                on_stack -= knot
                yield knot


def circles(calls):
    """Circles through several files, as (files in order, a shortest way around from the first function)."""
    for knot in knots(calls):
        files = sorted({name for name, _ in knot})
        if len(files) < 2:
            continue
        inside = {f: {to: line for to, line in calls[f].items() if to in knot} for f in knot}
        first = next(f for f in calls if f in knot and any(to[0] != f[0] for to in inside[f]))
        before = reached(inside, first)
        way, at = [first], before[first]
        while at != first:
            way.insert(0, at)
            at = before[at]
        yield files, [first, *way]


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
        steps = [f"{a[0]}:{calls[a][b]} calls {b[1]}() of {b[0]}" for a, b in zip(way, way[1:])]
        where = f"of rooms {' and '.join(rooms)}" if len(rooms) > 1 else f"and no line in {ALLOW_LIST} has exactly them"
        faults.append((root / way[0][0], calls[way[0]][way[1]],
                       f"functions of {len(files)} files call each other, {where}: {', '.join(files)}; "
                       + "; ".join(steps)))
    for files, number in allowed.items():
        faults.append((root / ALLOW_LIST, number, f"{', '.join(files)} are no circle (any more); take the line out"))
    return faults


if __name__ == "__main__":
    main(check)
