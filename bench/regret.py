#!/usr/bin/env python3
"""regret.py [--cases N] [--seed S] [--jobs J] [--folder DIR] [--only LIST] - does a switch that turns an optimisation
off ever make the predicted run shorter?

Draws cases: a small generated store, a model, layers, widths, devices with and without a topology, budgets, epochs.
Plans each with the defaults, and with each switch alone. Regret is what the default's predicted run (setup, epochs and
evaluations) takes beyond the shortest of the others. Prints each case with a regret above 2 %, and each that is refused
though it would run with a switch, with its command line. Exit status 1 if there is one.

GNNSTREAM names the program (default build/tools/gnnstream), another one than the stores are made with in GS_MAKER.
Plans are predicted from the defaults of the cost model, whatever was measured on this machine. Some 100 MiB of stores
are made in DIR (default: a temporary folder, which is removed). --only runs these of the N cases, as 5,9,53-140, so
that a long run can be cut in parts: some cases plan for a minute.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("GNNSTREAM", os.path.join(ROOT, "build", "tools", "gnnstream"))
MAKER = os.environ.get("GS_MAKER", PROGRAM)
SWITCHES = ["--no-hoist", "--no-fuse", "--no-move", "--no-prune", "--no-batch", "--no-swap", "--no-selective",
            "--no-chain"]
WORST = 1.02
SHAPES = [  # kind, vertices, edges, features, edge types, parts
    ("rmat", 6000, 60000, 32, 0, 4), ("sbm", 20000, 80000, 100, 0, 3), ("rmat", 15000, 300000, 16, 0, 5),
    ("sbm", 8000, 40000, 512, 0, 4), ("rmat", 12000, 120000, 256, 0, 6), ("sbm", 20000, 200000, 48, 0, 7),
    ("rmat", 10000, 50000, 64, 8, 3), ("sbm", 15000, 60000, 24, 40, 4), ("rmat", 40000, 120000, 96, 0, 5),
    ("sbm", 4000, 8000, 12, 0, 1)]
PLAIN = ["gcn", "sage", "sage_max", "gat", "gatv2", "gin", "appnp", "commnet", "ggcn", "ggnn"]
TYPED = ["rgcn", "rgcn_bases", "gcn", "sage"]


def run(words, env):
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def add_types(folder, types):
    """Gives the edges of a generated graph types, in turn."""
    with open(os.path.join(folder, "edges.npy"), "rb") as f:
        edges = int(f.read(128).split(b"(")[1].split(b",")[0])
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({edges},), }}".ljust(117) + "\n"
    with open(os.path.join(folder, "edge_types.npy"), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode())
        f.write(bytes(i * 7 % types for i in range(edges)))


def make_store(folder, k, env):
    kind, vertices, edges, features, types, parts = SHAPES[k]
    graph, store = os.path.join(folder, f"graph{k}"), os.path.join(folder, f"store{k}")
    if os.path.exists(os.path.join(store, "manifest.json")):
        return store
    shutil.rmtree(store, ignore_errors=True)
    for words in ([MAKER, "generate", kind, graph, "--force", "--vertices", str(vertices), "--edges", str(edges),
                   "--features", str(features), "--classes", "7", "--seed", "1"],
                  [MAKER, "partition", graph, store, "--parts", str(parts), "--method", "random", "--seed", "1",
                   "--split", "0.1,0.1,0.1" if k % 2 else "0.6,0.2,0.2"]):
        status, _, error = run(words, env)
        if status != 0:
            sys.exit(f"{' '.join(words)}: {error}")
        for split in ("train", "valid", "test"):
            if words[1] == "generate":
                os.remove(os.path.join(graph, f"{split}_idx.npy"))
        if words[1] == "generate" and types > 0:
            add_types(graph, types)
    shutil.rmtree(graph)
    return store


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(path, f)) for f in os.listdir(path))


def draw_topology(rng, folder, k, devices):
    """A file of one or two switches, or None."""
    way = rng.randrange(3)
    if way == 0:
        return None
    speeds = [[1.0], [1.0, 0.5], [1.0, 0.25]][rng.randrange(3)]
    each = [devices] if way == 1 or devices < 2 else [1, devices - 1]
    switches = [{"devices": n, "host_bps": rng.choice([3e8, 1e9, 6e9]), "peer_bps": 1.2e10,
                 "speeds": [rng.choice(speeds) for _ in range(n)]} for n in each]
    path = os.path.join(folder, f"topology{k}.json")
    with open(path, "w", encoding="ascii") as f:
        json.dump({"switches": switches, **({"across_bps": rng.choice([2e8, 5e9])} if len(each) > 1 else {})}, f)
    return path


def draw(rng, folder, k, stores, sizes):
    """The words of one case, without switches."""
    s = rng.randrange(len(SHAPES))
    types = SHAPES[s][4]
    words = [stores[s], "--model", rng.choice(TYPED if types and rng.random() < 0.8 else PLAIN),
             "--layers", str(rng.choice([1, 2, 2, 3, 4])), "--hidden", str(rng.choice([8, 16, 32, 64, 128, 256])),
             "--epochs", str(rng.choice([1, 2, 3, 5, 10, 30, 100, 500])), "--threads", "2",
             "--dropout", rng.choice(["0", "0", "0.5"]), "--eval-every", rng.choice(["1", "1", "5", "0"])]
    devices = rng.choice([1, 1, 1, 1, 2, 2, 3, 4])
    memory = (26 << 20) + int(sizes[s] * 2 ** rng.uniform(-5, 2)) + rng.randrange(4) * (4 << 20)
    if rng.random() < 0.2:
        memory = 2 << 30
    words += ["--host-memory", f"{memory >> 20}M"]
    if devices > 1:
        words += ["--device", f"cpu:{devices}"]
        topology = draw_topology(rng, folder, k, devices)
        words += ["--topology", topology] if topology else []
    if rng.random() < 0.3:
        words += ["--device-memory", f"{max(1, (memory >> 20) // rng.choice([3, 6, 12, 24]))}M"]
    return words


def evaluations(words):
    """Runs of the pass "eval", for a program that does not say it: one where training passes judge themselves, as they
    do without dropout, which is between layers."""
    option = dict(zip(words[1::2], words[2::2]))
    epochs, every = int(option["--epochs"]), int(option["--eval-every"])
    if option["--dropout"] == "0" or option["--layers"] == "1" or every == 0:
        return 1
    return epochs // every + 1


def predicted(words, env):
    """(seconds of the run, or None: refused; seconds that planning took; the error)"""
    began = time.monotonic()
    status, out, error = run([PROGRAM, "plan"] + words + ["--json"], env)
    took = time.monotonic() - began
    if status != 0:
        if "needs at least" not in error:
            return None, took, f"status {status}: {error.strip()}"
        return None, took, None
    plan = json.loads(out)
    seconds = {p["name"]: p["seconds"] for p in plan["passes"]}
    epochs = int(words[words.index("--epochs") + 1])
    total = seconds.get("setup", 0) + epochs * seconds["train"] + plan.get(
        "evaluations", evaluations(words)) * seconds.get("eval", seconds.get("predict", 0))
    if "run_seconds" in plan and abs(plan["run_seconds"] - total) > 1e-6 * total:
        return total, took, f"run_seconds is {plan['run_seconds']}, its passes say {total}"
    return total, took, None


def judge(words, env, switches):
    """(words, regret, best switch or None, seconds of planning the default, words of an error or None)"""
    base, took, error = predicted(words, env)
    best, by = None, None
    for switch in switches:
        if switch == "--no-chain" and "--device" not in words:
            continue
        seconds, _, wrong = predicted(words + [switch], env)
        error = error or wrong
        if seconds is not None and (best is None or seconds < best):
            best, by = seconds, switch
    if best is None:
        return words, 0.0 if base is None else 1.0, None, took, error
    return words, float("inf") if base is None else base / best, by, took, error


def numbers(text):
    """The numbers of "5,9,53-140", in order."""
    ends = [part.split("-") for part in text.split(",")]
    return sorted({number for end in ends for number in range(int(end[0]), int(end[-1]) + 1)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder")
    parser.add_argument("--all", action="store_true", help="print each case")
    parser.add_argument("--switches", default=",".join(SWITCHES), help="these alone, with commas between")
    parser.add_argument("--only", type=numbers, help="these cases alone, as 5,9,53-140")
    args = parser.parse_args()
    folder = args.folder or tempfile.mkdtemp(prefix="regret")
    os.makedirs(folder, exist_ok=True)
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
    print(f"seed {args.seed}, {args.cases} cases", flush=True)
    stores = [make_store(folder, k, env) for k in range(len(SHAPES))]
    sizes = [folder_bytes(s) for s in stores]
    rng = random.Random(args.seed)
    cases = [draw(rng, folder, k, stores, sizes) for k in range(args.cases)]
    chosen = range(args.cases) if args.only is None else [k for k in args.only if k < args.cases]
    switches = args.switches.split(",")
    above = refused = wrong = both = 0
    slowest = 0.0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = pool.map(lambda k: (k, judge(cases[k], env, switches)), chosen)
        for k, (words, regret, by, took, error) in jobs:
            line = f"case {k}: plan {' '.join(words)}"
            slowest = max(slowest, took)
            if args.all:
                print(f"{line}\n  {regret:.3f} {by or ''}, planned in {took:.2f} s", flush=True)
            both += regret == 0
            if error:
                wrong += 1
                print(f"{line}\n  {error}", flush=True)
            if regret == float("inf"):
                refused += 1
                print(f"{line}\n  refused, but runs with {by}", flush=True)
            elif regret > WORST:
                above += 1
                print(f"{line}\n  {100 * (regret - 1):.1f} % longer than with {by}", flush=True)
    print(f"{len(chosen)} cases: {above} with a regret above 2 %, {refused} refused for nothing, {both} refused with "
          f"every switch, {wrong} with another error; the longest planning took {slowest:.1f} s")
    if args.folder is None:
        shutil.rmtree(folder)
    return 1 if above + refused + wrong > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
