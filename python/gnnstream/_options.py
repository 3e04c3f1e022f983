"""Options, whose names and types are the fields of gnnstream.h, and what is common to reports."""
from __future__ import annotations

import difflib
import os
import sys
import warnings
from typing import Any, Callable, Iterable, Mapping, Optional, Union

PathLike = Union[str, bytes, "os.PathLike[str]"]
Progress = Callable[[str, float], object]
Warn = Callable[[str], object]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def check(options: Mapping[str, Any], known: Iterable[str], what: str) -> dict[str, Any]:
    """The options that are given; a name that `what` does not have is refused, with the one that was meant."""
    known = list(known)
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{what} has no option {name!r}{meant}")
    return {name: value for name, value in options.items() if value is not None}


def path(value: PathLike) -> str:
    """A path as the engine takes it."""
    return os.fsdecode(value)


def tell(lines: Iterable[str], warn: Optional[Warn] = None) -> None:
    """Gives lines that the engine has to say to `warn`, or makes them warnings of the line outside of this package that
    called."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    for line in lines:
        if warn is not None:
            warn(line)
        else:
            warnings.warn(line, stacklevel=level)


class Report:
    """Figures as attributes, which ``vars()`` gives as a dict."""

    def __init__(self, **figures: Any) -> None:
        vars(self).update(figures)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(vars(self))} figures: {', '.join(list(vars(self))[:4])}, ...)"


def figures(report: Any) -> str:
    """The loss and what the task is judged by, in a few words."""
    name = {"multilabel": "micro_f1", "regress": "mse"}.get(report.task, "acc")
    found = {"loss": report.loss, **{f"{split}_{name}": getattr(report, f"{split}_{name}")
                                     for split in ("train", "valid", "test")}}
    return ", ".join(f"{key} {value:.4g}" for key, value in found.items() if value == value)


def size(count: float) -> str:
    """1536 -> "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            break
        count /= 1024
    else:
        unit = "TiB"
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
