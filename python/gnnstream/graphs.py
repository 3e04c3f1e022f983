"""Stores of graphs that are in memory: arrays of numpy or torch, PyTorch Geometric's Data, graphs of DGL."""
from __future__ import annotations

import contextlib
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Union

import numpy as np
from numpy.typing import NDArray

from ._arrays import Rows, array, coordinates, rows
from ._options import PathLike, path, tell
from .errors import Error
from .store import Store, StoreOptions, partition

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["from_arrays", "from_dgl", "from_pyg"]

_WORDS = {"edges": "edge_index", "features": "x", "labels": "y", "train_idx": "train", "valid_idx": "valid",
          "test_idx": "test", "edge_weights": "edge_weight", "edge_types": "edge_type", "edge_features": "edge_features",
          **{f"{split}_{raw}": f"{split}'s {word}" for split in ("train", "valid", "test")
             for raw, word in (("edges", "links"), ("edge_types", "types of links"), ("edge_labels", "labels of links"))}}


def _maybe(values: Any, name: str, kinds: str) -> Optional[NDArray[Any]]:
    return None if values is None else array(values, name, kinds)


def _edges(edge_index: Any) -> NDArray[Any]:
    edges = array(edge_index, "edge_index", "iu")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise ValueError(f"edge_index: of shape {list(edges.shape)}; must be [2, edges], sources above targets")
    if edges.size and edges.dtype.kind == "i" and edges.min() < 0:
        raise ValueError(f"edge_index: {edges.min()} is below 0")
    return edges


def _of_edges(values: Any, name: str, kinds: str, count: int) -> Optional[NDArray[Any]]:
    """One value an edge, of shape [count] or [count, 1]."""
    found = _maybe(values, name, kinds)
    if found is None:
        return None
    if found.shape not in ((count,), (count, 1)):
        raise ValueError(f"{name}: of shape {list(found.shape)}; must be [{count}], one an edge")
    return found.reshape(-1)


def _vertices(arrays: dict[str, Any], edges: NDArray[Any], given: Optional[int]) -> int:
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


def _rows_of_edges(values: Any, edges: int) -> Optional[NDArray[Any]]:
    found = _maybe(values, "edge_features", "fiub")
    if found is not None and (found.ndim not in (1, 2) or len(found) != edges):
        raise ValueError(f"edge_features: of shape {list(found.shape)}; must be [{edges}, K]")
    return None if found is None else found.astype(np.float32, copy=False)


def _split(mask: Any, name: str, count: int) -> Optional[NDArray[Any]]:
    """A split as a mask of booleans or as ids. Whole numbers are a mask where they are 0 and 1, as many as vertices,
    and no ids, as a number comes twice."""
    split = _maybe(mask, name, "biu")
    if split is None:
        return None
    if split.dtype.kind == "b":
        if split.shape != (count,):
            raise ValueError(f"{name}: a mask of shape {list(split.shape)}; must be [{count}]")
        return split
    if split.shape == (count,) and count > 0 and split.min() >= 0 and split.max() <= 1 and \
            (count > 2 or len(np.unique(split)) < count or count <= split.max()):
        return split.astype(bool)
    ids = split.ravel()
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < count:
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise ValueError(f"{name}: names vertex {wrong}, but there are {count} vertices")
    return ids


@contextlib.contextmanager
def files_of(store: Union[PathLike, Store], words: dict[str, str]) -> Iterator[str]:
    """A folder beside the store for the call's arrays, whose files errors call by `words`."""
    folder = os.path.dirname(os.path.abspath(path(store)))
    with tempfile.TemporaryDirectory(prefix=".gnnstream-", dir=folder) as raw:
        try:
            yield raw
        except Error as error:
            raise type(error)(in_words(str(error), raw, words)) from None


def in_words(line: str, raw: str, words: dict[str, str]) -> str:
    line = re.sub(re.escape(raw) + r"/(?:(?:edge_)?features/)?(\w+)\.(?:npy|csv)", lambda m: words.get(m[1], m[1]), line)
    return re.sub(r"\b(" + "|".join(words) + r")\.(?:npy|csv)\b", lambda m: words[m[1]], line).replace(
        raw, "the arrays")


def make(raw: str, store: Union[PathLike, Store], words: dict[str, str], options: Mapping[str, object]) -> Store:
    """The store of the files in `raw`; what there is to say is said in `words`."""
    given: dict[str, Any] = dict(options)
    warn = given.pop("warn", None)
    lines: list[str] = []
    made = partition(raw, store, warn=lines.append, **given)
    tell([in_words(line, raw, words) for line in lines], warn)
    return made


def _named(values: Any, name: str) -> NDArray[Any]:
    """Features with a name of their own."""
    found = array(values, name, "fiub")
    if found.ndim not in (1, 2):
        raise ValueError(f"{name}: of shape {list(found.shape)}; features are [rows] or [rows, columns]")
    return found


