#!/usr/bin/env python3
"""one_line.py FOLDER [--vertices N] [--edges E] [--epochs N] [--seeds N]: is a model of PyG's as good on this package's
batches?

One training loop as PyG's examples write it (GraphSAGE on neighbours, exact inference on all vertices at the end), over
several seeds on a generated graph, of which the line that makes the loader changes alone: PyG's NeighborLoader over a
Data, gnnstream.loaders.NeighborLoader over a store, and PyG's over gnnstream.pyg.stores(). Prints test accuracies and
seconds side by side; ends with 1 where a mean differs from PyG's by more than three standard errors. Wants gnnstream,
torch_geometric, and pyg-lib or torch-sparse.
"""
import argparse
import os
import statistics
import sys
import time
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv

import gnnstream as gs
import gnnstream.loaders
import gnnstream.pyg

FANOUTS, BATCH, HIDDEN = [10, 5], 256, 64


class GraphSAGE(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(features, HIDDEN), SAGEConv(HIDDEN, classes)])

    def forward(self, x, edge_index):
        x = F.dropout(self.convs[0](x, edge_index).relu(), 0.5, self.training)
        return self.convs[1](x, edge_index)


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


def run(make_loader, data, classes, epochs, seed):
    """(test accuracy, seconds of an epoch)"""
    torch.manual_seed(seed)
    model, loader = GraphSAGE(data.num_features, classes), make_loader(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    began = time.time()
    for _ in range(epochs):
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[:batch.batch_size]
            F.cross_entropy(out, batch.y[:batch.batch_size]).backward()
            optimizer.step()
    seconds = (time.time() - began) / epochs
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    return right[data.test_mask].float().mean().item(), seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name, value in (("vertices", 20000), ("edges", 200000), ("epochs", 5), ("seeds", 5)):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data, store = load(options.folder, options)
    classes, stores = int(data.y.max()) + 1, gs.pyg.stores(store)
    loaders = {
        "PyG": lambda seed: NeighborLoader(data, FANOUTS, input_nodes=data.train_mask, batch_size=BATCH, shuffle=True),
        "gnnstream": lambda seed: gs.loaders.NeighborLoader(store, FANOUTS, input_nodes="train", batch_size=BATCH,
                                                            shuffle=True, seed=seed),
        "PyG over stores()": lambda seed: NeighborLoader(stores, FANOUTS, input_nodes=data.train_mask, batch_size=BATCH,
                                                         shuffle=True)}
    found = {name: [run(make, data, classes, options.epochs, seed) for seed in range(options.seeds)]
             for name, make in loaders.items()}
    print(f"{'loader':18} accuracies of {options.seeds} seeds{'':20} mean      deviation  s an epoch")
    of = {name: [accuracy for accuracy, _ in runs] for name, runs in found.items()}
    for name, runs in found.items():
        print(f"{name:18} {' '.join(f'{a:.4f}' for a in of[name]):42} {statistics.mean(of[name]):.4f}    "
              f"{statistics.stdev(of[name]):.4f}     {statistics.median(s for _, s in runs):.3f}")
    for name in loaders:
        error = ((statistics.variance(of[name]) + statistics.variance(of["PyG"])) / options.seeds) ** 0.5
        if abs(statistics.mean(of[name]) - statistics.mean(of["PyG"])) > 3 * error:
            sys.exit(f"{name}: differs from PyG's by more than three standard errors ({error:.4f})")


if __name__ == "__main__":
    main()
