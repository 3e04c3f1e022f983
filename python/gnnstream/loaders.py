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

import importlib
import operator
import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._arrays import array
from ._options import PathLike, Report, check, path, size
from ._types import LoaderFields, LoaderOptions
from .store import Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Batch", "ClusterLoader", "LinkNeighborLoader", "LoaderReport", "NeighborLoader", "SaintLoader", "infer",
           "to_blocks"]

_SPLITS = {None: 0, "all": 0, "train": 1, "valid": 2, "val": 2, "test": 3}
_LISTED = 4
_WRONG = {"": 0, "binary": 1, "triplet": 2}
#: Arguments of PyG's LinkNeighborLoader about times, and about a graph for each pair.
_TIMES = ("disjoint", "edge_label_time", "time_attr", "temporal_strategy")
#: Arguments of PyTorch's DataLoader that say how batches are made by other processes, which nothing reads here.
_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context", "worker_init_fn")


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
    them, ``num_sampled_nodes`` where it was drawn by hops; `values` are these.

    >>> from gnnstream.loaders import Batch
    >>> Batch(x=np.zeros((3, 8)), batch_size=2)
    Batch(x=[3, 8], batch_size=2)
    """

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

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

    def __call__(self, kind: str, *shape: int) -> Any:
        if self._torch is None:
            return np.empty(shape, kind)
        return self._torch.empty(shape, dtype=getattr(self._torch, kind), device="cpu", pin_memory=self._pin)


def _fanout(num_neighbors: Sequence[int]) -> str:
    hops = [operator.index(k) for k in num_neighbors]
    if not hops or min(hops) < -1 or 0 in hops:
        raise ValueError(f"num_neighbors: {hops}; must be numbers of edges from 1, one a hop; -1: all")
    return ",".join(str(max(k, 0)) for k in hops)  # 0 is the engine's word for all


class _Pairs:
    """Pairs of vertices that batches are of, and what random ones go with them."""

    def __init__(self, index: Any, label: Any, negative: Any, leave_out: bool) -> None:
        ends = array(index, "edge_label_index", "iu")
        if ends.ndim != 2 or len(ends) != 2:
            raise ValueError(f"edge_label_index: has the shape {list(ends.shape)}; must be [2, pairs]")
        self.ends = [np.ascontiguousarray(end, np.int64) for end in ends]
        self.leave_out = bool(leave_out)
        self.mode, self.amount = _negative(negative)
        self.label = None if label is None else array(label, "edge_label", "iufb")
        if self.label is not None and (self.label.ndim == 0 or len(self.label) != ends.shape[1]):
            raise ValueError(f"edge_label: has the shape {list(self.label.shape)}; must be [{ends.shape[1]}, ...]")
        if self.label is not None and self.mode == "triplet":
            raise ValueError("edge_label: goes with no neg_sampling, or with binary; of triplets leave it out")
        if self.mode == "binary" and self.label is not None and len(self.label) and self.label.min() == 0:
            self.label = self.label + 1  # 0 is of random pairs

    def arrays(self, new: _Arrays, shape: dict[str, Any]) -> dict[str, Any]:
        pairs, all_ = shape["pairs"], shape["pairs"] + shape["wrong"]
        if self.mode == "triplet":
            return {"pair": new("int64", pairs), "pair_source": new("int64", pairs),
                    "pair_destination": new("int64", all_)}
        both = new("int64", 2, all_)
        return {"pair": new("int64", pairs), "pair_source": both[0], "pair_destination": both[1], "both": both}

    def named(self, ends: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
        """What arrays() made, filled, by the names of torch_geometric."""
        pairs, wrong, pair = shape["pairs"], shape["wrong"], ends["pair"]
        if self.mode == "triplet":
            destination = ends["pair_destination"]
            negative = destination[pairs:].reshape(pairs, -1)
            return {"input_id": pair, "src_index": ends["pair_source"], "dst_pos_index": destination[:pairs],
                    "dst_neg_index": negative[:, 0] if negative.shape[1] == 1 else negative}
        named = {"input_id": pair, "edge_label_index": ends["both"]}
        label = None if self.label is None else self.label[np.asarray(pair)]
        if self.mode == "binary":
            label = np.ones(pairs, np.float32) if label is None else label
            label = np.concatenate([label, np.zeros((wrong, *label.shape[1:]), label.dtype)])
        if label is not None:
            named["edge_label"] = label if isinstance(pair, np.ndarray) else _found("torch").from_numpy(label)
        return named


def _negative(given: Any) -> tuple[str, float]:
    """Mode and amount, as torch_geometric's NegativeSampling.cast() reads them."""
    if given is None:
        return "", 0.0
    if hasattr(given, "amount"):
        given = {"mode": getattr(given.mode, "value", given.mode), "amount": given.amount,
                 "src_weight": given.src_weight, "dst_weight": given.dst_weight}
    elif isinstance(given, str):
        given = {"mode": given}
    elif isinstance(given, tuple):
        given = dict(zip(("mode", "amount"), given))
    mode, amount = given.get("mode"), float(given.get("amount", 1))
    if mode not in ("binary", "triplet"):
        raise ValueError(f"neg_sampling: {mode!r}; must be binary or triplet")
    if given.get("src_weight") is not None or given.get("dst_weight") is not None:
        raise ValueError("neg_sampling: random vertices are all as likely here; leave src_weight and dst_weight out")
    if not amount > 0 or (mode == "triplet" and amount != int(amount)):
        raise ValueError(f"neg_sampling: {amount:g} of each pair; must be above 0, of triplets a whole number")
    return mode, amount


