"""PyG's convolutions, computed by the engine: the same arguments, parameters, names and initial values.

    from gnnstream.torch import GCNConv                # in the place of torch_geometric.nn.GCNConv

    conv = GCNConv(128, 64)
    y = conv(x, edge_index)

No array of one row an edge exists, forward or backward. A graph is ``edge_index`` [2, E], the transposed adjacency
matrix as a sparse tensor of torch, or a :class:`gnnstream.torch.Graph`. Its edges are sorted when they are first seen;
a call with the same edges takes them as they are, and a ``Graph`` is not even compared. x is float32, as of
:class:`gnnstream.torch.GraphLayer`.
"""
from __future__ import annotations

import math
import operator
import threading
import weakref
from typing import Any, Optional, Sequence, Union, cast

import numpy as np
import torch

from .torch import _HANDLES, _OBJECTS, Graph, _apply, _Engine, _rows, _weights

__all__ = ["GATConv", "GCNConv", "GINConv", "SAGEConv"]

_GRAPHS = 4  # that a layer keeps in sorted order, the last ones

Edges = Union[torch.Tensor, Graph]


def _glorot(weight: torch.Tensor) -> None:
    bound = math.sqrt(6.0 / (weight.shape[-2] + weight.shape[-1]))
    torch.nn.init.uniform_(weight, -bound, bound)


def _no(condition: Any, what: str, instead: str) -> None:
    if condition:
        raise NotImplementedError(f"{what}: is not computed by this layer; {instead}")


class _Kept:
    """One graph that a layer has seen, and its engines, one for each text."""

    def __init__(self, graph: Graph, seen: tuple[Optional[torch.Tensor], ...]) -> None:
        self.graph, self.seen = graph, seen
        self.engines: dict[Any, _Engine] = {}

    def is_of(self, given: tuple[Optional[torch.Tensor], ...], num_nodes: int) -> bool:
        return self.graph.num_nodes == num_nodes and len(self.seen) == len(given) and all(
            a is b if a is None or b is None else a.dtype == b.dtype and a.device == b.device and torch.equal(a, b)
            for a, b in zip(self.seen, given))


#: What all layers keep, so that those of one model have one copy of its edges.
_ALL: weakref.WeakSet[_Kept] = weakref.WeakSet()
_OF_ALL = threading.Lock()


class _Call:
    """A convolution's call: a layer's text on edges that it is given. Of these `make`, a method of the convolution,
    makes a graph when they are first seen. In torch.compile it is said in words and numbers, and asked for again."""

    def __init__(self, conv: _Conv, make: str, text: str, width: int, heads: int, dropout: float, drops: bool,
                 cached: bool, numbers: Sequence[int]) -> None:
        self.conv, self.handle, self.width, self.numbers = conv, conv.handle, width, numbers
        self.make, self.text, self.heads, self.dropout = make, text, heads, dropout
        self.drops, self.cached = drops, cached
        self.said = f"{make}\n{heads}\n{dropout}\n{int(drops)}\n{int(cached)}\n{text}"

    def found(self, x: torch.Tensor, index: Optional[torch.Tensor], weight: Optional[torch.Tensor]) -> _Engine:
        conv, (graph, *ends) = self.conv, self.numbers
        if self.cached and conv._kept:
            kept = conv._kept[0]
        elif graph >= 0:
            kept = conv._kept_of(_OBJECTS[graph])
        else:
            kept = conv._graph(cast(torch.Tensor, index), weight, x.shape[0], self.make, ends)
        key = (self.text, x.device, x.shape[1], self.width, self.heads, self.dropout, self.drops)
        if key not in kept.engines:
            kept.engines[key] = _Engine(kept.graph, (x.shape[1], self.width),
                                        {"model": self.text, "heads": self.heads, "dropout": self.dropout},
                                        not self.drops)
        return kept.engines[key]


