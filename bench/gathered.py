#!/usr/bin/env python3
"""gathered.py accuracy|seconds GRAPH - what `--gather-type bf16`, or `--matmul bf16`, costs and saves, beside float32.

accuracy: GRAPH is a folder as those of GS_TEST_DATA (edges.npy, features.npy, labels.npy, test_idx.npy, ...). Trains
each setting below once a seed with either type, in turns, and prints test accuracy: mean and standard error over the
seeds, and of the differences seed by seed. Test vertices are looked at once, in the logits of the final weights.

seconds: GRAPH is a store with features, as `gnnstream partition` makes them. Trains three layers of GCN, or of GAT
with eight heads (GS_MODEL), with nothing hoisted or pruned, in turns, and prints for each width the bytes that an
epoch's edge sums gather (as planned), and of all turns the least seconds and their median: of edge sums of rows that
the run makes, of all edge sums (features are read as the store has them), and of an epoch. The processors' load is the
measurer's business.

  GNNSTREAM  the executable; default build/tools/gnnstream
  GS_SEEDS   of accuracy; default "0 1 2 3 4 5 6 7 8 9"
  GS_TURNS   of seconds; default 5
  GS_MODEL   of seconds: gcn, the default, or gat
  GS_OPTION  --gather-type, the default, or --matmul
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

from accuracy import load

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GNNSTREAM = os.environ.get("GNNSTREAM", os.path.join(ROOT, "build/tools/gnnstream"))
OPTION = os.environ.get("GS_OPTION", "--gather-type")
TYPES = ("fp32" if OPTION == "--matmul" else "f32", "bf16")
COMMON = ["--optimizer", "adam", "--lr", "0.01", "--weight-decay", "5e-4", "--dropout", "0.5", "--input-dropout",
          "0.5", "--epochs", "200", "--eval-every", "0", "--threads", "1"]
MODELS = {"gcn": ["--model", "gcn"], "gat": ["--model", "gat", "--heads", "8", "--act", "elu"]}
SETTINGS = [
    ("gcn, 2 layers, hidden 16", ["--model", "gcn", "--layers", "2", "--hidden", "16"]),
    ("gcn, 3 layers, hidden 64", ["--model", "gcn", "--layers", "3", "--hidden", "64"]),
    ("sage, 2 layers, hidden 64", ["--model", "sage", "--layers", "2", "--hidden", "64"]),
    ("gat, 2 layers, 8 heads of 8", [*MODELS["gat"], "--layers", "2", "--hidden", "64"]),
]


def gnnstream(*words):
    return subprocess.run([GNNSTREAM, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def hits(graph, logits):
    """Percent of the test vertices whose largest logit is their label."""
    (_, classes), values = load(logits)
    labels = load(os.path.join(graph, "labels.npy"))[1]
    test = load(os.path.join(graph, "test_idx.npy"))[1]
    right = 0
    for v in test:
        row = values[v * classes : (v + 1) * classes]
        right += row.index(max(row)) == labels[v]
    return 100 * right / len(test)


def of(numbers):
    """'mean ± standard error'."""
    error = statistics.stdev(numbers) / len(numbers) ** 0.5 if len(numbers) > 1 else 0
    return f"{statistics.mean(numbers):.2f} ± {error:.2f}"


def accuracy(graph, folder):
    seeds = os.environ.get("GS_SEEDS", "0 1 2 3 4 5 6 7 8 9").split()
    store, logits = os.path.join(folder, "store"), os.path.join(folder, "logits.npy")
    gnnstream("partition", graph, store, "--parts", "1")
    print("| | float32 | bf16 | bf16 less float32 | seeds |\n|---|---|---|---|---|")
    for name, words in SETTINGS:
        found = {t: [] for t in TYPES}
        for seed in seeds:
            for t in TYPES:
                gnnstream("train", store, *words, *COMMON, "--seed", seed, OPTION, t, "--logits", logits)
                found[t].append(hits(graph, logits))
        apart = [b - a for a, b in zip(*(found[t] for t in TYPES))]
        print(f"| {name} | {of(found[TYPES[0]])} | {of(found['bf16'])} | {of(apart)} | {len(seeds)} |", flush=True)


def edge_seconds(trace):
    """Of the traced epoch's tasks that add up edges, the vertices' own rows among them: (all, but sums of features)."""
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    sums = [e for e in events if e.get("ph") == "X" and e["name"] in ("edges", "edge program", "own rows")]
    made = [e for e in sums if "(features)" not in e["args"]["stage"]]
    return sum(e["dur"] for e in sums) * 1e-6, sum(e["dur"] for e in made) * 1e-6


def one_turn(store, words, folder):
    metrics, trace = os.path.join(folder, "run.jsonl"), os.path.join(folder, "trace.json")
    for path in (metrics, trace):
        if os.path.exists(path):
            os.remove(path)
    gnnstream("train", store, *words, "--epochs", "3", "--metrics", metrics, "--trace", trace)
    with open(metrics, encoding="utf-8") as file:
        return (*edge_seconds(trace), min(json.loads(line)["seconds"] for line in file))


def seconds(store, folder):
    turns, model = int(os.environ.get("GS_TURNS", "5")), MODELS[os.environ.get("GS_MODEL", "gcn")]
    print("| width | type | gathered | sums of rows that the run makes | all edge sums | epoch |")
    print("|---|---|---|---|---|---|")
    for width in (64, 256):
        taken = {t: [] for t in TYPES}
        words = [*model, "--layers", "3", "--hidden", str(width), "--eval-every", "0", "--no-prune",
                 "--no-hoist"]
        for _ in range(turns):
            for t in TYPES:
                taken[t].append(one_turn(store, [*words, OPTION, t], folder))
        for t in TYPES:
            plan = json.loads(gnnstream("plan", store, *words, "--json", OPTION, t))
            gathered = next(p["edge_bytes"] for p in plan["passes"] if p["name"] == "train")
            all_, made, epoch = (f"{min(x):.3f}, {statistics.median(x):.3f}" for x in zip(*taken[t]))
            print(f"| {width} | {t} | {gathered / 2**30:.2f} GiB | {made} | {all_} | {epoch} |", flush=True)


def main():
    what = {"accuracy": accuracy, "seconds": seconds}.get(sys.argv[1] if len(sys.argv) == 3 else "")
    if what is None:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        what(sys.argv[2], folder)


if __name__ == "__main__":
    main()
