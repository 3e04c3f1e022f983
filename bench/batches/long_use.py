#!/usr/bin/env python3
"""long_use.py [--opens N] [--batches N] - is a process that uses loaders for long as large as it was before?

Takes 10,000 batches of one loader with features in memory and of one that reads them, then opens 1,000 loaders, each of
which ends in another way: closed; left within a pass; its transform raised; used by two threads; forked, so that parent
and child go on, the child by itself. Prints, each tenth, MiB resident, open files and threads. Fails where one of these
grew after the first tenth (memory: by more than 2 MiB), where an error was another than what the user's code raised,
where a child did not end well, or where nothing moves for a minute. Runs in a Python with gnnstream; numpy is enough.
"""
import argparse
import faulthandler
import os
import sys
import tempfile
import threading

import numpy as np

import gnnstream as gs
from gnnstream.loaders import NeighborLoader

GROWN = 2.0  # MiB, of the allocator's own


class UsersError(Exception):
    pass


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def state():
    return resident(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def rounds(what, count, once):
    """Calls once(k) for all k; was the process as large behind the last as behind the first tenth?"""
    seen = []
    for tenth in range(10):
        for k in range(tenth * count // 10, (tenth + 1) * count // 10):
            faulthandler.dump_traceback_later(60, exit=True)
            once(k)
        seen.append(state())
    faulthandler.cancel_dump_traceback_later()
    print(f"{what}: MiB {' '.join(f'{mib:.1f}' for mib, _, _ in seen)}; files {seen[0][1]} to {seen[-1][1]}, threads "
          f"{seen[0][2]} to {seen[-1][2]}", flush=True)
    return seen[-1][0] - seen[0][0] <= GROWN and seen[-1][1:] <= seen[0][1:]


def ends(open_one, want):
    """What a loader may go through before it is gone, one after the other."""
    def closed():
        with open_one() as loader:
            next(iter(loader))

    def left():
        next(iter(open_one()))

    def raised():
        def transform(batch):
            raise UsersError(batch.n_id)
        try:
            next(iter(open_one(transform=transform)))
        except UsersError:
            return
        sys.exit("long_use.py: the error of a transform was lost")

    def threads():
        loader, wrong = open_one(), []

        def use():
            try:
                for batch in loader:
                    if (np.asarray(batch.x) != want[np.asarray(batch.n_id)]).any():
                        wrong.append("rows of another vertex")
            except RuntimeError as error:  # another thread has begun a pass
                if "another pass" not in str(error):
                    wrong.append(error)
        pair = [threading.Thread(target=use) for _ in range(2)]
        for one in pair:
            one.start()
        for one in pair:
            one.join()
        if wrong:
            sys.exit(f"long_use.py: in a thread: {wrong[0]}")

    def forked():
        loader = open_one()
        batches = iter(loader)
        next(batches)
        child = os.fork()
        if child == 0:
            right = all((np.asarray(b.x) == want[np.asarray(b.n_id)]).all() for b in loader)
            os._exit(0 if right else 1)
        next(batches)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit("long_use.py: a forked child did not end well")

    return closed, left, raised, threads, forked


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--opens", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=10000)
    a = parser.parse_args()
    random, n = np.random.default_rng(0), 20000
    x = random.normal(size=(n, 256)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        store = gs.from_arrays(os.path.join(folder, "store"), random.integers(0, n, (2, 5 * n)), x, np.arange(n) % 4,
                               train=np.arange(n) % 2 == 0, parts=4, method="random")
        open_one = lambda **more: NeighborLoader(store, [5, 3], **{"batch_size": 64, "input_nodes": "train",
                                                                   "shuffle": True, "threads": 2, **more})
        flat = True
        for what, memory in ("in memory", "1G"), ("on disk", "14M"):
            loader = open_one(host_memory=memory)
            if loader.report.features_in_memory != (what == "in memory"):
                sys.exit(f"long_use.py: features are not {what}: {loader.report}")
            passes = [iter(())]

            def batch(_):
                got = next(passes[0], None)
                if got is None:
                    passes[0] = iter(loader)
                    got = next(passes[0])
                if (np.asarray(got.x) != x[np.asarray(got.n_id)]).any():
                    sys.exit("long_use.py: rows of another vertex")
            flat &= rounds(f"{a.batches} batches, features {what}", a.batches, batch)
            passes[0] = iter(())
            loader.close()
        ways = ends(lambda **more: open_one(host_memory="14M", batch_size=2000, **more), x)
        flat &= rounds(f"{a.opens} opens", a.opens, lambda k: ways[k % len(ways)]())
    print("flat" if flat else "it grew")
    sys.exit(not flat)


if __name__ == "__main__":
    main()
