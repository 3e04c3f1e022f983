#!/usr/bin/env python3
"""test_types.py: what mypy --strict says of programs that use the package, of one that is right and of faults; and of
the package's own sources, where torch and torch_geometric are."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RIGHT = '''
import numpy as np
from numpy.typing import NDArray

import gnnstream as gs
from gnnstream.loaders import NeighborLoader
from gnnstream.pyg import stores
from gnnstream.nn import leaky_relu, mean, softmax, sum


@gs.layer("h[in] -> [out]", "lin.weight[out, in]", "a[1, 1, out]")
def attend(v: gs.Vertex, p: gs.Parameters) -> gs.Value:
    v.x = v.h @ p["lin.weight"].T
    v.m = mean(u.x for u in v.innbs)
    return sum(softmax(leaky_relu(u.x * u.edge.weight, 0.2)) * u.x for u in v.innbs) + 2 * v.m


def keep(run: gs.Run, epoch: gs.Epoch) -> bool:
    return epoch.valid_acc > 0.9


def work(x: NDArray[np.float32]) -> NDArray[np.float32]:
    store = gs.from_arrays("store", [[0], [1]], x, [0, 1], train=[0], parts=1, force=True)
    with gs.Run(store, gs.Model(attend), hidden=8, epochs=3, dropout=0.5, host_memory="64M") as run:
        for epoch in run:
            print(epoch.loss + epoch.seconds, epoch.epoch)
        weights = dict(run.state_dict())
        run.load_state_dict(weights)
        plan: gs.Plan = run.plan()
        print(plan.host_bytes, run.evaluate().test_acc)
    loader = NeighborLoader(store, [4, 3], batch_size=2, input_nodes="train", shuffle=True, host_memory="64M")
    for batch in loader:
        print(batch.x, len(loader) - loader.report.batches)
    loader.load_state_dict(loader.state_dict())
    rows, graph = stores(store, host_memory="64M")
    print(rows.report.host_bytes, rows.get_tensor(None, "x", None), graph.get_all_edge_attrs())
    report = gs.train(store, "gcn", keep, gs.callbacks.early_stopping(3), hidden=8, save="w")
    print(report.loss, len(report.history), store.vertices)
    return gs.predict(store, weights="w")
'''
WRONG = {  # line: what mypy must say of it
    'gs.Run("s", "gcn", hiden=3)': 'Unexpected keyword argument "hiden"',
    'gs.train("s", "gcn", hidden="many")': 'incompatible type "str"',
    'gs.partition("a", "b", part=3)': 'Unexpected keyword argument "part"',
    'gs.generate("rmat", "a", vertexes=3)': 'Unexpected keyword argument "vertexes"',
    'gs.from_arrays("a", [], splits="0.5,0.2,0.3")': 'Unexpected keyword argument "splits"',
    'gs.plan("s", "gcn", layers=1.5)': 'incompatible type "float"',
    'NeighborLoader("s", [3], seeds=3)': 'Unexpected keyword argument "seeds"',
    'stores("s", 2.5)': 'incompatible type "float"',
    'gs.Store("s").vertexes': 'no attribute "vertexes"',
    'gs.plan("s", "gcn").host_byte': 'no attribute "host_byte"',
}


def mypy(source):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "user.py"), "w", encoding="utf-8") as file:
            file.write(source)
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "user.py"], cwd=folder, capture_output=True,
                              text=True, check=False)
        return done.stdout


class Sources(unittest.TestCase):
    """Of others, torch alone has types: what is torch_geometric's, dgl's, pyarrow's, vl_convert's and the extension's
    is Any, and classes are made of it."""

    @unittest.skipUnless(all(map(importlib.util.find_spec, ("mypy", "torch", "torch_geometric"))), "not all are there")
    def test_the_package(self):
        package = os.path.dirname(importlib.util.find_spec("gnnstream").origin)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(package, os.path.join(folder, "gnnstream"), ignore=shutil.ignore_patterns("*.so", "__py*"))
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
                                   "--allow-subclassing-any", "-p", "gnnstream"], cwd=folder, capture_output=True,
                                  text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("no issues found", done.stdout)


class Types(unittest.TestCase):
    def test_a_right_program_and_faults(self):
        lines = list(WRONG)
        said = mypy(RIGHT + "\n" + "\n".join(lines) + "\n")
        first = RIGHT.count("\n") + 2
        of_line = {int(m[1]): m[2] for m in re.finditer(r"^user\.py:(\d+): error: (.*)$", said, flags=re.M)}
        self.assertEqual(sorted(of_line), list(range(first, first + len(lines))), said)
        for number, line in enumerate(lines, first):
            self.assertIn(WRONG[line], of_line[number], line)


if __name__ == "__main__":
    unittest.main(verbosity=1)