def _save_named(folder: str, family: str, arrays: dict[str, NDArray[Any]]) -> None:
    for name, values in arrays.items():
        os.makedirs(os.path.join(folder, family), exist_ok=True)
        _save(os.path.join(folder, family), name, values)


def _of(data: Any, names: Iterable[str], what: str) -> dict[str, NDArray[Any]]:
    """These attributes of a Data, or of a type of a HeteroData, that are there."""
    found = {name: getattr(data, name, None) for name in names}
    return {name: _named(values, f"{what}{name}") for name, values in found.items() if values is not None}


def from_arrays(store: Union[PathLike, Store], edge_index: Any, x: Any = None, y: Any = None, *, train: Any = None,
                valid: Any = None, test: Any = None, edge_weight: Any = None, edge_type: Any = None,
                vertices: Optional[int] = None, edge_features: Any = None,
                links: Optional[dict[str, tuple[Any, ...]]] = None, named: Optional[dict[str, Any]] = None,
                named_edges: Optional[dict[str, Any]] = None, **options: Unpack[StoreOptions]) -> Store:
    """Makes a :class:`Store` of arrays (of numpy, torch, or whatever numpy takes).

    edge_index   [2, E] ids of vertices from 0: the edges go from ``edge_index[0]`` to ``edge_index[1]``, as in PyG
    x            [N, F] features, also a sparse matrix of torch or scipy; y [N] classes, below 0 or NaN where there is
                 none; or [N, C] of 0 and 1, several labels; or floats [N] or [N, K], numbers; NaN: not known
    train, valid, test    masks [N], of booleans or of 0 and 1, or ids
    edge_weight [E], edge_type [E], edge_features [E, K]
    vertices     how many there are, where neither x nor y says so and the last have no edge
    links        for ``task="link"``: of "train", "valid", "test" the pairs [2, M] and their types [M] (or None); without
                 "train" the edges themselves are trained on. For ``task="edge-classify"`` and ``"edge-regress"`` their
                 labels [M] behind these: whole numbers are classes, floats are numbers

    named, named_edges    features with names of their own, [N] or [N, K], [E] or [E, K]: ``{"age": rows}`` is ``u.age``
                 in a text, of edges ``e.age``

    Further options: as :func:`partition`. The arrays are written beside the store first (and removed), so as much free
    space as they take is needed.

    `store` is the folder that is made. ValueError and TypeError name the array and its shape or type.

    >>> made = gs.from_arrays("arrays", edges, x, y, train=np.arange(50), edge_weight=np.ones(600), parts=2)
    >>> made.vertices, made.edges, made.features, made.weights, made.train
    (100, 600, 8, True, 50)
    >>> gs.from_arrays("wrong", edges, x[:50])
    Traceback (most recent call last):
    ValueError: edge_index: names vertex 99, but there are 50 vertices
    """
    edges = _edges(edge_index)
    x, y = None if x is None else rows(x, "x"), _maybe(y, "y", "biuf")
    own = {name: _named(rows, name) for name, rows in (named or {}).items()}
    count = _vertices({"x": x, "y": y, **own}, edges, vertices)
    arrays: dict[str, Any] = {"edges": edges.T, "features": x, "labels": y}
    for name, split in (("train", train), ("valid", valid), ("test", test)):
        arrays[f"{name}_idx"] = _split(split, name, count)
    arrays["edge_weights"] = _of_edges(edge_weight, "edge_weight", "fiu", edges.shape[1])
    arrays["edge_types"] = _of_edges(edge_type, "edge_type", "iu", edges.shape[1])
    arrays["edge_features"] = _rows_of_edges(edge_features, edges.shape[1])
    for name, (pairs, kinds, *label) in (links or {}).items():
        ends = _edges(pairs)
        arrays[f"{name}_edges"] = ends.T
        arrays[f"{name}_edge_types"] = _of_edges(kinds, f"{name}'s types of links", "iu", ends.shape[1])
        arrays[f"{name}_edge_labels"] = _of_edges(label[0] if label else None, f"{name}'s labels of links", "fiu",
                                                  ends.shape[1])
    if x is None and y is None and not own:
        # Without features or labels the edges alone say how many vertices there are; labels of nobody say it too.
        arrays["labels"] = np.full(count, -1, np.int64)
    with files_of(store, _WORDS) as raw:
        for name, values in arrays.items():
            file = os.path.join(raw, name + ".npy")
            if isinstance(values, Rows):
                values.save(file)
            elif values is not None:
                np.save(file, np.ascontiguousarray(values))
        _save_named(raw, "features", own)
        _save_named(raw, "edge_features", {name: _named(rows, name) for name, rows in (named_edges or {}).items()})
        return make(raw, store, _WORDS, options)


