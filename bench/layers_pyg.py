#!/usr/bin/env python3
"""layers_pyg.py GNNSTREAM [DEVICE [MODEL ...]] - are layers with data on edges PyG's, value by value?

Two layers of each of EdgeConv, GINE, NNConv, PNA, TransformerConv, GATv2, ResGatedGraphConv and HAN, three of GatedGCN
as a MetaLayer that updates edges, one of RGAT and of HGT, as texts of tests/e2e, on a drawn graph with loops, doubled
edges and vertices without edges (HAN and HGT: of three types of vertices and three relations): logits within 1e-5 of
the largest and gradients within 1e-4 of torch_geometric's own in float64, for 1 and 8 parts, with the least budgets
that are named (so that rows spill), and on cpu:2. DEVICE is cpu; another one, such as cuda, is used in place of all of
these. Wants torch and torch_geometric. Prints a line a model and ends with 1 at the first that differs.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch_geometric.nn as pyg
from torch_geometric.utils import scatter as pyg_sum

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import formulas  # noqa: E402

N, E, F, K, C, RELATIONS = 1500, 9000, 8, 5, 4, 6
AVERAGE = {}  # of PNA's scalers


def edgeconv(i, o, _):
    return pyg.EdgeConv(torch.nn.Sequential(torch.nn.Linear(2 * i, o), torch.nn.ReLU(), torch.nn.Linear(o, o)))


def pna(i, o, graph):
    degree = torch.bincount(torch.bincount(graph["edges"][1], minlength=N))
    conv = pyg.PNAConv(i, o, ["mean", "max", "min", "std"], ["identity", "amplification", "attenuation"], degree,
                       edge_dim=K)
    AVERAGE["average"] = float(conv.aggr_module.avg_deg_log)
    return conv


class Edges(torch.nn.Module):
    """A MetaLayer's edge model: GatedGCN's."""

    def __init__(self, i, o, k):
        super().__init__()
        self.C, self.D, self.E = torch.nn.Linear(k, o), torch.nn.Linear(i, o), torch.nn.Linear(i, o)

    def forward(self, source, target, values, *_):
        return self.D(source) + self.E(target) + self.C(values)


class Vertices(torch.nn.Module):
    """Its model of vertices, on those values of edges."""

    def __init__(self, i, o):
        super().__init__()
        self.A, self.B = torch.nn.Linear(i, o), torch.nn.Linear(i, o)

    def forward(self, x, edges, values, *_):
        gate = torch.sigmoid(values)
        both = [pyg_sum(m, edges[1], dim_size=len(x)) for m in (gate * self.B(x)[edges[0]], gate)]
        return self.A(x) + both[0] / (both[1] + 1e-6)


class GatedGcn(torch.nn.Module):
    def __init__(self, i, o, k):
        super().__init__()
        self.layer = pyg.MetaLayer(Edges(i, o, k), Vertices(i, o))

    def forward(self, x, edges, values):
        x, values, _ = self.layer(x, edges, values)
        return x, torch.relu(torch.nn.functional.layer_norm(values, values.shape[1:]))


# name: heads, hidden width, the layer
LAYERS = {
    "edgeconv": (1, 8, edgeconv),
    "gine": (1, 8, lambda i, o, _: pyg.GINEConv(torch.nn.Linear(i, o), edge_dim=K)),
    "nnconv": (F, F, lambda i, o, _: pyg.NNConv(i, o, torch.nn.Linear(K, i * o), aggr="add")),
    "pna": (1, 8, pna),
    "transformer": (2, 8, lambda i, o, _: pyg.TransformerConv(i, o // 2, heads=2, edge_dim=K)),
    "gatv2": (2, 8, lambda i, o, _: pyg.GATv2Conv(i, o // 2, heads=2, edge_dim=K)),
    "resgated": (1, 8, lambda i, o, _: pyg.ResGatedGraphConv(i, o, edge_dim=K)),
    "gatedgcn": (1, 8, GatedGcn),
    "rgat": (2, 8, lambda i, o, _: pyg.RGATConv(i, o // 2, RELATIONS, heads=2, attention_mechanism="within-relation")),
}
VERTICES = {"author": 700, "field": 60, "paper": 900}
ENDS = [("author", "writes", "paper", 3000), ("field", "of", "author", 1500), ("paper", "cites", "paper", 4000)]
METADATA = (list(VERTICES), [r[:3] for r in ENDS])
TYPED = {"han": 8, "hgt": 4}  # hidden widths
RENAMED = (("pre_nns.0.0.", "pre."), ("post_nns.0.0.", "post."), ("layer.edge_model.", ""), ("layer.node_model.", ""))
# PyG's deviation of few edges that are nearly equal is 0.
TEXT = {"pna": (r"s = sqrt\(mean\(\(m - v.a\) \* \(m - v.a\)\) \+ 0.00001\)",
                "var = mean((m - v.a) * (m - v.a))\n    s = where(var > 0.00001, sqrt(max(var, 0.00001)), 0)")}


class Net(torch.nn.Module):
    def __init__(self, name, graph):
        super().__init__()
        _, hidden, make = LAYERS[name]
        self.name, self.graph = name, graph
        if name == "rgat":
            self.convs = torch.nn.ModuleList([make(F, hidden, graph)])
            self.lin = torch.nn.Linear(hidden, C, bias=False)
        elif name == "gatedgcn":
            widths = ((F, hidden, K), (hidden, hidden, hidden), (hidden, C, hidden))
            self.convs = torch.nn.ModuleList([GatedGcn(*w) for w in widths])
        else:
            self.convs = torch.nn.ModuleList([make(F, hidden, graph), make(hidden, C, graph)])

    def forward(self, x):
        g = self.graph
        if self.name == "rgat":
            return self.lin(torch.relu(self.convs[0](x, g["edges"], g["types"])))
        if self.name == "gatedgcn":
            values = g["values"]
            for conv in self.convs:
                x, values = conv(x if conv is self.convs[0] else torch.relu(x), g["edges"], values)
            return x
        more = () if self.name == "edgeconv" else (g["values"],)
        return self.convs[1](torch.relu(self.convs[0](x, g["edges"], *more)), g["edges"], *more)

    def named(self):
        for name, p in self.named_parameters():
            for old, new in RENAMED:
                name = name.replace(old, new)
            if p.grad is not None: # RGATConv has those of its other ways, too
                yield name, p


def at_all(name, modules, f=lambda w: w):
    """A tensor of the text: those of all modules or tensors, one above the other."""
    return name, [getattr(m, name.split(".")[-1]) if isinstance(m, torch.nn.Module) else m for m in modules], f


class Han(torch.nn.Module):
    def __init__(self):
        super().__init__()
        widths = (F, TYPED["han"], C)
        self.convs = torch.nn.ModuleList([pyg.HANConv(i, o, METADATA) for i, o in zip(widths, widths[1:])])

    def forward(self, x, edges):
        h = self.convs[0](x, edges)
        h["field"] = torch.zeros(VERTICES["field"], TYPED["han"], dtype=torch.float64)  # that no edge ends at
        return self.convs[1]({t: torch.relu(h[t]) for t in VERTICES}, edges)["paper"]

    def named(self):
        for i, conv in enumerate(self.convs):
            flat, relations = (lambda w: w.flatten()), ["__".join(r) for r in METADATA[1]]
            for name, parts, f in (
                    at_all("proj.weight", [conv.proj[t] for t in VERTICES], lambda w: w.t()),
                    at_all("proj.bias", [conv.proj[t] for t in VERTICES]),
                    at_all("src", [conv.lin_src[r] for r in relations], flat),
                    at_all("dst", [conv.lin_dst[r] for r in relations], flat)):
                yield f"convs.{i}.{name}", parts, lambda p, f=f: torch.stack([f(w) for w in p])
            yield f"convs.{i}.q", [conv.q], lambda p: p[0].flatten()
            for name in ("weight", "bias"):
                yield f"convs.{i}.k_lin.{name}", [getattr(conv.k_lin, name)], lambda p: p[0]


class Hgt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width = TYPED["hgt"]
        self.first = torch.nn.ModuleDict({t: torch.nn.Linear(F, width, bias=False) for t in VERTICES})
        self.conv, self.last = pyg.HGTConv(width, width, METADATA, heads=2), torch.nn.Linear(width, C, bias=False)

    def forward(self, x, edges):
        return self.last(self.conv({t: self.first[t](x[t]) for t in VERTICES}, edges)["paper"])

    def named(self):
        conv, turned, relations = self.conv, (lambda w: w.t()), range(len(ENDS))
        for name, parts, f in (
                at_all("lin.weight", [self.first[t] for t in VERTICES], turned),
                at_all("convs.0.kqv.weight", [conv.kqv_lin.lins[t] for t in VERTICES], turned),
                at_all("convs.0.kqv.bias", [conv.kqv_lin.lins[t] for t in VERTICES]),
                at_all("convs.0.out.weight", [conv.out_lin.lins[t] for t in VERTICES], turned),
                at_all("convs.0.out.bias", [conv.out_lin.lins[t] for t in VERTICES]),
                at_all("convs.0.skip", [conv.skip[t] for t in VERTICES], lambda w: w[0])):
            yield name, parts, lambda p, f=f: torch.stack([f(w) for w in p])
        for head in range(2):
            of_head = slice(head * len(relations), (head + 1) * len(relations))
            yield f"convs.0.k{head}", [conv.k_rel.weight], lambda p, own=of_head: p[0][own]
            yield f"convs.0.v{head}", [conv.v_rel.weight], lambda p, own=of_head: p[0][own]
            yield (f"convs.0.p{head}", [conv.p_rel["__".join(r)] for r in METADATA[1]],
                   lambda p, head=head: torch.stack([w[0, head] for w in p]))
        yield "last.weight", [self.last.weight], lambda p: p[0]


def make_typed_graph(work):
    r = np.random.default_rng(6)
    x = {t: (np.round(r.normal(size=(n, F)) * 64) / 64).astype("f4") for t, n in VERTICES.items()}
    y, edges = r.integers(0, C, VERTICES["paper"]), {}
    for t in VERTICES:
        os.makedirs(f"{work}/types/nodes/{t}")
        np.save(f"{work}/types/nodes/{t}/features.npy", x[t])
    for name, array in (("labels", y), ("train_idx", np.arange(VERTICES["paper"]))):
        np.save(f"{work}/types/nodes/paper/{name}.npy", array)
    for u, name, v, n in ENDS:
        ends = np.stack([r.integers(0, VERTICES[u], n), r.integers(0, VERTICES[v] - 5, n)])
        ends[:, :100] = ends[:, 100:200]
        os.makedirs(f"{work}/types/edges/{u}__{name}__{v}")
        np.save(f"{work}/types/edges/{u}__{name}__{v}/edges.npy", ends.T.copy())
        edges[u, name, v] = torch.from_numpy(ends)
    for parts in ("1", "8"):
        formulas.run("partition", f"{work}/types", f"{work}/types{parts}", "--parts", parts, "--method", "random")
    return {t: torch.from_numpy(a).double() for t, a in x.items()}, edges, torch.from_numpy(y)


def make_graph(work):
    r = np.random.default_rng(5)
    edges = r.integers(0, N, (2, E))
    edges[1] %= N - 40  # the last vertices have no in-edges
    edges[:, :200] = edges[:, 200:400]
    edges[0, 400:500] = edges[1, 400:500]
    exact = lambda *shape: (np.round(r.normal(size=shape) * 64) / 64).astype("f4")  # noqa: E731
    x, values, types, y = exact(N, F), exact(E, K), r.integers(0, RELATIONS, E), r.integers(0, C, N)
    for folder, more in (("graph", {"edge_features": values}), ("typed", {"edge_types": types})):
        os.makedirs(f"{work}/{folder}")
        for name, array in {"edges": edges.T.copy(), "features": x, "labels": y, "train_idx": np.arange(N),
                            **more}.items():
            np.save(f"{work}/{folder}/{name}.npy", array)
        for parts in ("1", "8"):
            formulas.run("partition", f"{work}/{folder}", f"{work}/{folder}{parts}", "--parts", parts, "--method",
                         "random")
    return {"x": torch.from_numpy(x).double(), "edges": torch.from_numpy(edges), "types": torch.from_numpy(types),
            "values": torch.from_numpy(values).double(), "y": torch.from_numpy(y)}


def least(store, shape, *how):
    """What a run in too little memory says that it needs."""
    said = subprocess.run([sys.argv[1], "train", store, *shape, "--epochs", "1", *how, "--host-memory", "8M"],
                          capture_output=True, text=True).stderr
    found = re.search(r"at least (\d+M)", said)
    return found[1] if found else sys.exit(f"no budget is named: {said}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    device, names = (sys.argv[2:3] or ["cpu"])[0], sys.argv[3:] or [*LAYERS, *TYPED]
    work = tempfile.mkdtemp(prefix="gs_layers_pyg.")
    try:
        graph = make_graph(work)
        types = make_typed_graph(work) if set(names) & set(TYPED) else None
        for name in names:
            if name in TYPED:
                beside_typed(name, types, work, device)
            else:
                beside(name, graph, work, device)
    finally:
        shutil.rmtree(work)


def beside(name, graph, work, device):
    torch.manual_seed(1)
    net = Net(name, graph).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_((torch.randn(p.shape) * 0.4).float())
    logits = net(graph["x"])
    torch.nn.functional.cross_entropy(logits, graph["y"]).backward()
    tensors = {n: (tuple(p.shape), p.detach().flatten().tolist()) for n, p in net.named()}
    gradient = {n: p.grad.flatten().tolist() for n, p in net.named()}
    formulas.write_weights(f"{work}/w.safetensors", tensors)
    folder = {"rgat": "tests/e2e/type_texts", "gatedgcn": "src/model/zoo"}.get(name, "tests/e2e/edge_texts")
    text = open(f"{ROOT}/{folder}/{name}.gnn", encoding="utf-8").read()
    if name in TEXT:
        text, changed = re.subn(*TEXT[name], text)
        assert changed == 1
    with open(f"{work}/{name}.gnn", "w", encoding="utf-8") as file:
        file.write(text)
    heads, hidden, _ = LAYERS[name]
    shape = ["--model", f"{work}/{name}.gnn", "--layers", "3" if name == "gatedgcn" else "2", "--hidden", str(hidden),
             "--heads", str(heads), "--act", "relu"]
    if name == "pna":
        shape += ["--set", f"average={AVERAGE['average']!r}"]
    if name == "rgat" and device != "cpu":  # no GPU has gradients of a matrix for all edges beside those by type
        shape.append("--no-batch")
    compare(name, work, device, "typed" if name == "rgat" else "graph", shape, tensors, gradient, logits)


def beside_typed(name, graph, work, device):
    x, edges, y = graph
    torch.manual_seed(1)
    net = (Han() if name == "han" else Hgt()).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_((torch.randn(p.shape) * 0.4).float())
    logits = net(x, edges)
    torch.nn.functional.cross_entropy(logits, y).backward()
    tensors, gradient = {}, {}
    for n, parts, f in net.named():
        value = f([p.detach() for p in parts])
        tensors[n] = (tuple(value.shape), value.flatten().tolist())
        gradient[n] = f([torch.zeros_like(p) if p.grad is None else p.grad for p in parts]).flatten().tolist()
    formulas.write_weights(f"{work}/w.safetensors", tensors)
    shape = ["--model", f"{ROOT}/tests/e2e/type_texts/{name}.gnn", "--layers", "2", "--hidden", str(TYPED[name])]
    compare(name, work, device, "types", shape, tensors, gradient, logits)


def compare(name, work, device, stem, shape, tensors, gradient, logits):
    hows = [[stem + "1", "--device", device], [stem + "8", "--device", device]]
    if device == "cpu":
        hows += [[stem + "8", "--device", "cpu:2"]]
        hows += [[*how, "--host-memory", least(f"{work}/{how[0]}", shape, *how[1:])] for how in hows[1:]]
    slopes = {n: [({k: 1}, slope) for k, slope in enumerate(values)] for n, values in gradient.items()}
    for how in hows:
        formulas.check(work, shape, tensors, slopes, logits.tolist(), how)
    print(f"{name}: logits and gradients are PyG's: {', '.join(' '.join(how) for how in hows)}", flush=True)


main()
