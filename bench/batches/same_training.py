#!/usr/bin/env python3
"""same_training.py WORK GRAPH... [--sampler LIB] [--seeds N] - one training, two loaders: are they as accurate?

Trains as two of PyTorch Geometric's examples do, written from its documentation: "reddit" (two SAGEConv, fanouts 25,10,
Adam 0.01) and "products" (three, fanouts 15,10,5, Adam 0.003), 256 wide, relu and dropout 0.5 between layers, then
exact inference of all edges. Everything is the same lines but the loader's: torch_geometric's NeighborLoader
over tensors, or gnnstream.loaders' over a store, of the same graph. Prints the mean test accuracy behind the last epoch
over so many seeds, which also draw the first weights, its deviation, and the difference in standard errors. Fails where
that is more than 3, which equal loaders are in one case of 50 with five seeds.

GRAPH is a folder of arrays as `gnnstream partition` reads it: edges, labels, features dense or sparse, and the split;
"GRAPH:60" splits 60/20/20 at random instead, so that batches are many. Where it has no features, a vertex has 64 random
numbers, by which its neighbours can be told. WORK gets the stores.

NeighborLoader needs pyg-lib or torch-sparse. Where neither is installed, --sampler is a library with torch-sparse's own
neighbour sampler (bench/same_training.sh compiles that alone from its sources). Runs in a Python with torch,
torch_geometric and gnnstream.
"""
import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv

import gnnstream as gs
from gnnstream.loaders import NeighborLoader as StoreLoader

RECIPES = {"reddit": ([25, 10], 0.01), "products": ([15, 10, 5], 0.003)}  # fanouts, rate


def graph_of(text):
    """(edges [2, E], features, labels, {split: mask}) of a folder."""
    folder, _, share = text.partition(":")
    load = lambda name: np.load(Path(folder) / f"{name}.npy")
    edges, labels = load("edges").T, load("labels")
    n = len(labels)
    if (Path(folder) / "features.npy").exists():
        x = load("features")
    elif (Path(folder) / "features_indptr.npy").exists():
        counts, columns = np.diff(load("features_indptr")), load("features_indices")
        x = np.zeros((n, columns.max() + 1), np.float32)
        x[np.repeat(np.arange(n), counts), columns] = load("features_data")
    else:
        x = np.random.default_rng(0).normal(size=(n, 64)).astype(np.float32)
    if share:
        order, first, last = np.random.default_rng(0).permutation(n), n * int(share) // 100, (100 - int(share)) // 2
        ids = np.split(order, [first, first + n * last // 100])
    else:
        ids = [load(f"{name}_idx") for name in ("train", "valid", "test")]
    masks = {}
    for name, of in zip(("train", "valid", "test"), ids):
        masks[name] = np.zeros(n, bool)
        masks[name][of] = True
    return edges, x, labels, masks


class Sage(torch.nn.Module):
    def __init__(self, columns, width, classes, layers):
        super().__init__()
        ends = [columns] + [width] * (layers - 1) + [classes]
        self.convs = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(ends, ends[1:]))

    def forward(self, x, edge_index):
        for k, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if k < len(self.convs) - 1:
                x = F.dropout(F.relu(x), 0.5, self.training)
        return x


def train(loader, data, layers, rate, hidden, epochs, seed):
    """Test accuracy, processor seconds (bench/one_line.py trains by it, too)."""
    torch.manual_seed(seed)
    model = Sage(data.num_features, hidden, int(data.y.max()) + 1, layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    loader, used = loader(seed), time.process_time()
    for _ in range(epochs):
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[:batch.batch_size]
            F.cross_entropy(out, batch.y[:batch.batch_size]).backward()
            optimizer.step()
    used = time.process_time() - used
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    return right[data.test_mask].float().mean().item(), used


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--sampler", help="a library with torch.ops.torch_sparse.neighbor_sample")
    parser.add_argument("--recipes", default="reddit,products")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1024, help="at most a quarter of the training vertices")
    return parser.parse_args()


def main():
    a, failed = arguments(), False
    if a.sampler:
        torch.ops.load_library(a.sampler)
        torch_geometric.typing.WITH_TORCH_SPARSE = True
    print(f"{a.hidden} wide, {a.epochs} epochs, {a.seeds} seeds\n\n| graph | recipe | batches | NeighborLoader | "
          "gnnstream | difference | standard errors | processor s, of both |\n|" + "---|" * 8, flush=True)
    for text in a.graphs:
        edges, x, labels, masks = graph_of(text)
        name = Path(text).name.replace(":", "-")
        store = gs.from_arrays(a.work / name, edges, x, labels, **masks, parts=4, force=True)
        data = Data(torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(edges)), y=torch.from_numpy(labels),
                    **{f"{split}_mask": torch.from_numpy(mask) for split, mask in masks.items()})
        batch = min(a.batch, -(-int(masks["train"].sum()) // 4))
        for recipe in a.recipes.split(","):
            fanouts, rate = RECIPES[recipe]
            loaders = {
                "pyg": lambda seed: NeighborLoader(data, fanouts, batch_size=batch, input_nodes=data.train_mask,
                                                   shuffle=True),
                "gnnstream": lambda seed: StoreLoader(store, fanouts, batch_size=batch, input_nodes="train",
                                                      shuffle=True, seed=seed)}
            got = {key: [train(loader, data, len(fanouts), rate, a.hidden, a.epochs, seed) for seed in range(a.seeds)]
                   for key, loader in loaders.items()}
            mean, deviation, used = {}, {}, {}
            for key, runs in got.items():
                accuracies = [accuracy for accuracy, _ in runs]
                mean[key], deviation[key] = statistics.mean(accuracies), statistics.stdev(accuracies)
                used[key] = sum(seconds for _, seconds in runs)
            error = math.hypot(*deviation.values()) / math.sqrt(a.seeds)
            apart = mean["gnnstream"] - mean["pyg"]
            errors = apart / max(error, 1 / masks["test"].sum())
            failed |= abs(errors) > 3
            print(f"| {name} | {recipe} | {-(-int(masks['train'].sum()) // batch)} of {batch} | " +
                  " | ".join(f"{mean[key]:.4f} ± {deviation[key]:.4f}" for key in loaders) +
                  f" | {apart:+.4f} | {errors:+.2f} | {used['pyg']:.0f}, {used['gnnstream']:.0f} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
