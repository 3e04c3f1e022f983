#!/usr/bin/env python3
"""Is the front door one page, and do the pages lead on?

    check_pages.py [ROOT]

  * README.md has at most 1,200 words;
  * docs/design.md has no paragraph of more than eight lines;
  * every link of a page to a file of the project leads to one;
  * docs/design/faults.md names tests that there are: `test_x` is a word of one, `room/x` a file of tests/, bench/ or
    a part of their names there.

Violations are printed as FILE:LINE: MESSAGE.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from checks import main  # noqa: E402

MOST_WORDS = 1200
MOST_PARAGRAPH_LINES = 8
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def paragraphs(text):
    """(first line, lines) of each run of prose: no headings, tables, code or list marks."""
    first, count, fenced = 0, 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.startswith("```"):
            fenced = not fenced
        prose = line.strip() and not fenced and not line.startswith(("|", "    ", "#", "```", "<!--", "- "))
        if prose:
            first, count = first or number, count + 1
        elif first:
            yield first, count
            first, count = 0, 0


def links(text):
    """(line, file) of each link that names no place on the network."""
    for number, line in enumerate(text.split("\n"), 1):
        for match in LINK.finditer(line):
            yield number, match.group(1)


def kept_by(text):
    """(line, name) of each test in the last column of a table."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("| ") and line.endswith("|"):
            for match in re.finditer(r"`([\w/.]+)`", line.split("|")[-2]):
                yield number, match.group(1)


def missing_tests(root, page):
    """(line, name) of each test that is not there."""
    files = [path for path in root.glob("tests/**/*") if path.suffix in (".c", ".py", ".sh")]
    words = set()
    for path in files:
        words.update(re.findall(r"\btest_\w+", path.read_text(encoding="utf-8", errors="replace")))
    for number, name in kept_by(page.read_text(encoding="utf-8")):
        room, _, rest = name.rpartition("/")
        there = name in words if not room else any((root / room).glob(rest)) or any(
            path.stem in (rest, f"test_{rest}") and str(path.parent).endswith(room) for path in files)
        if not there:
            yield number, name


def check(root):
    faults = []
    readme, design = root / "README.md", root / "docs" / "design.md"
    if readme.is_file() and (words := len(readme.read_text(encoding="utf-8").split())) > MOST_WORDS:
        faults.append((readme, 1, f"{words} words; the front page has at most {MOST_WORDS}"))
    if design.is_file():
        for first, count in paragraphs(design.read_text(encoding="utf-8")):
            if count > MOST_PARAGRAPH_LINES:
                faults.append((design, first, f"a paragraph of {count} lines; at most {MOST_PARAGRAPH_LINES}"))
    page = root / "docs" / "design" / "faults.md"
    if page.is_file():
        faults += [(page, number, f"names {name}, which is no test") for number, name in missing_tests(root, page)]
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/*.md")]):
        for number, target in links(page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                faults.append((page, number, f"leads to {target}, which is not there"))
    return faults


if __name__ == "__main__":
    main(check)
