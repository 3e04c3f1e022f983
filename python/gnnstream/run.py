"""Training and prediction."""
import os
import tempfile
import warnings
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np

from . import _engine
from ._options import check, path
from .errors import DeviceError  # noqa: F401  (what epochs may raise)
from .store import Store
from .trace import Model

__all__ = ["Epoch", "Plan", "Run", "plan", "predict", "train", "weights_info"]

_SPLITS = ("train", "valid", "test")


class Epoch(SimpleNamespace):
    """An epoch, of the weights before its update: ``epoch`` (from 1), ``loss``, ``train_acc``, ``valid_acc``,
    ``test_acc`` (NaN where not evaluated), ``task``; of several labels ``valid_micro_f1``, ``valid_macro_f1``, of numbers
    ``valid_mse``, ``valid_mae``, ``valid_r2`` and so for train and test; ``seconds``, ``read_bytes``, ``written_bytes``, ``compute_seconds``,
    ``stall_seconds``, ``peak_host_bytes``, ``peak_device_bytes``, ..."""


def _flat(report):
    """A report with its three accuracies as train_acc, valid_acc, test_acc, and so the figures of its task."""
    report = dict(report)
    figures = dict(report.pop("figures"))
    report["task"] = figures.pop("task")
    for name, values in {"acc": report.pop("accuracy"), **figures}.items():
        for split, value in zip(_SPLITS, values):
            report[f"{split}_{name}"] = value
    return report


class Plan(SimpleNamespace):
    """What a run will read, write and hold, before it starts: ``host_bytes`` and ``device_bytes`` of the budgets
    ``host_memory`` and ``device_memory``, ``passes`` (each with its bytes and predicted seconds), ``memory`` (bytes by
    owner), ``files``, ``links``."""

    def __init__(self, report):
        report = dict(report)
        passes, items, files = report.pop("passes"), report.pop("items"), report.pop("files")
        kept = report.pop("device_kept_bytes")[:files]
        report["passes"] = [SimpleNamespace(**p) for p in report.pop("pass")[:passes]]
        report["memory"] = [SimpleNamespace(**i) for i in report.pop("item")[:items]]
        report["files"] = [SimpleNamespace(**f, device_kept_bytes=k[:report["devices"]])
                           for f, k in zip(report.pop("file")[:files], kept)]
        report["links"] = [SimpleNamespace(**{**link, "passes": link["pass"][:passes]})
                           for link in report.pop("link")[:report["links"]]]
        super().__init__(**report)


class _Text:
    """A traced model as the file that the engine takes, for as long as a call lasts."""

    def __init__(self, options):
        self.options, self.file = options, None

    def __enter__(self):
        model = self.options.get("model")
        if not isinstance(model, Model):
            return self.options
        self.file = tempfile.NamedTemporaryFile("w", prefix="traced-", suffix=".gnn", delete=False)
        with self.file:
            self.file.write(model.text)
        return {**self.options, "model": self.file.name}

    def __exit__(self, *_):
        if self.file is not None:
            os.unlink(self.file.name)


class _Tensors(Mapping):
    """Tensors of a run by name; each is fetched when it is asked for."""

    def __init__(self, run):
        self._run = run
        self._info = {name: (i, shape) for i, (name, shape, _) in enumerate(run._engine.tensors())}

    def __getitem__(self, name):
        index, shape = self._info[name]
        values = np.empty(shape, np.float32)
        self._run._engine.get_tensor(index, values.reshape(-1))
        return values

    def __iter__(self):
        return iter(self._info)

    def __len__(self):
        return len(self._info)


class _Closed:
    """In the engine's place once a run is closed."""

    def __getattr__(self, _):
        raise ValueError("the run is closed; take dict(run.state_dict()) and run.logits() before")


