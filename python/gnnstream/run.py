"""Training and prediction."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Iterator, Optional, Union

import numpy as np

from . import _engine
from ._arrays import array
from ._options import PathLike, Report, check, figures, path, size, tell
from ._types import EpochFields, EvaluationFields, PlanFields, TrainFields, TrainOptions, WeightsFields
from .errors import DeviceError  # noqa: F401  (what epochs may raise)
from .store import Store
from .trace import Model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

__all__ = ["Epoch", "Evaluation", "Plan", "Run", "TrainReport", "WeightsInfo", "plan", "predict", "train",
           "weights_info"]

_SPLITS = ("train", "valid", "test")


class Epoch(Report, EpochFields):
    """An epoch, of the weights before its update: ``epoch`` (from 1), ``loss``, ``train_acc``, ``valid_acc``,
    ``test_acc`` (NaN where not evaluated), ``task``, ``valid_loss``; of classes ``valid_macro_f1`` and
    ``valid_balanced_acc``, of several labels ``valid_micro_f1``, ``valid_macro_f1``, of numbers ``valid_mse``,
    ``valid_mae``, ``valid_r2`` and so for train and test; ``seconds``, ``read_bytes``, ``written_bytes``,
    ``compute_seconds``, ``stall_seconds``, ``peak_host_bytes``, ``peak_device_bytes``, ...; on batches
    ``sample_seconds``, ``pick_seconds``, ``copy_seconds`` and ``step_seconds``, too.

    Seconds and bytes are of this epoch alone, peaks of the run so far.

    >>> with gs.Run(store, "gcn", hidden=8, epochs=2) as run:
    ...     epoch = run.epoch()
    >>> epoch.epoch, epoch.epochs, epoch.task, epoch.loss > 0, 0 <= epoch.valid_acc <= 1, epoch.seconds > 0
    (1, 2, 'classify', True, True, True)
    """

    def __repr__(self) -> str:
        return f"Epoch({self.epoch} of {self.epochs}: {figures(self)}, {self.seconds:.3g} s)"


class Evaluation(Report, EvaluationFields):
    """Figures of the weights as they are, named as those of an :class:`Epoch`.

    >>> with gs.Run(store, "gcn", hidden=8) as run:
    ...     found = run.evaluate()
    >>> 0 <= found.test_acc <= 1, found.seconds > 0
    (True, True)
    """

    def __repr__(self) -> str:
        return f"Evaluation({figures(self)}, {self.seconds:.3g} s)"


class TrainReport(Report, TrainFields):
    """A whole run: figures of the final weights, named as those of an :class:`Epoch`, and ``history``, its epochs.

    >>> report = gs.train(store, "gcn", hidden=8, epochs=3)
    >>> len(report.history), report.epochs, report.loss == report.loss
    (3, 3, True)
    """

    history: list[Epoch]

    def __repr__(self) -> str:
        return f"TrainReport({self.epochs} epochs: {figures(self)}, {self.seconds:.3g} s)"


class WeightsInfo(Report, WeightsFields):
    """How weights came about: ``model``, ``layers``, ``hidden``, ``epochs``, ``store``, ...; ``version`` is "" where
    another program wrote them.

    >>> _ = gs.train(store, "sage", hidden=8, epochs=2, save="info.safetensors")
    >>> gs.weights_info("info.safetensors")
    WeightsInfo('sage', 2 layers of 8, 2 epochs on 'store')
    """

    def __repr__(self) -> str:
        return (f"WeightsInfo({self.model!r}, {self.layers} layers of {self.hidden}, {self.epochs} epochs on "
                f"{self.store!r})" if self.version else "WeightsInfo(not written by gnnstream)")


def _flat(report: dict[str, Any]) -> dict[str, Any]:
    """A report with its three accuracies as train_acc, valid_acc, test_acc, and so the figures of its task."""
    report = dict(report)
    of_task = dict(report.pop("figures"))
    report["task"] = of_task.pop("task")
    report["valid_loss"] = of_task.pop("valid_loss")
    for name, values in {"acc": report.pop("accuracy"), **of_task}.items():
        for split, value in zip(_SPLITS, values):
            report[f"{split}_{name}"] = value
    return report


class Part(Report):
    """A pass, an owner of memory, a file or a link of a :class:`Plan`."""


class Plan(Report, PlanFields):
    """What a run will read, write and hold, before it starts: ``host_bytes`` and ``device_bytes`` of the budgets
    ``host_memory`` and ``device_memory``, ``passes`` (each with its bytes and predicted seconds), ``memory`` (bytes by
    owner), ``files``, ``links``; in bytes and seconds. Made of the engine's `report`.

    >>> plan = gs.plan(store, "gcn", hidden=8)
    >>> plan.host_bytes <= plan.host_memory, [part.name for part in plan.passes]
    (True, ['setup', 'train', 'eval'])
    >>> sum(item.bytes for item in plan.memory) > 0
    True
    """

    passes: list[Any]
    memory: list[Any]
    files: list[Any]
    links: list[Any]

    def __init__(self, report: dict[str, Any]) -> None:
        report = dict(report)
        passes, items, files = report.pop("passes"), report.pop("items"), report.pop("files")
        kept = report.pop("device_kept_bytes")[:files]
        report["passes"] = [Part(**p) for p in report.pop("pass")[:passes]]
        report["memory"] = [Part(**i) for i in report.pop("item")[:items]]
        report["files"] = [Part(**f, device_kept_bytes=k[:report["devices"]])
                           for f, k in zip(report.pop("file")[:files], kept)]
        report["links"] = [Part(**{**link, "passes": link["pass"][:passes]})
                           for link in report.pop("link")[:report["links"]]]
        super().__init__(**report)

    def __repr__(self) -> str:
        passes = ", ".join(f"{p.name} {p.predicted['seconds']:.3g} s" for p in self.passes)
        return (f"Plan({self.vertices:,} vertices, {self.edges:,} edges; host {size(self.host_bytes)} of "
                f"{size(self.host_memory)}; {passes})")


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options as the engine takes them: a traced model is its text."""
    model = options.get("model")
    return {**options, "model": model.text} if isinstance(model, Model) else options


