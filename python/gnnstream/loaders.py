"""Batches of a store for a model of one's own: the graph and its features may be larger than memory.

    from gnnstream.loaders import NeighborLoader

    loader = NeighborLoader("papers", [15, 10], batch_size=1024, input_nodes="train", shuffle=True, host_memory="8G")
    for batch in loader:                       # a torch_geometric Data where that is installed, else a Batch
        out = model(batch.x, batch.edge_index)[:batch.batch_size]
        loss = F.cross_entropy(out, batch.y[:batch.batch_size])

Batches are drawn, and their rows read, by the engine's threads, ahead of the batch that is in use; there are no worker
processes. They depend on `seed`, the epoch and the batch's number alone.
"""
from __future__ import annotations

import contextlib
import importlib
import operator
import os
import tempfile
import threading
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._arrays import array
from ._options import PathLike, Report, check, path, size
from ._pairs import Pairs
from ._types import LoaderFields, LoaderOptions
from .store import Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Batch", "ClusterLoader", "LinkNeighborLoader", "LoaderReport", "NeighborLoader", "SaintLoader", "infer",
           "to_blocks"]

_SPLITS = {None: 0, "all": 0, "train": 1, "valid": 2, "val": 2, "test": 3}
_LISTED = 4
#: Arguments of PyG's loaders and of PyTorch's DataLoader that are not here, and what to do.
_ELSEWHERE = {
    **dict.fromkeys(("disjoint", "edge_label_time", "input_time", "time_attr", "temporal_strategy"),
                    "batches are one graph for all of their vertices or pairs, without times; leave it out"),
    "weight_attr": "weights of edges are the store's; use weighted=True",
    "subgraph_type": "edges are drawn towards the vertices of a batch, \"directional\"; leave it out",
    **dict.fromkeys(("collate_fn", "transform_sampler_output"), "use transform, which gets each batch"),
    **dict.fromkeys(("sampler", "batch_sampler"), "use input_nodes, shuffle and batch_size"),
    "generator": "batches depend on seed and the epoch alone; use seed, and set_epoch()",
}
#: Those that say how batches are made by other processes, or from tensors, which nothing reads here.
_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context", "worker_init_fn",
            "filter_per_worker", "is_sorted", "timeout", "pin_memory_device")


class LoaderReport(Report, LoaderFields):
    """What a loader's batches have, and what is in memory: ``batches`` of an epoch, ``features``,
    ``features_in_memory``, ``edges_in_memory``, ``group``, ``host_bytes``, ...

    ``host_bytes`` are bytes, ``group`` batches that are drawn at a time.

    >>> from gnnstream.loaders import NeighborLoader
    >>> report = NeighborLoader(store, [5, 5], batch_size=25, host_memory="64M").report
    >>> report.batches, report.features, report.task, report.features_in_memory, report.host_bytes < 64 << 20
    (4, 8, 'classify', True, True)
    """

    def __repr__(self) -> str:
        where = {True: "in memory", False: "on disk"}
        return (f"LoaderReport({self.batches} batches, features {where[self.features_in_memory]}, edges "
                f"{where[self.edges_in_memory]}, {size(self.host_bytes)})")


class Batch:
    """A batch where torch_geometric is not installed, with the attributes of its Data: ``x`` [vertices, features],
    ``edge_index`` [2, edges] rows of the batch, ``y``, ``n_id`` [vertices] ids in the input, ``batch_size``: the first
    rows, which the batch is of. Arrays are torch's where that is installed, else numpy's.

    ``edge_weight`` [edges], ``edge_type`` [edges] and ``edge_attr`` [edges, columns] are there where the store has
    them, ``num_sampled_nodes`` and ``num_sampled_edges`` where it was drawn by hops; `values` are these. Of a store
    with types of vertices it is in the place of a HeteroData: `parts` are the batches of each type,
    ``batch["paper"].x`` and ``batch["author", "writes", "paper"].edge_index``, and ``batch.x_dict`` is what all types
    have of a name.

    >>> from gnnstream.loaders import Batch
    >>> Batch(x=np.zeros((3, 8)), batch_size=2)
    Batch(x=[3, 8], batch_size=2)
    >>> Batch({"paper": Batch(batch_size=2), "author": Batch()}).batch_size_dict
    {'paper': 2}
    """

    def __init__(self, parts: Optional[dict[Any, Batch]] = None, **values: Any) -> None:
        vars(self).update(values)
        if parts is not None:
            self._parts = parts

    def __getitem__(self, kind: Any) -> Batch:
        found: Batch = vars(self)["_parts"][kind]
        return found

    def __getattr__(self, name: str) -> Any:
        parts = vars(self).get("_parts")
        if parts is None or not name.endswith("_dict"):
            raise AttributeError(f"the batch has no {name}")
        return {kind: vars(part)[name[:-5]] for kind, part in parts.items() if name[:-5] in vars(part)}

    def __repr__(self) -> str:
        shapes = (f"{name}={list(value.shape) if hasattr(value, 'shape') else value}" for name, value in
                  vars(self).items())
        return f"Batch({', '.join(shapes)})"


