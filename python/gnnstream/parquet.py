"""Stores of graphs in Parquet files, read by pyarrow (an optional dependency: pip install gnnstream[parquet])."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from ._options import PathLike, Progress, Warn, path
from ._types import ParquetOptions
from .graphs import files_of, make
from .store import Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["from_parquet"]

SPLITS = ("train", "valid", "test")


class Options(ParquetOptions, total=False):
    """Of :func:`from_parquet`, whose `split` is the name of a column."""

    progress: Optional[Progress]
    warn: Optional[Warn]


def _open(source: PathLike) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("from_parquet() reads by pyarrow: pip install pyarrow") from error
    return pyarrow.parquet.ParquetFile(path(source))


def _need(file: Any, source: PathLike, names: Iterable[str]) -> None:
    for name in names:
        if name not in file.schema_arrow.names:
            raise ValueError(f"{path(source)}: has no column {name!r}; its columns are "
                             f"{', '.join(file.schema_arrow.names)}")


def _numbers(column: Any, name: str, source: PathLike) -> NDArray[Any]:
    """A column of a batch as [rows] or, of lists, [rows, length]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise ValueError(f"{path(source)}: column {name!r} has empty values")
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        values = column.flatten().to_numpy(zero_copy_only=False)
        if len(pc.unique(pc.list_value_length(column))) > 1:
            raise ValueError(f"{path(source)}: column {name!r} has lists of different lengths")
        lists: NDArray[Any] = values.reshape(len(column), -1)
        return lists
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _edges_as_text(file: Any, source: PathLike, names: dict[str, str], raw: str) -> str:
    """Columns as CSV, whose ids may be any words: the engine numbers them."""
    import pyarrow as pa
    import pyarrow.csv

    batches = file.iter_batches(columns=list(names.values()))
    target = os.path.join(raw, "edges.csv")
    schema = pa.schema([(key, file.schema_arrow.field(name).type) for key, name in names.items()])
    with pyarrow.csv.CSVWriter(target, schema) as out:
        for batch in batches:
            out.write_batch(pa.RecordBatch.from_arrays([batch.column(name) for name in names.values()], schema=schema))
    return target


def _edges_as_arrays(file: Any, source: PathLike, names: dict[str, str], raw: str) -> None:
    count = file.metadata.num_rows
    files = {"weight": "edge_weights", "type": "edge_types"}
    pairs = np.lib.format.open_memmap(os.path.join(raw, "edges.npy"), "w+", np.int64, (count, 2))
    others = {key: np.lib.format.open_memmap(os.path.join(raw, files[key] + ".npy"), "w+",
                                             np.float32 if key == "weight" else np.int64, (count,))
              for key in names if key in files}
    at = 0
    for batch in file.iter_batches(columns=list(names.values())):
        rows = slice(at, at + batch.num_rows)
        for k, key in enumerate(("src", "dst")):
            ids = _numbers(batch.column(names[key]), names[key], source)
            if ids.dtype.kind not in "iu":
                raise TypeError(f"{path(source)}: column {names[key]!r} is of type {ids.dtype}; beside a file of "
                                "vertices, edges name its rows, by whole numbers from 0")
            pairs[rows, k] = ids
        for key, array in others.items():
            array[rows] = _numbers(batch.column(names[key]), names[key], source)
        at += batch.num_rows


def _vertices(source: PathLike, features: Union[str, Sequence[str]], label: Optional[str], split: Optional[str],
              raw: str) -> None:
    file = _open(source)
    columns = [features] if isinstance(features, str) else list(features)
    _need(file, source, [*columns, *([label] if label else []), *([split] if split else [])])
    count, at, rows = file.metadata.num_rows, 0, None
    labels = np.lib.format.open_memmap(os.path.join(raw, "labels.npy"), "w+", np.float64, (count,)) if label else None
    splits: dict[str, list[NDArray[np.int64]]] = {name: [] for name in SPLITS}
    for batch in file.iter_batches():
        part = slice(at, at + batch.num_rows)
        if columns:
            values = np.column_stack([_numbers(batch.column(c), c, source) for c in columns])
            if rows is None:
                rows = np.lib.format.open_memmap(os.path.join(raw, "features.npy"), "w+", np.float32,
                                                 (count, values.shape[1]))
            rows[part] = values
        if labels is not None:
            labels[part] = batch.column(label).cast("float64").fill_null(np.nan).to_numpy(zero_copy_only=False)
        if split:
            which = batch.column(split).cast("string").to_pylist()
            for name in SPLITS:
                splits[name].append(at + np.flatnonzero([w == name for w in which]))
        at += batch.num_rows
    for name in SPLITS if split else ():
        np.save(os.path.join(raw, name + "_idx.npy"), np.concatenate([np.empty(0, np.int64), *splits[name]]))


def from_parquet(store: Union[PathLike, Store], edges: PathLike, vertices: Optional[PathLike] = None, *,
                 source: str = "src", target: str = "dst", weight: Optional[str] = None,
                 edge_type: Optional[str] = None, features: Union[str, Sequence[str]] = (),
                 label: Optional[str] = None, split: Optional[str] = None, **options: Unpack[Options]) -> Store:
    """Makes a :class:`Store` of Parquet files, a batch of rows at a time.

    edges      a file with a row an edge: its columns `source` and `target`, and `weight` and `edge_type` where they
               are named. Without `vertices` ids may be any words or numbers, which the store then keeps.
    vertices   a file with a row a vertex, row k being vertex k: `features`, names of columns or of one column of
               lists, `label`, and `split`, a column of "train", "valid", "test" or anything else

    Further options: as :func:`partition`. What is read is written beside the store first (and removed).

    `store` is the folder that is made. ImportError: pyarrow is not installed; ValueError names a column that is
    missing.

    >>> import pyarrow, pyarrow.parquet
    >>> pyarrow.parquet.write_table(pyarrow.table({"src": edges[0], "dst": edges[1]}), "edges.parquet")
    >>> gs.from_parquet("of_parquet", "edges.parquet", parts=2).edges
    600
    """
    file = _open(edges)
    columns = {"src": source, "dst": target, "weight": weight, "type": edge_type}
    names = {key: name for key, name in columns.items() if name is not None}
    _need(file, edges, names.values())
    nodes = path(vertices) if vertices is not None else ""
    words = {name: path(edges) for name in ("edges", "edge_weights", "edge_types")}
    words.update({name: nodes for name in ("features", "labels", *(f"{each}_idx" for each in SPLITS))})
    with files_of(store, words) as raw:
        if vertices is None:
            return make(_edges_as_text(file, edges, names, raw), store, words, options)
        _edges_as_arrays(file, edges, names, raw)
        _vertices(vertices, features, label, split, raw)
        return make(raw, store, words, options)