def _of_adjacency(adj_t: Any) -> tuple[NDArray[Any], Optional[NDArray[Any]]]:
    """(edge_index, weights or None) of PyG's ``adj_t``, whose rows are targets. Ones, which stand there where the edges
    have no weights, are none."""
    found = coordinates(adj_t, "adj_t")
    if found is None:
        raise TypeError(f"adj_t: a {type(adj_t).__name__}; must be a sparse matrix")
    target, source, value, _ = found
    edges = np.stack([array(source, "adj_t", "iu"), array(target, "adj_t", "iu")])
    weight = _maybe(value, "adj_t", "fiub")
    if weight is not None and weight.ndim > 1:
        raise NotImplementedError(f"adj_t: its edges have {list(weight.shape[1:])} numbers; an edge has one weight "
                                  "here")
    return edges, None if weight is None or (weight == 1).all() else weight.astype(np.float32)


def _links_of(data: Any, labels: bool) -> tuple[Any, ...]:
    """Pairs and types that a split's Data is of: edge_label_index where edge_label is above 0, as RandomLinkSplit has
    it, or the edges themselves, as a knowledge graph's splits have it. With `labels` all pairs, and their edge_label."""
    pairs, label = getattr(data, "edge_label_index", None), getattr(data, "edge_label", None)
    if labels:
        if pairs is None or label is None:
            raise ValueError("edge_labels: a split has no edge_label_index, or no edge_label")
        return pairs, None, label
    if pairs is None:
        return data.edge_index, getattr(data, "edge_type", None)
    ends = _edges(pairs)
    real = np.ones(ends.shape[1], bool) if label is None else array(label, "edge_label", "fiub").reshape(-1) > 0
    return ends[:, real], None


def _save(folder: str, name: str, values: Any) -> None:
    if values is not None:
        np.save(os.path.join(folder, name + ".npy"), np.ascontiguousarray(values))


