#!/usr/bin/env python3
"""beside.py GRAPH STORE [--disk] [OPTIONS] - GraphSAGE and GAT on batches of neighbours, beside other loaders.

gnnstream, DGL's GraphBolt and torch_geometric's NeighborLoader train the same model on the same graph: 2 layers, the
same widths, fanouts, batch size, Adam, threads (peer.py has the peers). They take turns, a process each, so what else
the machine does falls on all; the median round counts. Batches a second are of whole epochs behind the first, by the
clock and by processor seconds (gnnstream's: of two runs that differ by these epochs; nan with --disk). Memory is the
most that was resident in the process, evaluation and libraries included. --host-memory is the least of those given by
--budgets with which gnnstream reads nothing from the disk in an epoch.

With --disk features stay on disk, and each process is in a memory cgroup of a quarter of their size, page cache
included; the page cache is dropped before each run, and bytes are those that the kernel read for the process. GraphBolt
alone is compared, whose features are a numpy.memmap, as its OnDiskDataset opens them without in_memory. What Python,
PyTorch and the model take is measured first, with one batch and no loader. Where that is more than half of the cgroup,
the cgroup of all that runs in PyTorch has so much more, ours there as the peers, and only that of gnnstream's own
program stays a quarter of the features.

--peers may name loader-dgl and loader-pyg, too: gnnstream's own loader in front of the models that GraphBolt and
NeighborLoader have here, so that nothing differs but the loader, in the same cgroup; its --host-memory is what the rest
leaves. --batches-alone leaves the models out of these and of the peers.

GRAPH is a folder as `gnnstream generate` makes it, STORE what `gnnstream partition` makes of it. This runs in a Python
with torch and what the peers need (bench/loaders.sh makes one); a peer that cannot be run is left out with its error.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADS = 8
LAYERS = {"graphbolt": "dgl", "loader-dgl": "dgl", "neighborloader": "pyg", "loader-pyg": "pyg"}
THEIRS = {"gnnstream": None, "loader-dgl": "graphbolt", "loader-pyg": "neighborloader"}  # beside whom; None: the best


def used():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def limited(limit, command, folder):
    """The command, in a cgroup of so many bytes where that is not 0; what it prints."""
    report = os.path.join(folder, "report.json")
    if limit:
        subprocess.run(["sync"], check=True)
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("3")
        command = [sys.executable, os.path.join(HERE, "..", "limited.py"), str(limit), report, *command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(((done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"])[-1])
    return done.stdout


def gnnstream_epochs(a, model, budget, epochs):
    with tempfile.TemporaryDirectory() as folder:
        metrics, before = os.path.join(folder, "m.jsonl"), used()
        options = ["--heads", str(HEADS)] if model == "gat" else []
        command = [a.gnnstream, "train", a.store, "--model", model, "--layers", "2", *options, "--sampler", "neighbor",
                   "--hidden", str(a.hidden), "--batch-size", str(a.batch), "--fanout", a.fanout,
                   "--eval-every", "0", "--epochs", str(epochs), "--threads", str(a.threads),
                   "--host-memory", budget, "--metrics", metrics]
        out = limited(a.quarter, command, folder)
        with open(metrics, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        resident = next(line.rsplit("at most ", 1)[1].split() for line in out.splitlines() if " at most " in line)
        return lines, used() - before, float(resident[0]) * {"MiB": 1, "GiB": 1024}[resident[1]]


def run_gnnstream(a, model, budget):
    epochs = 1 + a.epochs
    _, once, _ = gnnstream_epochs(a, model, budget, 1) if not a.quarter else (None, float("nan"), 0)
    lines, cpu, mib = gnnstream_epochs(a, model, budget, epochs)
    timed = lines[1:]
    return {"seconds": statistics.mean(e["seconds"] for e in timed), "cpu": (cpu - once) / len(timed), "mib": mib,
            "read": statistics.mean(e["read_bytes"] for e in timed), "loss": timed[-1]["loss"], "batches": a.batches}


def peer(a, model, loader):
    return [sys.executable, os.path.join(HERE, "peer.py"), loader, a.graph, "--model", model, "--hidden", str(a.hidden),
            "--batch", str(a.batch), "--fanout", a.fanout, "--epochs", str(1 + a.epochs), "--threads", str(a.threads),
            "--most-batches", str(a.peer_batches), "--store", a.store] + ["--batches-alone"] * a.batches_alone


def make_room(a, model, peers):
    """With --disk: the cgroup of what runs in PyTorch, and what PyTorch and the model leave of it."""
    if not a.quarter:
        return
    occupied = 0
    for layers in {LAYERS[k] for k in peers}:
        done = subprocess.run(peer(a, model, f"occupied-{layers}"), check=True, stdout=subprocess.PIPE, text=True)
        occupied = max(occupied, json.loads(done.stdout.splitlines()[-1])["peak"])
    a.limit = a.quarter + (occupied if 2 * occupied > a.quarter else 0)
    a.left = a.limit - occupied - a.limit // 40
    print(f"{model}: Python, PyTorch, the model and a batch take {occupied / 2**20:.0f} MiB; what runs there has a "
          f"cgroup of {a.limit / 2**20:.0f} MiB, and gnnstream's loader {a.left / 2**20:.0f} MiB of it", flush=True)


def run_peer(a, model, loader):
    command = peer(a, model, loader) + ["--sampler", a.sampler] * bool(a.sampler)
    command += ["--disk", "--host-memory", str(a.left)] * bool(a.limit)
    with tempfile.TemporaryDirectory() as folder:
        r = json.loads(limited(a.limit, command, folder).splitlines()[-1])
    return {"seconds": statistics.mean(r["seconds"][1:]), "cpu": statistics.mean(r["cpu"][1:]),
            "mib": r["peak"] / 2**20, "read": statistics.mean(r["read"][1:]), "loss": r["loss"],
            "batches": r["batches"], "imports": r["imports"] / 2**20}


def choose_budget(a, model):
    """The first with which nothing is read."""
    for budget in a.budgets.split(","):
        try:
            lines, _, _ = gnnstream_epochs(a, model, budget, 1)
        except RuntimeError:
            continue
        if lines[-1]["read_bytes"] == 0:
            return budget
    raise SystemExit(f"beside.py: {model}: features stay in memory with none of --budgets {a.budgets}")


def middle(rounds):
    return {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}


def print_table(model, results, budget):
    print(f"{model}, --host-memory {budget}")
    print(f"  {'':16}{'batches/s':>11}{'ms a batch':>12}{'CPU ms':>9}{'MiB':>8}{'MB read a batch':>17}{'loss':>9}")
    for name, rounds in results.items():
        m = middle(rounds)
        n = m["batches"]
        print(f"  {name:16}{n / m['seconds']:11.2f}{1e3 * m['seconds'] / n:12.1f}{1e3 * m['cpu'] / n:9.1f}"
              f"{m['mib']:8.0f}{m['read'] / n / 1e6:17.1f}{m['loss']:9.4f}", flush=True)
    peers = {k: middle(v) for k, v in results.items() if k in THEIRS.values()}
    for name, other in THEIRS.items():
        if name in results and other is None and peers:
            other = min(peers, key=lambda k: peers[k]["seconds"] / peers[k]["batches"])
        if name not in results or other not in peers:
            continue
        own, p = middle(results[name]), peers[other]
        print(f"  {name}: {p['seconds'] / p['batches'] / (own['seconds'] / own['batches']):.2f} times the batches a "
              f"second of {other}, {p['cpu'] / p['batches'] / (own['cpu'] / own['batches']):.2f} times by processor "
              f"seconds, {own['mib'] / p['mib']:.2f} of its memory", flush=True)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("graph")
    p.add_argument("store")
    p.add_argument("--gnnstream", default="build/tools/gnnstream")
    p.add_argument("--models", default="sage,gat")
    p.add_argument("--peers", default="graphbolt,neighborloader")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--epochs", type=int, default=2, help="that are timed, behind one that is not")
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--fanout", default="15,10")
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--budgets", default="480M,520M,560M,600M,640M,680M,720M,740M,780M,840M,1G,2G,4G")
    p.add_argument("--disk", action="store_true")
    p.add_argument("--batches-alone", action="store_true")
    p.add_argument("--sampler", help="torch-sparse's, as peer.py has it")
    p.add_argument("--peer-batches", type=int, default=0, help="of a peer's epoch; 0: all")
    return p.parse_args()


def main():
    a = arguments()
    a.gnnstream = os.path.abspath(a.gnnstream)
    info = json.loads(subprocess.run([a.gnnstream, "info", a.store, "--json"], check=True, capture_output=True).stdout)
    a.batches = -(-info["train"] // a.batch)
    features = info["vertices"] * info["features"] * 4
    a.quarter = features // 4 if a.disk else 0
    a.limit = a.left = 0
    print(f"{info['vertices']:,} vertices, {info['edges']:,} edges, {info['features']} features "
          f"({features / 2**20:.0f} MiB), batches of {a.batch}, fanouts {a.fanout}, hidden {a.hidden}, "
          f"{a.threads} threads" + (f", in a memory cgroup of {a.quarter / 2**20:.0f} MiB" if a.disk else ""),
          flush=True)
    peers = a.peers.split(",")
    for model in a.models.split(","):
        budget = "" if a.batches_alone else str(a.quarter - a.quarter // 40) if a.disk else choose_budget(a, model)
        results = {}
        make_room(a, model, peers)
        for _ in range(a.rounds):
            if not a.batches_alone:
                results.setdefault("gnnstream", []).append(run_gnnstream(a, model, budget))
            for loader in list(peers):
                try:
                    results.setdefault(loader, []).append(run_peer(a, model, loader))
                except RuntimeError as error:
                    print(f"{loader} is left out: {error}", file=sys.stderr, flush=True)
                    peers.remove(loader)
                    results.pop(loader, None)
        print_table(model, results, budget)


main()
