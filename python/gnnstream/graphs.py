"""Stores of graphs that are in memory: arrays of numpy or torch, PyTorch Geometric's Data, graphs of DGL."""
import os
import tempfile

import numpy as np

from ._options import path
from .store import partition

__all__ = ["from_arrays", "from_dgl", "from_pyg"]


def _array(values, name, kinds):
    """A numpy array of what numpy, torch or a list gives, without a copy where that can be."""
    if values is None:
        return None
    if hasattr(values, "detach"):  # a torch tensor, on whatever device
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name}: of type {array.dtype}; must be of kind {' or '.join(kinds)}")
    return array


def _edges(edge_index):
    edges = _array(edge_index, "edge_index", "iu")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise ValueError(f"edge_index: of shape {list(edges.shape)}; must be [2, edges], sources above targets")
    if edges.size and edges.dtype.kind == "i" and edges.min() < 0:
        raise ValueError(f"edge_index: {edges.min()} is below 0")
    return edges


def _vertices(arrays, edges, given):
    """How many vertices: as given, or as many rows as the arrays of vertices have, or by the largest id."""
    counts = {name: len(array) for name, array in arrays.items() if array is not None}
    if given is not None:
        counts["vertices"] = int(given)
    if len(set(counts.values())) > 1:
        raise ValueError("rows differ: " + ", ".join(f"{name} has {count}" for name, count in counts.items()))
    largest = int(edges.max()) + 1 if edges.size else 0
    count = next(iter(counts.values()), largest)
    if largest > count:
        raise ValueError(f"edge_index: names vertex {largest - 1}, but there are {count} vertices")
    return count


def _split(mask, name, count):
    """Ids of a split, from a mask or from ids."""
    split = _array(mask, name, "biu")
    if split is None:
        return None
    if split.dtype.kind == "b":
        if split.shape != (count,):
            raise ValueError(f"{name}: a mask of shape {list(split.shape)}; must be [{count}]")
        return np.flatnonzero(split)
    return split.ravel()


def from_arrays(store, edge_index, x=None, y=None, *, train=None, valid=None, test=None, edge_weight=None,
                edge_type=None, vertices=None, **options):
    """Makes a :class:`Store` of arrays (of numpy, torch, or whatever numpy takes).

    edge_index   [2, E] ids of vertices from 0: the edges go from ``edge_index[0]`` to ``edge_index[1]``, as in PyG
    x            [N, F] features; y [N] classes, below 0 or NaN where there is none;
                 or [N, C] of 0 and 1, several labels; or floats [N] or [N, K], numbers; NaN: not known
    train, valid, test    masks [N] or ids
    edge_weight [E], edge_type [E]
    vertices     how many there are, where neither x nor y says so and the last have no edge

    Further options: as :func:`partition`. The arrays are written beside the store first (and removed), so as much free
    space as they take is needed.
    """
    edges = _edges(edge_index)
    x, y = _array(x, "x", "fiub"), _array(y, "y", "biuf")
    count = _vertices({"x": x, "y": y}, edges, vertices)
    arrays = {"edges": edges.T, "features": x, "labels": y}
    for name, split in (("train", train), ("valid", valid), ("test", test)):
        arrays[f"{name}_idx"] = _split(split, name, count)
    arrays["edge_weights"] = _array(edge_weight, "edge_weight", "fiu")
    arrays["edge_types"] = _array(edge_type, "edge_type", "iu")
    folder = os.path.dirname(os.path.abspath(path(store)))
    with tempfile.TemporaryDirectory(prefix=".gnnstream-", dir=folder) as raw:
        for name, array in arrays.items():
            if array is not None:
                np.save(os.path.join(raw, name + ".npy"), np.ascontiguousarray(array))
        if x is None and y is None:
            _count_vertices(raw, count)
        return partition(raw, store, **options)


def _count_vertices(raw, count):
    """Without features or labels the edges alone say how many vertices there are; labels of nobody say it too."""
    np.save(os.path.join(raw, "labels.npy"), np.full(count, -1, np.int64))


def from_pyg(store, data, **options):
    """Makes a :class:`Store` of a ``torch_geometric.data.Data``: its edge_index, x, y, train_mask, val_mask,
    test_mask, edge_weight (or edge_attr of one column) and edge_type. Options as :func:`partition`."""
    weight = getattr(data, "edge_weight", None)
    attr = getattr(data, "edge_attr", None)
    if weight is None and attr is not None:
        if attr.dim() > 1 and attr.shape[1] != 1:
            raise NotImplementedError(f"edge_attr: has {attr.shape[1]} columns; an edge has one weight here")
        weight = attr.reshape(-1)
    y = getattr(data, "y", None)
    if y is not None and y.dim() == 2 and y.shape[1] == 1:
        y = y.reshape(-1)
    return from_arrays(store, data.edge_index, getattr(data, "x", None), y, train=getattr(data, "train_mask", None),
                       valid=getattr(data, "val_mask", None), test=getattr(data, "test_mask", None),
                       edge_weight=weight, edge_type=getattr(data, "edge_type", None), vertices=data.num_nodes,
                       **options)


def from_dgl(store, graph, **options):
    """Makes a :class:`Store` of a homogeneous DGL graph: ndata "feat" (or "x"), "label" (or "y"), "train_mask",
    "val_mask", "test_mask"; edata "weight" (or "w") and "etype" (or "_TYPE"). Options as :func:`partition`."""
    def first(frame, *names):
        return next((frame[name] for name in names if name in frame), None)

    if len(graph.canonical_etypes) > 1:
        raise NotImplementedError("a graph of several types of vertices or edges: make it homogeneous first")
    nodes, edges = graph.ndata, graph.edata
    source, target = graph.edges(order="eid")
    return from_arrays(store, np.stack([_array(source, "edges", "iu"), _array(target, "edges", "iu")]),
                       first(nodes, "feat", "x"), first(nodes, "label", "y"), train=first(nodes, "train_mask"),
                       valid=first(nodes, "val_mask"), test=first(nodes, "test_mask"),
                       edge_weight=first(edges, "weight", "w"), edge_type=first(edges, "etype", "_TYPE"),
                       vertices=graph.num_nodes(), **options)