def _found(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


class _Arrays:
    """Makes the arrays that the engine fills: torch's, pinned where asked for, or numpy's."""

    def __init__(self, pin_memory: bool) -> None:
        self._torch = _found("torch")
        self._pin = pin_memory
        if pin_memory and self._torch is None:
            raise TypeError("pin_memory: is torch's, which is not installed")
        if pin_memory and not self._torch.cuda.is_available():  # as DataLoader does
            warnings.warn("pin_memory: no GPU is there, so memory is not pinned", stacklevel=5)
            self._pin = False

    def __call__(self, kind: str, *shape: int) -> Any:
        if self._torch is None:
            return np.empty(shape, kind)
        return self._torch.empty(shape, dtype=getattr(self._torch, kind), device="cpu", pin_memory=self._pin)


    def take(self, values: Any, rows: NDArray[np.int64]) -> Any:
        """Some rows, as an array of its own."""
        if self._torch is None:
            return values[rows]
        out = self._torch.empty((len(rows), *values.shape[1:]), dtype=values.dtype, device="cpu", pin_memory=self._pin)
        return self._torch.index_select(values, 0, self._torch.from_numpy(rows), out=out)


def columns_of(features: int, named: Sequence[dict[str, Any]]) -> dict[str, slice]:
    """Of a row of features, whose last columns are those with names: x, if there are others, and these."""
    own = {each["name"]: slice(each["first"], each["first"] + each["columns"]) for each in named}
    width = min([features, *(each.start for each in own.values())])
    return {**({"x": slice(0, width)} if width > 0 else {}), **own}


class _Types:
    """Types of vertices and of edges of a store (none: `names` is empty), and what columns of its rows are."""

    def __init__(self, store: Store) -> None:
        folder = path(store)
        types, named = _engine.inspect_types(folder), _engine.inspect_features(folder)
        kinds = types["type"][:types["types"]]
        of_vertices, of_edges = named["vertex"][:named["vertices"]], named["edge"][:named["edges"]]
        self.names = [kind["name"] for kind in kinds]
        self.first = np.array([kind["first"] for kind in kinds], np.int64)
        self.count = [kind["vertices"] for kind in kinds]
        self.labelled = types["labelled"]
        self.ends = [(r["source"], r["destination"]) for r in types["relation"][:types["relations"]]]
        self.relations = [(self.names[a], r["name"], self.names[b])
                          for (a, b), r in zip(self.ends, types["relation"])]
        self.columns = columns_of(store.features, of_vertices)
        self.columns_by_type = [columns_of(kind["features"], of_vertices) for kind in kinds]
        self.edge_columns = columns_of(store.edge_features, of_edges)
        if "x" in self.edge_columns:
            self.edge_columns = {"edge_attr": self.edge_columns.pop("x"), **self.edge_columns}
        if not self.names:  # where one name is of both, Data has room for one
            both = self.columns.keys() & self.edge_columns.keys()
            self.edge_columns = {f"edge_{name}" if name in both else name: place
                                 for name, place in self.edge_columns.items()}

    def number(self, name: Any, what: str) -> int:
        if name not in self.names:
            raise ValueError(f"{what}: the store has no type {name!r}; it has {', '.join(self.names) or 'none'}")
        return self.names.index(name)

    def relation(self, name: Any, what: str) -> int:
        if name not in self.relations:
            raise ValueError(f"{what}: the store has no type of edges {name!r}; it has {self.relations}")
        return self.relations.index(name)

    def ids(self, given: Any, kind: int, what: str) -> NDArray[np.int64]:
        """Ids in the input of vertices of a type, by ids within it."""
        ids = array(given, what, "iu").astype(np.int64)
        wrong = (ids < 0) | (ids >= self.count[kind])
        if wrong.any():
            raise ValueError(f"{what}: {int(ids[wrong][0])} is no vertex; {self.names[kind]} has 0 to "
                             f"{self.count[kind] - 1}")
        made: NDArray[np.int64] = ids + self.first[kind]
        return made


class _EdgeIds:
    """Which edge, of each type, is one of a batch's? They are counted by destination, then source, as the edges that
    GraphStore gives."""

    def __init__(self, store: str, types: _Types, vertices: int) -> None:
        self._keys, self._sources = [], []
        for k in range(len(types.relations)) if types.names else [-1]:
            sources, targets = (types.count[end] for end in types.ends[k]) if types.names else (vertices, vertices)
            start = np.empty(targets + 1, np.int64)
            _engine.in_edges(store, k, start, None)
            source = np.empty(int(start[-1]), np.int64)
            _engine.in_edges(store, k, start, source)
            source = source.view(np.uint64)
            source += np.repeat(np.arange(targets, dtype=np.uint64), np.diff(start)) * np.uint64(sources)
            self._keys.append(source)
            self._sources.append(np.uint64(sources))

    def __call__(self, relation: int, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
        """By ids within the types. Of several edges with the same ends each has another number, in some order."""
        keys = self._keys[relation]
        asked = target.astype(np.uint64) * self._sources[relation] + source.astype(np.uint64)
        order = np.argsort(asked, kind="stable")
        asked = asked[order]
        first = np.searchsorted(keys, asked)
        count = np.searchsorted(keys, asked, "right") - first
        nth = np.arange(len(asked)) - np.searchsorted(asked, asked)
        found = np.empty(len(asked), np.int64)
        found[order] = first + nth % np.maximum(count, 1)
        return found


def _fanout(num_neighbors: Any, types: _Types) -> str:
    """The engine's words: 0 is all, "-" none; a list for each type of edges, where these differ."""
    default = getattr(num_neighbors, "default", None)  # torch_geometric's NumNeighbors
    num_neighbors = getattr(num_neighbors, "values", num_neighbors) if default is not None or \
        hasattr(num_neighbors, "get_values") else num_neighbors
    if not isinstance(num_neighbors, dict):
        hops = [operator.index(k) for k in num_neighbors]
        if not hops or min(hops) < -1 or 0 in hops:
            raise ValueError(f"num_neighbors: {hops}; must be numbers of edges from 1, one a hop; -1: all")
        return ",".join(str(max(k, 0)) for k in hops)
    of = {tuple(kind.split("__")) if isinstance(kind, str) else kind: [operator.index(k) for k in each]
          for kind, each in num_neighbors.items()}
    for kind in of:
        types.relation(kind, "num_neighbors")
    missing = [kind for kind in types.relations if kind not in of]
    if missing and default is None:
        raise ValueError(f"num_neighbors: says nothing of {missing[0]}; give numbers for each type of edges, as "
                         "[0] for none")
    lists = [list(of.get(kind, default) or ()) for kind in types.relations]
    if not lists or min(map(len, lists)) != max(map(len, lists)) or any(min(each, default=-2) < -1 for each in lists):
        raise ValueError(f"num_neighbors: {of}; must be as many numbers for each type of edges, one a hop; 0: none, "
                         "-1: all")
    if all(each == lists[0] for each in lists):
        return _fanout(lists[0], types)
    return ";".join(",".join({-1: "0", 0: "-"}.get(k, str(k)) for k in each) for each in lists)


_AnyLoader = TypeVar("_AnyLoader", bound="_Loader")


class _Loader:
    """What all loaders are. `transform` gets each batch and gives what is yielded; `device` is where its tensors
    go."""

    def __init__(self, store: Union[Store, PathLike], sampler: str, seeds: Any,
                 transform: Optional[Callable[[Any], Any]], device: Any, pin_memory: bool, given: dict[str, Any],
                 what: str, edge_ids: bool, pairs: Optional[Callable[[_Types, Store], Pairs]] = None,
                 drop_last: bool = False) -> None:
        for name, instead in _ELSEWHERE.items():
            if given.pop(name, None):
                raise TypeError(f"{name}: {instead}")
        for name in _WORKERS:
            if given.pop(name, None):
                warnings.warn(f"{name}: batches are made by the engine's own threads; nothing reads this",
                              stacklevel=3)
        options = check(given, [*LoaderOptions.__annotations__, "batch_size", "fanout", "shuffle"], what)
        summary = store if isinstance(store, Store) else Store(store)
        self._store, self._vertices = path(summary.path), summary.vertices
        self._types = types = _Types(summary)
        if "fanout" in options:
            options["fanout"] = _fanout(options["fanout"], types)
        splits = zip(("train_mask", "val_mask", "test_mask"), (summary.train, summary.valid, summary.test))
        self._masks = {name: number for number, (name, count) in enumerate(splits, 1) if count > 0}
        self._pairs = None if pairs is None else pairs(types, summary)
        self._position: Optional[tuple[NDArray[np.int64], NDArray[np.int64]]] = None
        split, ids = self._seeds(seeds) if self._pairs is None else (_LISTED, self._pairs.ends[0])
        if types.names and sampler == "neighbor" and options["fanout"].strip("0,"):
            options.setdefault("by_type", True)  # as numbers of neighbours are meant for a HeteroData
        self._edge_ids = _EdgeIds(self._store, types, self._vertices) if edge_ids else None
        self._arrays = _Arrays(pin_memory)
        self._rows: Optional[Callable[[Any], Any]] = None  # of rows of the store: what stands for their features
        self._transform, self._device = transform, device
        if device is not None and self._arrays._torch is None:
            raise TypeError("device: is torch's, which is not installed")
        self._given = {**options, "sampler": sampler}, split, ids
        of = (summary.vertices, summary.train, summary.valid, summary.test)[split] if ids is None else len(ids)
        self._dropped = int(drop_last and of % options["batch_size"] > 0)
        self._epoch, self._next, self._resumed = 1, 0, False
        self._open()

    def _open(self) -> None:
        options, split, ids = self._given
        self._process, self._lock = os.getpid(), threading.RLock()
        p = self._pairs
        self._engine = _engine.Loader(self._store, options, split, ids) if p is None else \
            _engine.Loader(self._store, options, split, ids, p.ends[1], p.wrong, p.amount, p.leave_out)
        self._report = LoaderReport(**self._engine.inspect())
        self._turn = 0

    def _seeds(self, seeds: Any) -> tuple[int, Optional[NDArray[np.int64]]]:
        types, kind = self._types, None
        if isinstance(seeds, tuple) and len(seeds) == 2 and isinstance(seeds[0], str):
            kind, seeds = types.number(seeds[0], "input_nodes"), seeds[1]
        elif isinstance(seeds, str) and seeds not in _SPLITS and seeds in types.names:
            kind, seeds = types.number(seeds, "input_nodes"), None
        if isinstance(seeds, str) and (kind is None or seeds != "all") or seeds is None and kind is None:
            if seeds not in _SPLITS:
                words = f", or a type of vertices, as {types.names[0]!r}" if types.names else ""
                raise ValueError(f"input_nodes: {seeds!r}; must be train, valid, test, a mask, or ids of vertices"
                                 f"{words}")
            if kind is not None and kind != types.labelled:
                raise ValueError(f"input_nodes: {types.names[kind]!r} has no split {seeds!r}")
            return _SPLITS[seeds], None
        if seeds is None or isinstance(seeds, str):
            given = np.arange(self._vertices if kind is None else types.count[kind])
        else:
            given = array(seeds, "input_nodes", "iub")
        if given.ndim != 1:
            raise ValueError(f"input_nodes: has the shape {list(given.shape)}; must have one dimension")
        listed = given.dtype.kind != "b"
        ids = np.ascontiguousarray(given if listed else np.flatnonzero(given), np.int64)
        if kind is not None:
            ids = types.ids(ids, kind, "input_nodes")
        if listed:
            order = np.argsort(ids, kind="stable")
            self._position = ids[order], order
        return _LISTED, ids

    # ---- what it is

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, {len(self)} batches)"

    def __len__(self) -> int:
        return self._report.batches - self._dropped

    @property
    def report(self) -> LoaderReport:
        """The :class:`LoaderReport`."""
        return self._report

    def close(self) -> None:
        """Gives memory and files back. A loader that is no longer referred to does so by itself."""
        self._engine.close()

    def __enter__(self: _AnyLoader) -> _AnyLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- where it is

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch, from 1. Each pass is another epoch by itself."""
        if operator.index(epoch) < 1:
            raise ValueError(f"epoch: {epoch}; epochs count from 1")
        self._epoch, self._next, self._resumed = operator.index(epoch), 0, True

    def state_dict(self) -> dict[str, int]:
        """Which batch comes next: of a loader with the same arguments load_state_dict() goes on there."""
        return {"epoch": self._epoch, "batch": self._next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.set_epoch(state["epoch"])
        self._next = operator.index(state["batch"])

    # ---- batches

    def __iter__(self) -> Iterator[Any]:
        """The batches of an epoch. One pass at a time: another one ends this."""
        if self._process != os.getpid():  # forked: what the parent opened is the parent's
            self._open()
        with self._lock:
            if self._next > 0 and not self._resumed:  # a pass that was left
                self._epoch, self._next = self._epoch + 1, 0
            self._resumed = False
            self._turn += 1
            turn = self._turn
            self._engine.begin(self._epoch, self._next)
        while (drawn := self._drawn(turn)) is not None:
            batch = self._made(*drawn)
            self._comes_to(turn, self._epoch, drawn[0]["number"] + 1)
            yield batch
        self._comes_to(turn, self._epoch + 1, 0)

    def _locked(self) -> contextlib.AbstractContextManager[Any]:
        """A forked child, which the engine refuses, does not wait for a thread of its parent."""
        return self._lock if self._process == os.getpid() else contextlib.nullcontext()

    def _comes_to(self, turn: int, epoch: int, number: int) -> None:
        """Where the next batch is, unless another pass has begun since, or set_epoch() has said where."""
        with self._locked():
            if turn == self._turn and not self._resumed:
                self._epoch, self._next = epoch, number

    def _drawn(self, turn: int) -> Optional[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """The next batch's shape, arrays and pairs; None behind the last one. No thread that begins another pass comes
        between the shape and the arrays, which have room for that batch."""
        with self._locked():
            if turn != self._turn:
                raise RuntimeError("the loader has begun another pass; one loader makes one at a time")
            shape = self._engine.next()
            return None if shape is None or shape["number"] >= len(self) else (shape, *self._filled(shape))

    def _filled(self, shape: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The batch's arrays as the engine fills them, all vertices and edges in one; and those of its pairs."""
        r, new = self._report, self._arrays
        n, m = shape["vertices"], shape["edges"]
        arrays = {"vertex": new("int64", n), "edge_index": new("int64", 2, m)}
        if self._rows is not None:
            arrays["row"] = new("int64", n)
        elif r.features:
            arrays["features"] = new("float32", n, r.features)
        if r.edge_types:
            arrays["edge_type"] = new("int64", m)
        if r.edge_weights:
            arrays["edge_weight"] = new("float32", m)
        if r.edge_features:
            arrays["edge_features"] = new("float32", m, r.edge_features)
        if r.task == "classify":
            arrays["classes"] = new("int64", n)
        elif r.label_columns:
            arrays["labels"] = new("float32", n, r.label_columns)
        if self._masks:
            arrays["split"] = new("uint8", n)
        pairs = {} if self._pairs is None else self._pairs.arrays(new, shape)
        self._engine.fill(**arrays, **{name: pairs[name] for name in pairs if name != "both"})
        if self._rows is not None:
            arrays["features"] = self._rows(arrays.pop("row"))
        if "labels" in arrays:
            arrays["classes"] = arrays.pop("labels")
        return arrays, pairs

    def _made(self, shape: dict[str, Any], arrays: dict[str, Any], pairs: dict[str, Any]) -> Any:
        self._targets = np.asarray(arrays["vertex"])[:shape["targets"]].copy()  # ids in the input, for infer()
        ends = [0, *shape["hop_end"][:shape["hops"] + 1]]
        data = _found("torch_geometric.data")
        if self._types.names:
            parts = self._by_type(arrays, pairs, shape, ends)
            batch = Batch({kind: Batch(**values) for kind, values in parts.items()}) if data is None else \
                _hetero(data.HeteroData(), parts)
        else:
            values = self._of_one_type(arrays, pairs, shape, ends)
            batch = Batch(**values) if data is None else data.Data(num_nodes=shape["vertices"], **values)
        return batch if self._transform is None else self._transform(batch)

    def _of_one_type(self, arrays: dict[str, Any], pairs: dict[str, Any], shape: dict[str, Any],
                     ends: list[int]) -> dict[str, Any]:
        types, m = self._types, self._moved
        ids, edges = arrays["vertex"], np.asarray(arrays["edge_index"])
        values = {"n_id": m(ids), "edge_index": m(arrays["edge_index"])}
        if self._edge_ids is not None:
            source, target = np.asarray(ids)[edges]
            values["e_id"] = m(self._as_ours(self._edge_ids(0, source, target)))
        values |= {name: m(arrays[name]) for name in ("edge_type", "edge_weight") if name in arrays}
        values |= self._in_columns(arrays, "edge_features", types.edge_columns)
        values |= self._in_columns(arrays, "features", types.columns if self._rows is None else {"x": slice(None)})
        if "classes" in arrays:
            values["y"] = m(arrays["classes"])
        values |= {name: m(arrays["split"] == number) for name, number in self._masks.items()}
        if self._pairs is not None:
            values |= {name: m(value) for name, value in self._pairs.named(pairs, shape).items()}
        else:
            values["batch_size"] = shape["targets"]
            values["input_id"] = m(self._input_id(np.asarray(ids)[:shape["targets"]], 0))
        if shape["hops"]:
            values["num_sampled_nodes"] = np.diff(ends).tolist()
            values["num_sampled_edges"] = np.diff(np.searchsorted(edges[1], [0, *ends[1:]])).tolist()[:shape["hops"]]
        return values

    def _by_type(self, arrays: dict[str, Any], pairs: dict[str, Any], shape: dict[str, Any],
                 ends: list[int]) -> dict[Any, dict[str, Any]]:
        """What HeteroData has, of each type of vertices and of edges: rows of a type are in the order of the batch's,
        so the targets come first, and then hop by hop."""
        types, m, take = self._types, self._moved, self._arrays.take
        ids, (source, target) = np.asarray(arrays["vertex"]), np.asarray(arrays["edge_index"])
        kind = np.searchsorted(types.first, ids, "right") - 1
        row = np.empty(len(ids), np.int64)  # of a batch's row, among those of its type
        parts: dict[Any, dict[str, Any]] = {}
        for k, name in enumerate(types.names):
            rows = np.flatnonzero(kind == k)
            row[rows] = np.arange(len(rows))
            parts[name] = values = {"n_id": m(self._as_ours(ids[rows] - types.first[k]))}
            if "features" in arrays:
                places = types.columns_by_type[k] if self._rows is None else {"x": slice(None)}
                values |= {each: m(take(arrays["features"][:, place], rows)) for each, place in places.items()}
            if k == types.labelled and "classes" in arrays:
                values["y"] = m(take(arrays["classes"], rows))
            if k == types.labelled and self._masks:
                split = take(arrays["split"], rows)
                values |= {each: m(split == number) for each, number in self._masks.items()}
            size = int(np.searchsorted(rows, shape["targets"]))
            if self._pairs is None and size > 0:
                values["batch_size"] = size
                values["input_id"] = m(self._input_id(ids[rows[:size]], types.first[k]))
            if shape["hops"]:
                values["num_sampled_nodes"] = np.diff(np.searchsorted(rows, ends)).tolist()
        kinds = np.asarray(arrays["edge_type"])
        for k, edge in enumerate(types.relations):
            some = np.flatnonzero(kinds == k)
            of_edge = row[source[some]], row[target[some]]
            parts[edge] = values = {"edge_index": m(self._as_ours(np.stack(of_edge)))}
            if self._edge_ids is not None:
                first = types.first[list(types.ends[k])]
                numbers = self._edge_ids(k, ids[source[some]] - first[0], ids[target[some]] - first[1])
                values["e_id"] = m(self._as_ours(numbers))
            if "edge_weight" in arrays:
                values["edge_weight"] = m(take(arrays["edge_weight"], some))
            if "edge_features" in arrays:
                values |= {each: m(take(arrays["edge_features"][:, place], some))
                           for each, place in types.edge_columns.items()}
            if shape["hops"]:
                at = np.searchsorted(target[some], [0, *ends[1:]])
                values["num_sampled_edges"] = np.diff(at).tolist()[:shape["hops"]]
        if self._pairs is not None:
            relation = self._pairs.relation
            of = {"src_index": relation[0], "dst_pos_index": relation[2], "dst_neg_index": relation[2]}
            for name, value in self._pairs.named(pairs, shape).items():
                if name.endswith("_index"):
                    value = self._as_ours(row[np.asarray(value)])
                parts[of.get(name, relation)][name] = m(value)
        return parts

    def _in_columns(self, arrays: dict[str, Any], name: str, places: dict[str, slice]) -> dict[str, Any]:
        if name not in arrays:
            return {}
        whole = self._moved(arrays[name])
        return {each: whole if len(places) == 1 else whole[:, place] for each, place in places.items()}

    def _input_id(self, ids: NDArray[np.int64], first: Any) -> Any:
        """Places in the list that was given, or ids, from the first of their type on."""
        if self._position is not None:
            ids, first = self._position[1][np.searchsorted(self._position[0], ids)], 0
        return self._as_ours(ids - first)

    def _as_ours(self, values: NDArray[Any]) -> Any:
        """numpy's, as arrays of a batch are."""
        if self._arrays._torch is None:
            return values
        tensor = self._arrays._torch.from_numpy(values)
        return tensor.pin_memory() if self._arrays._pin else tensor

    def _moved(self, values: Any) -> Any:
        return values if self._device is None else values.to(self._device, non_blocking=True)


def _hetero(data: Any, parts: dict[Any, dict[str, Any]]) -> Any:
    """A HeteroData, filled."""
    for kind, values in parts.items():
        store = data[kind]
        for name, value in values.items():
            store[name] = value
    return data


class NeighborLoader(_Loader):
    """Batches as ``torch_geometric.loader.NeighborLoader`` draws them. `num_neighbors`: in-edges of each vertex, hop by
    hop; -1: all; of a store with types of vertices also a dict of such lists, one for each type of edges, 0: none.
    `input_nodes`: "train", "valid", "test", None (all vertices), a mask, or ids; without `shuffle` they come in the
    order of the store, which reads least. Options: ``replace``, ``weighted`` (an edge as likely as its weight),
    ``by_type``, ``seed``, ``threads``, and ``host_memory``, what the loader may take ("8G").

    `store` is a :class:`gnnstream.Store` or its folder, `batch_size` a number of vertices, `transform` a function of
    each batch whose result is yielded, `device` where tensors go, `pin_memory` whether they are pinned on the way,
    `drop_last` whether the last batch is left out where it is smaller than the others. With `edge_ids` batches have
    ``e_id``, int64 [edges]: which edge, counted by destination, then source, as :class:`gnnstream.pyg.GraphStore` gives
    them; this takes 8 bytes an edge beside ``host_memory``.

    Of a store with types of vertices a batch is a HeteroData (without torch_geometric a :class:`Batch` with its
    attributes): rows, ids, labels and edges by type, numbers of neighbours for each type of edges (`by_type` unless it
    is said), `input_nodes` also ``"paper"`` or ``("paper", mask or ids within the type)``. Features with names of their
    own are attributes beside ``x``, or ``edge_attr``. BudgetError says what memory would do, OptionError which id is
    none, ValueError which type is none.

    >>> from gnnstream.loaders import NeighborLoader
    >>> loader = NeighborLoader(store, num_neighbors=[5, 5], batch_size=16, input_nodes="train", shuffle=True, seed=1)
    >>> for batch in loader:
    ...     assert (np.asarray(batch.x) == x[np.asarray(batch.n_id)]).all()
    >>> len(loader), loader.state_dict()
    (3, {'epoch': 2, 'batch': 0})
    >>> loader.load_state_dict({"epoch": 1, "batch": 2})
    >>> sum(1 for batch in loader)
    1
    >>> loader.set_epoch(1)
    >>> loader.close()
    """

    def __init__(self, store: Union[Store, PathLike], num_neighbors: Any, *, batch_size: int = 1024,
                 input_nodes: Any = None, shuffle: bool = False, transform: Optional[Callable[[Any], Any]] = None,
                 device: Any = None, pin_memory: bool = False, edge_ids: bool = False, drop_last: bool = False,
                 **options: Unpack[LoaderOptions]) -> None:
        super().__init__(store, "neighbor", input_nodes, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size), "fanout": num_neighbors,
                          "shuffle": "always" if shuffle else "never"},
                         "NeighborLoader()", edge_ids, drop_last=drop_last)


