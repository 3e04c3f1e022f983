#!/usr/bin/env python3
"""belady.py STORE [--binary PATH] [--row-bytes B] [--batch N] [--fanout K,K] [--group G] [--cache BYTES,BYTES]

The least that a group of batches can read of its features with a cache of so many bytes, computed here from the
batches' rows alone (Belady: give up what is used furthest ahead; what is used later than all that is cached is not
kept), beside what gnnstream's plan reads. Fails where they differ. It shares no code with the plan: next uses are found
by sorting, the cache is a heap. Also: what is read without a cache, and with one that keeps what was used last (LRU).
"""
import argparse
import heapq
import json
import subprocess
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

import numpy as np


def batches_of(path, rows_per_item):
    words, at, batches = np.fromfile(path, np.uint32), 0, []
    while at < len(words):
        rows = words[at + 1:at + 1 + words[at]]
        batches.append(np.unique(rows // rows_per_item))
        at += 1 + int(words[at])
    return batches


def next_uses(batches):
    """For each batch, of each item, the number of the next batch that has it (len(batches): none)."""
    items = np.concatenate(batches)
    number = np.repeat(np.arange(len(batches)), [len(b) for b in batches])
    order = np.lexsort((number, items))
    after = np.full(len(items), len(batches))
    same = items[order][1:] == items[order][:-1]
    after[order[:-1][same]] = number[order[1:][same]]
    return np.split(after, np.cumsum([len(b) for b in batches])[:-1])


def belady(batches, slots, lists=False):
    """Items that are read; or of each batch which, ascending."""
    cached, heap, reads = {}, [], []  # item -> next use; (-next use, item), stale entries among them
    for items, uses in zip(batches, next_uses(batches)):
        here = list(zip(items.tolist(), uses.tolist()))
        brought = sorted((use, i) for i, use in here if i not in cached)
        reads.append(sorted(i for _, i in brought))
        for i, use in here:
            if i in cached:
                cached[i] = use
                heapq.heappush(heap, (-use, i))
        for use, i in brought:
            if len(cached) < slots:
                cached[i] = use
                heapq.heappush(heap, (-use, i))
                continue
            while heap and cached.get(heap[0][1]) != -heap[0][0]:
                heapq.heappop(heap)
            if heap and -heap[0][0] > use:
                del cached[heapq.heappop(heap)[1]]
                cached[i] = use
                heapq.heappush(heap, (-use, i))
    return reads if lists else sum(map(len, reads))


def least_recent(batches, slots):
    cached, reads = OrderedDict(), 0
    for items in batches:
        for i in items.tolist():
            reads += i not in cached
            cached[i] = True
            cached.move_to_end(i)
            if len(cached) > slots:
                cached.popitem(last=False)
    return reads


def parser_of(text, fanout):
    """Options of what group_reads draws."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--binary", default="build/bench/sampling/group_reads")
    parser.add_argument("--row-bytes", type=int, default=512)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fanout", default=fanout)
    return parser


def planned(args, cache, group):
    """What group_reads says of a group with a cache of so many bytes; its batches by rows, and by what is read."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "rows"
        r = json.loads(subprocess.run(
            [args.binary, args.store, str(args.row_bytes), str(cache), str(group), dump, str(args.batch),
             *args.fanout.split(",")], check=True, capture_output=True, text=True).stdout)
        return r, batches_of(dump, 1), batches_of(dump, r["rows_per_item"])


def main():
    parser = parser_of(__doc__, "10,10")
    parser.add_argument("--group", type=int, default=16)
    parser.add_argument("--cache", default="0,32000000,128000000,512000000")
    args = parser.parse_args()
    print(f"{'cache':>12}{'items':>10}{'plan':>10}{'Belady':>10}{'LRU':>10}{'MB read':>9}{'s':>8}")
    for cache in args.cache.split(","):
        r, _, batches = planned(args, cache, args.group)
        bound = belady(batches, r["slots"])
        print(f"{cache:>12}{r['items']:10}{r['reads']:10}{bound:10}{least_recent(batches, r['slots']):10}"
              f"{r['bytes'] / 1e6:9.1f}{r['plan_seconds']:8.3f}", flush=True)
        if bound != r["reads"]:
            sys.exit(f"belady.py: the plan reads {r['reads']} items and {bound} would do")


if __name__ == "__main__":
    main()
