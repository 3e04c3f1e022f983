#!/usr/bin/env python3
"""agnes.py STORE [--binary PATH] [--row-bytes B] [--batch N] [--fanout K,K] [--memory BYTES,BYTES] [--groups G,G]

What a batch reads of features, in the mean over a group, here and by AGNES's method (KDD'26), from the same draws and
within the same memory for features. Here: what gs_residency plans with a cache of so many bytes, each batch's blocks of
4 KiB in one request where they touch or lie one apart (batch_rows.c; until a twelfth is read along); "joined": where
they lie up to 16 KiB apart. AGNES: a hyperbatch reads every block that holds a row of any of its batches once, whole,
and copies its rows to all of these; a block is a request. The gathered rows of a hyperbatch are in memory, so it has as
many batches as have room there, and a group is several. Of each: MB, requests, and ms on a disk of --disk bytes and
requests a second. STORE's edges alone are read, so rows can have any size.
"""
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from belady import belady, parser_of, planned

BLOCKS = 4096, 65536, 1 << 20
DISK_BLOCK = 4096


def requests_of(items, blocks, most, share):
    """(blocks, requests) of a batch's items, `blocks` each: gaps of up to `most` are read along, as long as they are at
    most so large a share of all blocks."""
    gaps = (np.diff(items) - 1) * blocks
    along = gaps[(gaps > 0) & (gaps <= most)]
    along = along[np.cumsum(along) <= share * len(items) * blocks]
    return len(items) * blocks + along.sum(), np.count_nonzero(gaps > 0) + 1 - len(along)


def hyperbatches(batches, row_bytes, memory):
    """Batches side by side whose rows have room, one at the least."""
    held, begin, groups = 0, 0, []
    for k, rows in enumerate(batches):
        if k > begin and held + len(rows) * row_bytes > memory:
            groups.append(batches[begin:k])
            begin, held = k, 0
        held += len(rows) * row_bytes
    return groups + [batches[begin:]]


def main():
    parser = parser_of(__doc__, "10,5")
    parser.add_argument("--groups", default="8,16,64")
    parser.add_argument("--memory", default="32000000,64000000,1000000000")
    parser.add_argument("--disk", default="2.0e9,93000")
    args = parser.parse_args()
    info = json.loads(subprocess.run([Path(args.binary).parents[2] / "tools/gnnstream", "info", args.store, "--json"],
                                     check=True, capture_output=True, text=True).stdout)
    features = info["vertices"] * args.row_bytes
    bps, iops = map(float, args.disk.split(","))
    names = ["here", "joined"] + [f"AGNES {b // 1024} KiB" for b in BLOCKS]
    print(f"features of {features / 1e6:.0f} MB, batches of {args.batch}, fanouts {args.fanout}\n")
    print("| memory MB | group | hyperbatch | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 3))
    for memory in map(int, args.memory.split(",")):
        for group in map(int, args.groups.split(",")):
            r, rows, items = planned(args, memory, group)
            read = belady(items, r["slots"], True)
            if sum(map(len, read)) != r["reads"]:
                sys.exit(f"agnes.py: the plan reads {r['reads']} items, and {sum(map(len, read))} would do")
            blocks = max(args.row_bytes // DISK_BLOCK, 1)
            parts = hyperbatches(rows, args.row_bytes, memory)
            cells = []
            for rule in ((1, 1 / 12), (4, 1e9)):
                here = np.sum([requests_of(np.array(k), blocks, *rule) for k in read if k], axis=0)
                cells.append((here[0] * DISK_BLOCK, here[1]))
            for size in BLOCKS:
                touched = sum(len(np.unique(np.concatenate(p).astype(np.int64) * args.row_bytes // size))
                              for p in parts)
                cells.append((touched * size, touched))
            print(f"| {memory / 1e6:.0f} | {len(rows)} | {len(rows) / len(parts):.1f} |" +
                  "".join(f" {b / len(rows) / 1e6:.2f}, {n / len(rows):.0f}, "
                          f"{max(b / bps, n / iops) / len(rows) * 1e3:.0f} |" for b, n in cells), flush=True)


if __name__ == "__main__":
    main()
