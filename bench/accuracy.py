#!/usr/bin/env python3
"""accuracy.py INPUT LOGITS.npy - percent of INPUT/test_idx.npy whose largest logit is INPUT/labels.npy.

Reads .npy with the standard library alone: the logits count, not what the
program that made them says about itself.
"""
import array
import ast
import os
import sys

TYPES = {"<i8": "q", "<i4": "i", "<f4": "f", "<f8": "d"}


def load(path):
    """(shape, flat array) of a version-1 .npy file."""
    with open(path, "rb") as file:
        head = file.read(10)
        if head[:7] != b"\x93NUMPY\x01":
            sys.exit(f"{path}: not an .npy file of version 1")
        header = ast.literal_eval(file.read(int.from_bytes(head[8:10], "little")).decode("latin1"))
        values = array.array(TYPES[header["descr"]])
        values.frombytes(file.read())
    return header["shape"], values


def main():
    folder, path = sys.argv[1:3]
    (rows, classes), logits = load(path)
    (count,), labels = load(os.path.join(folder, "labels.npy"))
    (tested,), test = load(os.path.join(folder, "test_idx.npy"))
    if rows != count:
        sys.exit(f"{path}: {rows} rows for {count} labels")
    hits = 0
    for v in test:
        row = logits[v * classes : (v + 1) * classes]
        hits += row.index(max(row)) == labels[v]
    print(f"{100 * hits / tested:.2f}")


if __name__ == "__main__":
    main()