class LinkNeighborLoader(_Loader):
    """Batches as ``torch_geometric.loader.LinkNeighborLoader`` makes them: ``batch_size`` pairs, and neighbours drawn
    of their ends as :class:`NeighborLoader` draws them. `edge_label_index` [2, pairs]: ids of vertices in the input;
    None: all edges, which takes 16 bytes each. Without `shuffle` they come in this order. `edge_label`: [pairs, ...]
    any numbers of theirs. `neg_sampling`: None, "binary" or "triplet", with an amount ``("binary", 2.0)``, a dict, or
    torch_geometric's NegativeSampling without weights. `neg_sampling_ratio`: "binary" of that amount. With `leave_out`
    a batch does without the edges that are its pairs, in a symmetric store either way, so that no message says what is
    asked; without it they stay, as there.

    A batch has ``input_id``, which of the pairs it has; ``edge_label_index``, rows of the batch; and ``edge_label``,
    where there is one: with "binary" random pairs are behind the given ones, with 0 for a label, and labels that begin
    at 0 are 1 more. With "triplet" it has ``src_index``, ``dst_pos_index`` and ``dst_neg_index``.

    Other arguments as of :class:`NeighborLoader`: `store`, `num_neighbors`, `transform`, `device`, `pin_memory`,
    `edge_ids`, `drop_last`. Of a store with types of vertices `edge_label_index` is (type of edges, ids within the
    types), or the type alone for all of its edges; random vertices are of the types of its ends; and a batch has all
    this by that type, ``src_index`` by that of the sources, ``dst_pos_index`` and ``dst_neg_index`` by the other's.
    ValueError and TypeError say which argument has which shape, OptionError which id is none.

    >>> from gnnstream.loaders import LinkNeighborLoader
    >>> batch = next(iter(LinkNeighborLoader(store, [4], edge_label_index=edges[:, :50], neg_sampling="binary",
    ...                                      batch_size=10)))
    >>> np.asarray(batch.edge_label).tolist() == [1] * 10 + [0] * 10, tuple(batch.edge_label_index.shape)
    (True, (2, 20))
    """

    def __init__(self, store: Union[Store, PathLike], num_neighbors: Any, *, edge_label_index: Any = None,
                 edge_label: Any = None, neg_sampling: Any = None, neg_sampling_ratio: Optional[float] = None,
                 leave_out: bool = False, batch_size: int = 1024, shuffle: bool = False,
                 transform: Optional[Callable[[Any], Any]] = None, device: Any = None, pin_memory: bool = False,
                 edge_ids: bool = False, drop_last: bool = False, **options: Unpack[LoaderOptions]) -> None:
        if neg_sampling_ratio:
            neg_sampling = "binary", neg_sampling_ratio
        super().__init__(store, "neighbor", None, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size), "fanout": num_neighbors,
                          "shuffle": "always" if shuffle else "never"},
                         "LinkNeighborLoader()", edge_ids, lambda types, of:
                         Pairs(edge_label_index, edge_label, neg_sampling, leave_out, types, of), drop_last)


