"""Do saved weights load into PyTorch Geometric's classes, and back?

    load_saved.py GNNSTREAM [MODEL ...]      GNNSTREAM: the program; models: default all that PyG has, and GCN,
                                             GraphSAGE, GAT and GIN with norms, jumping knowledge and residuals

For each model, on a small graph with self loops, doubled edges, edge types and vertices without edges:

    there   gnnstream trains and saves; the PyG class takes the file with load_state_dict(strict=True), and its logits
            in eval mode are compared with those of `gnnstream predict`
    back    a fresh PyG network's state_dict is saved; `gnnstream train --init` takes one SGD step from it, as PyG does,
            and logits and weights behind it are compared
    losses  the same weights, five SGD steps, and the loss of each

Prints a line a model with the largest differences, relative to the largest number; ends with status 1 where one is
above 1e-4 (of losses 1e-5). PyG has no residuals, so its network gets a forward() with them. sage_lstm
gets a graph with equal in-degrees and sources in order, as PyG pads sequences with steps of
zeros (docs/models.md). Models that PyG has as a convolution only (rgcn) are stacked as BasicGNN does.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy as np
import torch
import torch_geometric.nn as nn
from safetensors.torch import load_file, save_file

FEATURES, HIDDEN, CLASSES, TYPES, BASES, HEADS, LAYERS = 12, 16, 4, 3, 2, 4, 3
TOLERANCE, LOSS_TOLERANCE = 1e-4, 1e-5
NORMED = """# PyG's GCN with norm="batch_norm".
layer hidden(h[in]) -> [out]:
    param lin.weight[out, in], bias[out]
    norm = rsqrt(in_degree - loops + 1)
    return batch_norm(sum(v.norm * u.norm * u.h, self) @ lin.weight' + bias)

layer last(h[in]) -> [out]:
    param lin.weight[out, in], bias[out]
    norm = rsqrt(in_degree - loops + 1)
    return sum(v.norm * u.norm * u.h, self) @ lin.weight' + bias
"""


class Stack(torch.nn.Module):
    """Convolutions with an activation between them, called as in BasicGNN."""

    def __init__(self, make):
        super().__init__()
        widths = [FEATURES] + [HIDDEN] * (LAYERS - 1) + [CLASSES]
        self.convs = torch.nn.ModuleList([make(a, b) for a, b in zip(widths, widths[1:])])

    def forward(self, x, *graph):
        for conv in self.convs[:-1]:
            x = conv(x, *graph).relu()
        return self.convs[-1](x, *graph)


def basic(kind, **more):
    return lambda: kind(FEATURES, HIDDEN, LAYERS, CLASSES, **more)


MODELS = {  # how PyG makes it, and options of gnnstream
    "gcn": (basic(nn.models.GCN), []),
    "sage": (basic(nn.models.GraphSAGE), []),
    "sage_max": (basic(nn.models.GraphSAGE, aggr="max"), []),
    "sage_lstm": (basic(nn.models.GraphSAGE, aggr="lstm"), []),
    "gat": (basic(nn.models.GAT, heads=HEADS), ["--heads", str(HEADS)]),
    "gatv2": (basic(nn.models.GAT, v2=True, heads=HEADS), ["--heads", str(HEADS)]),
    "gin": (basic(nn.models.GIN), []),
    "gcn_batch_norm": (basic(nn.models.GCN, norm="batch_norm"), []),
    "rgcn": (lambda: Stack(lambda a, b: nn.RGCNConv(a, b, TYPES)), []),
    "rgcn_bases": (lambda: Stack(lambda a, b: nn.RGCNConv(a, b, TYPES, num_bases=BASES)), ["--bases", str(BASES)]),
}


def residual_forward(net, x, edge_index):
    """BasicGNN.forward() with what a hidden layer got added to what comes of it."""
    xs = []
    for i, (conv, norm) in enumerate(zip(net.convs, net.norms)):
        h = conv(x, edge_index)
        if i < net.num_layers - 1 or net.jk_mode is not None:
            h = norm(net.act(h)) if net.act_first else net.act(norm(h))
            h = h + x if i > 0 else h
            xs.append(h)
        x = h
    x = net.jk(xs) if hasattr(net, "jk") else x
    return net.lin(x) if hasattr(net, "lin") else x


def around(kind, more, norm, jk, residual, act_first):
    """A network as BasicGNN makes it, and what says the same to gnnstream."""
    norms = {"none": {}, "batch": {"norm": "batch_norm"}, "layer": {"norm": "layer_norm"},
             "layer_node": {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}}

    def make():
        net = kind(FEATURES, HIDDEN, LAYERS, CLASSES, jk=jk, act_first=act_first, **norms[norm], **more)
        if residual:
            net.forward = types.MethodType(residual_forward, net)
        return net
    options = ["--norm", norm] + (["--jk", jk] if jk else []) + ["--residual"] * residual + ["--act-first"] * act_first
    return make, options


def add_around():
    kinds = {"gcn": (nn.models.GCN, {}, []), "sage": (nn.models.GraphSAGE, {}, []), "gin": (nn.models.GIN, {}, []),
             "gat": (nn.models.GAT, {"heads": HEADS}, ["--heads", str(HEADS)])}
    cases = [("batch", None, False, False), ("layer", "cat", False, False), ("layer_node", "max", True, False),
             ("batch", "lstm", True, True), ("none", "last", False, False), ("layer", None, True, True)]
    for model, (kind, more, options) in kinds.items():
        for case in cases:
            make, said = around(kind, more, *case)
            MODELS[" ".join([model, *said])] = make, options + said


add_around()


def make_graph(folder, regular):
    """200 vertices; `regular`: 5 in-edges each, in the order of their sources."""
    random = np.random.default_rng(5)
    n = 200
    if regular:
        target = np.repeat(np.arange(n), 5)
        source = np.sort(random.integers(0, n, (n, 5)), axis=1).ravel()
    else:
        source, target = random.integers(0, n - 20, 900), random.integers(0, n - 20, 900)  # the last 20 have no edges
        source[:30] = target[:30]
        source[30:60], target[30:60] = source[60:90], target[60:90]
    folder.mkdir()
    np.save(folder / "edges.npy", np.stack([source, target], axis=1))
    np.save(folder / "features.npy", random.standard_normal((n, FEATURES)).astype(np.float32))
    np.save(folder / "labels.npy", random.integers(0, CLASSES, n))
    np.save(folder / "train_idx.npy", np.arange(0, n, 2))
    np.save(folder / "valid_idx.npy", np.arange(1, n, 4))
    np.save(folder / "test_idx.npy", np.arange(3, n, 4))
    if not regular:
        np.save(folder / "edge_types.npy", random.integers(0, TYPES, len(source)))


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def difference(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        raise SystemExit(f"shapes {a.shape} and {b.shape}")
    if not np.isfinite(a).all() or not np.isfinite(b).all():
        raise SystemExit("a number is not finite")
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)


class Case:
    def __init__(self, program, model, work):
        self.make, options = MODELS[model]
        regular = model == "sage_lstm"
        self.graph, self.store = work / f"graph-{regular}", work / f"store-{regular}"
        if not self.graph.exists():
            make_graph(self.graph, regular)
            run(program, "partition", self.graph, self.store, "--parts", 3, "--method", "natural")
        if model == "gcn_batch_norm":
            text = work / "gcn_batch_norm.gnn"
            text.write_text(NORMED)
            model = text
        else:
            model = model.split()[0]
        self.program, self.work = program, work
        self.options = ["--model", model, "--layers", LAYERS, "--hidden", HIDDEN, *options]
        load = lambda name: torch.from_numpy(np.load(self.graph / name))
        self.x, self.y, self.rows = load("features.npy"), load("labels.npy"), load("train_idx.npy")
        self.edges = [load("edges.npy").t().contiguous()]
        if "rgcn" in str(model):
            self.edges.append(load("edge_types.npy"))

    def train(self, *more):
        run(self.program, "train", self.store, *self.options, "--optimizer", "sgd", "--seed", 3, *more)

    def predict(self, weights):
        out = self.work / "logits.npy"
        run(self.program, "predict", self.store, *self.options, "--weights", weights, "--logits", out)
        return np.load(out)

    def logits(self, net):
        net.eval()
        with torch.no_grad():
            return net(self.x, *self.edges).numpy()

    def there(self):
        saved = self.work / "saved.safetensors"
        self.train("--epochs", 5, "--lr", 0.01, "--save", saved)
        net = self.make()
        net.load_state_dict(load_file(saved), strict=True)
        return difference(self.predict(saved), self.logits(net))

    def back(self):
        """Logits and weights after a step of SGD from PyG's weights."""
        torch.manual_seed(7)
        net, first, second = self.make(), self.work / "first.safetensors", self.work / "second.safetensors"
        with torch.no_grad():
            for p in net.parameters():  # biases too, so that a lost one is seen
                p.copy_(torch.randn_like(p) * 0.2)
        save_file({k: v.clone().contiguous() for k, v in net.state_dict().items()}, first)
        self.train("--epochs", 1, "--lr", 0.5, "--init", first, "--save", second, "--keep", "last")
        net.train()
        torch.nn.functional.cross_entropy(net(self.x, *self.edges)[self.rows], self.y[self.rows]).backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.5 * p.grad
        ours, theirs = load_file(second), net.state_dict()
        if set(ours) != set(theirs):
            raise SystemExit(f"tensors {sorted(set(ours) ^ set(theirs))} are on one side only")
        weights = max(difference(ours[k], theirs[k]) for k in ours)
        return difference(self.predict(second), self.logits(net)), weights


    def losses(self):
        """Of five steps of SGD, from the weights that back() began with."""
        net, first, lines = self.make(), self.work / "first.safetensors", self.work / "lines.jsonl"
        net.load_state_dict(load_file(first), strict=True)
        lines.unlink(missing_ok=True)
        self.train("--epochs", 5, "--lr", 0.1, "--init", first, "--metrics", lines, "--keep", "last")
        ours = [json.loads(line)["loss"] for line in lines.read_text().splitlines()]
        optimiser, theirs = torch.optim.SGD(net.parameters(), lr=0.1), []
        net.train()
        for _ in range(5):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(self.x, *self.edges)[self.rows], self.y[self.rows])
            loss.backward()
            optimiser.step()
            theirs.append(loss.item())
        return difference(ours, theirs)


def main():
    program, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(MODELS)
    worst = 0
    print(f"PyTorch Geometric {__import__('torch_geometric').__version__}, torch {torch.__version__}")
    print(f"{'model':52s}{'loads: logits':>14s}{'a step: logits':>16s}{'weights':>10s}{'5 losses':>10s}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            case = Case(program, name, pathlib.Path(folder))
            there, (logits, weights), losses = case.there(), case.back(), case.losses()
            print(f"{name:52s}{there:14.1e}{logits:16.1e}{weights:10.1e}{losses:10.1e}", flush=True)
            worst = max(worst, there, logits, weights, losses * TOLERANCE / LOSS_TOLERANCE)
    print("the same" if worst <= TOLERANCE else f"DIFFERS by {worst:.1e}")
    sys.exit(1 if worst > TOLERANCE else 0)


if __name__ == "__main__":
    main()
