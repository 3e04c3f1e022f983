"""Writes a C file with model texts as byte arrays: embed.py OUT.c TEXT.gnn ..."""
import pathlib
import sys

out, *texts = map(pathlib.Path, sys.argv[1:])
lines = ["/* Made from src/model/zoo by embed.py. */", '#include "model/model_internal.h"', ""]
rows = []
for i, path in enumerate(texts):
    data = path.read_bytes()
    lines.append(f"static const char text_{i}[] = {{")
    for k in range(0, len(data), 20):
        lines.append("    " + " ".join(f"{b}," for b in data[k:k + 20]))
    lines.append("};")
    rows.append(f'    {{"{path.stem}", text_{i}, sizeof(text_{i})}},')
lines += ["", "const gs_zoo_text gs_model__zoo[] = {", *rows, "    {0},", "};", ""]
out.write_text("\n".join(lines))