class ClusterLoader(_Loader):
    """Batches of ``batch_size`` intervals of the store with all edges among them, as ClusterLoader makes them.

    `input_nodes`, `transform`, `device`, `pin_memory` and `edge_ids` as of :class:`NeighborLoader`, `store`, too; with
    `shuffle` other intervals are together in each epoch.

    >>> from gnnstream.loaders import ClusterLoader
    >>> [len(batch.n_id) for batch in ClusterLoader(store, batch_size=2, shuffle=True)]
    [100]
    """

    def __init__(self, store: Union[Store, PathLike], *, batch_size: int = 1, shuffle: bool = False,
                 input_nodes: Any = None, transform: Optional[Callable[[Any], Any]] = None, device: Any = None,
                 pin_memory: bool = False, edge_ids: bool = False, **options: Unpack[LoaderOptions]) -> None:
        super().__init__(store, "cluster", input_nodes, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size),
                          "shuffle": "always" if shuffle else "never"}, "ClusterLoader()", edge_ids)


class SaintLoader(_Loader):
    """GraphSAINT's subgraphs, of ``batch_size`` vertices, edges or walks: `sampler` is "node", "edge" or "walk", with
    ``walk_length``; ``coverage`` as in ``gnnstream train``.

    `store`, `input_nodes`, `transform`, `device`, `pin_memory` and `edge_ids` as of :class:`NeighborLoader`.

    >>> from gnnstream.loaders import SaintLoader
    >>> batch = next(iter(SaintLoader(store, "walk", batch_size=10, walk_length=2, seed=1)))
    >>> len(batch.n_id) <= 30, batch.x.shape[1]
    (True, 8)
    """

    def __init__(self, store: Union[Store, PathLike], sampler: str, *, batch_size: int = 1024, input_nodes: Any = None,
                 transform: Optional[Callable[[Any], Any]] = None, device: Any = None, pin_memory: bool = False,
                 edge_ids: bool = False, **options: Unpack[LoaderOptions]) -> None:
        if sampler not in ("node", "edge", "walk"):
            raise ValueError(f"sampler: {sampler!r}; must be node, edge or walk")
        super().__init__(store, "saint-" + sampler, input_nodes, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size)}, "SaintLoader()", edge_ids)


