#!/usr/bin/env python3
"""cluster.py PROGRAM STORE [MODEL...] - `plan --cluster` beside the plan of a store, and beside runs of it.

The shape is that of the store: its counts, the parts of its edges that begin with another rank's vertex, where each
rank has as many intervals, and within an interval, and those of its intervals in which next to no edge begins, and of
its vertices that begin one. The network is the one that ranks of one machine are taken to have (docs/design/ranks.md).
One line for each model and number of ranks: megabytes that a rank receives in an epoch, seconds, and megabytes of
memory, as described, planned and run (by mpirun; the median of the last epochs); then what is described over what is
planned, and over what was run. Costs are those that `bench train` of each model by one rank finds, as many of them
beside each other as there are ranks, which share this machine's memory, in records of their own: what is known of this
machine otherwise is neither read nor changed.

  --ranks LIST    1,2
  --shape N       prints no more than the shape, for N ranks
  --options TEXT  of train and plan: "--layers 2 --hidden 64 --no-hoist --no-prune"
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

NETWORK = {"bps": 256e6, "seconds": 31e-6}
MEMORY = 4 << 30


def parts_of(store, ranks):
    """Intervals; of the edges those between two ranks' and within one; intervals with under a tenth of their share;
    vertices that edges begin with."""
    with open(f"{store}/manifest.json", encoding="utf-8") as file:
        manifest = json.load(file)
    parts, vertices = manifest["parts"], manifest["vertices"]
    with open(f"{store}/chunks.bin", "rb") as file:
        records = file.read(48 * parts * parts)
    edges = [struct.unpack_from("<Q", records, 48 * k + 16)[0] for k in range(parts * parts)]
    remote = sum(n for k, n in enumerate(edges) if k // parts * ranks // parts != k % parts * ranks // parts)
    idle = sum(10 * parts * sum(edges[i::parts]) < sum(edges) for i in range(parts))
    with open(f"{store}/out_degree.bin", "rb") as file:
        degrees = memoryview(file.read())[:4 * vertices].cast("f")
    inside, ends = sum(edges[::parts + 1]), sum(d > 0 for d in degrees)
    return parts, remote / sum(edges), inside / sum(edges), idle / parts, ends / vertices


def output(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"cluster.py: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def learn(program, store, ranks, options, folder):
    """The costs that one of `ranks` processes has, which have nothing to do with each other."""
    folders = [f"{folder}.{k}" for k in range(ranks)]
    for k in folders:
        os.mkdir(k)
    for _ in range(3):  # a task of each kind counts from its fourth on
        each = []
        for k in folders:
            each.append(subprocess.Popen([program, "bench", "train", store, "--threads", "1", "--host-memory",
                                          str(MEMORY), *options], stdout=subprocess.DEVNULL,
                                         env={**os.environ, "XDG_CACHE_HOME": k}))
        if any([p.wait() for p in each]):
            sys.exit("cluster.py: bench train failed")
    os.environ["XDG_CACHE_HOME"] = folders[0]


def train_pass(plan):
    return next(p for p in plan["passes"] if p["name"] == "train")


def shape_of(program, store, ranks):
    info = json.loads(output([program, "info", store, "--json"]))
    parts, remote, inside, idle, ends = parts_of(store, ranks)
    return f"vertices={info['vertices']},edges={info['edges']},features={info['features']}," \
           f"classes={info['classes']},parts={parts},remote={remote:.6f},inside={inside:.6f}," \
           f"idle={idle:.6f},ends={ends:.6f}"


def described(program, store, ranks, options, folder):
    """(received bytes, seconds, memory)"""
    with open(f"{folder}/cluster", "w", encoding="ascii") as file:
        json.dump({"ranks": ranks, "memory": MEMORY, "network": NETWORK}, file)
    r = json.loads(output([program, "plan", "--cluster", f"{folder}/cluster", "--shape",
                           shape_of(program, store, ranks), "--threads", "1", "--json", *options]))
    received = next((x["bytes"] for x in r["links"] if x["name"] == "rows from other ranks"), 0)
    return received, r["epoch_seconds"], r["memory_bytes"]


def planned(program, store, ranks, options, folder):
    devices = ["--device", "cpu"]
    if ranks > 1:
        with open(f"{folder}/network", "w", encoding="ascii") as file:
            json.dump({"switches": [{"devices": 1}] * ranks, "network": NETWORK}, file)
        devices = ["--device", f"cpu:{ranks}", "--topology", f"{folder}/network"]
    p = json.loads(output([program, "plan", store, "--json", "--threads", str(ranks), "--host-memory", str(MEMORY),
                           *devices, *options]))
    links = [x for x in p["links"] if x["from"] == "network"]
    received = sum(y["bytes"] for x in links for y in x["passes"] if y["name"] == "train") / max(len(links), 1)
    return received, train_pass(p)["seconds"], p["host_bytes"]


def run(program, store, ranks, options, folder):
    launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    output([*launcher, program, "train", store, "--threads", "1", "--epochs", "12", "--host-memory", str(MEMORY),
            "--metrics", f"{folder}/metrics", *options])
    with open(f"{folder}/metrics", encoding="ascii") as file:
        epochs = [json.loads(line) for line in file][4:]
    os.remove(f"{folder}/metrics")
    return (epochs[-1].get("sent_bytes", 0) / ranks, statistics.median(e["seconds"] for e in epochs),
            epochs[-1]["peak_host_bytes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store")
    parser.add_argument("models", nargs="*", default=["gcn", "sage", "gat"])
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--shape", type=int)
    parser.add_argument("--options", default="--layers 2 --hidden 64 --no-hoist --no-prune")
    args = parser.parse_args()
    if args.shape:
        print(shape_of(args.program, args.store, args.shape))
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; {args.options}")
    print("model  ranks  received MB (described planned run)  seconds  memory MB  over planned: bytes s  over run: s")
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models or ["gcn", "sage", "gat"]:
            options = ["--model", model, *args.options.split()]
            for ranks in map(int, args.ranks.split(",")):
                learn(args.program, args.store, ranks, options, f"{folder}/{model}.{ranks}")
                ways = [described(args.program, args.store, ranks, options, folder),
                        planned(args.program, args.store, ranks, options, folder),
                        run(args.program, args.store, ranks, options, folder)]
                cells = [f"{w[0] / 1e6:8.2f}" for w in ways] + [f"{w[1]:8.3f}" for w in ways]
                cells += [f"{w[2] / 1e6:7.0f}" for w in ways]
                rows = f"{ways[0][0] / ways[1][0]:7.3f}" if ways[1][0] > 0 else "      -"
                print(f"{model:6} {ranks:5}", *cells, rows, f"{ways[0][1] / ways[1][1]:6.3f}",
                      f"{ways[0][1] / ways[2][1]:6.3f}", flush=True)


if __name__ == "__main__":
    main()
