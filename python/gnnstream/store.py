"""Stores: graphs as chunks on disk, made once."""
import os

from . import _engine
from ._options import check, path

__all__ = ["Store", "generate", "partition"]


class Store:
    """A store that :func:`partition` (or ``gnnstream partition``) made.

    What it holds are attributes: ``vertices``, ``edges``, ``features`` (columns), ``classes``, ``edge_types``,
    ``parts``, ``train``, ``valid`` and ``test`` (how many vertices), ``symmetric``, ``weights``, ``total_bytes``, ...
    """

    def __init__(self, folder):
        """Reads the manifest. Raises FileNotFoundError, or FormatError of a damaged one."""
        self.path = path(folder)
        self.summary = _engine.inspect(self.path)

    def __getattr__(self, name):
        if name != "summary" and name in self.__dict__.get("summary", ()):
            return self.summary[name]
        raise AttributeError(f"Store has no attribute {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *self.summary]

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"Store({self.path!r}: {self.vertices:,} vertices, {self.edges:,} edges, {self.features} features)"

    def ids(self):
        """The ids that vertices had in the input, in the order of logits: numbers (numpy), or a list of names."""
        import numpy

        if self.name_bytes == 0:
            return numpy.arange(self.vertices, dtype=numpy.uint64)
        with open(os.path.join(self.path, "names.bin"), "rb") as file:
            names = file.read(self.name_bytes).decode("utf-8", "surrogateescape").split("\n")[:-1]
        if all(n.isdecimal() and n.isascii() and (n == "0" or n[0] != "0") and int(n) < 1 << 64 for n in names):
            return numpy.array([int(n) for n in names], dtype=numpy.uint64)
        return names

    def verify(self, memory=0):
        """Reads every byte and checks it; raises FormatError where one is damaged. `memory`: bytes for buffers."""
        _engine.verify(self.path, memory)


def partition(source, store, *, progress=None, warn=None, **options):
    """Makes a :class:`Store` in the folder `store` of the graph at `source`: a folder or file that
    ``gnnstream partition`` reads. For arrays in memory see :func:`gnnstream.from_arrays`.

    Options are those of ``gs_partition_options``: ``parts``, ``method``, ``memory`` ("256M" or bytes), ``undirected``,
    ``feature_type``, ``random_features``, ``seed``, ``split``, ``ids``, ``force``,
    ``format``. `progress` is called with what is being
    done and how far it is (0 to 1), `warn` with lines about what was taken otherwise than it may have been meant
    (default: Python's warnings).
    """
    options = check(options, _engine.partition_fields, "partition()")
    report = _engine.partition(path(source), path(store), options, progress, warn or _warn)
    made = Store(store)
    made.report = report
    return made


def generate(kind, folder, *, progress=None, **options):
    """Writes a random graph as a folder of .npy files. `kind`: "rmat", or "sbm" (planted classes, features that carry
    their signal). Options: ``vertices``, ``edges``, ``features``, ``classes``, ``seed``, ``force``."""
    _engine.generate(kind, path(folder), check(options, _engine.generate_fields, "generate()"), progress)


def _warn(line):
    import warnings
    warnings.warn(line, stacklevel=4)