class _Loader:
    """What all loaders are. `transform` gets each batch and gives what is yielded; `device` is where its tensors
    go."""

    def __init__(self, store: Union[Store, PathLike], sampler: str, seeds: Any,
                 transform: Optional[Callable[[Any], Any]], device: Any, pin_memory: bool, given: dict[str, Any],
                 what: str, pairs: Optional[_Pairs] = None) -> None:
        for name in _WORKERS:
            if given.pop(name, None):
                warnings.warn(f"{name}: batches are made by the engine's own threads; nothing reads this",
                              stacklevel=3)
        options = check(given, [*LoaderOptions.__annotations__, "batch_size", "fanout", "shuffle"], what)
        split, ids = self._seeds(seeds) if pairs is None else (_LISTED, pairs.ends[0])
        self._arrays = _Arrays(pin_memory)
        self._rows: Optional[Callable[[Any], Any]] = None  # of rows of the store: what stands for their features
        self._transform, self._device = transform, device
        if device is not None and self._arrays._torch is None:
            raise TypeError("device: is torch's, which is not installed")
        summary = store if isinstance(store, Store) else Store(store)
        self._store, self._vertices = path(summary.path), summary.vertices
        self._given = {**options, "sampler": sampler}, split, ids
        self._pairs = pairs
        self._epoch, self._next, self._resumed = 1, 0, False
        self._open()

    def _open(self) -> None:
        options, split, ids = self._given
        self._process = os.getpid()
        p = self._pairs
        self._engine = _engine.Loader(self._store, options, split, ids) if p is None else \
            _engine.Loader(self._store, options, split, ids, p.ends[1], _WRONG[p.mode], p.amount, p.leave_out)
        self._report = LoaderReport(**self._engine.inspect())
        self._turn = 0

    @staticmethod
    def _seeds(seeds: Any) -> tuple[int, Optional[NDArray[np.int64]]]:
        if seeds is None or isinstance(seeds, str):
            if seeds not in _SPLITS:
                raise ValueError(f"input_nodes: {seeds!r}; must be train, valid, test, a mask, or ids of vertices")
            return _SPLITS[seeds], None
        given = array(seeds, "input_nodes", "iub")
        if given.ndim != 1:
            raise ValueError(f"input_nodes: has the shape {list(given.shape)}; must have one dimension")
        ids = np.flatnonzero(given) if given.dtype.kind == "b" else given
        return _LISTED, np.ascontiguousarray(ids, np.int64)

    # ---- what it is

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, {len(self)} batches)"

    def __len__(self) -> int:
        return self._report.batches

    @property
    def report(self) -> LoaderReport:
        """The :class:`LoaderReport`."""
        return self._report

    def close(self) -> None:
        """Gives memory and files back. A loader that is no longer referred to does so by itself."""
        self._engine.close()

    def __enter__(self) -> _Loader:
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
        if self._next > 0 and not self._resumed:  # a pass that was left
            self._epoch, self._next = self._epoch + 1, 0
        self._resumed = False
        self._turn += 1
        turn = self._turn
        self._engine.begin(self._epoch, self._next)
        while True:
            if turn != self._turn:
                raise RuntimeError("the loader has begun another pass; one loader makes one at a time")
            shape = self._engine.next()
            if shape is None:
                break
            batch = self._made(shape)
            self._next = shape["number"] + 1
            yield batch
        self._epoch, self._next = self._epoch + 1, 0

    def _made(self, shape: dict[str, Any]) -> Any:
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
        pairs = {} if self._pairs is None else self._pairs.arrays(new, shape)
        self._engine.fill(**arrays, **{name: pairs[name] for name in pairs if name != "both"})
        names = {"vertex": "n_id", "features": "x", "edge_features": "edge_attr", "classes": "y", "labels": "y"}
        if self._rows is not None:
            arrays["features"] = self._rows(arrays.pop("row"))
        if self._pairs is not None:
            arrays |= self._pairs.named(pairs, shape)
        values = {names.get(name, name): self._moved(value) for name, value in arrays.items()}
        if self._pairs is None:
            values["batch_size"] = shape["targets"]
            values["input_id"] = values["n_id"][:shape["targets"]]
        if shape["hops"]:
            ends = [0, *shape["hop_end"][:shape["hops"] + 1]]
            values["num_sampled_nodes"] = [b - a for a, b in zip(ends, ends[1:])]
        data = _found("torch_geometric.data")
        batch = Batch(**values) if data is None else data.Data(num_nodes=n, **values)
        return batch if self._transform is None else self._transform(batch)

    def _moved(self, values: Any) -> Any:
        return values if self._device is None else values.to(self._device, non_blocking=True)


