"""What ``Run.fit()`` can call after each epoch. A callback is a function of the run and the epoch."""
from __future__ import annotations

import importlib
import math
import os
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from ._options import PathLike
    from .run import Epoch, Run

__all__ = ["best_weights", "early_stopping", "tensorboard"]


_JUDGES = {"classify": "valid_loss", "multilabel": "valid_loss", "regress": "valid_mse", "link": "valid_mrr",
           "edge-classify": "valid_loss", "edge-regress": "valid_mse"}


def _worth(epoch: Epoch, of: Optional[str]) -> float:
    """What `of` is in the epoch, None: what its task is judged by; more is better."""
    name = of or _JUDGES[epoch.task]
    value: float = getattr(epoch, name)
    return -value if name.endswith(("loss", "mse", "mae")) else value


def early_stopping(patience: int, of: Optional[str] = None) -> Callable[[Run, Epoch], bool]:
    """Ends the run when `of` has not become better for `patience` epochs: has not risen, or fallen of a name that ends
    in "loss", "mse" or "mae". Without `of`: the validation result that the task is judged by.

    `patience`: whole epochs, from 1. AttributeError, in the first epoch: it has no figure `of`.

    >>> with gs.Run(store, "gcn", hidden=8, epochs=60, lr=1e-9) as run:
    ...     len(run.fit(gs.callbacks.early_stopping(patience=3, of="valid_acc")))
    4
    """
    best, since = -math.inf, 0

    def callback(run: Run, epoch: Epoch) -> bool:
        nonlocal best, since
        value = _worth(epoch, of)
        if math.isnan(value):  # not evaluated in this epoch
            return False
        best, since = (value, 0) if value > best else (best, since + 1)
        return since >= patience
    return callback


def _summary_writer(folder: PathLike) -> Any:
    try:
        writer = importlib.import_module("tensorboard.summary").Writer
    except ImportError:
        raise ImportError("tensorboard(): the package tensorboard is not there; pip install tensorboard") from None
    return writer(os.fsdecode(folder))


def tensorboard(writer: Any, *, every: int = 1) -> Callable[[Run, Epoch], None]:
    """Shows numbers of each epoch in TensorBoard, under ``gnnstream/loss`` and so on. `writer` is the folder to write
    to, which ``tensorboard --logdir`` reads while the run goes on (the package tensorboard is needed), or a
    SummaryWriter (of ``torch.utils.tensorboard`` or tensorboardX), which the caller closes.

    `every`: one epoch of so many is written. ImportError: `writer` is a folder, and tensorboard is not installed.

    >>> class Printer:
    ...     def add_scalar(self, name, value, epoch):
    ...         if name == "gnnstream/threads":
    ...             print(epoch, value)
    >>> report = gs.train(store, "gcn", gs.callbacks.tensorboard(Printer(), every=2), hidden=8, epochs=4, threads=1)
    """
    flush = not hasattr(writer, "add_scalar")
    if flush:
        writer = _summary_writer(writer)

    def callback(run: Run, epoch: Epoch) -> None:
        if epoch.epoch % every != 0:
            return
        for name, value in vars(epoch).items():
            if name not in ("epoch", "epochs") and isinstance(value, (int, float)) and not math.isnan(value):
                writer.add_scalar(f"gnnstream/{name}", value, epoch.epoch)
        if flush:
            writer.flush()
    return callback


class best_weights:
    """Keeps the weights of the best epoch by `of` (as of :func:`early_stopping`); ``callback.state`` has them after the
    run, ``callback.epoch`` says which it was. An epoch's figures are of the weights before its update, so those of the
    epoch before are kept.

    `state` is a dict of float32 arrays, named and shaped as in ``run.state_dict()``; None before the second epoch.

    >>> best = gs.callbacks.best_weights("valid_acc")
    >>> with gs.Run(store, "gcn", hidden=8, epochs=5) as run:
    ...     epochs = run.fit(best)
    ...     run.load_state_dict(best.state)
    ...     run.evaluate().valid_acc == epochs[best.epoch].valid_acc == best.best
    True
    """

    def __init__(self, of: Optional[str] = None) -> None:
        self.of = of
        self.best, self.epoch = -math.inf, 0
        self.state: Optional[dict[str, NDArray[numpy.float32]]] = None
        self._before: Optional[dict[str, NDArray[numpy.float32]]] = None

    def __repr__(self) -> str:
        return f"best_weights(epoch {self.epoch}, {self.best:.4g})"

    def __call__(self, run: Run, epoch: Epoch) -> None:
        value = _worth(epoch, self.of)
        if value > self.best and self._before is not None:
            self.best, self.epoch, self.state = value, epoch.epoch - 1, self._before
        self._before = dict(run.state_dict())