class _Conv(torch.nn.Module):
    def __init__(self, flow: str) -> None:
        super().__init__()
        self._named()
        if flow not in ("source_to_target", "target_to_source"):
            raise ValueError(f"flow: is {flow!r}, must be 'source_to_target' or 'target_to_source'")
        self.flow = flow
        self._kept: list[_Kept] = []

    def _named(self) -> None:
        self.handle = next(_HANDLES)
        _OBJECTS[self.handle] = self

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._named()

    def asked(self, said: str, width: int, numbers: Sequence[int]) -> _Call:
        make, heads, dropout, drops, cached, text = said.split("\n", 5)
        return _Call(self, make, text, width, int(heads), float(dropout), bool(int(drops)), bool(int(cached)), numbers)

    def _edges(self, edges: torch.Tensor, weight: Optional[torch.Tensor]) -> tuple[torch.Tensor, Any]:
        """(edge_index from source to target, weights) of what torch_geometric calls edge_index or adj_t."""
        if not isinstance(edges, torch.Tensor):
            raise TypeError(f"edge_index: a {type(edges).__name__}; must be a tensor [2, edges], a sparse tensor, or a "
                            "gnnstream.torch.Graph")
        if edges.layout != torch.strided:
            if self.flow != "source_to_target":
                raise ValueError("flow: a sparse tensor has none; give edge_index")
            coo = edges if edges.layout == torch.sparse_coo else edges.to_sparse()
            index = coo._indices()
            return torch.stack((index[1], index[0])), coo._values() if weight is None else weight
        return (edges if self.flow == "source_to_target" else edges.flip(0)), weight

    def _kept_of(self, graph: Graph) -> _Kept:
        return next((kept for kept in self._kept if kept.graph is graph), None) or self._keep(_Kept(graph, ()))

    def _graph(self, index: torch.Tensor, weight: Optional[torch.Tensor], num_nodes: int, make: str,
               ends: Sequence[int]) -> _Kept:
        """Of edges as they come; ends: how many sources and targets there are, where that is not num_nodes."""
        given = (index, weight)
        for kept in self._kept:
            if kept.is_of(given, num_nodes):
                return kept
        if ends and index.numel() > 0 and (int(index[0].max()) >= ends[0] or int(index[1].max()) >= ends[1]):
            raise IndexError(f"edge_index: names a source beyond {ends[0]} or a target beyond {ends[1]}")
        with _OF_ALL:
            others = list(_ALL)
        seen = next((other.seen for other in others if other.is_of(given, num_nodes)), None)
        if seen is None:  # copies: the caller's memory may change
            seen = tuple(None if t is None else t.detach().clone() for t in given)
        host = [None if t is None else t.cpu() for t in seen]
        return self._keep(_Kept(getattr(self, make)(host[0], host[1], num_nodes), seen))

    def _unweighted(self, index: torch.Tensor, weight: Any, num_nodes: int) -> Graph:
        """Of layers that know no weights of edges: a sparse tensor's are 1."""
        if weight is not None and not bool((weight == 1).all()):
            raise ValueError("edge_index: is a sparse tensor of values that are not 1, and this layer has no weights "
                             "of edges")
        return Graph(index, num_nodes)

    def _keep(self, kept: _Kept) -> _Kept:
        with _OF_ALL:
            _ALL.add(kept)
        self._kept = [kept, *self._kept[:_GRAPHS - 1]]
        return kept

    def _run(self, edges: Edges, weight: Optional[torch.Tensor], make: str, text: str, x: torch.Tensor,
             parameters: Sequence[torch.Tensor], width: int, heads: int = 1, dropout: float = 0.0, cached: bool = False,
             ends: Sequence[int] = ()) -> torch.Tensor:
        """y of one layer's text; its parameters in the order of the text's."""
        if x.dim() == 3:  # the same graph for each
            return torch.stack([self._run(edges, weight, make, text, rows, parameters, width, heads, dropout, cached,
                                          ends) for rows in x])
        x = _rows(x, x.shape[0], x.shape[1])
        graph, index = -1, None
        if isinstance(edges, Graph):
            if edges.num_nodes != x.shape[0]:
                raise ValueError(f"x: has {x.shape[0]} rows, the graph {edges.num_nodes} vertices")
            graph, weight = edges.handle, None
        else:
            index, weight = self._edges(edges, weight)
        if weight is not None and (weight.requires_grad or weight.dtype.is_complex or weight.dtype == torch.bool):
            _weights(weight)  # says why not
        if x.shape[0] == 0:
            return x.new_zeros(0, width)
        drops = self.training and dropout > 0
        call = _Call(self, make, text, width, heads, dropout, drops, cached, [graph, *ends])
        return _apply(call, drops, x, parameters, index, weight)


