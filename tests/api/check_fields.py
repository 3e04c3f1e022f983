#!/usr/bin/env python3
"""check_fields.py ROOT: does no text of the library name an option of the command line?

The library knows fields (".host_memory"); tools/cli_print.c makes options of them. The strings of NVRTC's own command
line, and the table of options, which is the command line's too, are the exceptions.
"""
import re
import sys
from pathlib import Path

TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
root, found = Path(sys.argv[1]), 0
for folder in ("src", "partition", "cuda"):
    for path in sorted((root / folder).rglob("*.[ch]")):
        if path.match("cuda/code.c") or path.name == "gnnstream_options.h":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith(("/*", "*")):
                continue
            for text in TEXT.findall(line):
                if re.search(r"(?<![\w-])--[a-z]", text):
                    print(f"{path.relative_to(root)}:{number}: {text} names an option; write its field: \".hidden\"")
                    found = 1
sys.exit(found)
