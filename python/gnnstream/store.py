"""Stores: graphs as chunks on disk, made once."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _engine
from ._options import PathLike, Progress, Report, Warn, check, path, size, tell
from ._types import GenerateOptions, PartitionFields, PartitionOptions, StoreFields
from .errors import FormatError, OptionError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
    from typing_extensions import Unpack

__all__ = ["PartitionReport", "Store", "generate", "partition", "shard"]


class StoreOptions(PartitionOptions, total=False):
    """What functions that make stores pass on to :func:`partition`."""

    progress: Optional[Progress]
    warn: Optional[Warn]


class PartitionReport(Report, PartitionFields):
    """How a store was made: ``parts``, ``method``, ``cut_fraction``, ``seconds``, ``peak_bytes``, ...

    ``seconds`` and its parts are seconds, sizes bytes, ``cut_fraction`` of the edges, 0 to 1.

    >>> gs.generate("sbm", "small", vertices=100, edges=300, features=4, classes=2)
    >>> report = gs.partition("small", "small.gs", parts=2, method="random").report
    >>> report.parts, report.vertices, report.method
    (2, 100, 'random')
    """

    def __repr__(self) -> str:
        return f"PartitionReport({self.parts} parts by {self.method}, {self.seconds:.3g} s, {size(self.store_bytes)})"


class Store(StoreFields):
    """A store that :func:`partition` (or ``gnnstream partition``) made.

    What it holds are attributes: ``vertices``, ``edges``, ``features`` (columns), ``classes``, ``edge_types``,
    ``parts``, ``train``, ``valid`` and ``test`` (how many vertices), ``symmetric``, ``weights``, ``total_bytes``, ...

    Sizes are in bytes. Functions take a store by its folder, too.

    >>> again = gs.Store("store")
    >>> again
    Store('store': 100 vertices, 600 edges, 8 features)
    >>> again.classes, again.train, again.task, again.feature_type
    (3, 34, 'classify', 'f32')
    """

    #: How it was made, of the store that :func:`partition` gives.
    report: PartitionReport

    def __init__(self, folder: Union[PathLike, Store]) -> None:
        """Reads the manifest of `folder`. Raises NotFoundError (a FileNotFoundError), or FormatError of a damaged
        one."""
        self.path = path(folder)
        self.summary: dict[str, Any] = _engine.inspect(self.path)
        vars(self).update(self.summary)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Store({self.path!r}: {self.vertices:,} vertices, {self.edges:,} edges, {self.features} features)"

    def ids(self) -> Union[NDArray[numpy.uint64], list[str]]:
        """The ids that vertices had in the input, in the order of logits: numbers (numpy), or a list of names.

        uint64 [vertices], or [vertices] of str.

        >>> store.ids()[:3].tolist()
        [0, 1, 2]
        """
        import numpy

        if self.name_bytes == 0:
            return numpy.arange(self.vertices, dtype=numpy.uint64)
        names = self._names("names.bin", self.name_bytes)
        if all(n.isdecimal() and n.isascii() and (n == "0" or n[0] != "0") and int(n) < 1 << 64 for n in names):
            return numpy.array([int(n) for n in names], dtype=numpy.uint64)
        return names

    def edge_type_names(self) -> list[str]:
        """The words that types of edges were in the input, by number; of several types of vertices, the relations'.

        [edge_types] of str, or none where they were numbers.

        >>> store.edge_type_names()
        []
        """
        if self.edge_type_name_bytes == 0:
            types = _engine.inspect_types(self.path)
            return [relation["name"] for relation in types["relation"][:types["relations"]]]
        return self._names("edge_type_names.bin", self.edge_type_name_bytes)

    def _names(self, name: str, size: int) -> list[str]:
        """The lines of a file of names, of so many bytes."""
        with open(os.path.join(self.path, name), "rb") as file:
            text = file.read(size)
        if len(text) < size:
            raise FormatError(f"{os.path.join(self.path, name)}: has {len(text)} of {size} bytes; of shards, the first "
                              "has the names")
        return text.decode("utf-8", "surrogateescape").split("\n")[:-1]

    def verify(self, memory: int = 0) -> None:
        """Reads every byte and checks it; raises FormatError where one is damaged. `memory`: bytes for buffers.

        >>> store.verify(memory=1 << 26)
        """
        _engine.verify(self.path, memory)


def partition(source: PathLike, store: Union[PathLike, Store], *, progress: Optional[Progress] = None,
              warn: Optional[Warn] = None, **options: Unpack[PartitionOptions]) -> Store:
    """Makes a :class:`Store` in the folder `store` of the graph at `source`: a folder or file that
    ``gnnstream partition`` reads. For arrays in memory see :func:`gnnstream.from_arrays`.

    Options are those of ``gs_partition_options``: ``parts``, ``method``, ``memory`` ("256M" or bytes), ``undirected``,
    ``feature_type``, ``random_features``, ``seed``, ``split``, ``ids``, ``force``, ``format``, ``ranks`` and
    ``shards``. ``ranks=4`` orders the store for four ranks that will train: each has as many rows and edges (by method
    "metis" and "lp"). ``shards=4`` is for a program that ``mpirun -n 4`` starts: no store is made, but each process
    writes its own shard, ``store/0`` to ``store/3`` (a folder of arrays, method "lp", "random" or "natural"); in any
    other number of processes it is an OptionError, and :func:`shard` cuts a store that is there. `progress` is called
    with what is being done and how far it is (0 to 1), `warn` with lines about what was taken otherwise than it may
    have been meant (default: Python's warnings).

    Sizes are bytes, or texts as "256M". Errors: NotFoundError, FormatError (which file and line), ExistsError,
    BudgetError, OptionError.

    >>> gs.generate("rmat", "raw", vertices=200, edges=800, features=4, classes=3)
    >>> gs.partition("raw", "raw.gs", parts=4, method="random", memory="256M")
    Store('raw.gs': 200 vertices, 800 edges, 4 features)
    """
    given = check(options, _engine.partition_fields, "partition()")
    lines: list[str] = []  # warnings are of this thread, where the caller's line is known
    report = _engine.partition(path(source), path(store), given, progress, lines.append)
    tell(lines, warn)
    made = Store(store)
    made.report = PartitionReport(**report)
    return made


def generate(kind: str, folder: PathLike, *, progress: Optional[Progress] = None,
             **options: Unpack[GenerateOptions]) -> None:
    """Writes a random graph as a folder of .npy files. `kind`: "rmat", or "sbm" (planted classes, features that carry
    their signal). Options: ``vertices``, ``edges``, ``features``, ``classes``, ``seed``, ``force``.

    `folder` gets the files, `progress` is called as :func:`partition` calls it. ExistsError: there are files already.

    >>> gs.generate("sbm", "planted", vertices=90, edges=300, features=8, classes=3, seed=1)
    >>> np.load("planted/features.npy").shape, int(np.load("planted/labels.npy").max())
    ((90, 8), 2)
    """
    _engine.generate(kind, path(folder), check(options, _engine.generate_fields, "generate()"), progress)


def shard(store: Union[PathLike, Store], ranks: int, out: PathLike, *, force: bool = False,
          progress: Optional[Progress] = None) -> list[Store]:
    """Cuts a store into shards for so many ranks, `out`/0, `out`/1, ...: each has the edges and rows that one rank
    reads. A run under ``mpirun`` opens `out`, and each rank its own shard. Gives them, of which each says what the
    whole store has.

    `force` replaces shards that are there, `progress` is called as :func:`partition` calls it. Every byte is checked on
    the way. OptionError: no such number of ranks, or fewer intervals than ranks; ExistsError: `out` holds files.

    >>> gs.generate("rmat", "whole", vertices=200, edges=800, features=4, classes=3)
    >>> store = gs.partition("whole", "whole.gs", parts=4, method="random")
    >>> [part.path for part in gs.shard(store, 2, "whole.parts")]
    ['whole.parts/0', 'whole.parts/1']
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int) or not 0 <= ranks < 1 << 32:
        raise OptionError(f"ranks {ranks!r}: is no number of ranks")
    _engine.shard(path(store), ranks, path(out), force, progress)
    return [Store(os.path.join(path(out), str(k))) for k in range(ranks)]