def _square(x: Any, size: Any, what: str) -> torch.Tensor:
    _no(isinstance(x, (tuple, list)), f"{what}: x is a pair", "give one matrix of rows, of sources and targets alike")
    if size is not None and not (size[0] == size[1] == x.shape[-2]):
        raise ValueError(f"size: is {tuple(size)}, x has {x.shape[-2]} rows")
    rows: torch.Tensor = x
    return rows


def _one_loop(index: torch.Tensor, num_nodes: int) -> torch.Tensor:
    """Which edges stay if of several loops of a vertex the last does."""
    at, vertex = np.arange(index.shape[1]), index[0].numpy()
    own = vertex == index[1].numpy()
    last = np.full(num_nodes, -1)
    np.maximum.at(last, vertex[own], at[own])
    return torch.from_numpy(~own | (last[vertex] == at))


class GCNConv(_Conv):
    """torch_geometric.nn.GCNConv. Weights of edges get no gradient.

    Arguments are torch_geometric's: `in_channels`, `out_channels`, `improved`, `cached`, `add_self_loops`, `normalize`,
    `bias` and `flow`. x is float32 [vertices, in], `edge_index` [2, edges], a sparse adj_t or a
    :class:`gnnstream.torch.Graph`, `edge_weight` [edges]; the result float32 [vertices, out]. NotImplementedError says
    what there is not.

    >>> import torch
    >>> from gnnstream.torch import GCNConv
    >>> conv = GCNConv(8, 3)
    >>> y = conv(torch.from_numpy(x), torch.from_numpy(edges))
    >>> tuple(y.shape), y.requires_grad
    ((100, 3), True)
    >>> conv.reset_parameters()
    """

    def __init__(self, in_channels: int, out_channels: int, improved: bool = False, cached: bool = False,
                 add_self_loops: Optional[bool] = None, normalize: bool = True, bias: bool = True,
                 flow: str = "source_to_target") -> None:
        super().__init__(flow)
        if add_self_loops is None:
            add_self_loops = normalize
        if add_self_loops and not normalize:
            raise ValueError("GCNConv does not support adding self-loops to the graph when no on-the-fly normalization "
                             "is applied")
        self.in_channels, self.out_channels = operator.index(in_channels), operator.index(out_channels)
        self.improved, self.cached, self.add_self_loops, self.normalize = improved, cached, add_self_loops, normalize
        self.lin = torch.nn.Linear(self.in_channels, self.out_channels, bias=False, dtype=torch.float32)
        self.bias = torch.nn.Parameter(torch.empty(self.out_channels, dtype=torch.float32)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _glorot(self.lin.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)
        self._kept = []

    def _with_loops(self, index: torch.Tensor, weight: Any, num_nodes: int) -> Graph:
        """Edges of which the engine makes one loop a vertex, and the norm."""
        if weight is not None:
            stay = _one_loop(index, num_nodes)
            index, weight = index[:, stay], weight[stay]
        return Graph(index, num_nodes, weight)

    def _normalized(self, index: torch.Tensor, weight: Any, num_nodes: int) -> Graph:
        """Edges with the weights that the sum is of, where the layer's text has no words for them."""
        if not self.normalize:
            return Graph(index, num_nodes, weight)
        # As PyG's: where edges have no weights, `improved` changes nothing.
        fill = 2.0 if self.improved and weight is not None else 1.0
        weight = torch.ones(index.shape[1]) if weight is None else weight
        if self.add_self_loops:  # one for each vertex: its own loop's weight, or the fill
            loops = torch.full((num_nodes,), fill)
            stay = _one_loop(index, num_nodes)
            index, weight = index[:, stay], weight[stay]
            own = index[0] == index[1]
            loops[index[0][own]] = weight[own].float()
            every = torch.arange(num_nodes)
            index = torch.cat((index[:, ~own], torch.stack((every, every))), 1)
            weight = torch.cat((weight[~own].float(), loops))
        degree = torch.zeros(num_nodes).scatter_add_(0, index[1], weight.float())
        root = degree.pow(-0.5)
        root[degree == 0] = 0.0
        return Graph(index, num_nodes, root[index[0]] * weight * root[index[1]])

    def forward(self, x: torch.Tensor, edge_index: Edges, edge_weight: Optional[torch.Tensor] = None) -> torch.Tensor:
        x = _square(x.to_dense() if x.layout != torch.strided else x, None, "GCNConv")
        own = self.normalize and self.add_self_loops and not self.improved
        if isinstance(edge_index, Graph) and not own and self.normalize:
            raise ValueError("edge_index: is a Graph, whose weights are as they are; give the edges, or normalize=False")
        text = "layer gcn(h[in]) -> [out]:\n    param lin.weight[out, in]" + (", bias[out]\n" if self.bias is not None
                                                                             else "\n")
        if own:
            text += ("    norm = gcn_norm\n    x = norm * (h @ lin.weight')\n"
                     "    return norm * (sum(e.weight * u.x) + (1 - loops) * loop_weight * x)")
        else:
            text += "    x = h @ lin.weight'\n    return sum(e.weight * u.x)"
        parameters = [self.lin.weight] if self.bias is None else [self.lin.weight, self.bias]
        return self._run(edge_index, edge_weight, "_with_loops" if own else "_normalized",
                         text + (" + bias\n" if self.bias is not None else "\n"), x, parameters, self.out_channels,
                         cached=self.cached)

    def __repr__(self) -> str:
        return f"GCNConv({self.in_channels}, {self.out_channels})"


class SAGEConv(_Conv):
    """torch_geometric.nn.SAGEConv, of the means, sums, greatest or least of the neighbours.

    Arguments are torch_geometric's: `in_channels` (of pairs of sets two), `out_channels`, `aggr`, `normalize`,
    `root_weight`, `project`, `bias` and `flow`. x is float32 [vertices, in], `edge_index` [2, edges], a
    sparse adj_t or a :class:`gnnstream.torch.Graph`, `size` that of a pair of sets; the result float32 [vertices, out].
    NotImplementedError says what there is not.

    >>> import torch
    >>> from gnnstream.torch import SAGEConv
    >>> conv = SAGEConv(8, 3, aggr="max")
    >>> y = conv(torch.from_numpy(x), torch.from_numpy(edges))
    >>> tuple(y.shape), y.requires_grad
    ((100, 3), True)
    >>> conv.reset_parameters()
    """

    def __init__(self, in_channels: Union[int, tuple[int, int]], out_channels: int, aggr: str = "mean",
                 normalize: bool = False, root_weight: bool = True, project: bool = False, bias: bool = True,
                 flow: str = "source_to_target") -> None:
        super().__init__(flow)
        _no(aggr not in ("mean", "sum", "add", "max", "min"), f"aggr {aggr!r}",
            "it knows mean, sum, max and min; a text of GraphLayer says others")
        self.in_channels, self.out_channels = in_channels, operator.index(out_channels)
        pair = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self._widths = (operator.index(pair[0]), operator.index(pair[1]))
        self.aggr, self.normalize, self.root_weight, self.project = aggr, normalize, root_weight, project
        if project:
            self.lin = torch.nn.Linear(self._widths[0], self._widths[0], dtype=torch.float32)
        self.lin_l = torch.nn.Linear(self._widths[0], self.out_channels, bias=bias, dtype=torch.float32)
        if root_weight:
            self.lin_r = torch.nn.Linear(self._widths[1], self.out_channels, bias=False, dtype=torch.float32)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for lin in self.children():
            lin.reset_parameters()  # type: ignore[operator]
        self._kept = []

    def _sum(self, of: str) -> str:
        return f"{'sum' if self.aggr == 'add' else self.aggr}({of})"

    def _whole(self, edges: Edges, x: torch.Tensor) -> torch.Tensor:
        names, parameters, terms = ["lin_l.weight[out, in]"], [self.lin_l.weight], ["lin_l.weight'"]
        if self.lin_l.bias is not None:
            names.append("lin_l.bias[out]")
            parameters.append(self.lin_l.bias)
            terms.append("lin_l.bias")
        if self.root_weight:
            names.append("lin_r.weight[out, in]")
            parameters.append(self.lin_r.weight)
            terms.append("h @ lin_r.weight'")
        text = (f"layer sage(h[in]) -> [out]:\n    param {', '.join(names)}\n"
                f"    return {self._sum('u.h')} @ {' + '.join(terms)}\n")
        return self._run(edges, None, "_unweighted", text, x, parameters, self.out_channels)

    def forward(self, x: Any, edge_index: Edges, size: Optional[tuple[int, int]] = None) -> torch.Tensor:
        pair = isinstance(x, (tuple, list))
        source, own = x if pair else (x, x)
        if not pair and not self.project and self._widths[0] == self._widths[1]:
            source = _square(x, size, "SAGEConv")
            y = self._whole(edge_index, source)
        else:
            targets = _targets(source, own, edge_index, size)
            if self.project:
                source = self.lin(source).relu()
            y = self.lin_l(_aggregate(self, self._sum("u.h"), source, targets, edge_index))
            if self.root_weight and own is not None:
                y = y + self.lin_r(own)
        return torch.nn.functional.normalize(y, p=2.0, dim=-1) if self.normalize else y

    def __repr__(self) -> str:
        return f"SAGEConv({self.in_channels}, {self.out_channels}, aggr={self.aggr})"


def _targets(source: torch.Tensor, own: Optional[torch.Tensor], edges: Edges, size: Optional[tuple[int, int]]) -> int:
    """Vertices that sums are made for."""
    if own is not None:
        return own.shape[-2]
    if size is not None:
        return size[1]
    if isinstance(edges, torch.Tensor) and edges.layout != torch.strided:
        return edges.shape[0]
    return source.shape[-2]


def _aggregate(conv: _Conv, what: str, source: torch.Tensor, targets: int, edges: Edges) -> torch.Tensor:
    """`what` of the sources' rows, for each of `targets` vertices that are others than the sources."""
    sources = source.shape[-2]
    count = max(sources, targets)
    if count > sources:
        source = torch.nn.functional.pad(source, (0, 0, 0, count - sources))
    plain = isinstance(edges, torch.Tensor) and edges.layout == torch.strided
    y = conv._run(edges, None, "_unweighted", f"layer gather(h[in]) -> [in]:\n    return {what}\n", source, [],
                  source.shape[-1], ends=(sources, targets) if plain else ())
    return y[..., :targets, :]


class GINConv(_Conv):
    """torch_geometric.nn.GINConv; ``nn`` is any module.

    Arguments are torch_geometric's: `nn`, `eps`, `train_eps` and `flow`. x is float32 [vertices, in],
    `edge_index` [2, edges], a sparse adj_t or a :class:`gnnstream.torch.Graph`, `size` that of a pair of sets; the
    result float32 [vertices, out]. NotImplementedError says what there is not.

    >>> import torch
    >>> from gnnstream.torch import GINConv
    >>> conv = GINConv(torch.nn.Linear(8, 3))
    >>> y = conv(torch.from_numpy(x), torch.from_numpy(edges))
    >>> tuple(y.shape), y.requires_grad
    ((100, 3), True)
    >>> conv.reset_parameters()
    """

    eps: torch.Tensor

    def __init__(self, nn: torch.nn.Module, eps: float = 0.0, train_eps: bool = False,
                 flow: str = "source_to_target") -> None:
        super().__init__(flow)
        self.nn, self.initial_eps = nn, float(eps)
        if train_eps:
            self.eps = torch.nn.Parameter(torch.full((1,), self.initial_eps, dtype=torch.float32))
        else:
            self.register_buffer("eps", torch.full((1,), self.initial_eps, dtype=torch.float32))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for child in self.nn.modules():
            if child is not self.nn or not list(self.nn.children()):
                reset = getattr(child, "reset_parameters", None)
                if reset is not None:
                    reset()
        with torch.no_grad():
            self.eps.fill_(self.initial_eps)
        self._kept = []

    def forward(self, x: Any, edge_index: Edges, size: Optional[tuple[int, int]] = None) -> torch.Tensor:
        if isinstance(x, (tuple, list)):
            source, own = x
            targets = _targets(source, own, edge_index, size)
            y = _aggregate(self, "sum(u.h)", source, targets, edge_index)
            y = y if own is None else y + (1 + self.eps) * own
        else:
            x = _square(x, size, "GINConv")
            text = "layer gin(h[in]) -> [in]:\n    param eps[1]\n    return sum(u.h) + (1 + eps) * h\n"
            y = self._run(edge_index, None, "_unweighted", text, x, [self.eps], x.shape[-1])
        made: torch.Tensor = self.nn(y)
        return made

    def __repr__(self) -> str:
        return f"GINConv(nn={self.nn})"


class GATConv(_Conv):
    """torch_geometric.nn.GATConv, of one set of vertices and without features of edges.

    Arguments are torch_geometric's: `in_channels`, `out_channels`, `heads`, `concat`, `negative_slope`, `dropout`,
    `add_self_loops`, `edge_dim` (None), `fill_value`, `bias`, `residual` and `flow`. x is float32 [vertices, in],
    `edge_index` [2, edges], a sparse adj_t or a :class:`gnnstream.torch.Graph`; `edge_attr`, `size` and
    `return_attention_weights` are None; the result float32 [vertices, out]. NotImplementedError says what there is not.

    >>> import torch
    >>> from gnnstream.torch import GATConv
    >>> conv = GATConv(8, 3)
    >>> y = conv(torch.from_numpy(x), torch.from_numpy(edges))
    >>> tuple(y.shape), y.requires_grad
    ((100, 3), True)
    >>> conv.reset_parameters()
    """

    def __init__(self, in_channels: int, out_channels: int, heads: int = 1, concat: bool = True,
                 negative_slope: float = 0.2, dropout: float = 0.0, add_self_loops: bool = True,
                 edge_dim: Optional[int] = None, fill_value: Any = "mean", bias: bool = True, residual: bool = False,
                 flow: str = "source_to_target") -> None:
        super().__init__(flow)
        _no(isinstance(in_channels, (tuple, list)), "in_channels, a pair",
            "give the width of one set of vertices")
        _no(edge_dim is not None, "edge_dim", "edge features are in texts of stores, as e.x")
        self.in_channels, self.out_channels = operator.index(in_channels), operator.index(out_channels)
        self.heads, self.concat, self.negative_slope, self.dropout = heads, concat, negative_slope, dropout
        self.add_self_loops, self.edge_dim, self.fill_value, self.residual = add_self_loops, edge_dim, fill_value, residual
        wide = heads * self.out_channels
        total = wide if concat else self.out_channels
        self.lin = torch.nn.Linear(self.in_channels, wide, bias=False, dtype=torch.float32)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, self.out_channels, dtype=torch.float32))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, self.out_channels, dtype=torch.float32))
        if residual:
            self.res = torch.nn.Linear(self.in_channels, total, bias=False, dtype=torch.float32)
        self.bias = torch.nn.Parameter(torch.empty(total, dtype=torch.float32)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _glorot(self.lin.weight)
        if self.residual:
            _glorot(self.res.weight)
        _glorot(self.att_src)
        _glorot(self.att_dst)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)
        self._kept = []

    def _bare(self, index: torch.Tensor, weight: Any, num_nodes: int) -> Graph:
        return Graph(index, num_nodes)

    def forward(self, x: torch.Tensor, edge_index: Edges, edge_attr: Optional[torch.Tensor] = None,
                size: Optional[tuple[int, int]] = None,
                return_attention_weights: Optional[bool] = None) -> torch.Tensor:
        _no(return_attention_weights is not None, "return_attention_weights", "they are not kept, for any edge")
        x = _square(x, size, "GATConv")
        width = "heads * d" if self.concat else "d"
        sum_ = ("sum(dropout(softmax(leaky_relu(u.a + v.b, slope))) * u.x"
                + (", self)" if self.add_self_loops else ")"))
        text = (f"const slope = {float(self.negative_slope)!r}\n\nlayer gat(h[in]) -> [{width}]:\n"
                "    param lin.weight[heads * d, in], att_src[1, heads, d], att_dst[1, heads, d]"
                + (f", bias[{width}]\n" if self.bias is not None else "\n") +
                "    x = h @ lin.weight'\n    a = dot(x, att_src)\n    b = dot(x, att_dst)\n"
                f"    return {sum_ if self.concat else f'head_mean({sum_})'}"
                + (" + bias\n" if self.bias is not None else "\n"))
        parameters = [self.lin.weight, self.att_src, self.att_dst]
        parameters += [self.bias] if self.bias is not None else []
        wide = self.heads * self.out_channels if self.concat else self.out_channels
        y = self._run(edge_index, None, "_bare", text, x, parameters, wide, self.heads, float(self.dropout))
        return y + self.res(x) if self.residual else y

    def __repr__(self) -> str:
        return f"GATConv({self.in_channels}, {self.out_channels}, heads={self.heads})"
