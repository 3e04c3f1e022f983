#!/usr/bin/env python3
"""workloads.py REPORTS WORKLOAD... - the tables of workloads.sh, from the files that it left."""
import json
import statistics
import sys
from pathlib import Path

SWITCHES = ("nothing", "kernel", "selective", "pipeline", "swap", "cache", "hoist", "prune")


def mark(good):
    return "" if good else "  MISSES"


def limit_row(graph, where, b, fitted):
    must = b["read_bytes"] / b["disk_read_bps"]
    p = b["predicted"]
    error = 100 * (p["seconds"] / b["seconds"] - 1)
    exact = p["read_bytes"] == b["read_bytes"] and p["written_bytes"] == b["written_bytes"]
    stall = 100 * b["stall_seconds"] / b["seconds"]
    ratio = b["seconds"] / must if must > 0 else float("nan")
    alone = b["transfer_seconds"]
    ours = b["seconds"] / alone if must > 0 else float("nan")
    if must > b["compute_seconds"]:
        bound, good = "reading", ratio <= 1.10
    else:
        bound, good = "computing", stall <= 5
    good = good or where not in ("quarter", "all")  # no bar is set for the others
    missed = "  (fitted on, off by more than 15 %)"
    print(f"{graph:2} {where:8} {b['seconds']:8.3f} {b['read_bytes'] / 2**20:9.0f} {b['written_bytes'] / 2**20:9.0f}"
          f" {must:8.3f} {ratio:7.2f} {alone:8.3f} {ours:7.2f} {b['compute_seconds']:9.3f} {stall:7.1f} % {bound:10}"
          f" {p['seconds']:9.3f} {error:+6.0f} % {'exact' if exact else 'WRONG':6}"
          f"{mark(good)}{'' if fitted else '  (fitted on)' if abs(error) <= 15 else missed}"
          f"{mark(abs(error) <= 15) + ' its prediction' if fitted and abs(error) > 15 else ''}")


def limit_table(reports, graphs):
    print("\n   budget    epoch s  read MiB   written   must s   ratio  alone s   ratio   compute    stall   "
          "bound      predicted  error  bytes")
    for graph in graphs:
        for where in ("half", "third", "quarter", "rounded", "all"):
            file = reports / f"{graph}-{where}.json"
            if file.exists() and file.stat().st_size > 0:
                limit_row(graph, where, json.loads(file.read_text()), where in ("quarter", "rounded", "all"))


def median_seconds(file):
    epochs = [json.loads(line) for line in file.read_text().splitlines()]
    last = epochs[-1]
    return statistics.median(e["seconds"] for e in epochs[1:] or epochs), last["read_bytes"], last["written_bytes"]


def switch_table(reports, graphs):
    for graph in graphs:
        first = before = None
        for on in SWITCHES:
            file = reports / f"{graph}-switch-{on}.jsonl"
            if not file.exists():
                continue
            seconds, read, written = median_seconds(file)
            if first is None:
                first = before = seconds
                print(f"\n{graph:2} turned on   epoch s   times   in all   read MiB   written")
            print(f"   {on:10} {seconds:9.3f} {before / seconds:7.2f} {first / seconds:8.2f} {read / 2**20:10.0f} "
                  f"{written / 2**20:9.0f}")
            before = seconds
        if first is not None:
            bar = 4.9 if graph == "R" else 3.0
            print(f"   all: {first / before:.2f} times, bar {bar}{mark(first / before >= bar)}")


def main():
    reports, graphs = Path(sys.argv[1]), sys.argv[2:]
    if any(reports.glob("*-quarter.json")):
        limit_table(reports, graphs)
    if any(reports.glob("*-switch-*.jsonl")):
        switch_table(reports, graphs)


if __name__ == "__main__":
    main()
