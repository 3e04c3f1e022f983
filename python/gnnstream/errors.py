"""What can go wrong. Each exception's text is the engine's line: what is wrong, where, and what to do. Where it is
about a model's text, that line of it follows, with a caret under the column."""
from __future__ import annotations

import re

__all__ = ["BudgetError", "DeviceError", "Error", "ExistsError", "FormatError", "InputOutputError", "InterruptedRun",
           "NoMemoryError", "NotFoundError", "OptionError", "UnsupportedError"]


class Error(Exception):
    """Of the engine; each kind is also the built-in exception that fits it.

    >>> all(issubclass(kind, gs.Error) for kind in (gs.OptionError, gs.NotFoundError, gs.BudgetError))
    True
    """


class OptionError(Error, ValueError):
    """An option, or what was given for it.

    >>> gs.plan(store, "gcn", layers=0)
    Traceback (most recent call last):
    gnnstream.errors.OptionError: layers 0: must be from 1 to 64
    """


class NotFoundError(Error, FileNotFoundError):
    """A file, a store or a model is not there.

    >>> gs.Store("nowhere")
    Traceback (most recent call last):
    gnnstream.errors.NotFoundError: nowhere: no store here ...
    """


class ExistsError(Error, FileExistsError):
    """Something is there already and is not replaced (``force=True`` does).

    >>> gs.from_arrays(store, edges)
    Traceback (most recent call last):
    gnnstream.errors.ExistsError: store: holds a store already; use force to replace it
    """


class FormatError(Error, ValueError):
    """Malformed or damaged data.

    >>> import os
    >>> os.makedirs("damaged", exist_ok=True)
    >>> with open("damaged/manifest.json", "w") as file:
    ...     _ = file.write("{}")
    >>> gs.Store("damaged")
    Traceback (most recent call last):
    gnnstream.errors.FormatError: damaged/manifest.json...
    """


class BudgetError(Error, MemoryError):
    """Does not fit the memory budget; the line says what would.

    >>> gs.plan(store, "gcn", host_memory="1M")
    Traceback (most recent call last):
    gnnstream.errors.BudgetError: host_memory 1.0 MiB is too small: this model on this store needs at least ...
    """


class NoMemoryError(Error, MemoryError):
    """The machine has no memory left.

    >>> issubclass(gs.NoMemoryError, MemoryError)
    True
    """


class InputOutputError(Error, OSError):
    """A read or write failed.

    >>> issubclass(gs.InputOutputError, OSError)
    True
    """


class UnsupportedError(Error, NotImplementedError):
    """Not supported here.

    >>> issubclass(gs.UnsupportedError, NotImplementedError)
    True
    """


class DeviceError(Error, ArithmeticError):
    """A device failed, or a computation left the finite numbers.

    >>> gs.train(store, "gcn", hidden=8, epochs=2, lr=1e38)
    Traceback (most recent call last):
    gnnstream.errors.DeviceError: epoch 1: its update left numbers that are not finite in layer 0, ...
    """


class InterruptedRun(Error, InterruptedError):
    """``Run.stop()`` was called, from another thread.

    >>> issubclass(gs.InterruptedRun, InterruptedError)
    True
    """


# gs_status of gnnstream.h
_OF_STATUS = {-1: OptionError, -2: NoMemoryError, -3: NotFoundError, -4: FormatError, -5: InputOutputError,
              -7: BudgetError, -8: UnsupportedError, -9: ExistsError, -10: InterruptedRun, -11: DeviceError}


def of_status(status: int, line: str) -> Error:
    """The exception of a gs_status. The engine names options as fields (".hidden"); here they are keywords, and a text
    without a file is that of the keyword `model`."""
    line, newline, place = line.partition("\n")
    line = line.replace("(text)", "model")
    return _OF_STATUS.get(status, Error)(re.sub(r"(^|[\s(,;:])\.([a-z][a-z_]*)", r"\1\2", line) + newline + place)
