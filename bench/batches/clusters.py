#!/usr/bin/env python3
"""clusters.py GRAPH STORE - GraphSAGE on batches of clusters in PyTorch, for bench/batch_accuracy.sh's figures.

Shares nothing with gnnstream but the parts: GRAPH is a folder as those of GS_TEST_DATA (edges.npy, features.npy,
labels.npy, train_idx.npy, test_idx.npy), STORE what `gnnstream partition GRAPH STORE --parts 16 --method metis` made
of it. Two layers of 64, the mean as a sparse matrix of the batch's own edges, dropout 0.5 of inputs and hidden, Adam
0.01, weight decay 5e-4. Prints the test accuracy of the last weights on the whole graph, mean and standard error over
the seeds, trained on the whole graph (100 steps) and on four of the sixteen parts at a time (50 epochs).

  GS_SEEDS  so many seeds; default 30
  GS_INIT   kaiming, as torch_geometric's SAGEConv begins and gnnstream's `sage`, or glorot; default kaiming
"""
import json
import os
import sys

import numpy as np
import torch
from torch.nn import functional

HIDDEN, PARTS = 64, 16


def mean_of(source, target, vertices):
    """The matrix whose product with rows is the mean over the edges into each vertex."""
    count = np.bincount(target, minlength=vertices)
    value = torch.tensor((1 / np.maximum(count, 1))[target], dtype=torch.float32)
    return torch.sparse_coo_tensor(np.stack([target, source]), value, (vertices, vertices)).coalesce()


class Graph:
    def __init__(self, folder, store):
        def array(name):
            return np.load(os.path.join(folder, name + ".npy"))

        edges = array("edges").astype(np.int64)
        self.source, self.target = edges if edges.shape[0] == 2 else edges.T
        self.x = torch.tensor(array("features").astype(np.float32))
        self.y = torch.tensor(array("labels").astype(np.int64))
        self.test = torch.tensor(array("test_idx").astype(np.int64))
        vertices = len(self.y)
        self.trains = np.zeros(vertices, bool)
        self.trains[array("train_idx")] = True
        with open(os.path.join(store, "manifest.json"), encoding="utf-8") as file:
            rows = json.load(file)["interval_rows"]
        ids = np.fromfile(os.path.join(store, "input_id.bin"), np.uint32)[:vertices]
        self.part = np.empty(vertices, np.int64)
        self.part[ids] = np.arange(vertices) // rows
        self.mean = mean_of(self.source, self.target, vertices)

    def batch(self, parts):
        """Matrix, rows, labels and numbers of the training vertices of the subgraph of some parts."""
        own = np.flatnonzero(np.isin(self.part, parts))
        local = np.full(len(self.part), -1)
        local[own] = np.arange(len(own))
        inside = (local[self.source] >= 0) & (local[self.target] >= 0)
        mean = mean_of(local[self.source[inside]], local[self.target[inside]], len(own))
        return mean, self.x[own], self.y[own], np.flatnonzero(self.trains[own])


class Sage(torch.nn.Module):
    def __init__(self, widths, glorot):
        super().__init__()
        self.layers = torch.nn.ParameterList()
        for source, target in zip(widths, widths[1:]):
            for shape in ((target, source), (target, source), (target,)):
                value = torch.zeros(shape)
                if glorot and len(shape) == 2:
                    torch.nn.init.xavier_uniform_(value)
                elif not glorot:
                    value.uniform_(-(source**-0.5), source**-0.5)
                self.layers.append(torch.nn.Parameter(value))

    def forward(self, mean, x):
        for k in range(0, len(self.layers), 3):
            neighbours, own, bias = self.layers[k : k + 3]
            x = functional.dropout(torch.relu(x) if k > 0 else x, 0.5, self.training)
            x = torch.sparse.mm(mean, x @ neighbours.T) + x @ own.T + bias
        return x


def accuracy(graph, seed, epochs, parts):
    torch.manual_seed(seed)
    order = np.random.default_rng(seed)
    widths = [graph.x.shape[1], HIDDEN, int(graph.y.max()) + 1]
    model = Sage(widths, os.environ.get("GS_INIT", "kaiming") == "glorot")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        drawn = order.permutation(PARTS)
        for first in range(0, PARTS, parts):
            mean, x, y, train = graph.batch(drawn[first : first + parts])
            optimizer.zero_grad()
            if len(train) > 0:
                functional.cross_entropy(model(mean, x)[train], y[train]).backward()
                optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(graph.mean, graph.x)[graph.test].argmax(1) == graph.y[graph.test]
    return 100 * right.double().mean().item()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    graph, seeds = Graph(sys.argv[1], sys.argv[2]), int(os.environ.get("GS_SEEDS", "30"))
    for name, epochs, parts in (("whole graph", 100, PARTS), ("clusters", 50, 4)):
        found = np.array([accuracy(graph, seed, epochs, parts) for seed in range(seeds)])
        print(f"{name}: {found.mean():.2f} ± {found.std(ddof=1) / seeds**0.5:.2f} ({seeds} seeds)", flush=True)


if __name__ == "__main__":
    main()
