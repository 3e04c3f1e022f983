#!/usr/bin/env python3
"""lanes.py PROGRAM DIR [WORKLOAD ...] [-- OPTION ...] - how long a step on batches takes beside its longest lane.

Trains GraphSAGE on `cpu:2`, each device with a wire of its own, and prints for each workload what a trace of the last
epoch says of a step: seconds that each lane is busy with it (of the device that is busy longest), of the step, and how
many times the longest lane that is; beside it what `plan` predicts of the same, once costs were measured. Weights are
compared by their bits with those of --no-pipeline. With --gpu the device is `cuda` and no wires are said. DIR keeps
graphs. Other processes on the machine show in everything but wires and speeds, which are clocks.
"""
import argparse
import bisect
import filecmp
import json
import os
import pathlib
import subprocess

WORKLOADS = {  # vertices, edges, features; options; the wire's bytes a second; speeds of the devices
    "copying": (100000, 1000000, 128, "--batch-size 128 --fanout 10,5 --hidden 16", 60e6, 1),
    "drawing": (100000, 2000000, 4, "--batch-size 128 --fanout 15,10,5 --hidden 4 --layers 3", 4e9, 1),
    "computing": (100000, 1000000, 32, "--batch-size 256 --fanout 10,5 --hidden 64", 4e9, 0.04),
    "alike": (100000, 1000000, 64, "--batch-size 256 --fanout 10,5 --hidden 32", 30e6, 0.03),
}
LANES = ("draw", "pick", "send", "compute")
FIRST = 4  # steps of an epoch that are not looked at, while lanes fill


def run(*words):
    got = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if got.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {got.stderr}")
    return got.stdout


def store_of(program, folder, vertices, edges, features):
    store = folder / f"{vertices}-{edges}-{features}"
    if not store.exists():
        graph = folder / "graph"
        run("rm", "-rf", graph)
        run(program, "generate", "sbm", graph, "--vertices", vertices, "--edges", edges, "--features", features,
            "--classes", 8)
        run(program, "partition", graph, store, "--parts", 4, "--memory", "1G")
    return store


def options_of(program, folder, name, gpu=False):
    vertices, edges, features, words, bps, speed = WORKLOADS[name]
    wires = folder / f"{name}.json"
    one = {"devices": 1, "host_bps": bps, "peer_bps": bps, "speeds": [speed]}
    wires.write_text(json.dumps({"switches": [one, one]}))
    devices = ["--device", "cuda"] if gpu else ["--device", "cpu:2", "--threads", 2, "--topology", wires]
    return [store_of(program, folder, vertices, edges, features), "--model", "sage", "--sampler", "neighbor",
            *words.split(), *devices]


def spans_of(path):
    """[(name, device's track, first batch, begin, end)], seconds."""
    events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
    return [(e["name"], e["tid"], e["args"]["batch"], e["ts"] / 1e6, (e["ts"] + e["dur"]) / 1e6)
            for e in events if e["ph"] == "X"]


def measured(path):
    """({lane: seconds a step}, seconds a step), from the end of step FIRST to that of the last one; of lanes what they
    were busy with the batches of these steps, some of which began before. (What a lane did between the two moments is
    less: at the first one it is batches ahead, at the last one nothing is left for it.) A group's drawing is its
    batches', in equal parts. Devices wait for each other behind a step's passes, so computing is that of the device
    which took longest in this step."""
    spans = spans_of(path)
    steps = sorted((s for s in spans if s[0] == "step"), key=lambda s: s[2])
    first_of = [s[2] for s in steps]
    groups = sorted(s[2] for s in spans if s[0] == "draw") + [1 + max(s[2] for s in spans)]
    count, busy, compute = len(steps) - FIRST, {}, {}
    for name, track, batch, first, last in spans:
        step = bisect.bisect_right(first_of, batch) - 1
        if name == "compute":
            compute[step, track] = compute.get((step, track), 0) + last - first
        elif name == "draw":
            end = groups[bisect.bisect_right(groups, batch)]
            part = max(end - max(batch, first_of[FIRST]), 0) / (end - batch)
            busy[name, track] = busy.get((name, track), 0) + (last - first) * part
        elif name in LANES and step >= FIRST:
            busy[name, track] = busy.get((name, track), 0) + last - first
    lanes = {lane: max([x for (name, _), x in busy.items() if name == lane], default=0) / count for lane in LANES}
    lanes["compute"] = sum(max(x for (k, _), x in compute.items() if k == step) + steps[step][4] - steps[step][3]
                           for step in range(FIRST, len(steps))) / count
    return lanes, (steps[-1][4] - steps[FIRST - 1][4]) / count


def predicted(plan):
    lanes = dict(zip(LANES, (plan[f"{lane}_seconds"] for lane in LANES)))
    return lanes, plan["step_seconds"]


def row(name, kind, lanes, step):
    longest = max(lanes.values())
    print(f"| {name} | {kind} |" + "".join(f" {lanes[lane] * 1e3:.2f} |" for lane in LANES) +
          f" {step * 1e3:.2f} | {step / longest if longest > 0 else 0:.3f} |", flush=True)


def main():
    split = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    split.add_argument("program")
    split.add_argument("dir", type=pathlib.Path)
    split.add_argument("only", nargs="*", choices=[[], *WORKLOADS])
    split.add_argument("--gpu", action="store_true")
    split.add_argument("--epochs", default=2)
    split.add_argument("--more", default="", help="options of train, as one word")
    a = split.parse_args()
    a.dir.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(a.dir / "cache")
    print("| workload | | " + " | ".join(f"{lane} ms" for lane in LANES) + " | step ms | of the longest |")
    print("|---|---|" + "---|" * (len(LANES) + 2))
    for name in a.only or WORKLOADS:
        options = options_of(a.program, a.dir, name, a.gpu) + a.more.split()
        trace, weights = a.dir / "trace.json", [a.dir / f"{k}.safetensors" for k in range(2)]
        train = [a.program, "train", *options, "--epochs", a.epochs, "--eval-every", 0, "--keep", "last"]
        alone = options[:options.index("--device")] + a.more.split()
        run(a.program, "bench", "train", *alone, "--device", "cuda" if a.gpu else "cpu", "--threads", 1, "--epochs", 2)
        run(*train, "--save", weights[1], "--no-pipeline", "--trace", trace)
        row(name, "--no-pipeline", *measured(trace))
        run(*train, "--save", weights[0], "--trace", trace)
        row(name, "trace", *measured(trace))
        row(name, "predicted", *predicted(json.loads(run(a.program, "plan", *options, "--json"))))
        if not filecmp.cmp(*weights, shallow=False):
            raise SystemExit(f"{name}: other weights without the pipeline")


if __name__ == "__main__":
    main()