class NeighborLoader(_Loader):
    """Batches as ``torch_geometric.loader.NeighborLoader`` draws them. `num_neighbors`: in-edges of each vertex, hop by
    hop; -1: all. `input_nodes`: "train", "valid", "test", None (all vertices), a mask, or ids; without `shuffle` they
    come in the order of the store, which reads least. Options: ``replace``, ``weighted`` (an edge as likely as its
    weight), ``by_type``, ``seed``, ``threads``, and ``host_memory``, what the loader may take ("8G").

    `store` is a :class:`gnnstream.Store` or its folder, `batch_size` a number of vertices, `transform` a function of
    each batch whose result is yielded, `device` where tensors go, `pin_memory` whether they are pinned on the way.
    BudgetError says what memory would do, OptionError which id is none.

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

    def __init__(self, store: Union[Store, PathLike], num_neighbors: Sequence[int], *, batch_size: int = 1024,
                 input_nodes: Any = None, shuffle: bool = False, transform: Optional[Callable[[Any], Any]] = None,
                 device: Any = None, pin_memory: bool = False, **options: Unpack[LoaderOptions]) -> None:
        super().__init__(store, "neighbor", input_nodes, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size), "fanout": _fanout(num_neighbors),
                          "shuffle": "always" if shuffle else "never"}, "NeighborLoader()")


class LinkNeighborLoader(_Loader):
    """Batches as ``torch_geometric.loader.LinkNeighborLoader`` makes them: ``batch_size`` pairs, and neighbours drawn of
    their ends as :class:`NeighborLoader` draws them. `edge_label_index` [2, pairs]: ids of vertices in the input;
    without `shuffle` they come in this order. `edge_label`: [pairs, ...] any numbers of theirs. `neg_sampling`: None,
    "binary" or "triplet", with an amount ``("binary", 2.0)``, a dict, or torch_geometric's NegativeSampling without
    weights. `neg_sampling_ratio`: "binary" of that amount. With `leave_out` a batch does without the edges that are
    its pairs, in a symmetric store either way, so that no message says what is asked; without it they stay, as there.

    A batch has ``input_id``, which of the pairs it has; ``edge_label_index``, rows of the batch; and ``edge_label``,
    where there is one: with "binary" random pairs are behind the given ones, with 0 for a label, and labels that begin
    at 0 are 1 more. With "triplet" it has ``src_index``, ``dst_pos_index`` and ``dst_neg_index``.

    Other arguments as of :class:`NeighborLoader`: `store`, `num_neighbors`, `transform`, `device`, `pin_memory`.
    ValueError and TypeError say which argument has which shape, OptionError which id is none.

    >>> from gnnstream.loaders import LinkNeighborLoader
    >>> batch = next(iter(LinkNeighborLoader(store, [4], edge_label_index=edges[:, :50], neg_sampling="binary",
    ...                                      batch_size=10)))
    >>> np.asarray(batch.edge_label).tolist() == [1] * 10 + [0] * 10, tuple(batch.edge_label_index.shape)
    (True, (2, 20))
    """

    def __init__(self, store: Union[Store, PathLike], num_neighbors: Sequence[int], *, edge_label_index: Any,
                 edge_label: Any = None, neg_sampling: Any = None, neg_sampling_ratio: Optional[float] = None,
                 leave_out: bool = False, batch_size: int = 1024, shuffle: bool = False,
                 transform: Optional[Callable[[Any], Any]] = None, device: Any = None, pin_memory: bool = False,
                 **options: Unpack[LoaderOptions]) -> None:
        given: dict[str, Any] = {**options}
        for name in _TIMES:
            if given.pop(name, None):
                raise TypeError(f"{name}: batches are one graph for all of their pairs, without times; leave it out")
        if neg_sampling_ratio:
            neg_sampling = "binary", neg_sampling_ratio
        pairs = _Pairs(edge_label_index, edge_label, neg_sampling, leave_out)
        super().__init__(store, "neighbor", None, transform, device, pin_memory,
                         {**given, "batch_size": operator.index(batch_size), "fanout": _fanout(num_neighbors),
                          "shuffle": "always" if shuffle else "never"}, "LinkNeighborLoader()", pairs)


class ClusterLoader(_Loader):
    """Batches of ``batch_size`` intervals of the store with all edges among them, as ClusterLoader makes them.

    `input_nodes`, `transform`, `device` and `pin_memory` as of :class:`NeighborLoader`, `store`, too; with `shuffle`
    other intervals are together in each epoch.

    >>> from gnnstream.loaders import ClusterLoader
    >>> [len(batch.n_id) for batch in ClusterLoader(store, batch_size=2, shuffle=True)]
    [100]
    """

    def __init__(self, store: Union[Store, PathLike], *, batch_size: int = 1, shuffle: bool = False,
                 input_nodes: Any = None, transform: Optional[Callable[[Any], Any]] = None, device: Any = None,
                 pin_memory: bool = False, **options: Unpack[LoaderOptions]) -> None:
        super().__init__(store, "cluster", input_nodes, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size),
                          "shuffle": "always" if shuffle else "never"}, "ClusterLoader()")


class SaintLoader(_Loader):
    """GraphSAINT's subgraphs, of ``batch_size`` vertices, edges or walks: `sampler` is "node", "edge" or "walk", with
    ``walk_length``; ``coverage`` as in ``gnnstream train``.

    `store`, `input_nodes`, `transform`, `device` and `pin_memory` as of :class:`NeighborLoader`.

    >>> from gnnstream.loaders import SaintLoader
    >>> batch = next(iter(SaintLoader(store, "walk", batch_size=10, walk_length=2, seed=1)))
    >>> len(batch.n_id) <= 30, batch.x.shape[1]
    (True, 8)
    """

    def __init__(self, store: Union[Store, PathLike], sampler: str, *, batch_size: int = 1024, input_nodes: Any = None,
                 transform: Optional[Callable[[Any], Any]] = None, device: Any = None, pin_memory: bool = False,
                 **options: Unpack[LoaderOptions]) -> None:
        if sampler not in ("node", "edge", "walk"):
            raise ValueError(f"sampler: {sampler!r}; must be node, edge or walk")
        super().__init__(store, "saint-" + sampler, input_nodes, transform, device, pin_memory,
                         {**options, "batch_size": operator.index(batch_size)}, "SaintLoader()")


def to_blocks(batch: Any) -> tuple[Any, Any, list[Any]]:
    """A batch of :class:`NeighborLoader` or :class:`LinkNeighborLoader` as DGL's DataLoader gives one: (input_nodes,
    output_nodes, blocks), where the nodes are ids in the input, int64 [sources of blocks[0]] and [destinations of
    blocks[-1]]. There is a block a hop: blocks[k] of a model's layer k, whose destinations are the first of its
    sources. All have srcdata and dstdata ``dgl.NID``, edata "weight" [edges], "etype" [edges] and "feat" [edges,
    columns] where the store has these; blocks[0] has srcdata "feat", blocks[-1] dstdata "label".

    A vertex' in-edges are drawn once, in the hop that reaches it first, and are in all blocks from there on, where DGL
    draws them for each anew. As a transform: ``NeighborLoader(store, [15, 10], transform=to_blocks)``. Needs dgl with
    its backend of PyTorch; ValueError: the batch is of a loader that has no hops.

    >>> import dgl
    >>> from gnnstream.loaders import NeighborLoader, to_blocks
    >>> sources, targets, blocks = next(iter(NeighborLoader(store, [5, 5], batch_size=16, transform=to_blocks)))
    >>> len(targets), len(blocks), blocks[0].num_src_nodes() == len(sources)
    (16, 2, True)
    """
    import dgl

    if getattr(batch, "num_sampled_nodes", None) is None:
        raise ValueError("batch: has no hops, which blocks are made of: those of NeighborLoader and LinkNeighborLoader "
                         "have; of others make a dgl.graph(tuple(batch.edge_index))")
    ends = np.cumsum(batch.num_sampled_nodes).tolist()
    source, destination = batch.edge_index
    edges = np.searchsorted(np.asarray(array(destination, "edge_index", "i")), ends)  # they are in its order
    named = {"weight": "edge_weight", "etype": "edge_type", "feat": "edge_attr"}
    blocks = []
    for hop in range(len(ends) - 2, -1, -1):
        rows, columns, some = ends[hop + 1], ends[hop], slice(int(edges[hop]))
        block = dgl.create_block((source[some], destination[some]), num_src_nodes=rows, num_dst_nodes=columns)
        block.srcdata[dgl.NID], block.dstdata[dgl.NID] = batch.n_id[:rows], batch.n_id[:columns]
        for name, ours in named.items():
            if getattr(batch, ours, None) is not None:
                block.edata[name] = getattr(batch, ours)[some]
        blocks.append(block)
    if getattr(batch, "x", None) is not None:
        blocks[0].srcdata["feat"] = batch.x
    if getattr(batch, "y", None) is not None:
        blocks[-1].dstdata["label"] = batch.y[:ends[0]]
    return batch.n_id, batch.n_id[:ends[0]], blocks


def infer(store: Union[Store, PathLike], layers: Sequence[Callable[[Any], Any]], *, batch_size: int = 4096,
          folder: Optional[PathLike] = None, **options: Any) -> NDArray[np.float32]:
    """What layers give for all vertices, float32 [vertices, width] in the order of the input: exact, layer by layer,
    with all in-edges of each vertex. A layer is a function of a batch, of whose result the first ``batch.batch_size``
    rows count::

        with torch.no_grad():
            logits = infer("papers", [lambda b: conv1(b.x, b.edge_index).relu(), lambda b: conv2(b.x, b.edge_index)])

    Rows between layers stand in a file in `folder` (None: the store), which no memory need hold. Options of
    :class:`NeighborLoader` that choose no vertices and no edges: ``host_memory``, ``threads``, ``device``,
    ``pin_memory``.

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
            source, ids = _through(layer, loader, place)
    out = np.empty_like(source, subok=False)
    out[ids] = source
    return out


def _rows_of(source: NDArray[np.float32]) -> Callable[[Any], Any]:
    torch = _found("torch")

    def rows(row: Any) -> Any:
        found = source[np.asarray(row)]
        return found if torch is None else torch.from_numpy(found)
    return rows


def _through(layer: Callable[[Any], Any], loader: NeighborLoader, folder: str) -> tuple[Any, NDArray[np.int64]]:
    """What a layer gives for each row of the store, in a file that is gone with the array; and their ids."""
    vertices = loader._vertices
    ids, out, at = np.empty(vertices, np.int64), None, 0
    for batch in loader:
        n = batch.batch_size
        made = array(layer(batch), "a layer's result", "f")
        if made.ndim != 2 or len(made) < n:
            raise ValueError(f"a layer's result: has the shape {list(made.shape)}; must be [{n} or more, width]")
        if out is None:
            with tempfile.TemporaryFile(dir=folder) as file:
                out = np.memmap(file, np.float32, "w+", shape=(vertices, made.shape[1]))
        out[at:at + n] = made[:n]
        ids[at:at + n] = array(batch.input_id, "input_id", "i")
        at += n
    return out, ids
