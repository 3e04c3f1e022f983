#!/usr/bin/env python3
"""tables_batches.py GRAPH MODEL FOLDER HIDDEN BATCHES OPTIONS... - a learned table on batches: are its rows PyTorch's?

As tables_torch.py, of one epoch of BATCHES batches of neighbours, all in-edges of two hops, targets in the order of
their ids, on the store FOLDER/natural (partition --method natural). PyTorch looks up the rows that a batch has
(nn.functional.embedding with sparse=True) and updates these with torch.optim.SparseAdam, the rest with
torch.optim.Adam. SparseAdam adds its epsilon before the correction of the second moment and Adam behind it: it is given
one in each step with which the two are the same.
"""
import sys

import numpy as np
import torch
from safetensors.torch import save_file

import tables_torch
from tables_torch import RATE, WIDTH, Product

EPSILON = 1e-8
BETA2 = 0.999


def reached(edges, n, targets):
    """The targets, and who is up to two in-edges away from one."""
    there = torch.zeros(n, dtype=torch.bool)
    there[targets] = True
    for _ in range(2):
        there[edges[there[edges[:, 1]], 0]] = True
    return there.nonzero().squeeze(1)


def train(weights, graph, batches):
    edges = torch.from_numpy(np.load(f"{graph}/edges.npy").astype(np.int64))
    labels = torch.from_numpy(np.load(f"{graph}/labels.npy").astype(np.int64))
    train_idx = torch.from_numpy(np.sort(np.load(f"{graph}/train_idx.npy").astype(np.int64)))
    n = len(labels)
    there, back = tables_torch.matrices(edges, n)
    w = {k: torch.nn.Parameter(v.clone()) for k, v in weights.items()}
    sparse = torch.optim.SparseAdam([w["emb.weight"]], lr=RATE)
    dense = torch.optim.Adam([v for k, v in w.items() if k != "emb.weight"], lr=RATE, foreach=False)
    size = -(-len(train_idx) // batches)
    for step, targets in enumerate(train_idx.split(size), 1):
        sparse.zero_grad()
        dense.zero_grad()
        rows = reached(edges, n, targets)
        looked_up = torch.nn.functional.embedding(rows, w["emb.weight"], sparse=True)
        x = torch.zeros(n, WIDTH).index_copy(0, rows, looked_up)
        h = Product.apply(there, back, x @ w["convs.0.lin.weight"].T) + w["convs.0.bias"]
        logits = Product.apply(there, back, h.relu() @ w["convs.1.lin.weight"].T) + w["convs.1.bias"]
        loss = torch.nn.functional.cross_entropy(logits[targets], labels[targets])
        loss.backward()
        sparse.param_groups[0]["eps"] = EPSILON * (1 - BETA2**step) ** 0.5
        sparse.step()
        dense.step()
        print(f"torch {torch.__version__}: batch {step}, {len(rows)} of {n} rows, loss {loss.item():.6f}")
    return {k: v.detach() for k, v in w.items()}, size


def main():
    graph, model, folder, hidden, batches = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    labels = np.load(f"{graph}/labels.npy")
    weights = tables_torch.start_weights(len(labels), hidden, int(labels.max()) + 1)
    save_file(weights, f"{folder}/start.safetensors")
    want, size = train(weights, graph, batches)
    options = ["--epochs", "1", "--sampler", "neighbor", "--batch-size", str(size), "--fanout", "0,0", "--shuffle",
               "never", *sys.argv[6:]]
    got = tables_torch.gnnstream(f"{folder}/natural", model, folder, hidden, options)
    tables_torch.compare(got, want, weights)


if __name__ == "__main__":
    main()
