#!/usr/bin/env python3
"""tables_torch.py GRAPH MODEL FOLDER HIDDEN STEPS OPTIONS... - five steps on a learned table: are they PyTorch's?

GRAPH is a folder of .npy files without features, MODEL the text of bench/models/tables.gnn. PyTorch draws the weights
of a GCN on nn.Embedding(vertices, 64), float32, and takes STEPS steps of torch.optim.Adam over all of them. gnnstream
starts from the same file (FOLDER/start.safetensors) on the store FOLDER/store, with OPTIONS, and saves what it gets.
Prints for each tensor the largest difference, of the largest number, and that of the norms; fails beyond 1e-4 of norms.
"""
import os
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
from safetensors.torch import load_file, save_file

warnings.simplefilter("ignore")  # sparse matrices are called new
WIDTH = 64
RATE = 0.01


class Product(torch.autograd.Function):
    """A @ x of a constant sparse matrix, and its transpose for the way back."""

    @staticmethod
    def forward(ctx, forward, backward, x):
        ctx.backward_matrix = backward
        return forward @ x

    @staticmethod
    def backward(ctx, gradient):
        return None, None, ctx.backward_matrix @ gradient


def csr(rows, columns, values, n):
    order = torch.argsort(rows, stable=True)
    start = torch.zeros(n + 1, dtype=torch.int64)
    start[1:] = torch.cumsum(torch.bincount(rows, minlength=n), 0)
    return torch.sparse_csr_tensor(start, columns[order], values[order], (n, n))


def matrices(edges, n):
    """D^-1/2 (A + I) D^-1/2, self loops of the graph left out, and its transpose."""
    source, target = edges[:, 0], edges[:, 1]
    other = source != target
    own = torch.arange(n)
    source, target = torch.cat([source[other], own]), torch.cat([target[other], own])
    root = torch.bincount(target, minlength=n).double().rsqrt()
    value = (root[source] * root[target]).float()
    return csr(target, source, value, n), csr(source, target, value, n)


def start_weights(n, hidden, classes):
    torch.manual_seed(1)
    glorot = lambda *shape: torch.nn.init.xavier_uniform_(torch.empty(*shape))
    return {"emb.weight": torch.nn.Embedding(n, WIDTH).weight.detach(),
            "convs.0.lin.weight": glorot(hidden, WIDTH), "convs.0.bias": torch.zeros(hidden),
            "convs.1.lin.weight": glorot(classes, hidden), "convs.1.bias": torch.zeros(classes)}


def train(weights, graph, steps):
    edges = torch.from_numpy(np.load(f"{graph}/edges.npy").astype(np.int64))
    labels = torch.from_numpy(np.load(f"{graph}/labels.npy").astype(np.int64))
    train_idx = torch.from_numpy(np.load(f"{graph}/train_idx.npy").astype(np.int64))
    there, back = matrices(edges, len(labels))
    w = {k: torch.nn.Parameter(v.clone()) for k, v in weights.items()}
    adam = torch.optim.Adam(w.values(), lr=RATE, foreach=False)  # which would take more copies
    began = time.time()
    for _ in range(steps):
        adam.zero_grad()
        h = Product.apply(there, back, w["emb.weight"] @ w["convs.0.lin.weight"].T) + w["convs.0.bias"]
        logits = Product.apply(there, back, h.relu() @ w["convs.1.lin.weight"].T) + w["convs.1.bias"]
        loss = torch.nn.functional.cross_entropy(logits[train_idx], labels[train_idx])
        loss.backward()
        adam.step()
    print(f"torch {torch.__version__}: {(time.time() - began) / steps:.2f} s a step, loss {loss.item():.6f}")
    return {k: v.detach() for k, v in w.items()}


def distances(got, want, start):
    """2-norms of got - want, want - start and want, and the largest |got - want| and |want|; by parts, in float64."""
    squares, largest = np.zeros(3), np.zeros(2)
    for a, b, c in zip(got.split(1 << 16), want.split(1 << 16), start.split(1 << 16)):
        a, b, c = a.double(), b.double(), c.double()
        squares += [(a - b).square().sum().item(), (b - c).square().sum().item(), b.square().sum().item()]
        largest = np.maximum(largest, [(a - b).abs().max().item(), b.abs().max().item()])
    return *np.sqrt(squares), *largest


def compare(got, want, start):
    """Prints how far apart tensors are; ends the script where that is too far."""
    worst = 0.0
    for name in want:
        apart, moved, norm, most, largest = distances(got[name], want[name], start[name])
        print(f"{name:20} moved by {moved:.6g}; apart {apart / moved:.2e} of that, at most {most / largest:.2e} of the "
              f"largest number")
        worst = max(worst, apart / norm)
    sys.exit(0 if worst < 1e-4 else f"apart by {worst:.2e} of the norm")


def gnnstream(store, model, folder, hidden, options):
    """Trains from FOLDER/start.safetensors; the tensors that it ends with."""
    subprocess.run([os.environ["GNNSTREAM"], "train", store, "--model", model, "--hidden", str(hidden), "--optimizer",
                    "adam", "--lr", str(RATE), "--keep", "last", "--init", f"{folder}/start.safetensors", "--save",
                    f"{folder}/end.safetensors", *options], check=True)
    return load_file(f"{folder}/end.safetensors")


def main():
    graph, model, folder, hidden, steps = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    labels = np.load(f"{graph}/labels.npy")
    weights = start_weights(len(labels), hidden, int(labels.max()) + 1)
    save_file(weights, f"{folder}/start.safetensors")
    want = train(weights, graph, steps)
    compare(gnnstream(f"{folder}/store", model, folder, hidden, ["--epochs", str(steps), *sys.argv[6:]]), want, weights)


if __name__ == "__main__":
    main()