def to_blocks(batch: Any) -> tuple[Any, Any, list[Any]]:
    """A batch of :class:`NeighborLoader` or :class:`LinkNeighborLoader` as DGL's DataLoader gives one: (input_nodes,
    output_nodes, blocks), where the nodes are ids in the input, int64 [sources of blocks[0]] and [destinations of
    blocks[-1]]. There is a block a hop: blocks[k] of a model's layer k, whose destinations are the first of its
    sources. All have srcdata and dstdata ``dgl.NID``, edata "weight" [edges], "etype" [edges] and "feat" [edges,
    columns] where the store has these; blocks[0] has srcdata "feat", blocks[-1] dstdata "label".

    A vertex' in-edges are drawn once, in the hop that reaches it first, and are in all blocks from there on, where DGL
    draws them for each anew. Of a store with types of vertices blocks have these types, nodes are a dict by type, and
    data is that of ``srcnodes["paper"]``, ``dstnodes["paper"]`` and ``edges["author", "writes", "paper"]``. As a
    transform: ``NeighborLoader(store, [15, 10], transform=to_blocks)``. Needs dgl with its backend of PyTorch;
    ValueError: the batch is of a loader that has no hops.

    >>> import dgl
    >>> from gnnstream.loaders import NeighborLoader, to_blocks
    >>> sources, targets, blocks = next(iter(NeighborLoader(store, [5, 5], batch_size=16, transform=to_blocks)))
    >>> len(targets), len(blocks), blocks[0].num_src_nodes() == len(sources)
    (16, 2, True)
    """
    import dgl

    typed = getattr(batch, "num_sampled_nodes_dict", {})
    parts = {kind: batch[kind] for kind in typed}
    edges = {kind: batch[kind] for kind in getattr(batch, "num_sampled_edges_dict", {})}
    if not typed and getattr(batch, "num_sampled_nodes", None) is not None:
        parts, edges = {"_N": batch}, {("_N", "_E", "_N"): batch}
    if not parts:
        raise ValueError("batch: has no hops, which blocks are made of: those of NeighborLoader and LinkNeighborLoader "
                         "have; of others make a dgl.graph(tuple(batch.edge_index))")
    rows = {kind: np.cumsum(part.num_sampled_nodes).tolist() for kind, part in parts.items()}
    drawn = {kind: np.cumsum(part.num_sampled_edges).tolist() for kind, part in edges.items()}
    named = {"weight": "edge_weight", "etype": "edge_type", "feat": "edge_attr"}
    blocks = []
    for hop in range(len(next(iter(rows.values()))) - 2, -1, -1):
        ends: Any = {kind: tuple(end[:drawn[kind][hop]] for end in part.edge_index) for kind, part in edges.items()}
        counts: list[Any] = [{kind: rows[kind][h] for kind in parts} for h in (hop + 1, hop)]
        if not typed:
            ends, counts = next(iter(ends.values())), [count["_N"] for count in counts]
        block = dgl.create_block(ends, num_src_nodes=counts[0], num_dst_nodes=counts[1])
        for kind, part in parts.items():
            sides = (block.srcnodes[kind].data, block.dstnodes[kind].data) if typed else (block.srcdata, block.dstdata)
            for data, h in zip(sides, (hop + 1, hop)):
                data[dgl.NID] = part.n_id[:rows[kind][h]]
        for kind, part in edges.items():
            data = block.edges[kind].data if typed else block.edata
            for name, ours in named.items():
                if getattr(part, ours, None) is not None:
                    data[name] = getattr(part, ours)[:drawn[kind][hop]]
        blocks.append(block)
    for kind, part in parts.items():
        if getattr(part, "x", None) is not None:
            (blocks[0].srcnodes[kind].data if typed else blocks[0].srcdata)["feat"] = part.x
        if getattr(part, "y", None) is not None:
            (blocks[-1].dstnodes[kind].data if typed else blocks[-1].dstdata)["label"] = part.y[:rows[kind][0]]
    of = {kind: (part.n_id, part.n_id[:rows[kind][0]]) for kind, part in parts.items()}
    if not typed:
        return (*of["_N"], blocks)
    return {kind: ids[0] for kind, ids in of.items()}, {kind: ids[1] for kind, ids in of.items()}, blocks


