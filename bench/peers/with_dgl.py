"""DGL, its own layers where one computes the same as PyG's.

DGL's last wheel on PyPI (2.1.0) imports GraphBolt, its data loader, whose libraries are for torch 2.0 to 2.2 only;
nothing here uses it. An empty module takes its place, so that DGL's kernels run beside a current
torch.
"""
import os
import sys
import types

import torch

os.environ.setdefault("DGLBACKEND", "pytorch")


class Absent(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


sys.modules.setdefault("dgl.graphbolt", Absent("dgl.graphbolt"))
import dgl  # noqa: E402
import dgl.nn.pytorch as nn  # noqa: E402


def graph_of(data, loops=False, by_type=False):
    """int32, kept by destination for forward and by source for backward."""
    source, target = data.edge_index().int()
    if by_type:
        order = torch.argsort(data.edge_type(), stable=True)
        source, target = source[order], target[order]
    g = dgl.graph((source, target), num_nodes=data.vertices, idtype=torch.int32)
    if loops:
        g = dgl.add_self_loop(g)
    if by_type:
        return g  # its layer needs the edges in the order given
    return g.formats(["coo", "csc", "csr"] if loops else ["csc", "csr"])  # scores of edges need coo


class Gcn(torch.nn.Module):
    """dgl.nn.GraphConv takes a source's out-degree for its norm, PyG its in-degree; so with copy_u_sum."""

    def __init__(self, weights):
        super().__init__()
        self.lin = torch.nn.Parameter(weights["lin.weight"].clone())
        self.bias = torch.nn.Parameter(weights["bias"].clone())

    def forward(self, g, x, norm):
        return norm * dgl.ops.copy_u_sum(g, norm * (x @ self.lin.t())) + self.bias


def put(parameter, value):
    with torch.no_grad():
        parameter.copy_(value.view_as(parameter))


def sage(s, w):
    out, width = w["lin_l.weight"].shape
    conv = nn.SAGEConv(width, out, "mean", bias=True)
    put(conv.fc_neigh.weight, w["lin_l.weight"])
    put(conv.fc_self.weight, w["lin_r.weight"])
    put(conv.fc_self.bias, w["lin_l.bias"])
    return conv


def gin(s, w):
    sizes = w["nn.lins.0.weight"].shape, w["nn.lins.1.weight"].shape
    mlp = torch.nn.Sequential(torch.nn.Linear(sizes[0][1], sizes[0][0]), torch.nn.ReLU(),
                              torch.nn.Linear(sizes[1][1], sizes[1][0]))
    for at, i in ((0, 0), (2, 1)):
        put(mlp[at].weight, w[f"nn.lins.{i}.weight"])
        put(mlp[at].bias, w[f"nn.lins.{i}.bias"])
    return nn.GINConv(mlp, "sum")


class Gat(torch.nn.Module):
    """The bias stays outside: PyG adds the last layer's behind the mean over heads."""

    def __init__(self, s, w, last):
        super().__init__()
        heads, out = w["att_src"].shape[1:]
        self.conv = nn.GATConv(w["lin.weight"].shape[1], out, heads, bias=False)
        put(self.conv.fc.weight, w["lin.weight"])
        put(self.conv.attn_l, w["att_src"])
        put(self.conv.attn_r, w["att_dst"])
        self.bias = torch.nn.Parameter(w["bias"].clone())
        self.last = last

    def forward(self, g, x):
        x = self.conv(g, x)
        return (x.mean(1) if self.last else x.flatten(1)) + self.bias


def rgcn(s, w):
    types, width, out = w["weight"].shape
    conv = nn.RelGraphConv(width, out, types)
    put(conv.linear_r.W, w["weight"])
    put(conv.loop_weight, w["root"])
    put(conv.h_bias, w["bias"])
    return conv


def prepare(s, data, w):
    """The two layers, the graph, and what a layer gets behind the features."""
    if s.model == "gcn":
        g = graph_of(data, loops=True)
        return [Gcn(w[0]), Gcn(w[1])], g, [g.in_degrees().float().rsqrt()[:, None]], {}
    if s.model == "gat":
        return [Gat(s, w[0], False), Gat(s, w[1], True)], graph_of(data, loops=True), [], {}
    if s.model == "rgcn":
        g = graph_of(data, by_type=True)
        kind = torch.sort(data.edge_type(), stable=True)[0]
        target = g.edges()[1].long()
        place = target * s.types + kind
        norm = 1 / torch.bincount(place, minlength=data.vertices * s.types)[place].float()
        return [rgcn(s, w[0]), rgcn(s, w[1])], g, [kind, norm[:, None]], {"presorted": True}
    layer = {"sage": sage, "gin": gin}[s.model]
    return [layer(s, w[0]), layer(s, w[1])], graph_of(data), [], {}


def run(s, data):
    weights = [{}, {}]
    for name, value in s.weights.items():
        _, i, rest = name.split(".", 2)
        weights[int(i)][rest] = value
    layers, g, more, options = prepare(s, data, weights)

    def forward():
        return layers[1](g, layers[0](g, data.x, *more, **options).relu(), *more, **options)
    return [p for l in layers for p in l.parameters() if p.requires_grad], forward