class Run:
    """A model on a store, with its weights and its optimiser::

        with gnnstream.Run("papers", model="gcn", hidden=256, host_memory="16G", epochs=50) as run:
            for epoch in run:
                print(epoch.loss, epoch.valid_acc)
            logits = run.logits()

    `model` is the name of a built-in model, the path of a model's text, or a :class:`Model` traced from Python. Options
    are those of ``gs_train_options`` (``help(gnnstream.Run.options)`` names them). The interpreter's lock is free while
    an epoch runs; Ctrl-C ends it and raises KeyboardInterrupt. What the engine has to say of the model or the store
    (a parameter that nothing depends on, edge weights that the model ignores) is a warning.
    """

    #: Names of the options.
    options = _engine.train_fields

    def __init__(self, store, model, *, predict=False, **options):
        options = check({"model": model, "keep_logits": True, **options}, self.options, "Run()")
        self.epochs = options.get("epochs", 100)
        self.done = 0
        self.over = False  # `patience` has run out
        self._engine = None
        self._summary = Store(store) if not isinstance(store, Store) else store
        with _Text(options) as plain:
            lines = []  # what the engine says, and warnings are of this thread, where the caller's line is known
            self._engine = _engine.Run(path(store), plain, predict, lines.append)
        for line in lines:
            warnings.warn(line, stacklevel=2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Gives memory and files back. A run that is no longer referred to does so by itself."""
        if self._engine is not None and not isinstance(self._engine, _Closed):
            self._engine.close()
            self._engine = _Closed()

    # ---- epochs

    def epoch(self):
        """One more epoch: forward, backward, update. `epochs` does not bound how many there may be."""
        report = Epoch(**_flat(self._engine.epoch()))
        self.done, self.over = report.epoch, report.over
        return report

    def __iter__(self):
        """Epochs, up to `epochs` of them, or until `patience` has run out."""
        while self.done < self.epochs and not self.over:
            yield self.epoch()

    def fit(self, *callbacks):
        """All epochs; each callback gets ``(run, epoch)`` after each, and ends the run by returning True.
        Returns the list of epochs. See :mod:`gnnstream.callbacks`."""
        past = []
        for epoch in self:
            past.append(epoch)
            if any([callback(self, epoch) is True for callback in callbacks]):
                break
        return past

    def evaluate(self):
        """Loss and accuracies of the weights as they are, without dropout."""
        return SimpleNamespace(**_flat(self._engine.evaluate()))

    def finish(self):
        """Evaluates, writes the files that options name (``save``, ``logits``, ``trace``) and reports. No epoch can
        follow."""
        return SimpleNamespace(**_flat(self._engine.finish()))

    def stop(self):
        """Ends the pass that another thread runs, which then raises; the run is only to be closed after that."""
        self._engine.stop()

    def progress(self):
        """How far the pass is that another thread runs: ``pass``, ``tasks_done`` of ``tasks``, ``bytes_done`` of
        ``bytes``, as a dict."""
        return self._engine.progress()

    def plan(self):
        """The :class:`Plan` of this run."""
        return Plan(self._engine.plan())

    # ---- arrays

    def logits(self, out=None):
        """Logits of the weights as they are, float32 [vertices, classes], in the order of the input, without dropout:
        probabilities with ``softmax=True``, and of a prediction with ``embeddings=True`` what the last layer gets.
        `out`: the array to fill, which must be that; the engine writes into it and copies nothing on the way."""
        shape = (self._summary.vertices, self._engine.columns())
        if out is None:
            out = np.empty(shape, np.float32)
        elif out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous:
            raise ValueError(f"out: must be a float32 array of shape {list(shape)} in C order")
        self._engine.logits(out.reshape(-1))
        return out

    def state_dict(self):
        """The weights by name, as a mapping of numpy arrays; PyG's class of that model takes them with
        ``load_state_dict({k: torch.from_numpy(v) for k, v in run.state_dict().items()})``."""
        return _Tensors(self)

    def load_state_dict(self, tensors):
        """Sets all weights, of numpy or torch. Starts the optimiser anew."""
        info = {name: (i, shape) for i, (name, shape, _) in enumerate(self._engine.tensors())}
        missing, strange = info.keys() - tensors.keys(), tensors.keys() - info.keys()
        if missing or strange:
            raise KeyError("; ".join(f"{what} {', '.join(sorted(names))}" for what, names in
                                     (("missing:", missing), ("not of this model:", strange)) if names))
        arrays = {name: np.ascontiguousarray(np.asarray(tensors[name]), np.float32) for name in info}
        for name, (index, shape) in info.items():
            if arrays[name].shape != tuple(shape):
                raise ValueError(f"{name}: of shape {list(arrays[name].shape)}; must be {list(shape)}")
        for name, (index, _) in info.items():
            self._engine.set_tensor(index, arrays[name].reshape(-1))

    def save(self, file):
        """Writes the weights as .safetensors, whole or not at all."""
        self._engine.save(path(file))

    def load(self, file):
        """Sets the weights from a .safetensors file. Starts the optimiser anew."""
        self._engine.load(path(file))


def train(store, model, *callbacks, **options):
    """All epochs of a run, and the files that options name. Returns its report: ``loss``, ``train_acc``,
    ``valid_acc``, ``test_acc`` of the final weights, ``seconds``, ...; and ``history``, the epochs."""
    with Run(store, model, **options) as run:
        history = run.fit(*callbacks)
        report = run.finish()
    report.history = history
    return report


def predict(store, model=None, weights=None, **options):
    """Logits of a store by `weights`: a .safetensors file, or a state dict. A file that gnnstream wrote says what model
    it is of (:func:`weights_info`), so that ``predict(store, weights="w.safetensors")`` is enough; an option that says
    otherwise is refused. The store may be another one than the weights were trained on, and need not have labels."""
    if weights is None:
        raise TypeError("predict(): weights: none given")
    if isinstance(weights, Mapping):
        with Run(store, model, predict=True, **options) as run:
            run.load_state_dict(weights)
            return run.logits()
    with Run(store, model, predict=True, init=weights, **options) as run:
        return run.logits()


def weights_info(file):
    """How the weights of a .safetensors file came about: ``model``, ``layers``, ``hidden``, ``store``, ``epochs``, ...;
    ``version`` is "" where another program wrote it."""
    return SimpleNamespace(**_engine.inspect_weights(path(file)))


def plan(store, model, **options):
    """The :class:`Plan` of a run, without opening it: reads the store's tables only."""
    options = check({"model": model, **options}, Run.options, "plan()")
    with _Text(options) as plain:
        return Plan(_engine.plan(path(store), plain))
