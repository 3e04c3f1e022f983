#!/usr/bin/env python3
"""power.py - the power fails at any moment: what is found afterwards is the old result, the new one, or none.

usage: power.py --program GNNSTREAM --preload LIBRARY [--sample K] [--only SCENARIO] [--seed N] [--no-syncs]

A run is recorded (tests/faults/file_trace.h): every write, sync, rename and removal, in order. Then the disk is built
anew as it may be after each of them (or K of them): what was synced is there; of what was not, in turn
    all      everything, as after a kill
    none     nothing: neither bytes nor names
    names    names and lengths, but no byte: files of zeros
    bytes    bytes, but no name that is new
    some     any part of the writes, torn ones among them, in any order, and a prefix of the names (three draws)
On each the program reads the result. It must be what was there before, what the run made, or, where nothing was
there before, refused in one line. After the last operation it must be the new one. Prints counts; the exit status is
0 only where nothing else happened. With --no-syncs no sync has any effect: then it must find something, else it looks
at nothing (and the exit status is 0 only where it did).
"""
import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile

from sweep import Inputs, Worker, choose, digest

MODES = ["all", "none", "names", "bytes", "some", "some", "some"]


class Inode:
    """A file: the bytes that last, and what was done since the last sync."""

    def __init__(self, content=b"", folder=False):
        self.durable, self.pending, self.folder = bytearray(content), [], folder

    def bytes_if(self, keep):
        """keep(k, change): 0 not done, 1 done, 0.5 half of its bytes."""
        data = bytearray(self.durable)
        for k, change in enumerate(self.pending):
            share = keep(k, change)
            if share == 0:
                continue
            if change[0] == "size":
                _, size, shrink = change
                if len(data) < size:
                    data.extend(bytes(size - len(data)))
                elif shrink:
                    del data[size:]
            else:
                _, at, written = change
                written = written[:max(1, int(len(written) * share))]
                if len(data) < at + len(written):
                    data.extend(bytes(at + len(written) - len(data)))
                data[at:at + len(written)] = written
        return bytes(data)

    def sync(self):
        self.durable, self.pending = bytearray(self.bytes_if(lambda k, c: 1)), []


class Disk:
    """Names that last, and changes of names since, in order. A sync of a folder makes all of its changes last."""

    def __init__(self, root):
        self.root, self.open, self.names, self.durable, self.pending = root, {}, {}, {}, []
        for folder, folders, files in os.walk(root):
            for name in folders:
                self.names[os.path.join(folder, name)] = Inode(folder=True)
            for name in files:
                with open(os.path.join(folder, name), "rb") as f:
                    self.names[os.path.join(folder, name)] = Inode(f.read())
        self.names[root] = Inode(folder=True)
        self.durable = dict(self.names)

    @staticmethod
    def change(names, what):
        if what[0] == "add":
            names[what[1]] = what[2]
        elif what[0] == "remove":
            names.pop(what[1], None)
        else:
            _, old, new, swap = what
            moved = {p: i for p, i in names.items() if p == old or p.startswith(old + "/")}
            back = {p: i for p, i in names.items() if p == new or p.startswith(new + "/")}
            for p in list(moved) + list(back):
                names.pop(p, None)
            names.update({new + p[len(old):]: i for p, i in moved.items()})
            if swap:
                names.update({old + p[len(new):]: i for p, i in back.items()})

    def do_name(self, what):
        self.change(self.names, what)
        self.pending.append(what)

    def sync_folder(self, path):
        """Its own entries alone, as POSIX has it: a journal would take with it what came before."""
        mine = [w for w in self.pending if any(os.path.dirname(p) == path for p in w[1:3] if isinstance(p, str))]
        for what in mine:
            self.change(self.durable, what)
        self.pending = [w for w in self.pending if w not in mine]

    def apply(self, op):
        kind, *rest = op
        if kind == "open":
            fd, flags, path = rest
            node = self.names.get(path) if "u" not in flags else Inode()
            if node is None:
                node = Inode(folder="d" in flags)
                self.do_name(("add", path, node))
            elif "t" in flags:
                node.pending.append(("size", 0, True))
            self.open[fd] = (path, node)
        elif kind == "close":
            self.open.pop(rest[0], None)
        elif kind == "link":
            if rest[0] in self.open:
                self.do_name(("add", rest[1], self.open[rest[0]][1]))
        elif kind == "mkdir":
            self.do_name(("add", rest[0], Inode(folder=True)))
        elif kind == "remove":
            self.do_name(("remove", rest[0]))
        elif kind == "rename":
            self.do_name(("rename", rest[1], rest[2], rest[0] == 2))
        elif rest[0] in self.open:
            path, node = self.open[rest[0]]
            if kind == "write":
                node.pending.append(("write", rest[1], rest[2]))
            elif kind == "size":
                node.pending.append(("size", rest[1], rest[2]))
            elif kind == "sync" and node.folder:
                self.sync_folder(path)
            elif kind == "sync":
                node.sync()

    def after(self, mode, draw):
        """path -> bytes (None: a folder) as the disk may be now."""
        count = {"all": len(self.pending), "names": len(self.pending), "none": 0, "bytes": 0,
                 "some": draw.randint(0, len(self.pending))}[mode]
        names = dict(self.durable)
        for what in self.pending[:count]:
            self.change(names, what)
        for p in sorted(names):  # what is in a folder without a name has none
            if p != self.root and os.path.dirname(p) not in names:
                del names[p]
        keep = {"all": lambda k, c: 1, "bytes": lambda k, c: 1, "none": lambda k, c: 0,
                "names": lambda k, c: c[0] == "size", "some": lambda k, c: draw.choice((0, 0.5, 1))}[mode]
        found = {p: None if i.folder else i.bytes_if(keep) for p, i in names.items()}
        if mode == "names":  # lengths as they would be, zeros as their bytes
            for p, i in names.items():
                if not i.folder and i.pending:
                    found[p] = found[p] + bytes(max(0, len(i.bytes_if(lambda k, c: 1)) - len(found[p])))
        return found


