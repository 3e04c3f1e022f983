#!/usr/bin/env python3
"""tutorial.py PAGE FOLDER: runs the ```python blocks of a page, one after the other, in FOLDER."""
import os
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
os.chdir(sys.argv[2])
names = {}
for block in re.finditer(r"^```python\n(.*?)^```", page, re.S | re.M):
    line = page.count("\n", 0, block.start()) + 2
    source = "\n" * (line - 1) + block.group(1)
    exec(compile(source, sys.argv[1], "exec"), names)
