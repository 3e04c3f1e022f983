#!/usr/bin/env python3
"""golden.py OLD NEW [--only WORD] [--epochs N] [--seconds RATIO]: do two builds do the same?

OLD and NEW are build folders. Each case, a model on a kind of device within a budget on the whole graph or on batches
of a sampler, is planned and trained by both, on the same stores. Compared are:

    losses and accuracies of every epoch, and the bytes of the saved weights: equal to the bit
    tasks of the plan (`plan --tasks`, where both builds know it), else its bytes, requests and tasks by pass
    bytes read and written by the run, its peaks
    the least budget that a refusal names (budget "least"): at most 1 % higher
    user and system seconds of all runs of a kind together: their ratio is printed, and judged by --seconds alone

Devices: cpu, cpu:4, and the tests' GPU (cuda:0; cpu,cuda:0), which runs on any machine, where tests/cuda/gnnstream_gpu
is built. Prints each difference, and at the end "N cases, N differ". Exit status 0: none differs.
"""
import argparse
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ZOO = ["gcn", "sage", "sage_max", "sage_lstm", "gat", "gatv2", "gin", "appnp", "commnet", "ggcn", "ggnn", "rgcn",
       "rgcn_bases"]
DEVICES = ["cpu", "cpu:4", "cuda:0", "cpu,cuda:0"]
BUDGETS = {"ample": [], "tight": ["--host-memory", "LEAST"], "least": ["--host-memory", "4K"]}
FANOUT = ["--sampler", "neighbor", "--batch-size", "256", "--fanout", "5,5"]
SAMPLERS = {"whole": [], "neighbor": FANOUT, "cluster": ["--sampler", "cluster", "--batch-size", "2"],
            **{s: ["--sampler", s, "--batch-size", "300"] for s in ("saint-node", "saint-edge", "saint-walk")}}
OF_PASS = ["name", "parts", "tasks", "read_bytes", "read_requests", "skipped_bytes", "written_bytes", "edges", "rows"]
OF_EPOCH = ["epoch", "loss", "train_acc", "valid_acc", "test_acc", "read_bytes", "written_bytes"]
PEAKS = ["peak_host_bytes", "peak_device_bytes"]


def program(build, device):
    return build / ("tests/cuda/gnnstream_gpu" if "cuda" in device else "tools/gnnstream")


