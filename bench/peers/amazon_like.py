#!/usr/bin/env python3
"""amazon_like.py GNNSTREAM - test accuracy on a graph like Amazon Photo, beside PyTorch Geometric's, each from weights
of its own.

Features there are counts of words that nobody has scaled, so how large the first weights are decides what a network
learns. GIN adds up counts of all neighbours, and gives one class to all vertices, here as there, without a norm; so it
is tried with `--norm batch`.

The graph is drawn: 7,650 vertices in 8 classes of Amazon Photo's sizes, 119,081 edges both ways, 83 of 100
within a class, degrees with a long tail, 745 counts a vertex whose rates depend on its class; 20 training vertices a
class, 30 to validate with. Two layers of 64, Adam 0.01, weight decay 5e-4, dropout 0.5, 50 epochs, the last weights.

  GS_SEEDS   so many; default 10
  GS_MODELS  default "sage gin"

Prints mean, standard deviation and the range over the seeds of both, and their difference in standard errors; ends with
status 1 where that is above 3. Needs torch, torch_geometric, numpy and scipy (bench/peers/requirements.txt).
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse
import torch
import torch_geometric.nn as nn
from torch.nn import functional

SIZES = [369, 1686, 703, 915, 882, 823, 1941, 331]  # Amazon Photo's classes
EDGES, WORDS, HIDDEN, EPOCHS, RATE, DECAY, DROPOUT = 119081, 745, 64, 50, 0.01, 5e-4, 0.5
PYG = {"sage": nn.models.GraphSAGE, "gin": nn.models.GIN}
NORM = {"sage": [], "gin": ["--norm", "batch"]}


def draw_edges(label, random):
    """Each end by its weight, the second of the first one's class 83 times of 100; both ways."""
    weight = random.pareto(1.8, len(label)) + 0.3
    everyone = np.arange(len(label))
    source = random.choice(everyone, EDGES, p=weight / weight.sum())
    target = random.choice(everyone, EDGES, p=weight / weight.sum())
    alike = random.random(EDGES) < 0.83
    for c in range(len(SIZES)):
        own, these = everyone[label == c], alike & (label[source] == c)
        target[these] = random.choice(own, these.sum(), p=weight[own] / weight[own].sum())
    return np.concatenate([np.stack([source, target], 1), np.stack([target, source], 1)])


def draw_features(label, random):
    """Counts: rates of words have a long tail, each class has its own factors, each vertex a length."""
    usual = random.lognormal(-1.5, 0.9, WORDS)
    own = random.lognormal(0, 0.1, (len(SIZES), WORDS))
    length = random.lognormal(0, 0.4, len(label))
    return random.poisson(usual * own[label] * length[:, None]).astype(np.float32)


def make_graph(folder):
    random = np.random.default_rng(11)
    label = random.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    order = random.permutation(len(label))
    taken = {"train": [], "valid": []}
    for c in range(len(SIZES)):
        own = order[label[order] == c]
        taken["train"] += own[:20].tolist()
        taken["valid"] += own[20:50].tolist()
    taken["test"] = np.setdiff1d(order, taken["train"] + taken["valid"])
    folder.mkdir()
    np.save(folder / "edges.npy", draw_edges(label, random))
    np.save(folder / "features.npy", draw_features(label, random))
    np.save(folder / "labels.npy", label)
    for name, rows in taken.items():
        np.save(folder / f"{name}_idx.npy", np.sort(np.asarray(rows)))


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def accuracy(logits, label, rows):
    return 100 * float((logits[rows].argmax(1) == label[rows]).mean())


def ours(program, folder, model, seed, label, rows):
    logits = folder / "logits.npy"
    run(program, "train", folder / "store", "--model", model, *NORM[model], "--layers", 2, "--hidden", HIDDEN,
        "--epochs", EPOCHS, "--optimizer", "adam", "--lr", RATE, "--weight-decay", DECAY, "--dropout", DROPOUT,
        "--seed", seed, "--keep", "last", "--eval-every", 0, "--logits", logits)
    return accuracy(np.load(logits), label, rows)


class Theirs:
    def __init__(self, folder, label):
        edges = np.load(folder / "edges.npy")
        n = len(label)
        matrix = scipy.sparse.csr_matrix((np.ones(len(edges), np.float32), (edges[:, 1], edges[:, 0])), (n, n))
        self.adj = torch.sparse_csr_tensor(matrix.indptr, matrix.indices, matrix.data, (n, n))
        # a mean counts entries of the matrix, so doubled edges are merged there: give it the quotients
        quotient = scipy.sparse.diags(1 / np.maximum(matrix.sum(1).A1, 1)).astype(np.float32) @ matrix
        self.mean = torch.sparse_csr_tensor(quotient.indptr, quotient.indices, quotient.data, (n, n))
        self.x = torch.from_numpy(np.load(folder / "features.npy"))
        self.y = torch.from_numpy(label)
        self.rows = torch.from_numpy(np.load(folder / "train_idx.npy"))

    def __call__(self, model, seed, rows):
        torch.manual_seed(seed)
        more = {"aggr": "sum"} if model == "sage" else {"norm": "batch_norm"}  # of the quotients: the mean
        net = PYG[model](WORDS, HIDDEN, 2, len(SIZES), dropout=DROPOUT, **more)
        graph = self.mean if model == "sage" else self.adj
        optimiser = torch.optim.Adam(net.parameters(), lr=RATE, weight_decay=DECAY)
        net.train()
        for _ in range(EPOCHS):
            optimiser.zero_grad()
            functional.cross_entropy(net(self.x, graph)[self.rows], self.y[self.rows]).backward()
            optimiser.step()
        net.eval()
        with torch.no_grad():
            return accuracy(net(self.x, graph).numpy(), self.y.numpy(), rows)


def row(model, who, values):
    print(f"{model:8s} {who:10s} {np.mean(values):8.2f} {np.std(values, ddof=1):8.2f} {min(values):8.2f} "
          f"{max(values):8.2f}", flush=True)


def main():
    program, seeds = pathlib.Path(sys.argv[1]).resolve(), int(os.environ.get("GS_SEEDS", "10"))
    wrong = 0
    print(f"{'model':8s} {'':10s} {'mean':>8s} {'std':>8s} {'least':>8s} {'most':>8s}   "
          f"test accuracy, %, {seeds} seeds")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_graph(folder / "graph")
        run(program, "partition", folder / "graph", folder / "store", "--parts", 1, "--method", "natural")
        label, rows = np.load(folder / "graph" / "labels.npy"), np.load(folder / "graph" / "test_idx.npy")
        theirs = Theirs(folder / "graph", label)
        for model in os.environ.get("GS_MODELS", "sage gin").split():
            a = [ours(program, folder, model, seed, label, rows) for seed in range(seeds)]
            row(model, "gnnstream", a)
            b = [theirs(model, seed, rows) for seed in range(seeds)]
            row(model, "PyG", b)
            error = np.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / seeds)
            apart = abs(np.mean(a) - np.mean(b)) / error
            wrong += apart > 3
            print(f"{model:8s} apart: {np.mean(a) - np.mean(b):+.2f}, {apart:.1f} standard errors", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