def infer(store: Union[Store, PathLike], layers: Sequence[Callable[[Any], Any]], *, batch_size: int = 4096,
          folder: Optional[PathLike] = None, **options: Any) -> Any:
    """What layers give for all vertices, float32 [vertices, width] in the order of the input: exact, layer by layer,
    with all in-edges of each vertex. A layer is a function of a batch, of whose result the first ``batch.batch_size``
    rows count::

        with torch.no_grad():
            logits = infer("papers", [lambda b: conv1(b.x, b.edge_index).relu(), lambda b: conv2(b.x, b.edge_index)])

    Rows between layers stand in a file in `folder` (None: the store), which no memory need hold. Options of
    :class:`NeighborLoader` that choose no vertices and no edges: ``host_memory``, ``threads``, ``device``,
    ``pin_memory``.

    Of a store with types of vertices a layer gives a dict by type, all of the same width, whose first
    ``batch[kind].batch_size`` rows count (types that it leaves out have rows of 0 in the next layer's ``x_dict``), and
    the result is such a dict: float32 [vertices of the type, width], of the types that the last layer gave.

    `store` and `batch_size` as of :class:`NeighborLoader`. ValueError: a layer's result is not of that shape.

    >>> from gnnstream.loaders import infer
    >>> same = infer(store, [lambda batch: batch.x])
    >>> same.dtype, bool((same == x).all())
    (dtype('float32'), True)
    """
    if not layers:
        raise ValueError("layers: none given")
    given = check(options, ("host_memory", "threads", "device", "pin_memory"), "infer()")
    with NeighborLoader(store, [-1], batch_size=batch_size, **given) as loader:
        source, place = None, path(folder) if folder is not None else loader._store
        for layer in layers:
            loader._rows = None if source is None else _rows_of(source)
            source, ids, kinds = _through(layer, loader, place)
    out = np.empty_like(source, subok=False)
    out[ids] = source
    types = loader._types
    if not types.names:
        return out
    return {name: out[first:first + count] for name, first, count in zip(types.names, types.first, types.count)
            if name in kinds}


