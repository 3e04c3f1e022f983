"""The three modes of tools/check-gpu: what is run, in which order, and for how long at most.

What says most in the fewest seconds comes first: a GPU's machine may be lost at any moment.
"""
import json
import os
import re
import statistics

import machine

TESTS = ("rows", "step", "pick", "draw", "edge_program", "edge_halves", "edge_types", "edge_typed", "vertex", "columns",
         "statistics", "sequence", "ops")
MODELS = ("gcn", "sage", "sage_max", "sage_lstm", "gat", "gatv2", "gin", "appnp", "commnet", "ggcn", "ggnn", "rgcn",
          "rgcn_bases", "norms")
PROGRAMS = ("tools/gnnstream", "tests/reference/reference", "tests/matrix/matrix", "bench/kernels/bench_gpu",
            *(f"tests/cuda/test_gpu_{t}" for t in TESTS))


class Place:
    """Where programs, scripts and data are."""

    def __init__(self, root, programs, work, scale, peers_path):
        self.root, self.bin, self.work, self.scale, self.peers_path = root, programs, work, scale, peers_path
        self.libraries = 0  # bytes of the host's memory that CUDA's libraries take, once a plan has said so

    def program(self, name):
        return os.path.join(self.bin, name)

    def data(self, name):
        return os.path.join(self.work, name)

    def size(self, n):
        return str(int(n * self.scale))

    def store_mib(self):
        """Of what is to be trained."""
        folder = self.data("whole")
        files = os.listdir(folder) if os.path.isdir(folder) else []
        return sum(os.path.getsize(os.path.join(folder, f)) for f in files) >> 20

    def host_mib(self, share):
        """A budget of the host's: so many times the store, and what no run can do without, CUDA's libraries."""
        return max(64, int(self.store_mib() * share)) + (self.libraries >> 20)


def first_minute(run, at):
    """Is there a GPU, does it compile, and is what it trains right? Opening the first context of a machine may take
    half a minute, a file of 500 MiB of cuBLAS's to be read among it."""
    run.step("versions", 30, ["bash", "-c", machine.VERSIONS], machine.read_versions)
    run.step("open", 90, [at.program("bench_gpu"), "open"], plain)
    run.step("compile", 90, [at.program("bench_gpu"), "compile"], plain)
    run.step("cuda as cpu", 90, ["bash", os.path.join(at.root, "bench/gpu/as_cpu.sh"), at.data("small")], plain)


def plain(said):
    return {}, said.splitlines()


# ---- figures ----

def make_graph(run, at):
    """Reddit's shape, and its store for what is all in memory, in large parts: a launch takes a chunk, and a chunk of
    them all would be done before the next one is asked for."""
    if run.step("generate", 240, [at.program("gnnstream"), "generate", "rmat", at.data("graph"), "--vertices",
                                  at.size(233000), "--edges", at.size(114000000), "--features", "602", "--classes",
                                  "41"]):
        run.graph_is_there.set()
        partition(run, at, "few", "whole", 4)


def partition(run, at, name, store, parts):
    run.step(f"partition, {name} parts", 240, [at.program("gnnstream"), "partition", at.data("graph"), at.data(store),
                                               "--method", "random", "--parts", str(parts)])


def make_more(run, at):
    """Stores in parts small enough for an eighth of the data; and a typed graph."""
    if run.graph_is_there.is_set():
        partition(run, at, "some", "store", 8)
        partition(run, at, "many", "fine", 16)


def make_typed(run, at):
    """Edges of more types than a vertex has edges: 500."""
    types = 25 if at.scale < 0.05 else int(500 * at.scale)
    run.step("typed graph", 240, ["bash", "-c", 'set -e; "$0" generate sbm "$1-graph" --vertices "$2" --edges "$3" '
                                  '--features 64 --classes 16; python3 "$4" "$1-graph" "$5"; '
                                  '"$0" partition "$1-graph" "$1" --method random --parts 4',
                                  at.program("gnnstream"), at.data("typed"), at.size(400000), at.size(8000000),
                                  os.path.join(at.root, "bench/edge_types.py"), str(types)])


def read_gather(said):
    figures = {}
    for width, percent in re.findall(r"^fused gather width (\d+) .* ([0-9.]+) % of copy", said, re.M):
        figures[f"gather {width}"] = max(figures.get(f"gather {width}", 0), float(percent))
    return {**figures, **read_pinned(said)}, said.splitlines()


