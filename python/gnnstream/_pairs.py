"""Pairs of vertices that a loader's batches are of, and what random ones go with them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._arrays import array
from ._options import path
from .store import Store

if TYPE_CHECKING:
    from .loaders import _Arrays, _Types


def _all_pairs(store: Store, types: _Types, relation: Any) -> NDArray[np.int64]:
    """All edges of a type, or of a store without types, by ids within the types of their ends."""
    k = -1 if relation is None else types.relation(relation, "edge_label_index")
    start = np.empty((store.vertices if relation is None else types.count[types.ends[k][1]]) + 1, np.int64)
    _engine.in_edges(path(store.path), k, start, None)
    ends = np.empty((2, int(start[-1])), np.int64)
    _engine.in_edges(path(store.path), k, start, ends[0])
    ends[1] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return ends


class Pairs:
    """Pairs of vertices that batches are of, and what random ones go with them."""

    def __init__(self, index: Any, label: Any, negative: Any, leave_out: bool, types: _Types, store: Store) -> None:
        self.relation: Any = None  # of a store with types of vertices
        if isinstance(index, (tuple, list)) and len(index) == 2 and isinstance(index[0], (tuple, list)) and \
                index[0] and isinstance(index[0][0], str):
            self.relation, index = tuple(index[0]), index[1]
        elif isinstance(index, (tuple, list)) and len(index) == 3 and all(isinstance(word, str) for word in index):
            self.relation, index = tuple(index), None
        if types.names and self.relation is None:
            raise ValueError("edge_label_index: the store has types of vertices; give (type of edges, ids within the "
                             f"types), as ({types.relations[0]}, index)")
        if index is None:
            index = _all_pairs(store, types, self.relation)
        ends = array(index, "edge_label_index", "iu")
        if ends.ndim != 2 or len(ends) != 2:
            raise ValueError(f"edge_label_index: has the shape {list(ends.shape)}; must be [2, pairs]")
        if self.relation is not None:
            kinds = types.ends[types.relation(self.relation, "edge_label_index")]
            ends = np.stack([types.ids(end, kind, "edge_label_index") for end, kind in zip(ends, kinds)])
        self.ends = [np.ascontiguousarray(end, np.int64) for end in ends]
        self.leave_out = bool(leave_out)
        self.mode, self.amount = _negative(negative)
        self.wrong = {"": 0, "binary": 1, "triplet": 2}[self.mode]  # as gs_loader_wrong
        count = len(self.ends[0])
        self.label = None if label is None else array(label, "edge_label", "iufb")
        if self.label is not None and (self.label.ndim == 0 or len(self.label) != count):
            raise ValueError(f"edge_label: has the shape {list(self.label.shape)}; must be [{count}, ...]")
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
            named["edge_label"] = label if isinstance(pair, np.ndarray) else importlib.import_module("torch").from_numpy(label)
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