def read_trace(path):
    with open(path, "rb") as f:
        while line := f.readline():
            words = line.decode().rstrip("\n").split(" ")
            if words[0] == "open":
                yield "open", int(words[1]), words[2], " ".join(words[3:])
            elif words[0] == "write":
                data = f.read(int(words[3]))
                f.read(1)
                yield "write", int(words[1]), int(words[2]), data
            elif words[0] == "link":
                yield "link", int(words[1]), " ".join(words[2:])
            elif words[0] == "size":
                yield "size", int(words[1]), int(words[2]), words[3] == "1"
            elif words[0] == "rename":
                yield ("rename", int(words[1]), *" ".join(words[2:]).split("\t"))
            elif words[0] in ("sync", "close"):
                yield words[0], int(words[1])
            else:
                yield words[0], " ".join(words[1:])


class Case:
    """A command, the result that it makes, and how to read that; `before` is what lay there."""

    def __init__(self, name, arguments, result, read, before=None):
        self.name, self.arguments, self.result, self.read, self.before = name, arguments, result, read, before


def cases():
    train = ["train", "s", "--model", "gcn", "--hidden", "8", "--layers", "2", "--epochs", "2"]
    predict = ["predict", "s", "--model", "gcn", "--hidden", "8", "--layers", "2", "--logits", "read.npy", "--weights"]
    part = ["partition", "g", "out/s", "--parts", "3", "--method", "fennel"]
    return [
        Case("partition", part, "out/s", ["verify", "out/s"]),
        Case("partition-over", part + ["--force"], "out/s", ["verify", "out/s"], before="old"),
        Case("save", train + ["--save", "out/w"], "out/w", predict + ["out/w"]),
        Case("save-over", train + ["--save", "out/w"], "out/w", predict + ["out/w"], before="w"),
        Case("checkpoint", train + ["--checkpoint", "out/ck", "--checkpoint-every", "1"], "out/ck",
             train + ["--resume", "out/ck", "--save", "read.w"]),
    ]


