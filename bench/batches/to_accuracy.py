#!/usr/bin/env python3
"""to_accuracy.py STORE [--goal 94] [--gnnstream PATH] [--minutes M] - bytes and seconds until a test accuracy.

GraphSAGE of 2 layers, hidden 64, Adam 0.01, on a store whose features are four times --host-memory, in a memory cgroup
of a fortieth more that counts the page cache, too (limited.py): the whole graph, batches of neighbours and batches of
clusters. All are evaluated exactly in each epoch, which takes a pass over the whole graph; its bytes and seconds are
counted. A run ends when the goal is reached, after --minutes, or after --epochs. Bytes are those that the kernel
counted from the disk (/proc/PID/io). Prints a line for each run and, at last, a table.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = [("whole graph", []),
        ("neighbours", ["--sampler", "neighbor", "--batch-size", "1024", "--fanout", "5,5"]),
        ("clusters", ["--sampler", "cluster", "--batch-size", "4", "--dropout", "0.5"])]


def feature_bytes(gnnstream, store):
    info = json.loads(subprocess.run([gnnstream, "info", store, "--json"], check=True, capture_output=True).stdout)
    return info["vertices"] * info["features"] * 4


def read_bytes(pid):
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("read_bytes"))
    except (OSError, StopIteration):
        return None


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return next((int(p) for p in f.read().split()), None)


def last_line(path, seen):
    """Metrics of the epoch that ended last, where that is another than those seen."""
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f if line.endswith("\n")]
    return lines[-1] if len(lines) > seen else None


def run(a, name, options, host):
    with tempfile.TemporaryDirectory() as folder:
        metrics, report = os.path.join(folder, "m.jsonl"), os.path.join(folder, "r.json")
        command = [sys.executable, os.path.join(HERE, "..", "limited.py"), str(host + host // 40), report, a.gnnstream,
                   "train", a.store, "--model", "sage", "--layers", "2", "--hidden", "64", "--lr", "0.01", "--seed",
                   "1", "--host-memory", str(host), "--epochs", str(a.epochs), "--metrics", metrics, *options]
        print("+", " ".join(command[4:]), flush=True)
        open(metrics, "w", encoding="utf-8").close()
        began, best, seen, read, pid = time.time(), None, 0, 0, None
        out = {"name": name, "epochs": 0, "accuracy": 0, "reached": None}
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while p.poll() is None:
            time.sleep(0.2)
            pid = pid or child_of(p.pid)
            line, now = last_line(metrics, seen), read_bytes(pid) if pid else None
            read = now if now is not None else read
            if line is not None:
                seen = line["epoch"]
                best = max(best or 0, 100 * line["test_acc"])
                out.update(epochs=seen, accuracy=best, read=read, seconds=time.time() - began,
                           epoch_seconds=line["seconds"], epoch_read=line["read_bytes"])
                print(f"{name}: epoch {seen}, test {100 * line['test_acc']:.2f} %, {read / 2**30:.2f} GiB, "
                      f"{out['seconds']:.0f} s", flush=True)
                if best >= a.goal:
                    out["reached"] = seen
            if out["reached"] or time.time() - began > 60 * a.minutes:
                os.kill(pid, signal.SIGTERM)
                break
        p.wait()
        with open(report, encoding="ascii") as f:
            out["peak"] = json.load(f)["resident_peak_bytes"]
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("--goal", type=float, default=94)
    p.add_argument("--gnnstream", default="build/tools/gnnstream")
    p.add_argument("--minutes", type=float, default=20, help="most of a run")
    p.add_argument("--epochs", type=int, default=100, help="most of a run")
    p.add_argument("--only", help="a run's name")
    a = p.parse_args()
    a.gnnstream = os.path.abspath(a.gnnstream)
    host = feature_bytes(a.gnnstream, a.store) // 4
    done = [run(a, name, options, host) for name, options in RUNS if a.only in (None, name)]
    print(f"{'trained on':14}{'epochs':>8}{'best test':>11}{'GiB':>9}{'seconds':>9}{'of an epoch: GiB':>18}"
          f"{'seconds':>9}{'MiB':>7}")
    for r in done:
        print(f"{r['name']:14}{r['epochs'] if r['reached'] else 'not in ' + str(r['epochs']):>8}{r['accuracy']:>9.2f} %"
              f"{r['read'] / 2**30:9.1f}{r['seconds']:9.0f}{r['epoch_read'] / 2**30:18.2f}{r['epoch_seconds']:9.1f}"
              f"{r['peak'] / 2**20:7.0f}")


main()
