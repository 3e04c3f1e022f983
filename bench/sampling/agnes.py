#!/usr/bin/env python3
"""agnes.py STORE [--binary PATH] [--row-bytes B] [--batch N] [--fanout K,K] [--groups H,H] [--record FILE | --disk B,N]

What a batch reads of features, in the mean over an epoch, here and by AGNES's method (KDD'26): the same draws, one to
one in AGNES's groups (hyperbatches) of H batches, and in the memory for features that such a group takes there.

AGNES: a hyperbatch reads every block that holds a row of any of its batches once, whole, a block a request, and copies
its rows to all of these; they are in memory until they were used. Here: what gs_residency plans with a cache of so many
bytes, and what a batch misses is asked for in the order of the file, joined as batch_rows.c joins it where the disk was
measured: over gaps that it moves in less time than it takes to begin a request. Groups are of H batches ("group"), or
of the whole epoch ("epoch"), as a group of this engine keeps no features, only edges; each batch reads by itself.
"Together": what several batches side by side of the epoch's plan read is read at once, in order, each block once, and
the rows of all of these are held, as AGNES holds them; the rest of the memory keeps blocks. Of numbers of batches that
which takes the least time. "Built" is what batch_rows.c has of that: it holds what the largest batches could have, for
all of them but one, whose rows go where it is trained, with lists of all; "built, group" plans by groups of H batches.

Of each: MB, requests, and ms on this machine's disk: for each request what the machine's record (`gnnstream bench
limits`) has of random reads of its size. --disk B,N: on a disk of B bytes and N requests a second, whichever takes
longer. The last columns: times of AGNES's best block size that "epoch" and those behind it are, above 1 is better here.
STORE's edges alone are read, so rows can have any size; default: as wide as its features.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from belady import belady, parser_of, planned

BLOCKS = 4096, 65536, 1 << 20
BLOCK = 4096
MOST = 8 << 20  # bytes of a request, as read_ring.c has it


class Disk:
    """Seconds of requests by their bytes, and the gap that is read along."""

    def __init__(self, record, said):
        if said:
            self.bps, self.iops = map(float, said.split(","))
            self.gap, self.text = self.bps / self.iops, f"{self.bps / 1e9:.2f} GB and {self.iops:.0f} requests a second"
            return
        path = Path(record) if record else self.found()
        limits = json.loads(path.read_text())["limits"]
        self.bps, self.iops, pairs = limits["disk_read_bps"], None, np.array(limits["random_read"]).reshape(-1, 2)
        self.bytes, self.seconds = pairs[:, 0], pairs[:, 0] / pairs[:, 1]
        self.gap = self.bps * self.seconds[0] - self.bytes[0]
        self.text = (f"this machine's: {self.bps / 1e9:.2f} GB a second, " +
                     ", ".join(f"{rate / b:.0f} reads of {b // 1024:.0f} KiB" for b, rate in pairs))

    @staticmethod
    def found():
        folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gnnstream"
        have = [p for p in folder.glob("machine-*.json") if json.loads(p.read_text())["limits"]["disk_read_bps"] > 0]
        if not have:
            sys.exit(f"agnes.py: {folder}: no record of the disk; run gnnstream bench limits, or give --disk")
        return max(have, key=lambda p: p.stat().st_mtime)

    def of(self, sizes):
        """Seconds of requests of so many bytes each."""
        if self.iops:
            return max(sizes.sum() / self.bps, len(sizes) / self.iops)
        return (np.interp(sizes, self.bytes, self.seconds) + np.maximum(sizes - self.bytes[-1], 0) / self.bps).sum()


class Reads:
    """(bytes, requests, seconds) of an epoch."""

    def __init__(self, sizes, disk):
        self.bytes, self.requests, self.seconds = sizes.sum(), len(sizes), disk.of(sizes)

    def cell(self, batches):
        return f"{self.bytes / batches / 1e6:.2f}, {self.requests / batches:.0f}, {self.seconds / batches * 1e3:.1f}"


def runs(items, item_bytes, gap):
    """Bytes of the requests for ascending items, as ask_run() makes them: one grows while gaps are small."""
    items = np.asarray(items, np.int64)
    cut = np.flatnonzero((np.diff(items) - 1) * item_bytes > gap) + 1
    sizes = []
    for first, last in zip(items[np.r_[0, cut]].tolist(), items[np.r_[cut - 1, len(items) - 1]].tolist()):
        while (last + 1 - first) * item_bytes > MOST:
            sizes.append(MOST)
            first = items[np.searchsorted(items, first + MOST // item_bytes)]
        sizes.append((last + 1 - first) * item_bytes)
    return sizes


def reads_of(lists, item_bytes, disk):
    sizes = [size for items in lists if len(items) for size in runs(items, item_bytes, disk.gap)]
    return Reads(np.array(sizes, np.int64), disk)


def side_by_side(lists, count):
    return [lists[k:k + count] for k in range(0, len(lists), count)]


def rows_held(rows, count, row_bytes):
    return max(sum(map(len, part)) for part in side_by_side(rows, count)) * row_bytes


def together(items, group, memory, held, item_bytes, disk):
    """The best Reads where several batches' are one, of groups of so many, and how many batches these are."""
    best = None
    for side in (1, 2, 3, 4, 6, 8, 16):
        left = memory - (held(side) if side > 1 else 0)
        if left < 0 or side > min(len(items), group):
            break
        lists = []
        for part in side_by_side(items, group):
            unions = [np.unique(np.concatenate(k)) for k in side_by_side(part, side)]
            lists += belady(unions, left // item_bytes, True)
        reads = reads_of(lists, item_bytes, disk)
        if best is None or reads.seconds < best[0].seconds:
            best = reads, side
    return best


def main():
    parser = parser_of(__doc__, "10,5")
    parser.set_defaults(row_bytes=0)
    parser.add_argument("--groups", default="1,2,4,8", help="AGNES's hyperbatches; its own programs have 1024")
    parser.add_argument("--record", help="the machine's record; default: the last one that has the disk")
    parser.add_argument("--disk", help="bytes and requests a second, in place of the record")
    args = parser.parse_args()
    program = Path(args.binary).parents[2] / "tools/gnnstream"
    info = json.loads(subprocess.run([program, "info", args.store, "--json"], check=True, capture_output=True).stdout)
    args.row_bytes = args.row_bytes or info["features"] * 4
    features, disk = info["vertices"] * args.row_bytes, Disk(args.record, args.disk)
    print(f"features of {features / 1e6:.0f} MB, rows of {args.row_bytes} bytes, batches of {args.batch}, fanouts "
          f"{args.fanout}\ndisk: {disk.text}; gaps of up to {disk.gap / 1024:.1f} KiB are read along\n")
    names = (["group", "epoch", "together", "built", "built, group"] + [f"AGNES {b // 1024} KiB" for b in BLOCKS] +
             ["epoch", "together", "built", "built, group"])
    print("| hyperbatch | memory MB | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 2))
    _, rows, _ = planned(args, 0, 1 << 14)
    for size in map(int, args.groups.split(",")):
        memory = rows_held(rows, size, args.row_bytes)
        r, rows, items = planned(args, memory, 1 << 14)
        item_bytes = r["rows_per_item"] * args.row_bytes
        item_bytes += -item_bytes % BLOCK
        read = belady(items, r["slots"], True)
        if sum(map(len, read)) != r["reads"]:
            sys.exit(f"agnes.py: the plan reads {r['reads']} items, and {sum(map(len, read))} would do")
        by_group = [one for part in side_by_side(items, size) for one in belady(part, r["slots"], True)]
        def has(side):  # as side_bytes() and lists of 4 bytes, of batch_rows.c
            return (side - 1) * r["most"] * (args.row_bytes + 40) + size * r["most"] * 4

        ways = [together(items, group, memory, held, item_bytes, disk) for group, held in (
            (len(items), lambda side: rows_held(rows, side, args.row_bytes)), (len(items), has), (size, has))]
        here = [reads_of(by_group, item_bytes, disk), reads_of(read, item_bytes, disk), *(of for of, _ in ways)]
        agnes = []
        for block in BLOCKS:
            touched = sum(len(np.unique(np.concatenate(part).astype(np.int64) * args.row_bytes // block))
                          for part in side_by_side(rows, size))
            agnes.append(Reads(np.full(touched, block), disk))
        best = min(k.seconds for k in agnes)
        cells = [k.cell(len(rows)) for k in here + agnes] + [f"{best / k.seconds:.2f}" for k in here[1:]]
        for k, (_, side) in enumerate(ways):
            cells[2 + k] += f" (of {side})"
        print(f"| {size} | {memory / 1e6:.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