def _save_type(folder: str, own: Any, name: str, named: Iterable[str]) -> None:
    """The arrays of the vertices of one type."""
    x, y = _maybe(getattr(own, "x", None), f"{name}.x", "fiub"), _maybe(getattr(own, "y", None), f"{name}.y", "biuf")
    count = own.num_nodes if own.num_nodes is not None else next((len(rows) for rows in (x, y) if rows is not None), 0)
    os.makedirs(folder)
    with open(os.path.join(folder, "meta.json"), "w") as file:
        file.write('{"num_nodes": %d}' % count)
    _save(folder, "features", x if x is None or x.ndim == 2 else x.reshape(count, -1))
    _save(folder, "labels", y if y is None or y.ndim != 2 or y.shape[1] != 1 else y.reshape(-1))
    for split, mask in (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask")):
        _save(folder, f"{split}_idx", _split(getattr(own, mask, None), f"{name}.{mask}", count))
    _save_named(folder, "features", _of(own, named, f"{name}."))


def _save_relation(folder: str, own: Any, name: str, named: Iterable[str]) -> None:
    """The arrays of the edges of one type."""
    if getattr(own, "edge_index", None) is None:
        raise ValueError(f"{name}: has no edge_index")
    edges = _edges(own.edge_index)
    weight, attr = getattr(own, "edge_weight", None), _maybe(getattr(own, "edge_attr", None), "edge_attr", "fiub")
    if weight is None and attr is not None and attr.size == edges.shape[1]:
        weight, attr = attr, None
    os.makedirs(folder)
    _save(folder, "edges", edges.T)
    _save(folder, "edge_weights", _of_edges(weight, f"{name}: edge_weight", "fiub", edges.shape[1]))
    _save(folder, "edge_features", _rows_of_edges(attr, edges.shape[1]))
    _save_named(folder, "edge_features", _of(own, named, f"{name}."))


def _from_hetero(store: Union[PathLike, Store], data: Any, named: Iterable[str], named_edges: Iterable[str],
                 options: StoreOptions) -> Store:
    with files_of(store, _WORDS) as raw:
        for name in data.node_types:
            _save_type(os.path.join(raw, "nodes", name), data[name], name, named)
        for kind in data.edge_types:
            name = "__".join(kind)
            _save_relation(os.path.join(raw, "edges", name), data[kind], name, named_edges)
        return make(raw, store, _WORDS, options)


def from_pyg(store: Union[PathLike, Store], data: Any, *, valid: Any = None, test: Any = None,
             edge_labels: bool = False, named: Iterable[str] = (), named_edges: Iterable[str] = (),
             **options: Unpack[StoreOptions]) -> Store:
    """Makes a :class:`Store` of a ``torch_geometric.data.Data``, or of a ``HeteroData``, of whose types each has its
    arrays; types and relations are numbered in the order of their names. Of a Data: its edge_index (or adj_t), x, y, train_mask, val_mask,
    test_mask, edge_weight (or edge_attr of one column), edge_attr of several, and edge_type. `valid` and `test`: for
    ``task="link"``, the others of RandomLinkSplit's three, whose edge_label_index are the pairs, or a knowledge graph's
    splits. With `edge_labels` edge_label are classes (whole numbers) or numbers (floats) of these pairs, for
    ``task="edge-classify"`` or ``"edge-regress"``. `named` and `named_edges` are attributes of vertices and of edges that
    become features with these names, ``u.NAME`` and ``e.NAME`` in a text; of a HeteroData of each type that has them.
    Options as :func:`partition`.

    `store` is the folder that is made, `data` needs nothing but these attributes. ValueError: it has no edges.

    >>> import types
    >>> class Tensor(np.ndarray):  # in the place of torch's
    ...     dim = lambda self: self.ndim
    >>> data = types.SimpleNamespace(edge_index=edges, x=x, y=y.view(Tensor), num_nodes=100, edge_attr=None)
    >>> gs.from_pyg("pyg", data, parts=2)
    Store('pyg': 100 vertices, 600 edges, 8 features)
    """
    if hasattr(data, "node_types") and hasattr(data, "edge_types"):
        if valid is not None or test is not None or edge_labels:
            raise NotImplementedError("data: pairs of splits are of graphs with one type of vertices")
        missing = [name for names, types in ((named, data.node_types), (named_edges, data.edge_types)) for name in names
                   if all(getattr(data[kind], name, None) is None for kind in types)]
        if missing:
            raise ValueError(f"{missing[0]}: no type has an attribute of this name")
        return _from_hetero(store, data, named, named_edges, options)
    missing = [name for name in (*named, *named_edges) if getattr(data, name, None) is None]
    if missing:
        raise ValueError(f"{missing[0]}: the data has no attribute of this name")
    others = {"train": data if edge_labels or getattr(data, "edge_label_index", None) is not None else None, "valid": valid,
              "test": test}
    links = {name: _links_of(other, edge_labels) for name, other in others.items() if other is not None}
    edges, weight = getattr(data, "edge_index", None), getattr(data, "edge_weight", None)
    attr = getattr(data, "edge_attr", None)
    if edges is None and getattr(data, "adj_t", None) is not None:
        edges, weight = _of_adjacency(data.adj_t)
    elif edges is None:
        raise ValueError("data: has neither edge_index nor adj_t")
    elif weight is None and attr is not None and (attr.dim() == 1 or attr.shape[1] == 1):
        weight, attr = attr.reshape(-1), None
    y = getattr(data, "y", None)
    if y is not None and y.dim() == 2 and y.shape[1] == 1:
        y = y.reshape(-1)
    return from_arrays(store, edges, getattr(data, "x", None), y, train=getattr(data, "train_mask", None),
                       valid=getattr(data, "val_mask", None), test=getattr(data, "test_mask", None),
                       edge_weight=weight, edge_type=getattr(data, "edge_type", None), vertices=data.num_nodes,
                       edge_features=attr, links=links, named=_of(data, named, ""),
                       named_edges=_of(data, named_edges, ""), **options)


def from_dgl(store: Union[PathLike, Store], graph: Any, **options: Unpack[StoreOptions]) -> Store:
    """Makes a :class:`Store` of a homogeneous DGL graph: ndata "feat" (or "x"), "label" (or "y"), "train_mask",
    "val_mask", "test_mask"; edata "weight" (or "w") and "etype" (or "_TYPE"). Options as :func:`partition`.

    `store` is the folder that is made. NotImplementedError: `graph` has several types.

    >>> class Graph:                                # in the place of a DGLGraph
    ...     canonical_etypes, ndata, edata = [("_N", "_E", "_N")], {"feat": x, "label": y}, {}
    ...     edges = staticmethod(lambda order: edges)
    ...     num_nodes = staticmethod(lambda: 100)
    >>> edges_of = edges
    >>> gs.from_dgl("dgl", Graph(), parts=2)
    Store('dgl': 100 vertices, 600 edges, 8 features)
    """
    def first(frame: Any, *names: str) -> Any:
        return next((frame[name] for name in names if name in frame), None)

    if len(graph.canonical_etypes) > 1:
        raise NotImplementedError("a graph of several types of vertices or edges: make it homogeneous first")
    nodes, edges = graph.ndata, graph.edata
    source, target = graph.edges(order="eid")
    return from_arrays(store, np.stack([array(source, "edges", "iu"), array(target, "edges", "iu")]),
                       first(nodes, "feat", "x"), first(nodes, "label", "y"), train=first(nodes, "train_mask"),
                       valid=first(nodes, "val_mask"), test=first(nodes, "test_mask"),
                       edge_weight=first(edges, "weight", "w"), edge_type=first(edges, "etype", "_TYPE"),
                       vertices=graph.num_nodes(), **options)
