#!/usr/bin/env python3
"""formats.py make FOLDER SCALE | rates LOG FILE-OR-FOLDER - for formats.sh.

make writes OGB's and IGB's layouts of one random graph, and its edges as SNAP, CSV with weights and MatrixMarket have
them, and a ring of as many edges in METIS' format, packed, by Python alone. Packed files are of several members; each
is packed once and written as often as it takes, as packing gigabytes would take longer than all else.
rates prints compressed bytes over the seconds of reading that partition's output states, and what zlib alone takes.
"""
import array
import gzip
import os
import random
import re
import sys
import time
import zlib

VERTICES, EDGES, FEATURES = 2_000_000, 8_000_000, 64
BLOCK = 20_000  # rows of features that are drawn; each is there VERTICES / BLOCK times


def packed(text):
    return gzip.compress(text.encode("ascii"), 6, mtime=0)


def write(path, *parts):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)


def npy(shape, descr):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode("ascii") + b"\n"


def make(folder, scale):
    draw = random.Random(1)
    n, edges = VERTICES // scale, EDGES // scale
    rows = array.array("f", (round(draw.gauss(0, 1), 6) for _ in range(BLOCK * FEATURES)))
    ogb, igb = os.path.join(folder, "ogb"), os.path.join(folder, "igb", "processed")
    numbers = [f"{v:.6f}" for v in rows]
    lines = "".join(",".join(numbers[i:i + FEATURES]) + "\n" for i in range(0, len(numbers), FEATURES))
    write(f"{ogb}/raw/node-feat.csv.gz", *[packed(lines)] * (n // BLOCK))
    write(f"{igb}/paper/node_feat.npy", *[rows.tobytes()] * (n // BLOCK))
    labels = [v % 19 for v in range(n)]
    write(f"{ogb}/raw/node-label.csv.gz", packed("".join(f"{v}\n" for v in labels)))
    write(f"{igb}/paper/node_label_19.npy", array.array("f", labels).tobytes())
    write(f"{ogb}/raw/num-node-list.csv.gz", packed(f"{n}\n"))
    write(f"{ogb}/raw/num-edge-list.csv.gz", packed(f"{edges}\n"))
    ends = array.array("q", (int(draw.random() * n) for _ in range(2 * edges)))
    write(f"{igb}/paper__cites__paper/edge_index.npy", npy((edges, 2), "<i8"), ends.tobytes())
    step = 2_000_000
    write(f"{ogb}/raw/edge.csv.gz",
          *(packed("".join(f"{ends[i]},{ends[i + 1]}\n" for i in range(at, min(at + step, 2 * edges), 2)))
            for at in range(0, 2 * edges, step)))
    for name, first, last in (("train", 0, 6), ("valid", 6, 8), ("test", 8, 10)):
        write(f"{ogb}/split/random/{name}.csv.gz",
              packed("".join(f"{v}\n" for v in range(n * first // 10, n * last // 10))))


def members(path, head, line, count, step=1_000_000):
    """A packed text of `head` and `count` lines."""
    write(path, packed(head), *(packed("".join(map(line, range(at, min(at + step, count))))) for at in
                                range(0, count, step)))


def make_texts(folder, scale):
    """Weights have six digits, as float32 is printed."""
    n, edges = VERTICES // scale, EDGES // scale
    draw = random.Random(2)
    ends = array.array("I", (int(draw.random() * n) for _ in range(2 * edges)))
    weights = [f"{draw.random():.6f}" for _ in range(BLOCK)]
    offsets = [1, 17, 4099, 20011][:EDGES // VERTICES]
    members(f"{folder}/edges.snap.gz", "# a comment\n", lambda e: f"{ends[2 * e]}\t{ends[2 * e + 1]}\n", edges)
    members(f"{folder}/edges.csv.gz", "src,dst,weight\n",
            lambda e: f"{ends[2 * e]},{ends[2 * e + 1]},{weights[e % BLOCK]}\n", edges)
    members(f"{folder}/edges.mtx.gz", f"%%MatrixMarket matrix coordinate pattern general\n{n} {n} {edges}\n",
            lambda e: f"{ends[2 * e] + 1} {ends[2 * e + 1] + 1}\n", edges)
    members(f"{folder}/edges.graph.gz", f"{n} {n * len(offsets)}\n",
            lambda v: " ".join(f"{(v + o) % n + 1} {(v - o) % n + 1}" for o in offsets) + "\n", n)


def unpack_alone(path):
    """Bytes and seconds; of members one after the other."""
    start, text = time.process_time(), 0
    with open(path, "rb") as file:
        machine = zlib.decompressobj(31)
        piece = file.read(1 << 18)
        while piece:
            text += len(machine.decompress(piece))
            piece = machine.unused_data or file.read(1 << 18)
            if machine.eof:
                machine = zlib.decompressobj(31)
    return text, time.process_time() - start


def rates(log, path):
    files = [path] if os.path.isfile(path) else [os.path.join(folder, name) for folder, _, names in os.walk(path)
                                                 for name in names if name.endswith(".gz")]
    size = sum(os.path.getsize(f) for f in files)
    with open(log, encoding="utf-8") as file:
        reading = float(re.search(r"reading ([0-9.]+)", file.read()).group(1))
    alone = [unpack_alone(f) for f in files]
    text, seconds = sum(t for t, _ in alone), sum(s for _, s in alone)
    print(f"{os.path.basename(path):14} {size / 1e6:5.0f} MB packed, {text / 1e6:5.0f} MB of text; reading "
          f"{reading:6.2f} s: {size / 1e6 / reading:4.0f} MB/s packed, {text / 1e6 / reading:4.0f} MB/s of text; zlib "
          f"alone on one processor {size / 1e6 / seconds:4.0f} MB/s packed: {seconds / reading:.2f} times as fast")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
        make_texts(sys.argv[2], int(sys.argv[3]))
    else:
        rates(sys.argv[2], sys.argv[3])
