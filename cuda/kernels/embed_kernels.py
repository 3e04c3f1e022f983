"""Writes a C file with the kernels' texts as byte arrays:

    embed_kernels.py OUT.c COMMON... -- FIXED... -- SEQUENCE... -- BATCH... -- WALK...

The first texts are what every module begins with, then the module of fixed kernels, then what programs with LSTMs
need, then what those with products by the type of edges do, then the header that programs include for each edge
kernel.
Their includes of each other go: the texts follow one another."""
import pathlib
import re
import sys

out, rest = pathlib.Path(sys.argv[1]), sys.argv[2:]
names = ("common", "fixed", "sequence", "typed", "walk")
groups = [[]]
for word in rest:
    if word == "--":
        groups.append([])
    else:
        groups[-1].append(word)
lines = ["/* Made from cuda/kernels by embed_kernels.py. */", '#include "cuda/code.h"', ""]
for name, paths in zip(names, groups):
    texts = [pathlib.Path(p).read_text(encoding="utf-8") for p in paths]
    text = "".join(re.sub(r'^#include ".*"\n', "", t, flags=re.M) for t in texts)
    data = text.encode() + b"\0"
    lines.append(f"const char gs_cuda_{name}_text[] = {{")
    for k in range(0, len(data), 20):
        lines.append("    " + " ".join(f"{b}," for b in data[k:k + 20]))
    lines.append("};")
out.write_text("\n".join(lines) + "\n")
