#!/usr/bin/env python3
"""planning.py PROGRAM DIR - how long does planning take, and how much memory?

Random cases of (model, store, devices, budget), each of which `plan` is run for in a memory cgroup whose limit is the
budget (limited.py; root, and a writable cgroup file system). Stores are small: up to 1,024 parts of up to 60,000
vertices. A case fails where `plan` takes more processor time than 2 s or one predicted epoch, whichever is more, beside
what the program takes to say its version; where it is killed, or resident with more than the budget; or where it ends
with anything but a plan or a refusal that names a budget. Refusals are given the epoch of the budget that they name.
One that says what the store's tables need, as memory has no room to read them, is asked again with so much more.

  --cases N     200
  --only LIST   of them, by their numbers: 5,9,53-140
  --seed S      of the cases, 1
  --than OTHER  another program, of which each plan is compared: seconds of the epoch, and the least budget that a
                refusal names

Wall seconds are printed, too; a busy machine makes them long.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
PARTS = (1, 2, 4, 8, 16, 32, 64, 128, 254, 512, 1024)
GRAPHS = (("rmat", 2000, 20000), ("rmat", 20000, 300000), ("sbm", 10000, 60000), ("sbm", 60000, 600000))
MODELS = ("gcn", "sage", "gat", "gin")


def limited(program, args, limit, report):
    """What limited.py says of the command, and its two outputs."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "limited.py"), str(limit), report, program, *args],
                          capture_output=True, text=True, check=False)
    if not os.path.exists(report):
        sys.exit(f"planning.py: {done.stderr.strip()}")
    with open(report, encoding="ascii") as file:
        return {**json.load(file), "out": done.stdout, "err": done.stderr}


def make_store(program, folder, number, parts):
    """The store of a graph in so many parts, made once."""
    kind, vertices, edges = GRAPHS[number]
    store, graph = f"{folder}/{number}-{parts}", f"{folder}/graph{number}"
    if not os.path.exists(f"{graph}/edges.npy"):
        subprocess.run([program, "generate", kind, graph, "--vertices", str(vertices), "--edges", str(edges),
                        "--features", "48", "--classes", "8", "--seed", str(number)], check=True, capture_output=True)
    if not os.path.exists(f"{store}/manifest.json"):
        subprocess.run([program, "partition", graph, store, "--parts", str(parts), "--method", "random", "--force"],
                       check=True, capture_output=True)
    return store


def draw_case(rng):
    """A store by number and parts, options of a model, devices, a budget in MiB."""
    number = rng.randrange(len(GRAPHS))
    model = rng.choice(MODELS)
    options = ["--model", model, "--layers", str(rng.randint(1, 4)), "--hidden", str(rng.choice((8, 16, 64, 128))),
               "--dropout", rng.choice(("0", "0.5")), "--device", rng.choice(("cpu", "cpu", "cpu", "cpu:2", "cpu:4"))]
    more = ([], ["--norm", "batch"], ["--norm", "layer"], ["--residual"])
    options += rng.choice(more[:3] if options[3] in ("1", "2") else more)  # residuals are between two hidden layers
    budget = int(2 ** rng.uniform(5, 9))  # 32 to 512 MiB
    return number, rng.choice(PARTS), options, budget


def epoch_of(out):
    """Predicted seconds of a plan's epoch, as it is printed with --json."""
    passes = {p["name"]: p["seconds"] for p in json.loads(out)["passes"]}
    return passes.get("train", 0) + passes.get("eval", 0)


def named(err):
    """MiB that a refusal names; None where it is none."""
    found = re.search(r"at least (\d+)([KMG])", err)
    return int(found[1]) * UNITS[found[2]] // MIB if found else None


def plan(program, store, options, budget, folder):
    """Runs `plan` within so many MiB."""
    args = ["plan", store, *options, "--host-memory", f"{budget}M", "--threads", "2", "--json"]
    report = f"{folder}/report.json"
    if os.path.exists(report):
        os.remove(report)
    return limited(program, args, budget * MIB, report)


