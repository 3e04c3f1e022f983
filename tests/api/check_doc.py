#!/usr/bin/env python3
"""check_doc.py PROGRAM.c PAGE.md: does the page quote the program, the whole of it?"""
import sys
from pathlib import Path

program, page = (Path(p).read_text(encoding="utf-8") for p in sys.argv[1:3])
if "```c\n" + program + "```\n" not in page:
    sys.exit(f"{sys.argv[2]}: does not quote {sys.argv[1]} as it is")
