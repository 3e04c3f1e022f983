"""What the checks of style share: the command, lists of what is allowed with a reason, and text without comments."""
import re
import sys
from pathlib import Path

TOKENS = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
                        | ^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n\\]|\\)*""", re.X | re.S | re.M)


def bare(text):
    """The text without comments, strings and preprocessor lines, line breaks kept."""
    return TOKENS.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def read_allowed(path, key_of, form):
    """{key: line} of a list and faults of the list itself; key_of(line) is None where it is not of the `form`."""
    allowed, faults = {}, []
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        key = key_of(line)
        if key is None:
            faults.append((path, number, f"write {form}"))
        else:
            allowed[key] = number
    return allowed, faults


def main(check):
    """CHECK.py [ROOT]: faults as FILE:LINE: MESSAGE."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    faults = check(root)
    for path, number, message in faults:
        print(f"{path.relative_to(root)}:{number}: {message}")
    sys.exit(1 if faults else 0)
