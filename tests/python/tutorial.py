#!/usr/bin/env python3
"""tutorial.py PAGE FOLDER [--gnnstream PROGRAM] [--slow]: runs what a page tells its readers to run, in FOLDER.

These are its ```python and ```sh blocks, and lines of indented ones that begin with "$ ", in their order. A comment
in the line above a block says when not:

    <!-- slow -->               with --slow alone
    <!-- not run: REASON -->    never
    <!-- needs A and B ... -->  where the Python modules are there; "a network": with --slow alone

Of a notebook (.ipynb) it runs the cells of code; metadata.gnnstream.mark is such a comment, for all of them.
Without PROGRAM commands are left out, without the package gnnstream what is Python's; each is said.
"""
import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys

def commands(lines):
    """Those of an indented block that begin with "$ ", with the lines that they go on in."""
    found = []
    for line in lines:
        if found and found[-1].endswith("\\\n"):
            found[-1] += line.strip() + "\n"
        elif line.startswith("    $ "):
            found.append(line[6:])
    return "".join(found)


def blocks(page):
    """(kind, lines before it, source, mark) of each."""
    lines, at, mark = page.splitlines(keepends=True), 0, ""
    while at < len(lines):
        first = at
        at += 1
        comment = re.match(r"<!-- (.*) -->$", lines[first])
        if comment or not lines[first].strip():
            mark = comment[1] if comment else mark
            continue
        if fence := re.match(r"```(\w*)$", lines[first]):
            while lines[at] != "```\n":
                at += 1
            if fence[1] in ("python", "sh"):
                yield fence[1], first + 1, "".join(lines[first + 1:at]), mark
            at += 1
        elif lines[first].startswith("    "):
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            if source := commands(lines[first:at]):
                yield "sh", first, source, mark
        mark = ""


def cells(notebook):
    """The same of a notebook's cells of code, by their numbers."""
    mark = notebook["metadata"].get("gnnstream", {}).get("mark", "")
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            yield "python", number, "".join(cell["source"]), mark


def why_not(kind, mark, options):
    """Why a block is left out; "" where it is not."""
    if mark.startswith("not run"):
        return mark
    if not options.slow and (mark.startswith("slow") or "network" in mark):
        return "slow"
    wanted = re.findall(r"\w+", mark[6:].replace(" and a network", "")) if mark.startswith("needs ") else []
    wanted = [name for name in wanted if name != "and"] + ["gnnstream"] * (kind == "python")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        return "no " + ", ".join(missing)
    return "no program" if kind == "sh" and options.gnnstream is None else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("folder")
    parser.add_argument("--gnnstream")
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    with open(options.page, encoding="utf-8") as file:
        page = file.read()
    if options.gnnstream:
        program = os.path.abspath(options.gnnstream)
        tools = os.path.join(os.path.abspath(options.folder), "build", "tools")  # where a clone has it
        os.makedirs(tools)
        os.symlink(program, os.path.join(tools, "gnnstream"))
        os.environ["PATH"] = os.path.dirname(program) + os.pathsep + os.environ["PATH"]
        os.makedirs(os.path.join(options.folder, "build", "quickstart"))
    os.chdir(options.folder)
    names, ran = {}, 0
    for kind, line, source, mark in cells(json.loads(page)) if options.page.endswith(".ipynb") else blocks(page):
        reason = why_not(kind, mark, options)
        if reason:
            print(f"{options.page}:{line}: left out ({kind}): {reason}")
            continue
        ran += 1
        if kind == "python":
            exec(compile("\n" * line + source, options.page, "exec"), names)
        elif subprocess.run(["bash", "-euo", "pipefail", "-c", source], check=False).returncode != 0:
            sys.exit(f"{options.page}:{line}: failed:\n{source}")
    print(f"{options.page}: {ran} blocks run")
    if ran == 0:
        sys.exit(77)


main()
