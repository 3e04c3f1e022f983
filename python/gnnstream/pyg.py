"""A store as torch_geometric's FeatureStore and GraphStore, for loaders and samplers of PyG's own.

    from torch_geometric.loader import NeighborLoader
    from gnnstream.pyg import stores

    data = stores("papers", host_memory="16G")      # features may be larger than memory
    for batch in NeighborLoader(data, num_neighbors=[15, 10], input_nodes=train, batch_size=1024):
        out = model(batch.x, batch.edge_index)[:batch.batch_size]

Rows are read by ids, within the budget; the edges that PyG samples from are in memory, as they are in PyG. Where those
have no room either, :class:`gnnstream.loaders.NeighborLoader` draws from the disk. Needs torch_geometric.
"""
from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
import torch
import torch_geometric.data
from numpy.typing import NDArray
from torch_geometric.data.feature_store import TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout

from . import _engine
from ._arrays import array
from ._options import PathLike, path
from .loaders import LoaderReport, columns_of
from .store import Store

__all__ = ["FeatureStore", "GraphStore", "stores"]

_MASKS = {"train_mask": 1, "val_mask": 2, "test_mask": 3}
_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
#: Rows of a request that is made as one; of more the engine reads in their order in the store.
_PIECE = 65536


@dataclass
class _Group:
    """Vertices of one type: ids from `first` on, and which arrays they have."""

    first: int
    vertices: int
    columns: dict[str, slice]  # of the features: x, and those with a name of their own
    names: list[str]


def _groups(store: Store, types: dict[str, Any], named: Any) -> dict[Optional[str], _Group]:
    masks = [name for name, count in zip(_MASKS, (store.train, store.valid, store.test)) if count > 0]
    labels, named = ["y"] * (store.classes > 0) + masks, named["vertex"][:named["vertices"]]
    if types["types"] == 0:
        found: dict[Optional[str], _Group] = {
            None: _Group(0, store.vertices, columns_of(store.features, named), labels)}
    else:
        found = {kind["name"]: _Group(kind["first"], kind["vertices"], columns_of(kind["features"], named),
                                      labels if k == types["labelled"] else [])
                 for k, kind in enumerate(types["type"][:types["types"]])}
    for group in found.values():
        group.names = [*group.columns, *group.names] or ["n_id"]  # PyG knows of types by their arrays alone
    return found


def _index(index: Any, count: int, what: str) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Numbers from 0 of the rows that an index of PyG's names, and the shape of the result without its columns."""
    if index is None or isinstance(index, slice):
        ids = np.arange(count, dtype=np.int64)[index or slice(None)]
        return ids, ids.shape
    given = array(index, "index", "iub")
    if given.dtype.kind == "b":
        if given.shape != (count,):
            raise IndexError(f"index: a mask of shape {list(given.shape)}; {what} has {count:,} rows")
        given = np.flatnonzero(given)
    ids = np.ascontiguousarray(given, np.int64).reshape(-1)
    wrong = (ids < -count) | (ids >= count)
    if wrong.any():
        raise IndexError(f"index: {int(ids[wrong.argmax()])} is out of range; {what} has {count:,} rows")
    return np.where(ids < 0, ids + count, ids), given.shape