def read_pinned(said):
    return {"pinned": float(p) for p in re.findall(r"^pinned to device +([0-9.]+)", said, re.M)}


def read_disk(said):
    rate = json.loads(said)["disk_read_bps"] / 1e9
    return {"disk": rate}, [f"read from disk {rate:.2f} GB/s"]


def read_epochs(run, label, base, metrics):
    """Of the epochs but the first, the median one: its seconds, what it copied and read, and it beside the longest of
    what must take time: copies at the pinned rate, reads at the disk's, and an epoch of `base`, which has everything
    on the device."""
    def read(_):
        with open(metrics, encoding="utf-8") as f:
            epochs = [json.loads(line) for line in f]
        middle = statistics.median_low([e["seconds"] for e in epochs[1:] or epochs])
        e = next(e for e in epochs if e["seconds"] == middle)
        figures = {f"epoch {label}": e["seconds"]}
        copied = e.get("copied_in_bytes", 0)
        line = (f"{label}: {e['seconds']:.4f} s an epoch; {copied / 1e6:.1f} MB to the device, "
                f"{e['read_bytes'] / 1e6:.1f} MB read, {e['stall_seconds']:.4f} s stalled; loss {e['loss']:.4f}")
        compute, pinned, disk = run.figures.get(f"epoch {base}"), run.figures.get("pinned"), run.figures.get("disk")
        if compute and pinned:
            parts = {"computing": compute, "copying": copied / pinned / 1e9,
                     "reading": e["read_bytes"] / disk / 1e9 if disk else 0}
            most = max(parts, key=parts.get)
            figures[f"beside {label}"] = e["seconds"] / parts[most]
            line += f"; {figures[f'beside {label}']:.2f} of {parts[most]:.4f} s of {most}"
        return figures, [line]
    return read


def read_batches(metrics):
    """Of the last epoch, by what its seconds went."""
    def read(_):
        with open(metrics, encoding="utf-8") as f:
            e = [json.loads(line) for line in f][-1]
        parts = ", ".join(f"{part} {e[part + '_seconds']:.4f}"
                          for part in ("sample", "pick", "copy", "compute", "step", "stall"))
        return {}, [f"batches: {e['seconds']:.4f} s an epoch; {parts}; {e.get('copied_in_bytes', 0) / 1e6:.1f} MB to "
                    f"the device; loss {e['loss']:.4f}"]
    return read


MIB = 1 << 20
TRAIN = ("--hidden", "64", "--epochs", "6", "--optimizer", "sgd", "--lr", "0.01", "--device", "cuda")


def epoch(run, at, store, label, base, model, *options):
    metrics = at.data("metrics.jsonl")
    if os.path.exists(metrics):
        os.remove(metrics)
    host = () if "--host-memory" in options else ("--host-memory", f"{at.host_mib(8)}M")
    run.step(f"train {label}", 60, [at.program("gnnstream"), "train", at.data(store), "--model", model, *TRAIN, *host,
                                    "--metrics", metrics, *options], read_epochs(run, label, base, metrics))


def read_budgets(at):
    """Of a plan with all in memory: what CUDA's libraries take of the host's."""
    def read(said):
        plan = json.loads(said)
        at.libraries = sum(i["bytes"] for i in plan["memory"] if i["name"] == "libraries of the GPU")
        return {}, [f"of the host's memory CUDA's libraries take {at.libraries / MIB:.0f} MiB; a plan with all in "
                    f"memory takes {plan['host_bytes'] / MIB:.0f} MiB there and {plan['device_bytes'] / MIB:.0f} MiB "
                    "of the device"]
    return read


def read_peers(run):
    """Lines "MODEL PEER SECONDS LOSS"."""
    def read(said):
        figures, lines = {}, []
        for model, by, seconds, rest in re.findall(r"^(gcn|sage|gat|gat:8) ([a-z-]+) ([0-9.]+|none)(.*)$", said, re.M):
            label = "gat 8 heads" if model == "gat:8" else model
            if seconds == "none":
                lines.append(f"{label} by {by}: none{rest}")
                continue
            own = run.figures.get(f"epoch {label}")
            lines.append(f"{label} by {by}: {float(seconds):.4f} s an epoch; loss{rest}" +
                         (f"; {float(seconds) / own:.2f} times ours" if own else ""))
            if by.startswith("pyg"):
                key = f"peer {label}"
                figures[key] = min(figures.get(key, float(seconds)), float(seconds))
        return figures, lines
    return read