class _Tensors(Mapping[str, "NDArray[np.float32]"]):
    """Tensors of a run by name; each is fetched when it is asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._info: dict[str, tuple[int, tuple[int, ...]]] = {
            name: (i, shape) for i, (name, shape, _) in enumerate(run._engine.tensors())}

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        index, shape = self._info[name]
        values = np.empty(shape, np.float32)
        self._run._engine.get_tensor(index, values.reshape(-1))
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._info)

    def __len__(self) -> int:
        return len(self._info)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {list(shape)}' for name, (_, shape) in self._info.items())}}}"


class _Closed:
    """In the engine's place once a run is closed."""

    def __getattr__(self, _: str) -> Any:
        raise ValueError("the run is closed; take dict(run.state_dict()) and run.logits() before")


class Run:
    """A model on a store, with its weights and its optimiser::

        with gnnstream.Run("papers", model="gcn", hidden=256, host_memory="16G", epochs=50) as run:
            for epoch in run:
                print(epoch.loss, epoch.valid_acc)
            logits = run.logits()

    `model` is the name of a built-in model, the path of a model's text, or a :class:`Model` traced from Python. Options
    are those of ``gs_train_options`` (``help(gnnstream.Run.options)`` names them). The interpreter's lock is free while
    an epoch runs; Ctrl-C ends it and raises KeyboardInterrupt. What the engine has to say of the model or the store (a
    parameter that nothing depends on, edge weights that the model ignores) is a warning. With `predict` no epochs can
    follow, and `store` needs no labels. Errors are those of :mod:`gnnstream.errors`; TypeError names an option that
    there is not.

    >>> with gs.Run(store, "gcn", hidden=8, epochs=4, host_memory="1G") as run:
    ...     losses = [epoch.loss for epoch in run]
    ...     logits = run.logits()
    >>> len(losses), logits.shape, logits.dtype
    (4, (100, 3), dtype('float32'))
    >>> gs.Run(store, "gcn", hiden=8)
    Traceback (most recent call last):
    TypeError: Run() has no option 'hiden'; did you mean 'hidden'?
    """

    #: Names of the options.
    options: ClassVar[tuple[str, ...]] = _engine.train_fields

    def __init__(self, store: Union[Store, PathLike], model: Union[str, Model, PathLike, None], *,
                 predict: bool = False, **options: Unpack[TrainOptions]) -> None:
        given = check({"model": model, "keep_logits": True, **options}, self.options, "Run()")
        self.epochs: int = given.get("epochs", 100)
        self.done = 0
        self.over = False  # `patience` has run out
        self._engine: Any = None
        self._model = model
        self._summary = store if isinstance(store, Store) else Store(store)
        lines: list[str] = []  # what the engine says, and warnings are of this thread, where the caller's line is known
        self._engine = _engine.Run(path(store), _plain(given), predict, lines.append)
        tell(lines)

    def __repr__(self) -> str:
        state = "closed" if isinstance(self._engine, _Closed) else f"{self.done} of {self.epochs} epochs"
        model = "a traced model" if isinstance(self._model, Model) else \
            "a text" if isinstance(self._model, str) and "\n" in self._model else repr(self._model)
        return f"Run({self._summary.path!r}, {model}: {state})"

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives memory and files back. A run that is no longer referred to does so by itself.

        >>> run = gs.Run(store, "gcn", hidden=8)
        >>> run.close()
        >>> run
        Run('store', 'gcn': closed)
        """
        if self._engine is not None and not isinstance(self._engine, _Closed):
            self._engine.close()
            self._engine = _Closed()

    # ---- epochs

    def epoch(self) -> Epoch:
        """One more epoch: forward, backward, update. `epochs` does not bound how many there may be.

        >>> with gs.Run(store, "gcn", hidden=8, epochs=1) as run:
        ...     [run.epoch().epoch for _ in range(2)]
        [1, 2]
        """
        report = Epoch(**_flat(self._engine.epoch()))
        self.done, self.over = report.epoch, report.over
        return report

    def __iter__(self) -> Iterator[Epoch]:
        """Epochs, up to `epochs` of them, or until `patience` has run out."""
        while self.done < self.epochs and not self.over:
            yield self.epoch()

    def fit(self, *callbacks: Callable[[Run, Epoch], object]) -> list[Epoch]:
        """All epochs; each callback gets ``(run, epoch)`` after each, and ends the run by returning True.
        Returns the list of epochs. See :mod:`gnnstream.callbacks`.

        >>> with gs.Run(store, "gcn", hidden=8, epochs=9) as run:
        ...     len(run.fit(lambda run, epoch: epoch.epoch == 2))
        2
        """
        past = []
        for epoch in self:
            past.append(epoch)
            if any([callback(self, epoch) is True for callback in callbacks]):
                break
        return past

    def evaluate(self) -> Evaluation:
        """Loss and accuracies of the weights as they are, without dropout.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     run.evaluate().task
        'classify'
        """
        return Evaluation(**_flat(self._engine.evaluate()))

    def finish(self) -> TrainReport:
        """Evaluates, writes the files that options name (``save``, ``logits``, ``trace``) and reports. No epoch can
        follow.

        >>> with gs.Run(store, "gcn", hidden=8, epochs=1, logits="logits.npy") as run:
        ...     _ = run.epoch(), run.finish()
        >>> np.load("logits.npy").shape
        (100, 3)
        """
        return TrainReport(**_flat(self._engine.finish()))

    def stop(self) -> None:
        """Ends the pass that another thread runs, which then raises; the run is only to be closed after that.

        >>> import threading
        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     thread = threading.Thread(target=run.stop)
        ...     thread.start(), thread.join()
        (None, None)
        """
        self._engine.stop()

    def progress(self) -> dict[str, Any]:
        """How far the pass is that another thread runs: ``pass``, ``tasks_done`` of ``tasks``, ``bytes_done`` of
        ``bytes``, as a dict.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     _ = run.epoch()
        ...     run.progress()["tasks_done"] <= run.progress()["tasks"]
        True
        """
        now: dict[str, Any] = self._engine.progress()
        return now

    def plan(self) -> Plan:
        """The :class:`Plan` of this run.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     run.plan().vertices
        100
        """
        return Plan(self._engine.plan())

    # ---- arrays

    def logits(self, out: Optional[NDArray[np.float32]] = None) -> NDArray[np.float32]:
        """Logits of the weights as they are, float32 [vertices, classes], in the order of the input, without dropout:
        probabilities with ``softmax=True``, and of a prediction with ``embeddings=True`` what the last layer gets.
        Where a store has several types of vertices, rows are of the type that has labels.
        `out`: the array to fill, which must be that; the engine writes into it and copies nothing on the way.

        ValueError: `out` has another shape or type.

        >>> out = np.empty((100, 3), np.float32)
        >>> with gs.Run(store, "gcn", hidden=8, softmax=True) as run:
        ...     bool(np.allclose(run.logits(out).sum(1), 1, atol=1e-5))
        True
        """
        shape = (self._engine.rows(), self._engine.columns())
        if out is None:
            out = np.empty(shape, np.float32)
        elif type(out) is not np.ndarray or out.shape != shape or out.dtype != np.float32 or \
                not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError(f"out: must be a float32 array of shape {list(shape)} in C order")
        self._engine.logits(out.reshape(-1))
        return out

    def state_dict(self) -> Mapping[str, NDArray[np.float32]]:
        """The weights by name, as a mapping of numpy arrays; PyG's class of that model takes them with
        ``load_state_dict({k: torch.from_numpy(v) for k, v in run.state_dict().items()})``.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     run.state_dict()
        {'convs.0.lin.weight': [8, 8], 'convs.0.bias': [8], 'convs.1.lin.weight': [3, 8], 'convs.1.bias': [3]}
        """
        return _Tensors(self)

    def load_state_dict(self, tensors: Mapping[str, ArrayLike]) -> None:
        """Sets all weights: `tensors` by name, of numpy or torch, in the shapes of :meth:`state_dict`. Starts the
        optimiser anew. KeyError: some are missing, or not of this model; ValueError names a shape.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     run.load_state_dict({name: np.zeros_like(values) for name, values in run.state_dict().items()})
        ...     float(abs(run.logits()).max())
        0.0
        """
        info = {name: (i, shape) for i, (name, shape, _) in enumerate(self._engine.tensors())}
        missing, strange = info.keys() - tensors.keys(), tensors.keys() - info.keys()
        if missing or strange:
            raise KeyError("; ".join(f"{what} {', '.join(sorted(names))}" for what, names in
                                     (("missing:", missing), ("not of this model:", strange)) if names))
        arrays = {name: np.ascontiguousarray(array(tensors[name], name, "fiub"), np.float32) for name in info}
        for name, (index, shape) in info.items():
            if arrays[name].shape != tuple(shape):
                raise ValueError(f"{name}: of shape {list(arrays[name].shape)}; must be {list(shape)}")
        for name, (index, _) in info.items():
            self._engine.set_tensor(index, arrays[name].reshape(-1))

    def save(self, file: PathLike) -> None:
        """Writes the weights to `file` as .safetensors, whole or not at all.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     run.save("saved.safetensors")
        ...     run.load("saved.safetensors")
        """
        self._engine.save(path(file))

    def load(self, file: PathLike) -> None:
        """Sets the weights from the .safetensors `file`. Starts the optimiser anew. FormatError: they are of another
        model.

        >>> with gs.Run(store, "gcn", hidden=8) as run:
        ...     run.save("loaded.safetensors")
        ...     run.load("loaded.safetensors")
        """
        self._engine.load(path(file))


def train(store: Union[Store, PathLike], model: Union[str, Model, PathLike],
          *callbacks: Callable[[Run, Epoch], object], **options: Unpack[TrainOptions]) -> TrainReport:
    """All epochs of a run, and the files that options name. Returns its report: ``loss``, ``train_acc``,
    ``valid_acc``, ``test_acc`` of the final weights, ``seconds``, ...; and ``history``, the epochs.

    `store` is a :class:`Store` or its folder, `model` as of :class:`Run`, whose options these are; `callbacks` as of
    :meth:`Run.fit`.

    >>> report = gs.train(store, "sage", hidden=8, epochs=5, sampler="neighbor", batch_size=16, fanout="5,5")
    >>> len(report.history), report.seconds > 0
    (5, True)
    """
    with Run(store, model, **options) as run:
        history = run.fit(*callbacks)
        report = run.finish()
    report.history = history
    return report


def predict(store: Union[Store, PathLike], model: Union[str, Model, PathLike, None] = None,
            weights: Union[Mapping[str, ArrayLike], PathLike, None] = None,
            **options: Unpack[TrainOptions]) -> NDArray[np.float32]:
    """Logits of a store by `weights`: a .safetensors file, or a state dict. A file that gnnstream wrote says what model
    it is of (:func:`weights_info`), so that ``predict(store, weights="w.safetensors")`` is enough; an option that says
    otherwise is refused. The store may be another one than the weights were trained on, and need not have labels.

    float32 [vertices, classes]; `store`, `model` and options as of :class:`Run`. TypeError: no weights are given.

    >>> _ = gs.train(store, "gcn", hidden=8, epochs=2, save="w.safetensors")
    >>> gs.predict(store, weights="w.safetensors").shape
    (100, 3)
    """
    if weights is None:
        raise TypeError("predict(): weights: none given")
    if "init" in options:
        raise TypeError("predict(): init: the weights of a prediction are given as weights")
    if isinstance(weights, Mapping):
        with Run(store, model, predict=True, **options) as run:
            run.load_state_dict(weights)
            return run.logits()
    options["init"] = path(weights)
    with Run(store, model, predict=True, **options) as run:
        return run.logits()


def weights_info(file: PathLike) -> WeightsInfo:
    """How the weights of a .safetensors file came about: ``model``, ``layers``, ``hidden``, ``store``, ``epochs``, ...;
    ``version`` is "" where another program wrote it.

    NotFoundError, FormatError: `file` is none.

    >>> _ = gs.train(store, "gcn", hidden=8, epochs=2, save="of.safetensors")
    >>> gs.weights_info("of.safetensors").hidden
    8
    """
    return WeightsInfo(**_engine.inspect_weights(path(file)))


def plan(store: Union[Store, PathLike], model: Union[str, Model, PathLike],
         **options: Unpack[TrainOptions]) -> Plan:
    """The :class:`Plan` of a run, without opening it: reads the store's tables only.

    `store`, `model` and options as of :class:`Run`. BudgetError says what memory would do.

    >>> gs.plan("store", "gat", hidden=8, heads=2, host_memory="1G").host_memory >> 20
    1024
    """
    given = check({"model": model, **options}, Run.options, "plan()")
    return Plan(_engine.plan(path(store), _plain(given)))