def command(*words, cwd=None):
    """(status, standard output, standard error, seconds of processors)"""
    env = {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": str(cwd / "cache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=cwd, env=env, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, done.stdout, done.stderr, sum(after[:2]) - sum(before[:2])


def make_stores(gnnstream, folder):
    """One of types and one without, of 16 parts each, made by the old program."""
    (folder / "cache").mkdir()
    kinds = {"plain": ("sbm", []), "typed": ("rmat", [])}
    for name, (kind, more) in kinds.items():
        graph, store = folder / f"{name}.graph", folder / f"{name}.store"
        steps = [["generate", kind, graph, "--vertices", 12000, "--edges", 100000, "--features", 48, "--classes", 5,
                  "--seed", 7, *more], ["partition", graph, store, "--parts", 16, "--seed", 3]]
        for n, step in enumerate(steps):
            status, _, words, _ = command(gnnstream, *step, cwd=folder)
            if status != 0:
                sys.exit(f"golden.py: {' '.join(map(str, step))}: {words}")
            if n == 0 and name == "typed":
                write_types(graph / "edge_types.npy", 100000, 6)
    return {name: folder / f"{name}.store" for name in kinds}


def write_types(path, edges, types):
    """An .npy file of int64: edge e has type e * e mod `types`."""
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({edges},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        for e in range(edges):
            file.write((e * e % types).to_bytes(8, "little"))


def cases():
    for model in ZOO:
        for device in DEVICES:
            for budget in BUDGETS:
                for sampler in SAMPLERS:
                    if sampler != "whole" and (budget == "least" or device == "cpu,cuda:0"):
                        continue
                    yield model, device, budget, sampler


def options_of(model, device, budget, sampler, epochs):
    words = ["--model", model, "--layers", 2, "--hidden", 16, "--epochs", epochs, "--seed", 11, "--device", device,
             "--threads", 2, "--keep", "last", *BUDGETS[budget], *SAMPLERS[sampler]]
    return words + ([] if model in ("sage_lstm", "appnp") else ["--dropout", 0.25])


def within_least(build, store, options, folder):
    """The options with the budget that a refusal of the build names in the place of LEAST."""
    if "LEAST" not in options:
        return options
    tiny = ["4K" if w == "LEAST" else w for w in options]
    _, _, error, _ = command(program(build, "cuda" if "cuda" in str(options) else "cpu"), "plan", store, *tiny,
                             cwd=folder)
    return [f"{int(least(error))}" if w == "LEAST" else w for w in options]


def run_one(build, store, case, options, folder):
    """{what: value} that two builds must share, and seconds."""
    gnnstream = program(build, case[1])
    seen, seconds = {}, 0.0
    status, words, error, took = command(gnnstream, "plan", store, *options, "--json", cwd=folder)
    seconds += took
    seen["plan status"] = status
    if status != 0:
        seen["refusal"] = error.strip()
        return seen, seconds
    plan = json.loads(words)
    seen["plan"] = [[p.get(k) for k in OF_PASS] for p in plan["passes"]]
    status, words, _, took = command(gnnstream, "plan", store, *options, "--tasks", cwd=folder)
    seen["tasks"] = words if status == 0 else None
    metrics, saved = folder / "metrics.jsonl", folder / "saved.safetensors"
    for path in (metrics, saved):
        path.unlink(missing_ok=True)
    status, _, error, took = command(gnnstream, "train", store, *options, "--metrics", metrics, "--save", saved,
                                     cwd=folder)
    seconds += took
    seen["train status"] = status
    if status != 0:
        seen["refusal"] = error.strip()
        return seen, seconds
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    seen["epochs"] = [[line.get(k) for k in OF_EPOCH] for line in lines]
    seen["peaks"] = [max(line.get(k) or 0 for line in lines) for k in PEAKS]
    data = saved.read_bytes()
    seen["weights"] = hashlib.sha256(data[8 + int.from_bytes(data[:8], "little"):]).hexdigest()
    return seen, seconds


def least(words):
    found = re.search(r"(\d+(?:\.\d+)?)([KMG])", (words or "").split("needs at least")[-1])
    return float(found[1]) * 1024 ** (1 + "KMG".index(found[2])) if found else 0


def differences(old, new):
    for what in sorted(old.keys() | new.keys()):
        a, b = old.get(what), new.get(what)
        if what == "tasks" and (a is None or b is None):
            continue
        if what == "refusal" and a and b:
            if least(b) > least(a) * 1.01:
                yield what, a, b
        elif what == "peaks" and a and b:
            if any(y > x * 1.01 + 2 ** 20 for x, y in zip(a, b)):
                yield what, a, b
        elif a != b:
            yield what, a, b


def short(value):
    text = str(value)
    return text if len(text) < 200 else f"{text[:200]}... ({len(text)} characters)"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this word: gat/cpu:4/spills/whole")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="most that NEW's processor time may be of OLD's")
    given = parser.parse_args()
    old, new = given.old.resolve(), given.new.resolve()
    compared = differ = 0
    took = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stores = make_stores(program(old, "cpu"), folder)
        for case in cases():
            title = "/".join(case)
            if given.only not in title:
                continue
            if not all(program(b, case[1]).exists() for b in (old, new)):
                print(f"{title}: left out, as tests/cuda/gnnstream_gpu is not built")
                continue
            store = stores["typed" if case[0].startswith("rgcn") else "plain"]
            options = within_least(old, store, options_of(*case, given.epochs), folder)
            (a, before), (b, after) = (run_one(x, store, case, options, folder) for x in (old, new))
            found = list(differences(a, b))
            compared, differ = compared + 1, differ + bool(found)
            kind = took.setdefault((case[1], case[3]), [0.0, 0.0])
            kind[0], kind[1] = kind[0] + before, kind[1] + after
            for what, x, y in found:
                print(f"{title}: {what}\n    old {short(x)}\n    new {short(y)}", flush=True)
    slow = False
    print(f"{'seconds of processors':32} {'old':>8} {'new':>8} {'new/old':>8}")
    for (device, sampler), (before, after) in took.items():
        slow = slow or (given.seconds and after > given.seconds * before)
        print(f"{device + ' ' + sampler:32} {before:8.2f} {after:8.2f} {after / max(before, 1e-9):8.3f}")
    print(f"{compared} cases, {differ} differ")
    sys.exit(1 if differ or slow or compared == 0 else 0)


main()
