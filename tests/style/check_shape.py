#!/usr/bin/env python3
"""Are files and functions short, named once, and opened as the style says?

    check_shape.py [ROOT]

  * no C file in src/, partition/, cuda/, tools/, bench/ and tests/ is over 900 lines, and
    no two have the same name;
  * no function outside tests/ is over 60 lines from brace to brace, unless
    tests/style/long_functions.txt lists it with a reason;
  * a header opens with a comment and is guarded by GS_ROOM_FILE_H; any other
    file opens with a comment or its first #include;
  * no line of a program, script or build file is over 120 columns. Texts of
    models and data are not looked at;
  * a script whose first line names what runs it (#!) may be run.

Violations are printed as FILE:LINE: MESSAGE.
"""
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from checks import bare, main, read_allowed  # noqa: E402

CODE = {".c", ".h", ".cu", ".cuh"}
FOLDERS = ("src", "partition", "cuda", "tools", "bench", "tests")
MOST_FILE_LINES = 900
MOST_FUNCTION_LINES = 60
MOST_COLUMNS = 120
SCRIPTS = {".py", ".sh", ".build"}
ALLOW_LIST = "tests/style/long_functions.txt"


def name_before(code, brace):
    """Name of the function whose body opens at `brace`; None if none does."""
    i = brace - 1
    while i >= 0 and code[i].isspace():
        i -= 1
    if i < 0 or code[i] != ")":
        return None
    depth = 0
    while i >= 0:
        depth += (code[i] == ")") - (code[i] == "(")
        if depth == 0:
            break
        i -= 1
    before = code[:max(i, 0)].rstrip()
    name = before[before.rfind("\n") + 1:]  # a search of all that is before would look at all of it
    m = re.search(r"(\w+)$", name)
    return m.group(1) if m else None


def functions(text):
    """(name, first line, lines) of every function; a negative line count means braces do not match."""
    code, depth, start = bare(text), 0, None
    for brace in re.finditer("[{}]", code):
        i, ch = brace.start(), brace.group()
        if ch == "{":
            if depth == 0:
                name = name_before(code, i)
                start = (name, i) if name else None
            depth += 1
        else:
            depth -= 1
            if depth == 0 and start:
                first = code.count("\n", 0, start[1]) + 1
                yield start[0], first, code.count("\n", start[1], i) + 1
    if depth != 0:
        yield "", text.count("\n") or 1, -1


def function_of(line):
    """(file, function) of a line of the list."""
    words = line.split(None, 2)
    return (words[0], words[1]) if len(words) == 3 else None


def opening_fault(path, relative, text):
    """What is wrong with how the file opens."""
    if re.fullmatch(r"src/gnnstream(_\w+)?\.h", relative) and not text.strip():
        return None  # not written yet
    first = text.lstrip()
    if path.suffix not in (".h", ".cuh"):
        return None if first.startswith(("/*", "//", "#include")) else "opens with neither a comment nor an #include"
    if not first.startswith(("/*", "//")):
        return "a header opens with the question it answers, in a comment"
    folders = [p for p in Path(relative).parts[:-1] if p != "src"]
    wanted = "_".join(["GS", *folders, path.name]).upper()
    wanted = re.sub(r"[^A-Z0-9]", "_", wanted)
    m = re.search(r"^#ifndef (\w+)\n#define (\w+)", bare_comments(text), re.M)
    if not m or m.group(1) != wanted or m.group(2) != wanted:
        return f"its include guard is not {wanted}"
    return None


def bare_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def is_script(path):
    """By its name, or, without a suffix, by its first line."""
    return path.suffix in SCRIPTS if path.suffix else names_its_program(path)


def names_its_program(path):
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def check_columns(path):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        if len(line) > MOST_COLUMNS:
            yield path, number, f"{len(line)} columns; a line has at most {MOST_COLUMNS}"


def check_file(path, relative, allowed):
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.count("\n")
    if lines > MOST_FILE_LINES:
        yield path, lines, f"{lines} lines; a file has at most {MOST_FILE_LINES}"
    if relative.startswith(("src/", "partition/", "cuda/")):
        message = opening_fault(path, relative, text)
        if message:
            yield path, 1, message
    if relative.startswith("tests/"):
        return
    for name, first, count in functions(text):
        if count < 0:
            yield path, first, "braces do not match, so its functions cannot be measured"
        elif count > MOST_FUNCTION_LINES and allowed.pop((relative, name), None) is None:
            yield (path, first, f"{name}() has {count} lines; a function has at most {MOST_FUNCTION_LINES}, "
                                f"or a line with a reason in {ALLOW_LIST}")


def check(root):
    allowed, faults = read_allowed(root / ALLOW_LIST, function_of, "FILE FUNCTION REASON")
    seen = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file():
                continue
            if path.suffix in CODE or is_script(path):
                faults.extend(check_columns(path))
            if is_script(path) and names_its_program(path) and not os.access(path, os.X_OK):
                faults.append((path, 1, "begins with #! and cannot be run: chmod +x"))
            if path.suffix not in CODE:
                continue
            relative = path.relative_to(root).as_posix()
            if path.name in seen:
                faults.append((path, 1, f"there is a {path.name} already: {seen[path.name]}"))
            seen.setdefault(path.name, relative)
            faults.extend(check_file(path, relative, allowed))
    for (relative, name), number in allowed.items():
        faults.append((root / ALLOW_LIST, number, f"{name}() of {relative} is not long (any more); take its line out"))
    return faults


if __name__ == "__main__":
    main(check)