def judge(run, program, store, options, budget, folder, start):
    """What is wrong with a case, and its epoch's seconds."""
    if run["status"] == 0:
        epoch = epoch_of(run["out"])
    elif (tables := re.search(r"tables of \d+ parts need ([\d.]+) MiB", run["err"])) is not None:
        more = plan(program, store, options, budget + int(float(tables[1])) + 16, folder)
        named_then = more["status"] == 0 or named(more["err"]) is not None
        return "" if named_then else f"with its tables' memory: {more['err'].strip()[-90:]}", 0
    elif (least := named(run["err"])) is not None:
        fits = plan(program, store, options, least, folder)
        if fits["status"] != 0:
            return "the budget that is named is refused", 0
        epoch = epoch_of(fits["out"])
    else:
        return f"status {run['status']}: {run['err'].strip()[-90:]}", 0
    spent = run["user_seconds"] + run["system_seconds"] - start
    if run["resident_peak_bytes"] > budget * MIB:
        return "resident with more than the budget", epoch
    return "too long" if spent > max(2, epoch) else "", epoch


def compare(run, than, kept):
    """Notes how this program's answer is to the other's."""
    if run["status"] == 0 and than["status"] == 0:
        kept["epochs"].append(epoch_of(run["out"]) / max(epoch_of(than["out"]), 1e-9))
    elif run["status"] != 0 and than["status"] != 0 and named(run["err"]) and named(than["err"]):
        kept["budgets"].append(named(run["err"]) / named(than["err"]))
    else:
        kept["other"] += 1


def say(name, ratios):
    """The distribution of ratios, this one to the other."""
    if ratios:
        x = sorted(ratios)
        part = [x[min(len(x) - 1, int(q * len(x)))] for q in (0, 0.1, 0.5, 0.9, 1)]
        print(f"{name}: {len(x)} compared; least, 10 %, median, 90 %, most: " + ", ".join(f"{p:.3f}" for p in part) +
              f"; above 1.02: {sum(r > 1.02 for r in x)}")


def numbers(text):
    """The numbers of "5,9,53-140"."""
    ends = [part.split("-") for part in text.split(",")]
    return {number for end in ends for number in range(int(end[0]), int(end[-1]) + 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("dir")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", type=numbers)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--than")
    args = parser.parse_args()
    rng, failed, kept = random.Random(args.seed), 0, {"epochs": [], "budgets": [], "other": 0}
    os.makedirs(args.dir, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = f"{args.dir}/cache" # costs are the stated guesses
    idle = limited(args.program, ["--version"], 512 * MIB, f"{args.dir}/report.json")
    start = idle["user_seconds"] + idle["system_seconds"]
    print(f"seed {args.seed}\n{'case':>4} {'graph':>5} {'P':>5} {'budget':>7} {'cpu s':>6} {'wall s':>6} {'epoch':>8} "
          f"{'resident':>8}  options")
    for case in range(args.cases):
        number, parts, options, budget = draw_case(rng)
        if args.only is not None and case not in args.only:
            continue
        store = make_store(args.program, args.dir, number, parts)
        run = plan(args.program, store, options, budget, args.dir)
        wrong, epoch = judge(run, args.program, store, options, budget, args.dir, start)
        failed += wrong != ""
        print(f"{case:4} {number:5} {parts:5} {budget:6}M {run['user_seconds'] + run['system_seconds']:6.2f} "
              f"{run['seconds']:6.1f} {epoch:8.3f} {run['resident_peak_bytes'] // MIB:7}M  {' '.join(options)}"
              f"{'' if run['status'] == 0 else ' (refused)'}{'  FAILED: ' + wrong if wrong else ''}", flush=True)
        if args.than:
            compare(run, plan(args.than, store, options, budget, args.dir), kept)
    say("predicted epochs, this program's to the other's", kept["epochs"])
    say("least budgets that refusals name", kept["budgets"])
    if args.than:
        print(f"one of the two refused: {kept['other']}")
    print(f"{args.cases if args.only is None else len(args.only)} cases, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
