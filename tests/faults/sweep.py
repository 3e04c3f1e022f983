#!/usr/bin/env python3
"""sweep.py - every n-th call of a run goes wrong once: is the result right, or is there one clear line?

usage: sweep.py --program GNNSTREAM --preload LIBRARY [--sample K] [--sample-of CLASS=K]... [--jobs J]
                [--only SCENARIO[:CLASS[:KIND]]]...

Each scenario (a partitioning, one over an older store, one with features of edges, a training that spills with each
way of I/O, one that checkpoints, one on batches with learned rows of vertices, that on two devices, one by pairs,
a prediction; trainings by two ranks, of which rank 0 or rank 1 gets the fault) runs once to count its calls of each
class, then once for every n and every kind of fault of that class (tests/faults/preload.c). A run must end as one of
    right    exit status 0, every output equal to that of the run without a fault
    clear    another exit status, one line on stderr that says what is wrong, inputs and earlier outputs whole
and never crash, hang, end with a wrong or damaged file, or fail without words. ("alien" calls are those of libraries
that say what they like on stderr: more than a line is no finding there. Of ranks lines of MPI and its launcher are not
counted, and a fault that hits MPI itself is MPI's to handle.) Prints a table of counts; the exit
status is 0 only where nothing else happened. --sample K takes K values of n of each class and kind, spread evenly,
the first and the last among them (1: the middle); without it all of them: hours. --sample-of says so for one class, as
for the tens of thousands of allocations of oneDNN. J runs are made at once, each in a folder of its own.
"""
import argparse
import array
import collections
import contextlib
import glob
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

SECONDS = 180  # that a run may take; without a fault it is a second, but others may work on the machine

# What can go wrong with a call of a class. ":on": from there on, as on a disk that is full or gone.
KINDS = {
    "open": ["EMFILE", "EIO", "EACCES", "ENOSPC"],
    "read": ["EINTR", "EIO", "EIO:on", "short", "late"],
    "write": ["EINTR", "EIO", "ENOSPC", "ENOSPC:on", "short", "torn"],
    "sync": ["EIO", "ENOSPC"],
    "rename": ["EIO", "ENOSPC"],
    "remove": ["EIO"],
    "mkdir": ["ENOSPC", "EIO"],
    "stat": ["EIO", "ENOMEM"],
    "size": ["ENOSPC", "EIO", "EINTR"],
    "list": ["EIO", "ENOMEM"],
    "lock": ["EINTR", "ENOMEM"],
    "map": ["ENOMEM"],
    "thread": ["EAGAIN"],
    "ring": ["ENOMEM", "EPERM", "EMFILE"],
    "submit": ["EINTR", "EAGAIN", "EBUSY", "EIO"],
    "done": ["EINTR", "EAGAIN", "EIO", "ENOSPC", "short", "late"],
    "alloc": ["ENOMEM", "ENOMEM:on"],
    "alien": ["ENOMEM", "ENOMEM:on"],
    "alien_map": ["ENOMEM"],
}
OUTCOMES = ["right", "clear", "noisy", "silent", "wrong", "damaged", "crashed", "hung"]
TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/texts/tables.gnn")
FINE = {"right", "clear"}
MPI = re.compile(r"hit .*lib(mpi|ucp|uct|ucs|pmi|fabric)")
# What libraries do of which this program is not the author; files must be whole even so.
KNOWN = {("alien", "noisy")}


def digest(path):
    """Of a file, or of all files below a folder; None where there is nothing."""
    h = hashlib.sha256()
    if os.path.isdir(path):
        for folder, folders, files in os.walk(path):
            # What a run could not remove of its own is the next run's to clear.
            folders[:] = sorted(name for name in folders if not name.startswith("spill."))
            for name in sorted(files):
                h.update(os.path.relpath(os.path.join(folder, name), path).encode() + b"\0")
                with open(os.path.join(folder, name), "rb") as f:
                    h.update(f.read())
        return h.hexdigest()
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def losses(path):
    """What of a metrics file is the same in every run."""
    keys = ("epoch", "loss", "train_acc", "valid_acc", "test_acc")
    with open(path, encoding="utf-8") as f:
        return [tuple(json.loads(line)[k] for k in keys) for line in f]


def family(process):
    """The process, its children and theirs, but those that end meanwhile."""
    children = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as f:
            children = f.read().split()
    return [process, *(p for child in children for p in family(int(child)))]


