"""PyTorch Geometric's GCN on the GPU: gpu_gcn.py GRAPH HIDDEN EPOCHS OUT. Seconds of an epoch, two lines into OUT."""
import pathlib
import statistics
import sys
import time

import numpy
import torch
from torch_geometric.nn import GCN

folder, hidden, epochs, out = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
load = lambda name: torch.from_numpy(numpy.load(folder / name).copy())
edges = load("edges.npy").long().t().contiguous().to(where)
features = load("features.npy").float().to(where)
labels = load("labels.npy").long().to(where)
train = load("train_idx.npy").long().to(where)
model = GCN(features.shape[1], hidden, 2, int(labels.max()) + 1).to(where)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
times = []
for _ in range(epochs):
    begin = time.perf_counter()
    optimizer.zero_grad()
    logits = model(features, edges)
    loss = torch.nn.functional.cross_entropy(logits[train], labels[train])
    loss.backward()
    optimizer.step()
    loss.item()
    times.append(time.perf_counter() - begin)
pathlib.Path(out).write_text(f"PyG GCN on {where}: {statistics.median(times[1:]):.4f} s an epoch, loss {loss.item():.4f}\n")
