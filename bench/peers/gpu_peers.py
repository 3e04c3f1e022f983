"""Peers' epochs on the GPU (or, where there is none, the CPU): gpu_peers.py GRAPH HIDDEN EPOCHS MODEL...

Each model (gcn, sage, gat; gat:8 has 8 heads) by every peer that is there: PyTorch Geometric with edge_index and with
torch's CSR, and torch's CSR by hand. A line each: `MODEL PEER SECONDS LOSS`, the median epoch's seconds but the
first's, or `MODEL PEER none WHY`. A peer that is not installed, or runs out of memory, stops no other. An epoch is
gradients to zero, forward, loss, backward, SGD.
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

import with_csr
from train import epochs


class Graph:
    """What data.py's Data has, made on the device from a folder of .npy files."""

    def __init__(self, folder, where):
        load = lambda name: torch.from_numpy(np.load(pathlib.Path(folder) / f"{name}.npy")).to(where)
        self.edges = load("edges").long().t().contiguous()
        self.x, self.train = load("features").float(), load("train_idx").long()
        labels = load("labels").long()
        self.classes = int(labels.max()) + 1
        self.target = labels[self.train]
        self.vertices, self.features = self.x.shape

    def edge_index(self):
        return self.edges

    def matrix(self, source, target, values, index):
        order = torch.argsort(target * self.vertices + source)
        pointers = torch.zeros(self.vertices + 1, dtype=index, device=self.x.device)
        pointers[1:] = torch.bincount(target, minlength=self.vertices).cumsum(0)
        return torch.sparse_csr_tensor(pointers, source[order].to(index), values[order], (self.vertices, self.vertices))

    def csr(self, _, index):
        source, target = self.edges
        return self.matrix(source, target, torch.ones(len(source), device=self.x.device), index)

    def both(self, name):
        """The matrix of GCN (with self loops) or of a mean, and its transpose."""
        source, target = self.edges
        if name == "gcn":
            loop = torch.arange(self.vertices, device=self.x.device)
            source, target = torch.cat([source, loop]), torch.cat([target, loop])
            by = torch.bincount(target, minlength=self.vertices).float().rsqrt()
            values = by[source] * by[target]
        else:
            values = 1 / torch.bincount(target, minlength=self.vertices).float()[target]
        return self.matrix(source, target, values, torch.int32), self.matrix(target, source, values, torch.int32)


def weights(model, s):
    """By hand: as PyG names them, small random numbers."""
    made = {}
    sizes = [(s.features, s.hidden, s.hidden // s.heads), (s.hidden, s.classes, s.classes)]
    for i, (width, out, each) in enumerate(sizes):
        shapes = {"gcn": {"lin.weight": (out, width), "bias": (out,)},
                  "sage": {"lin_l.weight": (out, width), "lin_l.bias": (out,), "lin_r.weight": (out, width)},
                  "gat": {"lin.weight": (each * s.heads, width), "att_src": (1, s.heads, each),
                           "att_dst": (1, s.heads, each), "bias": (out,)}}
        for name, shape in shapes[model].items():
            made[f"convs.{i}.{name}"] = 0.1 * torch.randn(shape)
    return made


def peers():
    try:
        import with_pyg
    except ImportError as e:
        return {"csr": with_csr.by_hand}, f"torch_geometric is not here ({e})"
    return {"pyg": with_pyg.edge_index, "pyg-csr": with_pyg.csr, "csr": with_csr.by_hand}, None


def run(make, name, s, graph, where):
    try:
        with torch.device(where):
            torch.manual_seed(1)
            if name == "csr":
                s.weights = weights(s.model, s)
            else:
                import with_pyg
                s.weights = with_pyg.network(s).state_dict()
            done = list(epochs(s.epochs, *make(s, graph), graph, 0.01))
    except Exception as e: # out of memory, or what this torch or PyG has not: no peer takes the others' figures with it
        return "none " + str(e).split("\n")[0]
    return f"{statistics.median(d[0] for d in done[1:]):.5f} {done[-1][1]:.4f}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("graph")
    p.add_argument("hidden", type=int)
    p.add_argument("epochs", type=int)
    p.add_argument("models", nargs="+")
    s = p.parse_args()
    where = "cuda" if torch.cuda.is_available() else "cpu"
    graph = Graph(s.graph, where)
    s.features, s.classes, s.types = graph.features, graph.classes, 0
    found, missing = peers()
    print("peers on", torch.cuda.get_device_name() if where == "cuda" else "the CPU:", "torch", torch.__version__,
          flush=True)
    if missing:
        print(missing, flush=True)
    for asked in s.models:
        s.model, _, heads = asked.partition(":")
        s.heads = int(heads or 1)
        for name, make in found.items():
            start = time.perf_counter()
            print(asked, name, run(make, name, s, graph, where), flush=True)
            print(f"{asked} {name}: {time.perf_counter() - start:.0f} s in all", file=sys.stderr)
            if where == "cuda":
                torch.cuda.empty_cache()


main()
