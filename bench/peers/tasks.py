#!/usr/bin/env python3
"""Is a task's training that of PyTorch Geometric? The same GCN, from the same weights, 50 epochs of Adam on both sides.

    tasks.py DATA      (needs torch, torch_geometric, scikit-learn, safetensors, and this project's Python package)

DATA has a folder `blogcatalog` with edges.npy, labels_multi.npy and {train,valid,test}_idx.npy. Features are seeded
normal numbers. Tasks: its 39 labels, with and without pos_weight; numbers made of the features; which of
its five most frequent labels as a class, weighted and smoothed; and a GCN of weighted edges, with self loops,
doubled edges and weights of 0.
Losses of all epochs are compared, then figures with scikit-learn's on the run's own logits. Ends with 1 where one
differs."""
import os
import sys
import tempfile

import gnnstream
import numpy as np
import torch
from safetensors.torch import save_file
from sklearn import metrics as sk
from torch_geometric.nn.models import GCN

EPOCHS, HIDDEN, FEATURES = 50, 64, 64
SPLITS = ("train", "valid", "test")
failed = []


def say(what, worst, most):
    print(f"{what:58s} {worst:.3g} (at most {most:g})")
    if not worst <= most:
        failed.append(what)


def model(width, first):
    torch.manual_seed(0)
    net = GCN(FEATURES, HIDDEN, num_layers=2, out_channels=width)
    if os.path.exists(first):
        os.remove(first)
    save_file({k: v.detach().contiguous() for k, v in net.state_dict().items()}, first)
    return net


def pyg(net, x, edges, loss, weight=None):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        value = loss(net(x, edges, edge_weight=weight))
        losses.append(value.item())
        value.backward()
        optimizer.step()
    with torch.no_grad():
        return np.array(losses), net(x, edges, edge_weight=weight).numpy()


def figures(task, y, z):
    """scikit-learn's, of logits."""
    if task == "multilabel":
        seen = (y.sum(0) > 0) & (y.sum(0) < len(y))
        return {"micro_f1": sk.f1_score(y, z > 0, average="micro", zero_division=0),
                "macro_f1": sk.f1_score(y, z > 0, average="macro", zero_division=0),
                "roc_auc": sk.roc_auc_score(y[:, seen], z[:, seen], average="macro"),
                "average_precision": np.mean([sk.average_precision_score(y[:, c], z[:, c]) if y[:, c].any() else 0
                                              for c in range(y.shape[1])])}
    if task == "regress":
        return {"mse": sk.mean_squared_error(y, z), "mae": sk.mean_absolute_error(y, z), "r2": sk.r2_score(y, z)}
    return {"acc": sk.accuracy_score(y, z.argmax(1))}


def compare(name, folder, data, y, loss, width, weight=None, **options):
    store, first = os.path.join(folder, "store"), os.path.join(folder, "first.safetensors")
    gnnstream.from_arrays(store, data["edges"], data["x"], y, **data["split"], edge_weight=weight, parts=3, force=True)
    net = model(width, first)
    tensor = None if weight is None else torch.from_numpy(weight)
    theirs, their_logits = pyg(net, torch.from_numpy(data["x"]), torch.from_numpy(data["edges"]), loss, tensor)
    with gnnstream.Run(store, "gcn", hidden=HIDDEN, epochs=EPOCHS, lr=0.01, init=first, keep="last", **options) as run:
        losses = np.array([epoch.loss for epoch in run])
        now = run.evaluate()
        logits = run.logits()
    say(f"{name}: losses of {EPOCHS} epochs", np.abs(losses / theirs - 1).max(), 1e-5)
    say(f"{name}: last logits, of the largest", np.abs(logits - their_logits).max() / np.abs(their_logits).max(), 1e-2)
    for split in SPLITS:
        ids = data["split"][split]
        for figure, value in figures(now.task, y[ids], logits[ids].astype(np.float64)).items():
            say(f"{name}: {split} {figure} {value:.6f}", abs(getattr(now, f"{split}_{figure}") - value), 1e-9)


def weighted_forward(folder, data, y, weight):
    """One pass of weighted edges, from the same weights. float32 sums of a hub's thousands of edges differ by 2e-6 of
    the largest logit between orders of the same edges; where degrees are Cora's, by 5e-7."""
    store, first = os.path.join(folder, "store"), os.path.join(folder, "first.safetensors")
    gnnstream.from_arrays(store, data["edges"], data["x"], y, **data["split"], edge_weight=weight, parts=3, force=True)
    net = model(y.shape[1], first)
    with torch.no_grad():
        want = net(torch.from_numpy(data["x"]), torch.from_numpy(data["edges"]),
                   edge_weight=torch.from_numpy(weight)).numpy()
    got = gnnstream.predict(store, "gcn", first, hidden=HIDDEN)
    say("gcn of weighted edges: logits, of the largest", np.abs(got - want).max() / np.abs(want).max(), 4e-6)


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    place = os.path.join(sys.argv[1], "blogcatalog")
    read = lambda name: np.load(os.path.join(place, name + ".npy"))  # noqa: E731
    labels = read("labels_multi")
    random = np.random.default_rng(0)
    x = random.normal(size=(len(labels), FEATURES)).astype(np.float32)
    data = {"edges": np.ascontiguousarray(read("edges").T), "x": x,
            "split": {name: read(f"{name}_idx") for name in SPLITS}}
    train = data["split"]["train"]
    truth = torch.from_numpy(labels.astype(np.float32))
    there = labels[train].sum(0)
    balance = np.where(there > 0, (len(train) - there) / np.maximum(there, 1), 1).astype(np.float32)
    numbers = (x[:, :2] + 0.1 * random.normal(size=(len(x), 2))).astype(np.float32)
    wanted = torch.from_numpy(numbers)
    classes = labels[:, np.argsort(-labels.sum(0))[:5]].argmax(1).astype(np.int64)
    known = torch.from_numpy(classes)
    weight = np.array([1, 2, 0.5, 3, 1.5], np.float32)
    bce, cross = torch.nn.BCEWithLogitsLoss, torch.nn.CrossEntropyLoss
    with tempfile.TemporaryDirectory() as folder:
        compare("multilabel", folder, data, labels, lambda z: bce()(z[train], truth[train]), labels.shape[1])
        compare("multilabel, balanced", folder, data, labels,
                lambda z: bce(pos_weight=torch.from_numpy(balance))(z[train], truth[train]), labels.shape[1],
                class_weights="balanced")
        compare("regress", folder, data, numbers, lambda z: torch.nn.MSELoss()(z[train], wanted[train]), 2)
        compare("classify, weighted and smoothed", folder, data, classes,
                lambda z: cross(weight=torch.from_numpy(weight), label_smoothing=0.1)(z[train], known[train]), 5,
                class_weights="1,2,0.5,3,1.5", label_smoothing=0.1)
        count, loops = len(labels), random.permutation(len(labels))[:len(labels) // 3]
        doubled = data["edges"][:, random.permutation(data["edges"].shape[1])[:5000]]
        data["edges"] = np.concatenate([data["edges"], doubled, np.stack([loops, loops])], axis=1)
        edge_weight = random.uniform(0, 2, data["edges"].shape[1]).astype(np.float32)
        edge_weight[random.random(len(edge_weight)) < 0.1] = 0
        edge_weight[np.isin(data["edges"][1], loops[:count // 100])] = 0
        weighted_forward(folder, data, labels, edge_weight)
        compare("multilabel, weighted edges", folder, data, labels,
                lambda z: bce()(z[train], truth[train]), labels.shape[1], weight=edge_weight)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
