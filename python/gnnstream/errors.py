"""What can go wrong. Each exception's text is the engine's line: what is wrong, where, and what to do. Where it is
about a model's text, that line of it follows, with a caret under the column."""
from __future__ import annotations

import re

__all__ = ["BudgetError", "DeviceError", "Error", "ExistsError", "FormatError", "InputOutputError", "InterruptedRun",
           "NoMemoryError", "NotFoundError", "OptionError", "UnsupportedError"]


class Error(Exception):
    """Of the engine; each kind is also the built-in exception that fits it."""


class OptionError(Error, ValueError):
    """An option, or what was given for it."""


class NotFoundError(Error, FileNotFoundError):
    """A file, a store or a model is not there."""


class ExistsError(Error, FileExistsError):
    """Something is there already and is not replaced (``force=True`` does)."""


class FormatError(Error, ValueError):
    """Malformed or damaged data."""


class BudgetError(Error, MemoryError):
    """Does not fit the memory budget; the line says what would."""


class NoMemoryError(Error, MemoryError):
    """The machine has no memory left."""


class InputOutputError(Error, OSError):
    """A read or write failed."""


class UnsupportedError(Error, NotImplementedError):
    """Not supported here."""


class DeviceError(Error, ArithmeticError):
    """A device failed, or a computation left the finite numbers."""


class InterruptedRun(Error, InterruptedError):
    """``Run.stop()`` was called."""


# gs_status of gnnstream.h
_OF_STATUS = {-1: OptionError, -2: NoMemoryError, -3: NotFoundError, -4: FormatError, -5: InputOutputError,
              -7: BudgetError, -8: UnsupportedError, -9: ExistsError, -10: InterruptedRun, -11: DeviceError}


def of_status(status: int, line: str) -> Error:
    """The exception of a gs_status. The engine names options as fields (".hidden"); here they are keywords, and a text
    without a file is that of the keyword `model`."""
    line, newline, place = line.partition("\n")
    line = line.replace("(text)", "model")
    return _OF_STATUS.get(status, Error)(re.sub(r"(^|[\s(,;:])\.([a-z][a-z_]*)", r"\1\2", line) + newline + place)