def batches(run, at):
    for label, model, *options in (("sage", "sage"), ("sage, drawn by CPUs", "sage", "--no-draw"), ("gat", "gat")):
        metrics = at.data("batches.jsonl")
        if os.path.exists(metrics):
            os.remove(metrics)
        run.step(f"train {label} in batches", 60, [
            at.program("gnnstream"), "train", at.data("whole"), "--model", model, "--hidden", "64", "--epochs", "3",
            "--sampler", "neighbor", "--batch-size", "1024", "--fanout", "15,10", "--device", "cuda", "--host-memory",
            f"{at.host_mib(8)}M", "--metrics", metrics, *options], read_batches(metrics))


def in_memory(run, at):
    for label, model, *options in (("gcn", "gcn"), ("sage", "sage"), ("gat", "gat"),
                                   ("gat 8 heads", "gat", "--heads", "8"),
                                   ("gcn, nothing once", "gcn", "--no-hoist"),
                                   ("sage, nothing once", "sage", "--no-hoist"),
                                   ("gcn, tf32", "gcn", "--matmul", "tf32")):
        epoch(run, at, "whole", label, "-", model, *options)
    if run.without("peers", "torch"):
        return
    run.step("peers", 120, ["python3", "-W", "ignore", os.path.join(at.root, "bench/peers/gpu_peers.py"),
                            at.data("graph"), "64", "6", "gcn", "sage", "gat", "gat:8"], read_peers(run),
             {"LD_LIBRARY_PATH": at.peers_path})  # torch brings its own libraries


def streaming(run, at):
    device = ("--device-memory", f"{max(64, at.store_mib() // 8)}M")
    host = ("--host-memory", f"{at.host_mib(1 / 4)}M")
    for store, parts in (("store", ""), ("fine", ", 16 parts")):  # more parts: more launches, and better overlap
        epoch(run, at, store, f"gcn, device 1/8{parts}", "gcn", "gcn", *device)
        epoch(run, at, store, f"gcn, device 1/8, host 1/4{parts}", "gcn", "gcn", *device, *host)
    epoch(run, at, "store", "gcn, cuda:0,0, device 1/8 each", "gcn", "gcn", "--device", "cuda:0,0", *device)
    epoch(run, at, "store", "gcn, cuda:0,0, no chain", "gcn", "gcn", "--device", "cuda:0,0", *device, "--no-chain")
    for label, *options in (("rgcn, many types",), ("rgcn, many types, tf32", "--matmul", "tf32"),
                            ("rgcn, many types, by sums", "--no-batch")):
        epoch(run, at, "typed", label, "-", "rgcn", *options)


def figures(run, at):
    graph = run.begin(lambda: make_graph(run, at))
    first_minute(run, at)
    # its kernels take NVRTC 0.6 s on one core; those of test_gpu_rows 40
    run.step("kernel", 30, [at.program("test_gpu_columns")])
    run.step("ceilings", 40, [at.program("bench_gpu"), "ceilings"],
             lambda said: (read_pinned(said), said.splitlines()))  # of Reddit's rows, whatever the scale
    graph_or_not(run, graph)
    run.step("gather", 90, [at.program("bench_gpu"), "gather", "cuda", os.path.join(at.data("graph"), "edges.npy")],
             read_gather)
    # plans of what follows are made with these
    run.step("limits", 90, [at.program("gnnstream"), "bench", "limits", "--device", "cuda", "--no-disk"], plain)
    graph.result()
    run.step("budgets", 60, [at.program("gnnstream"), "plan", at.data("whole"), "--model", "gcn", "--hidden", "64",
                             "--device", "cuda", "--json"], read_budgets(at))
    in_memory(run, at)
    batches(run, at)
    typed, more = run.begin(lambda: make_typed(run, at)), run.begin(lambda: make_more(run, at))
    typed.result()
    more.result()
    run.step("disk", 90, [at.program("gnnstream"), "bench", "limits", "--dir", at.work, "--json"], read_disk)
    streaming(run, at)


def graph_or_not(run, graph):
    """Until edges are there, or never will be."""
    while not run.graph_is_there.wait(0.1) and not graph.done():
        pass


# ---- tests ----