class FeatureStore(torch_geometric.data.FeatureStore):
    """The vertices' arrays: of each group (a type of vertices; None where there is one) `x` [vertices, features], in
    the type that the store has at rest, and features with names of their own likewise; `y`, int64 [vertices] classes with -1 for none, or float32 [vertices, columns];
    `train_mask`, `val_mask` and `test_mask`, bool [vertices]. A group without all these has `n_id`, int64 [vertices].

    An index is None, a slice, a number, a mask, or ids within the group, as the input has them; IndexError says which
    one is out of range. What is not there is None. Nothing can be put or removed: that gives False. Features of edges
    are not there, as PyG's loaders read none from a FeatureStore.

    `host_memory`, "16G" or bytes, is what the rows may take (None: 80 % of what is free): 4 bytes a vertex, and all
    features where they have room, else those that were asked for before. Each worker process of a DataLoader opens its
    own, and takes as much.

    >>> from gnnstream.pyg import FeatureStore
    >>> rows = FeatureStore(store, host_memory="64M")
    >>> rows.get_tensor(None, "x", [4, 9]).numpy().tolist() == x[[4, 9]].tolist()
    True
    >>> [attr.attr_name for attr in rows.get_all_tensor_attrs()], rows.get_tensor_size(None, "x")
    (['x', 'y', 'train_mask', 'val_mask', 'test_mask'], (100, 8))
    >>> rows.get_tensor(None, "y", 100)
    Traceback (most recent call last):
    IndexError: index: 100 is out of range; the store has 100 rows
    >>> rows.report.features_in_memory
    True
    >>> rows.close()
    """

    def __init__(self, store: Union[Store, PathLike], host_memory: Union[int, str, None] = None) -> None:
        super().__init__()
        self._options = {} if host_memory is None else {"host_memory": host_memory}
        self._path = path(store)
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self._engine = _engine.Loader(self._path, self._options, -1)
        self._store = Store(self._path)
        self._groups = _groups(self._store, _engine.inspect_types(self._path), _engine.inspect_features(self._path))

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_options": self._options, "_tensor_attr_cls": self._tensor_attr_cls}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __repr__(self) -> str:
        return f"FeatureStore({self._path!r})"

    @property
    def report(self) -> LoaderReport:
        """What is in memory: ``features_in_memory``, ``host_bytes``, ..."""
        return LoaderReport(**self._engine.inspect())

    def close(self) -> None:
        """Gives memory and files back. A store that is no longer referred to does so by itself."""
        self._engine.close()

    # ---- what torch_geometric asks for

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """The arrays that there are, without an index."""
        return [TensorAttr(name, each) for name, group in self._groups.items() for each in group.names]

    def _find(self, attr: TensorAttr) -> Optional[_Group]:
        group = self._groups.get(attr.group_name if attr.is_set("group_name") else None)
        return group if group is not None and attr.attr_name in group.names else None

    def _get_tensor(self, attr: TensorAttr) -> Optional[torch.Tensor]:
        group = self._find(attr)
        if group is None:
            return None
        where = "the store" if attr.group_name is None else f"{attr.group_name!r}"
        ids, shape = _index(attr.index, group.vertices, where)
        rows = self._rows(group, attr.attr_name, ids)
        return rows.reshape([*shape, *rows.shape[1:]])

    def _get_tensor_size(self, attr: TensorAttr) -> Optional[tuple[int, ...]]:
        group = self._find(attr)
        if group is None:
            return None
        count = len(_index(attr.index, group.vertices, "the group")[0])
        if attr.attr_name in group.columns:
            columns = group.columns[attr.attr_name]
            return count, columns.stop - columns.start
        return (count, *self._label_shape()) if attr.attr_name == "y" else (count,)

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        return False

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        return False

    # ---- rows

    def _label_shape(self) -> tuple[int, ...]:
        return () if self._store.task == "classify" else (self._store.classes,)

    def _pick(self, ids: NDArray[np.int64], **arrays: torch.Tensor) -> None:
        if self._process != os.getpid():  # forked: what the parent opened is the parent's
            self._open()
        if len(ids) > 0:
            self._engine.pick(ids, **arrays)

    def _rows(self, group: _Group, name: str, ids: NDArray[np.int64]) -> torch.Tensor:
        if name == "n_id":
            return torch.from_numpy(ids)
        ids = ids + group.first
        if name in group.columns:
            return self._features(ids)[:, group.columns[name]].contiguous()
        if name == "y":
            kind = torch.int64 if self._store.task == "classify" else torch.float32
            labels = torch.empty(len(ids), *self._label_shape(), dtype=kind)
            self._pick(ids, **{"classes" if self._store.task == "classify" else "labels": labels})
            return labels
        split = torch.empty(len(ids), dtype=torch.uint8)
        self._pick(ids, split=split)
        return split == _MASKS[name]

    def _features(self, ids: NDArray[np.int64]) -> torch.Tensor:
        out = torch.empty(len(ids), self._store.features, dtype=_TYPES[self._store.feature_type])
        if len(ids) <= _PIECE:
            self._pick(ids, features_at_rest=out.view(torch.uint8))
            return out
        row = torch.empty(len(ids), dtype=torch.int64)  # so many are picked in their order, each block read once
        self._pick(ids, row=row)
        for places in torch.split(row.argsort(), _PIECE):
            some = torch.empty(len(places), out.shape[1], dtype=out.dtype)
            self._pick(ids[places.numpy()], features_at_rest=some.view(torch.uint8))
            out[places] = some
        return out


