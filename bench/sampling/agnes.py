#!/usr/bin/env python3
"""agnes.py STORE [--binary PATH] [--row-bytes B] [--batch N] [--fanout K,K] [--memory BYTES,BYTES] [--groups G,G]

What a batch reads of features, in the mean over a group, here and by AGNES's method (KDD'26), from the same draws and
within the same memory for features. Here: what gs_residency plans with a cache of so many bytes, each batch's blocks of
4 KiB in one request where they touch or lie one apart (batch_rows.c; until a twelfth is read along); "joined": where
they lie up to 16 KiB apart. "Together", which is not built: what several batches side by side read is read at once, in
order and joined likewise, each block once, and the rows of all of these are held, as AGNES holds them; the rest of the
memory keeps blocks that are used soonest by those behind them. Of numbers of batches the one that takes the least time.
AGNES: a hyperbatch reads every block that holds a row of any of its batches once, whole, and copies its rows to all of
these; a block is a request. The gathered rows of a hyperbatch are in memory, so it has as many batches as have room
there, and a group is several. Of each: MB, requests, and ms on a disk of --disk bytes and requests a second. STORE's
edges alone are read, so rows can have any size.
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


def together(items, rows, slots, item_blocks, seconds, row_bytes):
    """(bytes, requests, batches side by side) of the best number of batches whose reads are one."""
    best = None
    for side in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32):
        parts = range(0, len(items), side)
        unions = [np.unique(np.concatenate(items[k:k + side])) for k in parts]
        held = max(sum(map(len, rows[k:k + side])) for k in parts) * row_bytes // (item_blocks * DISK_BLOCK)
        left = slots - held if side > 1 else slots
        if left < 0 or side > len(items):
            break
        read = belady(unions, left, True)
        n = np.sum([requests_of(np.array(k), item_blocks, 4, 1e9) for k in read if k], axis=0)
        if best is None or seconds(n[0] * DISK_BLOCK, n[1]) < seconds(*best[:2]):
            best = n[0] * DISK_BLOCK, n[1], side
    return best


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
    names = ["here", "joined", "together"] + [f"AGNES {b // 1024} KiB" for b in BLOCKS]
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
            *of, side = together(items, rows, r["slots"], blocks, lambda b, n: max(b / bps, n / iops), args.row_bytes)
            cells.append(of)
            for size in BLOCKS:
                touched = sum(len(np.unique(np.concatenate(p).astype(np.int64) * args.row_bytes // size))
                              for p in parts)
                cells.append((touched * size, touched))
            print(f"| {memory / 1e6:.0f} | {len(rows)} | {len(rows) / len(parts):.1f}, together {side} |" +
                  "".join(f" {b / len(rows) / 1e6:.2f}, {n / len(rows):.0f}, "
                          f"{max(b / bps, n / iops) / len(rows) * 1e3:.0f} |" for b, n in cells), flush=True)


if __name__ == "__main__":
    main()
