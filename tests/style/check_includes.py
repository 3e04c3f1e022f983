#!/usr/bin/env python3
"""Does every #include follow an arrow of the room table in src/README.md?

    check_includes.py [ROOT]

Reads the table (rank, room, may include) and every C or CUDA file in src/,
partition/, cuda/ and tools/. A room may include itself and what its row names:
rooms ("base tensor"), single headers (`store/chunk_table.h`), or "everything
above but X", every room of a lower rank except those named.
X_internal.h is for its own room. Violations are printed as FILE:LINE: MESSAGE.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from checks import main  # noqa: E402

CODE = {".c", ".h", ".cu", ".cuh"}
FOLDERS = ("src", "partition", "cuda", "tools")
ROOM_FOLDERS = ("src/", "partition")  # where an include names the room: "ROOM/x.h"
PUBLIC = "gnnstream.h"
PARTS = re.compile(r"gnnstream_\w+\.h")  # of it, which it includes and which may include each other
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


class Room:
    def __init__(self, folder, rank, rooms, headers):
        self.folder = folder    # "src/base", "cuda"
        self.rank = rank
        self.rooms = rooms      # names of rooms it may include
        self.headers = headers  # single headers it may include


def read_table(readme):
    """Rooms by name, and the table's own faults."""
    rooms, faults = {}, []
    for number, line in enumerate(readme.read_text(encoding="utf-8").splitlines(), 1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) < 3 or not cells[0].isdigit():
            continue
        folder = cells[1].split(",")[-1].strip(" `").rstrip("/")  # after the public header, which has no folder
        name, rank = folder.split("/")[-1], int(cells[0])
        headers = set(re.findall(r"`([^`]+\.h)`", cells[2]))
        words = re.sub(r"`[^`]*`", " ", cells[2]).replace(",", " ").split()
        if words[:2] == ["everything", "above"] or words[:2] == ["the", "above"]:
            barred = words[3:] if words[2:3] == ["but"] else []
            words = [n for n, r in rooms.items() if r.rank < rank and n not in barred]
        for word in [w for w in words if w not in ("–", "-")]:
            if word not in rooms:
                faults.append((readme, number, f"{folder} may include {word}, which is no room above it"))
            elif rooms[word].rank >= rank:
                faults.append((readme, number, f"{folder} may include {word}, which is not of a lower rank"))
        rooms[name] = Room(folder, rank, set(words), headers)
    if not rooms:
        faults.append((readme, 1, "no room table found"))
    return rooms, faults


def without_comments(text):
    """The text with comments blanked, line breaks kept: an include in a comment is none."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0)) if m.group(0)[0] == "/" else m.group(0)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def included(path):
    """(line, name, quoted) of every include."""
    text = without_comments(path.read_text(encoding="utf-8", errors="replace"))
    for number, line in enumerate(text.splitlines(), 1):
        m = INCLUDE.match(line)
        if m:
            yield number, m.group(1) or m.group(2), m.group(1) is not None


def room_of(path, root):
    """The room a file is in: "base"; None for src/gnnstream.h and its parts."""
    parts = path.relative_to(root).parts
    if parts[0] != "src":
        return parts[0]
    return parts[1] if len(parts) > 2 else None


def fault_of(name, quoted, path, own, rooms):
    """What is wrong with `#include name` in a file of room `own`; None if nothing is."""
    if name == PUBLIC or (PARTS.fullmatch(name) and rooms[own].folder.startswith(ROOM_FOLDERS)):
        return None  # the public types are rank 0: every room's
    head = name.split("/")[0]
    if "/" not in name or head not in rooms:
        if not quoted:
            return None  # the system's or a library's
        if rooms[own].folder.startswith(ROOM_FOLDERS):
            return f'"{name}" is not named by its room: write "ROOM/{name}"' if "/" not in name \
                else f'"{name}" is in no room of the table'
        return None if (path.parent / name).is_file() else f'"{name}" is not a header of {own}'
    if head == own:
        return None
    if name.endswith("_internal.h"):
        return f"{name} is for {head} and its tests only"
    if head in rooms[own].rooms or name in rooms[own].headers:
        return None
    return f"{own} may not include {name} (see src/README.md)"


def check(root):
    rooms, faults = read_table(root / "src" / "README.md")
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in CODE or not path.is_file():
                continue
            own = room_of(path, root)
            if own is not None and own not in rooms:
                faults.append((path, 1, f"{own} is not in the table of src/README.md"))
                continue
            for number, name, quoted in included(path):
                if own is None:  # the public header is installed with its parts alone
                    message = f'"{name}": {PUBLIC} must stand alone' if quoted and not PARTS.fullmatch(name) else None
                else:
                    message = fault_of(name, quoted, path, own, rooms)
                if message:
                    faults.append((path, number, message))
    return faults


if __name__ == "__main__":
    main(check)