class GraphStore(torch_geometric.data.GraphStore):
    """The edges, of each type (source, name, destination), or of None where vertices are of one type, by ids within the
    groups of :class:`FeatureStore`: int64 (row, colptr) of the layout "csc", ascending within a column, which is what is
    registered; "coo" (row, col), sorted by column, and "csr" (rowptr, col) are made of it. KeyError: there is no such
    type. Nothing can be put or removed: that gives False.

    Edges are read when they are asked for, into 8 bytes an edge and 8 a vertex, with 4 a vertex and 256 MiB while they
    are read, and are the same tensors for as long as somebody has them. Weights, features and types of edges between
    vertices of one type are not there: PyG's loaders read none from a GraphStore.

    `store` is a :class:`gnnstream.Store` or its folder.

    >>> from gnnstream.pyg import GraphStore
    >>> graph = GraphStore(store)
    >>> row, colptr = graph.get_edge_index(None, "csc")
    >>> len(row), len(colptr), graph.get_all_edge_attrs()[0].size
    (600, 101, (100, 100))
    """

    def __init__(self, store: Union[Store, PathLike]) -> None:
        super().__init__()
        self._path = path(store)
        self._made: dict[Any, list[Any]] = {}
        types = _engine.inspect_types(self._path)
        kinds = types["type"]
        self._relation: dict[Any, tuple[int, tuple[int, int]]] = {
            (kinds[r["source"]]["name"], r["name"], kinds[r["destination"]]["name"]):
            (k, (kinds[r["source"]]["vertices"], kinds[r["destination"]]["vertices"]))
            for k, r in enumerate(types["relation"][:types["relations"]])}
        if not self._relation:
            vertices = Store(self._path).vertices
            self._relation[None] = -1, (vertices, vertices)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": {}}

    def __repr__(self) -> str:
        return f"GraphStore({self._path!r})"

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """The types of edges, with the numbers of vertices at their two ends."""
        return [EdgeAttr(kind, EdgeLayout.CSC, size=size) for kind, (_, size) in self._relation.items()]

    def _get_edge_index(self, attr: EdgeAttr) -> Optional[tuple[torch.Tensor, torch.Tensor]]:
        kind = None if attr.edge_type is None else tuple(attr.edge_type)
        if kind not in self._relation:
            return None
        relation, size = self._relation[kind]
        if attr.layout != EdgeLayout.CSC:
            both: tuple[torch.Tensor, torch.Tensor] = self._edge_to_layout(
                EdgeAttr(kind, EdgeLayout.CSC, size=size), attr.layout)[:2]
            return both
        made = [each() for each in self._made.get(kind, [])]
        if made and all(each is not None for each in made):
            return made[0], made[1]
        colptr = torch.empty(size[1] + 1, dtype=torch.int64)
        _engine.in_edges(self._path, relation, colptr, None)
        row = torch.empty(int(colptr[-1]), dtype=torch.int64)
        _engine.in_edges(self._path, relation, colptr, row)
        self._made[kind] = [weakref.ref(row), weakref.ref(colptr)]
        return row, colptr

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        return False

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        return False


def stores(store: Union[Store, PathLike], host_memory: Union[int, str, None] = None
           ) -> tuple[FeatureStore, GraphStore]:
    """The pair that PyG's loaders take for data: :class:`FeatureStore` within `host_memory`, and
    :class:`GraphStore`.

    >>> from gnnstream.pyg import stores
    >>> stores(store)
    (FeatureStore('store'), GraphStore('store'))
    """
    return FeatureStore(store, host_memory), GraphStore(store)