class Power:
    def __init__(self, args, folder):
        self.inputs, self.args, self.folder = Inputs(args.program, folder), args, folder
        self.inputs.make()
        self.work = Worker(self.inputs, args.preload, os.path.join(folder, "worker"))
        self.table = collections.defaultdict(collections.Counter)
        self.findings = 0
        self.env = dict(self.work.env, GS_IO="threads", XDG_CACHE_HOME=os.path.join(folder, "cache"))

    def command(self, arguments, **more):
        return subprocess.run([self.work.program, *arguments], cwd=self.work.work, env=dict(self.env, **more),
                              timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)

    def prepare(self, case):
        work = self.work.work
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(os.path.join(work, "out"))
        for name in ("g", "s"):
            os.symlink(os.path.join(self.work.base, name), os.path.join(work, name))
        if case.before:
            source = os.path.join(self.work.base, case.before)
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, os.path.join(work, case.result))

    def record(self, case):
        """Operations, the disk before them, and what digests of the result are good."""
        trace, root = os.path.join(self.folder, "trace"), os.path.join(self.work.work, "out")
        self.prepare(case)
        disk, old = Disk(os.path.realpath(root)), digest(os.path.join(self.work.work, case.result))
        done = self.command(case.arguments, LD_PRELOAD=self.work.preload, GS_FAULT_TRACE=trace, GS_FAULT_ROOT=root)
        if done.returncode != 0:
            sys.exit(f"{case.name}: {done.stderr.decode()}")
        return list(read_trace(trace)), disk, old, digest(os.path.join(self.work.work, case.result))

    def rebuild(self, files, case):
        self.prepare(Case("", [], "", [], None))
        for path, data in sorted(files.items()):
            if data is None:
                os.makedirs(path, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(data)
        return os.path.join(self.work.work, case.result)

    def look(self, case, path, old, new):
        got = digest(path)
        done = self.command(case.read)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode < 0 or done.returncode >= 128:
            return "crashed", said
        if done.returncode != 0:
            if case.before: # whatever is refused, what was there before is gone
                return "lost", said
            return ("refused" if len(said.splitlines()) == 1 else "noisy"), said
        if case.name == "checkpoint":  # it resumed: to the same end?
            return ("new" if digest(os.path.join(self.work.work, "read.w")) == self.final else "wrong"), said
        return ("old" if got == old else "new" if got == new else "wrong"), said

    def sweep(self, case):
        ops, disk, old, new = self.record(case)
        if case.name == "checkpoint":
            self.command(case.arguments[:case.arguments.index("--checkpoint")] + ["--save", "final.w"])
            self.final = digest(os.path.join(self.work.work, "final.w"))
        points, draw = set(choose(len(ops), self.args.sample)), random.Random(self.args.seed)
        for n, op in enumerate(ops, 1):
            if op[0] != "sync" or not self.args.no_syncs:
                disk.apply(op)
            if n not in points:
                continue
            for mode in MODES:
                outcome, said = self.look(case, self.rebuild(disk.after(mode, draw), case), old, new)
                if n == len(ops) and outcome != "new":  # the run ended well: from there on its result lasts
                    outcome = "lost"
                self.table[(case.name, mode)][outcome] += 1
                if outcome not in ("old", "new", "refused"):
                    self.findings += 1
                    shown = [str(w)[:60] for w in op]
                    if self.args.no_syncs:
                        continue
                    print(f"{outcome}: {case.name} after {n} of {len(ops)} {shown} {mode}: {said[:300]!r}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", required=True, type=os.path.abspath)
    p.add_argument("--preload", required=True, type=os.path.abspath)
    p.add_argument("--sample", type=int)
    p.add_argument("--only")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--no-syncs", action="store_true")
    args = p.parse_args()
    folder = tempfile.mkdtemp(prefix="gs-power-")
    try:
        power = Power(args, folder)
        for case in cases():
            if args.only in (None, case.name):
                power.sweep(case)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    kinds = ["old", "new", "refused", "lost", "noisy", "wrong", "crashed"]
    total = collections.Counter()
    print(f"{'scenario':16}{'kept':8}" + "".join(f"{k:>9}" for k in kinds))
    for key, row in power.table.items():
        total.update(row)
        print(f"{key[0]:16}{key[1]:8}" + "".join(f"{row[k] or '.':>9}" for k in kinds))
    print(f"{sum(total.values())} crashes: " + ", ".join(f"{total[k]} {k}" for k in kinds))
    return 1 if not total or (power.findings > 0) != args.no_syncs else 0


if __name__ == "__main__":
    sys.exit(main())
