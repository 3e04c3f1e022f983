#!/usr/bin/env python3
"""products.py GNNSTREAM [--processor] [GRAPH ...] - R-GCN on typed graphs: is the way that a run takes of making
products by edges' types the fastest of those that there are, and what does it take to find it?

The ways: sums by type (--no-batch), products for edges, for runs and for pairs (--products), and what the run chooses.
A run of 100 epochs chooses first: it measures the ways, and later ones take what it found. Epochs of all are
measured in turns, so what else the machine does meets each; the fastest counts. A line a graph and way: an epoch,
its share of the best, at most 1.05 for what was chosen, and products of edges; then the processor seconds that
choosing takes, at most 0.02 of 100 epochs: what a plan takes more than one with sums alone, and a run that measures
more than one that finds what was measured. Ends with 1 where either is missed. With --processor an epoch is what
twenty more of them take of the processor, the least of each length: for a machine that does other things, too.
  GS_BENCH_DIR  folder for graphs and stores, default build/bench; GS_ROUNDS  of measurement, default 5
"""
import argparse
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from array import array

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {"chosen": [], "sums by type": ["--no-batch"], "edges": ["--products", "edges"], "runs": ["--products", "runs"],
        "pairs": ["--products", "pairs"]}
SHAPE = ["--model", "rgcn", "--hidden", "32", "--layers", "2", "--threads", "1"]
# name: kind of gnnstream generate, vertices, edges, types; "few": edges from 2,000 of the vertices
GRAPHS = {"rmat-8": ("rmat", 65536, 400000, 8), "rmat-60": ("rmat", 65536, 400000, 60),
          "even-30": ("sbm", 50000, 300000, 30), "few-sources-8": ("few", 42000, 300000, 8)}


def npy(path, kind, shape, values):
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        values.tofile(f)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done


def make_store(program, work, name):
    kind, vertices, edges, types = GRAPHS[name]
    graph, store = f"{work}/{name}.graph", f"{work}/{name}.store"
    if os.path.exists(store + "/manifest.json"):
        return store
    run(program, "generate", "rmat" if kind == "few" else kind, graph, "--vertices", str(vertices), "--edges",
        str(edges), "--features", "32", "--classes", "16", "--seed", "1", "--force")
    if kind == "few":
        draw = random.Random(1)
        npy(f"{graph}/edges.npy", "<i8", (edges, 2),
            array("q", (v for _ in range(edges) for v in (draw.randrange(2000), draw.randrange(2000, vertices)))))
    draw = random.Random(2)
    if kind == "rmat" and types == 8 or kind == "few":  # all types as often as another
        npy(f"{graph}/edge_types.npy", "<u2", (edges,), array("H", (draw.randrange(types) for _ in range(edges))))
    else:
        run(sys.executable, f"{HERE}/edge_types.py", graph, str(types))
    run(program, "partition", graph, store, "--parts", "4", "--method", "random", "--memory", "1G", "--force")
    return store


def seconds_of_an_epoch(program, work, store, how):
    metrics = f"{work}/metrics.jsonl"
    if os.path.exists(metrics):
        os.remove(metrics)
    run(program, "train", store, *SHAPE, *how, "--epochs", "4", "--metrics", metrics)
    with open(metrics, encoding="utf-8") as f:
        return min(json.loads(line)["seconds"] for line in f)


def processor_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processor_epoch(program, store, ways, rounds):
    """Of each way, measured in turns: the least of long runs without the least of short ones."""
    of = {way: ([], []) for way in ways}
    for _ in range(rounds):
        for way, how in ways.items():
            for seconds, epochs in zip(of[way], ("1", "21")):
                seconds.append(processor_seconds(program, "train", store, *SHAPE, *how, "--epochs", epochs))
    return {way: (min(long) - min(short)) / 20 for way, (short, long) in of.items()}


def measure(program, work, store, ways, rounds):
    of = {way: [] for way in ways}
    for _ in range(rounds):
        for way, how in ways.items():
            of[way].append(seconds_of_an_epoch(program, work, store, how))
    return {way: min(seconds) for way, seconds in of.items()}


def tune(program, store):
    """What a run that measures takes of the processor more than one that need not: the least of three of each, of one
    epoch, as long runs differ by more than that from each other. Then a long run leaves a record of its own."""
    short = [program, "bench", "train", store, *SHAPE, "--epochs", "1"]
    known = os.path.join(os.environ["XDG_CACHE_HOME"], "gnnstream")
    took = [], []
    for _ in range(3):
        shutil.rmtree(known, ignore_errors=True)
        for seconds in took:
            seconds.append(processor_seconds(*short))
    shutil.rmtree(known)
    run(program, "train", store, *SHAPE, "--epochs", "100")
    return max(min(took[0]) - min(took[1]), 0)


def plan_of(program, store, how):
    return json.loads(run(program, "plan", store, *SHAPE, *how, "--json").stdout)


def products(plan):
    """What the plan says of the products that its stages make."""
    train = next(p for p in plan["passes"] if p["name"] == "train")
    edges = train["product_edges"]
    return f"{train['products']:,.0f} of {edges:,} edges" if edges else "none of edges"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("graph", nargs="*", choices=[*GRAPHS, []])
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    program, rounds = os.path.abspath(options.program), int(os.environ.get("GS_ROUNDS", "5"))
    work = os.path.join(os.environ.get("GS_BENCH_DIR", f"{HERE}/../build/bench"), "products")
    os.makedirs(work, exist_ok=True)
    missed = False
    record = tempfile.TemporaryDirectory()
    os.environ["XDG_CACHE_HOME"] = record.name
    for name in options.graph or GRAPHS:
        store = make_store(program, work, name)
        measuring = tune(program, store)
        plans = {way: plan_of(program, store, how) for way, how in WAYS.items()}
        processor = processor_epoch(program, store, WAYS if options.processor else {"chosen": []}, rounds)
        took = processor if options.processor else measure(program, work, store, WAYS, rounds)
        best = min(took.values())
        for way, seconds in took.items():
            print(f"{name:14} {way:13} {seconds * 1e3:9.2f} ms {seconds / best:6.3f}  products: {products(plans[way])}",
                  flush=True)
        plan = [program, "plan", store, *SHAPE]
        more = min(processor_seconds(*plan) for _ in range(rounds)) - min(
            processor_seconds(*plan, "--no-batch") for _ in range(rounds))
        more += measuring
        epoch = processor["chosen"]
        print(f"{name:14} choosing takes {more:.3f} s of processor, {more / (100 * epoch):.4f} of 100 epochs",
              flush=True)
        missed = missed or took["chosen"] > 1.05 * best or more > 2 * epoch
    sys.exit(missed)


main()