def _rows_of(source: NDArray[np.float32]) -> Callable[[Any], Any]:
    torch = _found("torch")

    def rows(row: Any) -> Any:
        found = source[np.asarray(row)]
        return found if torch is None else torch.from_numpy(found)
    return rows


def _checked(made: Any, rows: int, width: Optional[int]) -> NDArray[Any]:
    found = array(made, "a layer's result", "f")
    if found.ndim != 2 or len(found) < rows or width not in (None, found.shape[1]):
        wide = "width" if width is None else width
        raise ValueError(f"a layer's result: has the shape {list(found.shape)}; must be [{rows} or more, {wide}]")
    return found[:rows]


def _through(layer: Callable[[Any], Any], loader: NeighborLoader,
             folder: str) -> tuple[Any, NDArray[np.int64], set[str]]:
    """What a layer gives for each row of the store, in a file that is gone with the array; their ids; and, where
    vertices have types, those that it gives rows of."""
    vertices, types = loader._vertices, loader._types
    ids, out, at, given = np.empty(vertices, np.int64), None, 0, set()
    for batch in loader:
        targets, made = loader._targets, layer(batch)
        of = np.searchsorted(types.first, targets, "right") - 1 if types.names else np.zeros(len(targets), np.int64)
        parts = made if types.names else {None: made}
        if not isinstance(parts, dict):
            raise TypeError("a layer's result: must be a dict by type of vertices, as batch.x_dict is")
        for kind, some in parts.items():
            k = 0 if kind is None else types.number(kind, "a layer's result")
            mine = np.flatnonzero(of == k)
            found = _checked(some, len(mine), None if out is None else out.shape[1])
            if out is None:
                with tempfile.TemporaryFile(dir=folder) as file:
                    out = np.memmap(file, np.float32, "w+", shape=(vertices, found.shape[1]))
            out[at + mine] = found
            given.add(kind)
        ids[at:at + len(targets)] = targets
        at += len(targets)
    if out is None:
        raise ValueError("a layer's result: has no rows of any type")
    return out, ids, given
