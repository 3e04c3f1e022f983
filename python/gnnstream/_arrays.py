"""Arrays of numpy, torch, or whatever numpy takes, as numpy's."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "array", "rows", "unmasked"]


def unmasked(values: Any, name: str) -> Any:
    """`values`; refused where some of them are masked, for no mask would be kept."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        count = int(np.ma.getmaskarray(values).sum())
        raise ValueError(f"{name}: has {count:,} masked values, and a mask is not kept; give {name}.filled(...), with "
                         "NaN or, of classes, -1 for what is not known")
    return values


def array(values: Any, name: str, kinds: str) -> NDArray[Any]:
    """A numpy array of what numpy, torch or a list gives, without a copy where that can be."""
    values = unmasked(values, name)
    if hasattr(values, "detach"):  # a torch tensor, on whatever device
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # which numpy has not; float32 has all its numbers
            values = values.float()
        values = values.numpy()
    found = np.asarray(values)
    if found.dtype.kind not in kinds:
        words = {"f": "floats", "i": "integers", "u": "unsigned integers", "b": "booleans"}
        raise TypeError(f"{name}: of type {found.dtype}; must be {', '.join(words[k] for k in kinds)}")
    return found


class Rows:
    """A sparse matrix by rows: those of row r are `start[r]` to `start[r + 1]` of `column` and `value`."""

    BLOCK_BYTES = 64 << 20

    def __init__(self, shape: tuple[int, int], row: NDArray[Any], column: NDArray[Any], value: NDArray[Any]) -> None:
        order = np.argsort(row, kind="stable")
        self.shape, self.column, self.value = shape, column[order], value[order]
        self.row = row[order]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])

    def __len__(self) -> int:
        return self.shape[0]

    def save(self, file: str) -> None:
        """Writes them as a dense .npy file, some rows at a time."""
        kind = self.value.dtype if self.value.dtype.kind == "f" else np.dtype(np.float32)
        out = np.lib.format.open_memmap(file, "w+", kind, self.shape)
        step = max(1, self.BLOCK_BYTES // max(1, self.shape[1] * kind.itemsize))
        for first in range(0, self.shape[0], step):
            last = min(first + step, self.shape[0])
            some = slice(self.start[first], self.start[last])
            block = np.zeros((last - first, self.shape[1]), kind)
            np.add.at(block, (self.row[some] - first, self.column[some]), self.value[some])  # doubled ones add up
            out[first:last] = block
        out.flush()


def coordinates(values: Any, name: str) -> Optional[tuple[Any, Any, Any, tuple[int, ...]]]:
    """(rows, columns, numbers or None, shape) of a sparse matrix of torch, torch_sparse or scipy; None of others."""
    if hasattr(values, "sparse_sizes"):  # torch_sparse.SparseTensor
        row, column, value = values.coo()
        return row, column, value, tuple(values.sparse_sizes())
    if hasattr(values, "layout") and not str(values.layout).endswith("strided"):
        plain = values.detach().to_sparse_coo() if "coo" not in str(values.layout) else values.detach()
        if plain.sparse_dim() != 2:
            raise ValueError(f"{name}: a sparse tensor of shape {list(plain.shape)}; must be a matrix")
        indices = plain._indices()
        return indices[0], indices[1], plain._values(), tuple(plain.shape)
    if hasattr(values, "tocoo"):  # scipy
        plain = values.tocoo()
        return plain.row, plain.col, plain.data, tuple(plain.shape)
    return None


def rows(values: Any, name: str) -> Any:
    """Features: an array, or :class:`Rows` of a sparse matrix."""
    found = coordinates(values, name)
    if found is None:
        return array(values, name, "fiub")
    row, column, value, shape = found
    count = len(row)
    numbers = array(value, name, "fiub") if value is not None else np.ones(count, np.float32)
    if numbers.ndim != 1:
        raise ValueError(f"{name}: a sparse matrix whose entries have {list(numbers.shape[1:])} numbers; must be one")
    return Rows((shape[0], shape[1]), array(row, name, "iu"), array(column, name, "iu"), numbers)
