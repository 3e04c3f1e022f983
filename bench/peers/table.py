"""table.py RESULTS GRAPH... - the table of bench/peers.sh, from RESULTS/GRAPH-MODEL-PEER*.json.

MODELS and PEERS come from the environment. Exit status 1 where a loss differs by more than 1e-3
(of the loss, where it is above 1) from gnnstream's, or by more than a fiftieth of what the epochs
changed, which would hide a wrong gradient; or where a program failed.
"""
import json
import os
import pathlib
import statistics
import sys

TOLERANCE = 1e-3
ROUNDING = 1e-6  # float32's, on losses that do not move
NAMES = {"gnnstream": "gnnstream", "pyg": "PyG edges", "pyg-csr": "PyG CSR", "csr": "torch CSR",
         "csr-once": "torch CSR, AX once", "dgl": "DGL"}
SPEED, MEMORY = 3, 2  # times: what a row should reach


def read(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def result(folder, cell, who):
    """{"epoch", "peak", "import", "losses"} or {"none": why}."""
    measured = read(folder / f"{cell}-{who}.measured.json")
    if measured is None:
        reason = folder / f"{cell}-{who}.none"
        why = reason.read_text().strip() if reason.exists() else "not run"
        return {"none": why, "failed": why not in ("not available", "not run")}
    if measured["over_time"]:
        return {"none": "over time"}
    if measured["status"] != 0:
        return {"none": f"failed ({measured['status']})", "failed": True}
    if who == "gnnstream":
        lines = [json.loads(line) for line in (folder / f"{cell}-{who}.jsonl").read_text().splitlines()]
        run = {"seconds": [e["seconds"] for e in lines], "losses": [e["loss"] for e in lines], "import_bytes": 0}
    else:
        run = read(folder / f"{cell}-{who}.json")
    if "none" in run:
        return run
    if sum(run["seconds"]) > measured["wall_seconds"]:
        return {"none": "epochs longer than the run", "failed": True}
    return {"epoch": statistics.median(run["seconds"][1:] or run["seconds"]), "losses": run["losses"],
            "peak": measured["peak_bytes"], "import": run["import_bytes"]}


def difference(a, b):
    """Largest of all epochs; NaN counts as infinite."""
    if len(a) != len(b):
        return float("inf")
    found = [abs(x - y) / max(1, abs(x)) for x, y in zip(a, b)]
    return max(d if d == d else float("inf") for d in found)


def allowed(losses):
    moved = abs(losses[0] - losses[-1]) / max(1, abs(losses[0]))
    return min(TOLERANCE, max(moved / 50, ROUNDING))


def shown(losses):
    if len(losses) > 8:
        return " ".join(f"{x:.4f}" for x in losses[:5]) + " ... " + " ".join(f"{x:.4f}" for x in losses[-2:])
    return " ".join(f"{x:.4f}" for x in losses)


def print_losses(cell, results):
    """False where two programs do not compute the same."""
    same = True
    base = next((name for name, r in results.items() if "losses" in r), None)
    print(f"{cell}: loss of each epoch")
    for name, r in results.items():
        if "losses" not in r:
            print(f"  {NAMES[name]:<18} {r['none']}")
            same &= not r.get("failed", False)
            continue
        d = difference(results[base]["losses"], r["losses"])
        right = d <= allowed(results[base]["losses"])
        same &= right
        note = "" if name == base else f"   (difference {d:.1e}{'' if right else ', TOO LARGE'})"
        print(f"  {NAMES[name]:<18} {shown(r['losses'])}{note}")
    return same


def cells(results, key, form, short):
    return [form(results[n][key]) if key in results[n] else short.get(results[n]["none"], "-") for n in results]


def ratio(results, key, best):
    ours = results["gnnstream"].get(key)
    return results[best][key] / ours if ours and best else None


def mark(value, target):
    return "-" if value is None else f"{value:.2f}" + (" <" if value < target else "")


def seconds(x):
    return f"{x:.4f}" if x < 1 else f"{x:.2f}"


def print_tables(rows, names):
    short = {"over time": "over time", "out of memory": "no memory", "not available": "no model"}
    head = ["graph", "model", *(NAMES[n] for n in names)]
    fastest = {cell: min((n for n in r if n != "gnnstream" and "epoch" in r[n]), key=lambda n: r[n]["epoch"],
                         default=None)
               for cell, r in rows.items()}
    speed, memory = [[*head, "fastest peer / gnnstream"]], [[*head, "that peer / gnnstream", "without import"]]
    for cell, r in rows.items():
        best = fastest[cell]
        speed.append([*cell, *cells(r, "epoch", seconds, short), mark(ratio(r, "epoch", best), SPEED)])
        net = None
        if best and "peak" in r["gnnstream"]:
            net = (r[best]["peak"] - r[best]["import"]) / r["gnnstream"]["peak"]
        memory.append([*cell, *cells(r, "peak", lambda b: f"{b / 2**20:.0f}", short),
                       mark(ratio(r, "peak", best), MEMORY), mark(net, MEMORY)])
    imports = ", ".join(f"{NAMES[n]} {max(v):.0f}" for n in names if n != "gnnstream"
                        and (v := [r[n]["import"] / 2**20 for r in rows.values() if "import" in r[n]]))
    print(f"\nseconds an epoch, the median without the first (< : below {SPEED})")
    print_columns(speed)
    print(f"\npeak resident memory, MiB (< : below {MEMORY}); the libraries alone once imported: {imports}")
    print_columns(memory)


def print_columns(table):
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(f"{c:<{w}}" if i < 2 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(row, widths))).rstrip())


def main():
    folder, graphs = pathlib.Path(sys.argv[1]), sys.argv[2:]
    names = ["gnnstream", *os.environ["PEERS"].split()]
    rows, same = {}, True
    for graph in graphs:
        for model in os.environ["MODELS"].split():
            rows[graph, model] = {n: result(folder, f"{graph}-{model}", n) for n in names}
            same &= print_losses(f"{graph} {model}", rows[graph, model])
    print_tables(rows, names)
    if not same:
        print("peers.sh: a program failed, or does not compute the same", file=sys.stderr)
    sys.exit(not same)


main()
