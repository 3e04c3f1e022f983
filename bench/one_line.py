#!/usr/bin/env python3
"""one_line.py FOLDER [--vertices N] [--edges E] [--epochs N] [--seeds N]: is a model of PyG's as good on this package's
batches?

One training loop as PyG's examples write it (GraphSAGE on neighbours, exact inference on all vertices at the end), over
several seeds on a generated graph, of which the line that makes the loader changes alone: PyG's NeighborLoader over a
Data, gnnstream.loaders.NeighborLoader over a store, and PyG's over gnnstream.pyg.stores(). Prints test accuracies and
processor seconds side by side; ends with 1 where a mean differs from PyG's by more than three standard errors. Wants
gnnstream, torch_geometric, and pyg-lib or torch-sparse.
"""
import argparse
import os
import statistics
import sys
import warnings

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader

import gnnstream as gs
import gnnstream.loaders
import gnnstream.pyg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "batches"))
from same_training import train  # noqa: E402

FANOUTS, BATCH, HIDDEN = [10, 5], 256, 64


def load(folder, options):
    raw, store = os.path.join(folder, "graph"), os.path.join(folder, "store")
    gs.generate("sbm", raw, vertices=options.vertices, edges=options.edges, features=32, classes=16, seed=1, force=True)
    arrays = {name: np.load(os.path.join(raw, name + ".npy")) for name in
              ("edges", "features", "labels", "train_idx", "test_idx")}
    noise = np.random.default_rng(2).normal(scale=2, size=arrays["features"].shape)  # that accuracies are not all 1
    edges, x = arrays["edges"], (arrays["features"] + noise).astype(np.float32)
    index = np.ascontiguousarray(edges.reshape(-1, 2).T, np.int64)
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(index),
                y=torch.from_numpy(arrays["labels"].astype(np.int64)))
    data.train_mask, data.test_mask = (torch.zeros(len(x), dtype=torch.bool) for _ in range(2))
    data.train_mask[torch.from_numpy(arrays["train_idx"].astype(np.int64))] = True
    data.test_mask[torch.from_numpy(arrays["test_idx"].astype(np.int64))] = True
    return data, gs.from_pyg(store, data, force=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name, value in (("vertices", 20000), ("edges", 200000), ("epochs", 5), ("seeds", 5)):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data, store = load(options.folder, options)
    stores = gs.pyg.stores(store)
    loaders = {
        "PyG": lambda seed: NeighborLoader(data, FANOUTS, input_nodes=data.train_mask, batch_size=BATCH, shuffle=True),
        "gnnstream": lambda seed: gs.loaders.NeighborLoader(store, FANOUTS, input_nodes="train", batch_size=BATCH,
                                                            shuffle=True, seed=seed),
        "PyG over stores()": lambda seed: NeighborLoader(stores, FANOUTS, input_nodes=data.train_mask, batch_size=BATCH,
                                                         shuffle=True)}
    seeds = range(options.seeds)
    found = {name: [train(make, data, len(FANOUTS), 0.01, HIDDEN, options.epochs, seed) for seed in seeds]
             for name, make in loaders.items()}
    print(f"{'loader':18} accuracies of {options.seeds} seeds{'':20} mean      deviation  processor s an epoch")
    of = {name: [accuracy for accuracy, _ in runs] for name, runs in found.items()}
    for name, runs in found.items():
        print(f"{name:18} {' '.join(f'{a:.4f}' for a in of[name]):42} {statistics.mean(of[name]):.4f}    "
              f"{statistics.stdev(of[name]):.4f}     {statistics.median(s for _, s in runs) / options.epochs:.3f}")
    for name in loaders:
        error = ((statistics.variance(of[name]) + statistics.variance(of["PyG"])) / options.seeds) ** 0.5
        if abs(statistics.mean(of[name]) - statistics.mean(of["PyG"])) > 3 * error:
            sys.exit(f"{name}: differs from PyG's by more than three standard errors ({error:.4f})")


if __name__ == "__main__":
    main()