def end(run):
    """What it had said. A launcher's ranks stay where it is killed, each a session of its own."""
    for process in family(run.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return run.communicate()[1]


class Scenario:
    """A command in a folder of its own: what it reads, what it writes, and what was there before."""

    def __init__(self, name, arguments, inputs, outputs, before=(), env=None, metrics=None, read=None, folder=None,
                 rank=None):
        self.name, self.arguments, self.inputs, self.outputs = name, arguments, inputs, outputs
        self.before = dict(before)  # output -> what a copy of it lay there before
        self.env, self.metrics = env or {}, metrics
        self.read = read  # a command that says whether the result is good, where another one is as right
        self.folder = folder  # of checkpoints
        self.rank = rank  # of two ranks, the one whose calls fail; None: a process by itself


class Inputs:
    """What all runs read: made once, with the program as it is."""

    def __init__(self, program, folder):
        self.program, self.base = program, os.path.join(folder, "base")
        self.env = dict(os.environ, OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive", LC_ALL="C")
        os.makedirs(self.base)

    def plain(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.base, env=dict(self.env, XDG_CACHE_HOME=self.base),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: {done.stdout}")
        return done.stdout

    def make(self):
        self.plain("generate", "sbm", "g", "--vertices", "300", "--edges", "2000", "--features", "8", "--classes", "4")
        self.plain("partition", "g", "s", "--parts", "3", "--method", "fennel")
        self.plain("partition", "g", "old", "--parts", "2", "--method", "natural")
        shutil.copytree(os.path.join(self.base, "g"), os.path.join(self.base, "ge"))
        with open(os.path.join(self.base, "ge", "edge_features.npy"), "wb") as f:
            shape = "{'descr': '<f4', 'fortran_order': False, 'shape': (2000, 3), }"
            f.write(b"\x93NUMPY\x01\0\x76\0" + shape.ljust(117).encode() + b"\n")
            f.write(array.array("f", [k % 251 / 8 for k in range(6000)]).tobytes())
        shutil.copy(TABLES, os.path.join(self.base, "tables.gnn"))
        train = ["train", "s", "--model", "gcn", "--hidden", "8"]
        self.plain(*train, "--epochs", "1", "--save", "w")
        self.plain(*train, "--epochs", "2", "--save", "w2", "--checkpoint", "ck", "--checkpoint-every", "1")

    @staticmethod
    def scenarios():
        train = ["train", "s", "--model", "gcn", "--hidden", "8", "--layers", "2", "--epochs", "2", "--save", "out.w",
                 "--logits", "out.npy", "--metrics", "out.jsonl", "--no-cache"]
        outputs = ["out.w", "out.npy"]
        batches = ["train", "s", "--model", "tables.gnn", "--hidden", "8", "--epochs", "1", "--save", "out.w",
                   "--logits", "out.npy", "--metrics", "out.jsonl", "--no-cache", "--sampler", "neighbor",
                   "--batch-size", "20", "--fanout", "3,2"]
        pairs = ["train", "s", "--task", "link", "--model", "gcn", "--decoder", "mlp", "--hidden", "8", "--epochs", "2",
                 "--negatives", "8", "--batch-size", "200", "--save", "out.w", "--metrics", "out.jsonl", "--no-cache"]
        two = ["--host-memory", "100M", "--threads", "1", "--io-timeout", "10"]
        ring, threads = {"GS_IO": "uring"}, {"GS_IO": "threads"}
        return [
            Scenario("partition", ["partition", "g", "out", "--parts", "3", "--method", "fennel"], ["g"], ["out"]),
            Scenario("partition-metis", ["partition", "g", "out", "--parts", "3", "--method", "metis"], ["g"], ["out"],
                     read=["verify", "out"]),  # another method serves where METIS has no memory
            Scenario("partition-over", ["partition", "g", "out", "--parts", "3", "--method", "fennel", "--force"],
                     ["g"], ["out"], before={"out": "old"}),
            Scenario("train-ring", train, ["s"], outputs, before={"out.w": "w"}, env=ring, metrics="out.jsonl"),
            Scenario("train-threads", train, ["s"], outputs, before={"out.w": "w"}, env=threads, metrics="out.jsonl"),
            Scenario("batches", batches, ["s", "tables.gnn"], outputs, before={"out.w": "w"}, metrics="out.jsonl"),
            Scenario("devices", batches + ["--device", "cpu:2", "--batches-per-step", "3"], ["s", "tables.gnn"],
                     outputs, before={"out.w": "w"}, metrics="out.jsonl"),
            Scenario("partition-features", ["partition", "ge", "out", "--parts", "3", "--method", "fennel"], ["ge"],
                     ["out"]),
            Scenario("pairs", pairs, ["s"], ["out.w"], before={"out.w": "w"}, metrics="out.jsonl"),
            Scenario("predict", ["predict", "s", "--weights", "w", "--model", "gcn", "--hidden", "8", "--logits",
                                 "out.npy"], ["s", "w"], ["out.npy"]),
            Scenario("checkpoint", train + ["--checkpoint", "out.ck", "--checkpoint-every", "1"], ["s"], outputs,
                     env=ring, metrics="out.jsonl", folder="out.ck"),
        ] + [
            Scenario(f"{name}-{rank}", arguments + two, ["s", "tables.gnn"], files, metrics="out.jsonl", rank=rank)
            for name, arguments, files in (("ranks", train, outputs), ("ranks-batches", batches, outputs),
                                           ("ranks-pairs", pairs, ["out.w"]))
            for rank in (0, 1)
        ]


class Worker:
    """A folder in which one run is made after the other."""

    def __init__(self, inputs, preload, folder):
        self.program, self.base, self.env, self.preload = inputs.program, inputs.base, inputs.env, preload
        self.folder, self.work = folder, os.path.join(folder, "work")
        os.makedirs(folder)

    def prepare(self, s):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        for name in s.inputs:
            os.symlink(os.path.join(self.base, name), os.path.join(self.work, name))
        for name, source in s.before.items():
            source = os.path.join(self.base, source)
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, os.path.join(self.work, name))

    def run(self, s, fault=None):
        """Exit status (negative: a signal; None: hung), stderr, the report's lines."""
        self.prepare(s)
        report = os.path.join(self.folder, "report")
        if os.path.exists(report):
            os.unlink(report)
        env = dict(self.env, **s.env, XDG_CACHE_HOME=os.path.join(self.folder, "cache"))
        own = {"LD_PRELOAD": self.preload, "GS_FAULT_REPORT": report, **({"GS_FAULT": fault} if fault else {})}
        command = ["env", *(f"{k}={v}" for k, v in own.items()), self.program, *s.arguments]
        if s.rank is not None:
            both = [[self.program, *s.arguments]] * 2
            both[s.rank] = command
            command = ["mpirun", "-n", "1", *both[0], ":", "-n", "1", *both[1]]
        with subprocess.Popen(command, cwd=self.work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as run:
            try:
                said = run.communicate(timeout=SECONDS)[1]
                status = run.returncode
            except subprocess.TimeoutExpired:
                status, said = None, end(run)
        lines = []
        if os.path.exists(report):
            with open(report, encoding="utf-8") as f:
                lines = f.read().splitlines()
        return status, said.decode(errors="replace"), lines

    def result(self, s):
        out = {name: digest(os.path.join(self.work, name)) for name in s.outputs}
        if s.metrics:
            out[s.metrics] = losses(os.path.join(self.work, s.metrics))
        return out

    def judge(self, s, status, said, want, inputs):
        if status is None:
            return "hung"
        if {name: digest(os.path.join(self.base, name)) for name in s.inputs} != inputs:
            return "damaged"
        if s.folder and not self.goes_on(s, want):
            return "damaged"
        if status == 0:
            try:
                fine = self.result(s) == want
            except (OSError, ValueError):
                fine = False
            return "right" if fine or (s.read and self.reads(s.read)) else "wrong"
        # What is there after a failure: what was there before, or the whole result, or nothing where nothing was.
        for name in s.outputs:
            got = digest(os.path.join(self.work, name))
            old = digest(os.path.join(self.base, s.before[name])) if name in s.before else None
            if got not in (old, want[name]) and self.looks_whole(name):
                return "damaged"
        if status < 0 or status >= 128:
            return "crashed"
        # How to go on after a failure is a second line, where there are checkpoints.
        # So is the warning that one could not be written, which came before.
        lines = [line for line in said.splitlines() if line.strip() and not line.startswith("go on with: ")
                 and "a checkpoint could not be written, training goes on" not in line
                 and (s.rank is None or line.startswith("gnnstream"))]
        if not lines:
            return "silent"
        return "clear" if len(lines) == 1 and len(lines[0]) > 15 else "noisy"

    def goes_on(self, s, want):
        """Where a checkpoint is left, does the run that goes on from it end with the same weights?"""
        if not glob.glob(os.path.join(self.work, s.folder, "epoch-*")):
            return True
        again = [self.program, "train", "s", "--model", "gcn", "--hidden", "8", "--layers", "2", "--epochs", "2",
                 "--no-cache", "--resume", s.folder, "--save", "again.w"]
        done = subprocess.run(again, cwd=self.work, env=dict(self.env, **s.env), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0 and digest(os.path.join(self.work, "again.w")) == want["out.w"]

    def reads(self, command):
        done = subprocess.run([self.program, *command], cwd=self.work, env=self.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def looks_whole(self, name):
        """Would a reader take it? A folder without a manifest is no store."""
        path = os.path.join(self.work, name)
        if os.path.isdir(path):
            return os.path.exists(os.path.join(path, "manifest.json"))
        return os.path.exists(path)

    def reference(self, s):
        status, said, lines = self.run(s)
        if status != 0:
            sys.exit(f"{s.name}: fails without a fault: {said}")
        counts = {w[0]: int(w[1]) for w in (line.split() for line in lines) if w[0] != "hit"}
        return counts, self.result(s), {name: digest(os.path.join(self.base, name)) for name in s.inputs}


def choose(count, sample):
    if sample is None or count <= sample:
        return range(1, count + 1)
    if sample == 1:
        return [1 + count // 2]
    return sorted({1 + round(i * (count - 1) / (sample - 1)) for i in range(sample)})


def list_faults(args, worker):
    """Of all scenarios: (scenario, class, kind, n, calls of the class, what is right, the inputs as they are)."""
    wishes = [wish.split(":", 2) + ["", ""] for wish in args.only or ["::"]]
    samples = {name: int(k) for name, k in (text.split("=") for text in args.sample_of or [])}

    def wanted(*names):
        return any(all(w in ("", n) for w, n in zip(wish, names)) for wish in wishes)

    for s in Inputs.scenarios():
        if not wanted(s.name):
            continue
        counts, want, inputs = worker.reference(s)
        for name, kinds in KINDS.items():
            for kind in kinds:
                if wanted(s.name, name, kind):
                    for n in choose(counts[name], samples.get(name, args.sample)):
                        yield s, name, kind, n, counts[name], want, inputs


def sweep(args, folder):
    inputs = Inputs(os.path.abspath(args.program), folder)
    inputs.make()
    workers = [Worker(inputs, os.path.abspath(args.preload), os.path.join(folder, str(j))) for j in range(args.jobs)]
    faults = queue.SimpleQueue()
    for fault in list_faults(args, workers[0]):
        faults.put(fault)
    table, findings, lock = collections.defaultdict(collections.Counter), [], threading.Lock()

    def work(worker):
        while True:
            try:
                s, name, kind, n, count, want, whole = faults.get_nowait()
            except queue.Empty:
                return
            parts = kind.split(":")
            fault = ":".join([name, parts[0], str(n)] + parts[1:])
            status, said, lines = worker.run(s, fault)
            outcome = worker.judge(s, status, said, want, whole)
            if s.rank is not None and outcome in ("silent", "hung") and any(MPI.match(line) for line in lines):
                outcome = "clear"
            with lock:
                table[(s.name, name, kind)][outcome] += 1
                if outcome not in FINE and (name, outcome) not in KNOWN:
                    hit = next((line for line in lines if line.startswith("hit")), "hit ?")
                    findings.append(f"{outcome}: {s.name} {fault} of {count} ({hit}) status {status}: "
                                    f"{said.strip()[:args.words]!r}")
                    print(findings[-1], flush=True)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return table, findings


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", required=True)
    p.add_argument("--preload", required=True)
    p.add_argument("--sample", type=int)
    p.add_argument("--sample-of", action="append", metavar="CLASS=K")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--only", action="append")
    p.add_argument("--words", type=int, default=300)
    args = p.parse_args()
    folder = tempfile.mkdtemp(prefix="gs-faults-")
    try:
        table, findings = sweep(args, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    total = collections.Counter()
    print(f"{'scenario':16}{'class':10}{'fault':12}" + "".join(f"{o:>9}" for o in OUTCOMES))
    for key, row in table.items():
        total.update(row)
        print(f"{key[0]:16}{key[1]:10}{key[2]:12}" + "".join(f"{row[o] or '.':>9}" for o in OUTCOMES))
    print(f"{sum(total.values())} faults: " + ", ".join(f"{total[o]} {o}" for o in OUTCOMES))
    return 1 if findings or not table else 0


if __name__ == "__main__":
    sys.exit(main())
