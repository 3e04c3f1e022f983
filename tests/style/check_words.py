#!/usr/bin/env python3
"""Has every word of the glossary one meaning in names?

    check_words.py [ROOT]

src/README.md ends with a table: a word, what it means, and where names may have it: a room in `backticks`, or a single
name that has the word from elsewhere. A name has a word where a part of it between underscores is the word or its
plural. Names are those that begin with gs_ or GS_, of sources without comments, and those of files. Violations are
printed as FILE:LINE: MESSAGE.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from check_includes import room_of  # noqa: E402
from checks import bare, main  # noqa: E402

FOLDERS = ("src", "partition", "cuda", "tools")
NAME = re.compile(r"\b(?:gs|GS)_\w+")
ROW = re.compile(r"^\| (\*[^|]+\*) \|[^|]*\|([^|]*)\|$", re.M)


def glossary(root):
    """{word: rooms whose names may have it, and names}"""
    page = root / "src/README.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return {word: set(re.findall(r"`([^`]+)`", rooms))
            for words, rooms in ROW.findall(text) for word in re.findall(r"\*(\w+)\*", words)}


def parts_of(name):
    for part in re.split(r"[_.]+", name.lower()):
        yield from (part, part[:-1] if part.endswith("s") else part, part[:-2] if part.endswith("es") else part)


def check(root):
    words, faults = glossary(root), []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            room = room_of(path, root) or "src"
            seen = {}
            for line, text in enumerate(bare(path.read_text(encoding="utf-8")).splitlines(), 1):
                for name in NAME.findall(text):
                    seen.setdefault(name, line)
            for name, line in [(path.stem, 1), *seen.items()]:
                for word in sorted(set(parts_of(name)) & set(words)):
                    if room not in words[word] and name not in words[word]:
                        faults.append((path, line, f'{name}: "{word}" means something else (src/README.md)'))
    return faults


if __name__ == "__main__":
    main(check)
