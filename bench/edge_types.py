"""edge_types.py FOLDER TYPES: gives the edges of a generated graph types, the k-th as often as 1 / k."""
import array
import ast
import bisect
import itertools
import random
import struct
import sys

folder, types = sys.argv[1], int(sys.argv[2])
with open(f"{folder}/edges.npy", "rb") as f:
    assert f.read(6) == b"\x93NUMPY"
    size = struct.unpack("<H" if f.read(2)[0] == 1 else "<I", f.read(2))[0]
    edges = ast.literal_eval(f.read(size).decode())["shape"][0]

total = list(itertools.accumulate(1 / k for k in range(1, types + 1)))
draw = random.Random(1)
drawn = array.array("H", (min(bisect.bisect(total, draw.random() * total[-1]), types - 1) for _ in range(edges)))
if sys.byteorder == "big":
    drawn.byteswap()
head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({edges},), }}"
head += " " * (-(10 + len(head) + 1) % 64) + "\n"
with open(f"{folder}/edge_types.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    drawn.tofile(f)