def tests(run, at):
    first_minute(run, at)
    matrix = ["env", "OMP_WAIT_POLICY=passive", at.program("matrix")]
    steps = [(f"tests: {t}", 240, [at.program(f"test_gpu_{t}")]) for t in TESTS]
    steps += [(f"tests: train {m}", 240, [*matrix, "gpu", "rough", m]) for m in MODELS]
    steps += [("tests: train rgcn, many types", 240, [*matrix, "gpu", "many", "rgcn"]),
              ("tests: edge_typed, tf32", 240, ["env", "GS_TEST_MATMUL=tf32", at.program("test_gpu_edge_typed")]),
              ("tests: determinism", 240, [*matrix, "determinism-gpu", "gcn", "gat"])]
    steps += [(f"tests: batches {m}", 240, [*matrix, "gpu-batches", "typed", m])
              for m in ("gat", "norms", "sage_lstm", "rgcn")]
    for kind, models in (("edge", ("gine", "pna", "gatv2")), ("type", ("levels", "rgat"))):
        steps.append((f"tests: {kind} models", 240, ["python3", os.path.join(at.root, f"tests/e2e/{kind}_models.py"),
                                                    at.program("gnnstream"),
                                                    os.path.join(at.root, f"tests/e2e/{kind}_texts"),
                                                    at.data(f"{kind}-models"), "cuda", *models]))
    # on cuda:0,0 and more of them, and on cuda:0,1 where there is one
    steps += [(f"tests: several {m}", 240, [*matrix, "several-gpus", "few", "rough", m]) for m in MODELS]
    run.together(steps)
    # alone: it compares the GPU's clock with the host's, which others that share the GPU stretch
    run.step("tests: chain", 240, ["bash", os.path.join(at.root, "tests/cuda/several_gpus.sh")])


# ---- sanitizer and counters ----

METRICS = ("gpu__time_duration.sum", "dram__bytes.sum", "lts__t_bytes.sum", "smsp__inst_executed.sum",
           "smsp__issue_active.avg.pct_of_peak_sustained_active", "sm__warps_active.avg.pct_of_peak_sustained_active",
           "lts__t_sector_hit_rate.pct", "launch__registers_per_thread")
# What a run of the model launches: forward sums, attention forward and backward, products by type, a vertex program.
KERNELS = (("sum of rows", "gcn", "regex:^gs_(scaled_)?rows_"), ("vertex program", "gcn", "regex:^gs_vertex_"),
           ("attention", "gat", "regex:^gs_edges_0_"), ("attention, backward", "gat", "regex:^gs_edges_[2-9]_"),
           ("product by type", "rgcn", "regex:^gs_product_"))


def read_counters(said):
    """ncu --csv --page raw: a line of names, one of units, one a launch. The longest launch counts."""
    import csv
    rows = list(csv.reader(line for line in said.splitlines() if line.startswith('"')))
    names, units, launches = rows[0], rows[1], rows[2:]
    time_at = names.index(METRICS[0])
    longest = max(launches, key=lambda r: float(r[time_at].replace(",", "")))
    lines = [f"{longest[names.index('Kernel Name')]}, the longest of {len(launches)} launches"]
    return {}, lines + [f"  {m} {longest[names.index(m)]} {units[names.index(m)]}" for m in METRICS if m in names]


def sanitizer(run, at):
    first_minute(run, at)
    program, check = at.program("gnnstream"), ["compute-sanitizer", "--error-exitcode", "9", "--tool"]
    typed = run.begin(lambda: make_typed(run, at))
    # what the driver answers is the tests' to see: some ask for what it refuses
    steps = [(f"memcheck: {t}", 240, [*check, "memcheck", "--report-api-errors", "no", at.program(f"test_gpu_{t}")])
             for t in ("rows", "step", "edge_program", "edge_types", "vertex", "sequence")]
    steps += [(f"racecheck: {t}", 240, [*check, "racecheck", at.program(f"test_gpu_{t}")])
              for t in ("rows", "sequence")]
    if not run.without("memcheck and racecheck", "compute-sanitizer"):
        run.together(steps)
    typed.result()
    if run.without("ncu", "ncu"):
        return
    for name, model, kernel in KERNELS:  # alone: counters of a GPU that others use say little
        run.step(f"ncu: {name}", 60, ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "-k", kernel, "-c",
                                      "8", "--metrics", ",".join(METRICS), program, "train", at.data("typed"),
                                      "--model", model, "--hidden", "64", "--epochs", "1", "--device", "cuda",
                                      "--host-memory", "8G"], read_counters)


MODES = {"figures": figures, "tests": tests, "sanitizer": sanitizer}
