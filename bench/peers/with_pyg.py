"""PyTorch Geometric: the stack of torch_geometric.nn.models.BasicGNN, and its two ways to give a graph.

`edge_index` is the usual one: messages are gathered into a tensor with a row an edge. `csr` gives
the transposed adjacency as a torch sparse CSR tensor, which PyG multiplies with instead.
"""
import torch
import torch_geometric.nn as nn


class Network(torch.nn.Module):
    """Parameters are called convs.<i>.<name>, as in BasicGNN."""

    def __init__(self, convs):
        super().__init__()
        self.convs = torch.nn.ModuleList(convs)

    def forward(self, x, *graph):
        for conv in self.convs[:-1]:
            x = conv(x, *graph).relu()
        return self.convs[-1](x, *graph)


def conv(s, width, out, last):
    if s.model == "gcn":
        return nn.GCNConv(width, out, cached=True)
    if s.model == "sage":
        return nn.SAGEConv(width, out)
    if s.model == "gat":  # hidden heads side by side; the mean of the last layer's
        return nn.GATConv(width, out if last else out // s.heads, s.heads, concat=not last)
    if s.model == "gin":
        return nn.GINConv(nn.MLP([width, out, out], norm=None))
    if s.model == "rgcn":
        return nn.RGCNConv(width, out, s.types)
    raise SystemExit(f"{s.model}: not a model that the peers have")


def network(s):
    return Network([conv(s, s.features, s.hidden, False), conv(s, s.hidden, s.classes, True)])


def loaded(s):
    net = network(s)
    wrong = net.load_state_dict(s.weights, strict=False)
    missing = set(wrong.missing_keys) & {name for name, _ in net.named_parameters()}
    if missing or wrong.unexpected_keys:
        raise SystemExit(f"{s.model}: weights lack {sorted(missing)}, have {wrong.unexpected_keys} too many")
    return net


def edge_index(s, data):
    net = loaded(s)
    graph = [data.edge_index()] + ([data.edge_type()] if s.model == "rgcn" else [])
    return list(net.parameters()), lambda: net(data.x, *graph)


def csr(s, data):
    """Sums take the matrix with doubled edges merged; a mean and a softmax count entries, so theirs
    has them twice. int64 as torch_geometric.utils.to_torch_csr_tensor makes it."""
    if s.model in ("gat", "rgcn"):
        raise NotImplementedError(f"{s.model} takes no torch CSR")
    net = loaded(s)
    adjacency = data.csr("raw" if s.model == "sage" else "sum", torch.int64)
    return list(net.parameters()), lambda: net(data.x, adjacency)
