"""gnnstream trains graph neural networks on whole graphs larger than memory.

    import gnnstream as gs

    store = gs.partition("ogbn_papers", "papers", memory="16G")    # once; or gs.from_pyg(), gs.from_arrays(), ...
    with gs.Run(store, model="gcn", hidden=256, host_memory="16G", epochs=50) as run:
        for epoch in run:
            print(epoch.epoch, epoch.loss, epoch.valid_acc)
        logits = run.logits()                                      # float32 [vertices, classes]

Examples in docstrings are run by a test, which is in a folder with ``store``, of a graph of 100 vertices and 600 edges,
`edges` int64 [2, 600], with features `x` float32 [100, 8] and classes `y` int64 [100]; `gs` is gnnstream, `nn`
gnnstream.nn and `np` numpy.
"""
from . import callbacks, errors, loaders, nn, report
from ._engine import version as _version
from .errors import (BudgetError, DeviceError, Error, ExistsError, FormatError, InputOutputError, InterruptedRun,
                     NoMemoryError, NotFoundError, OptionError, UnsupportedError)
from .graphs import from_arrays, from_dgl, from_pyg
from .parquet import from_parquet
from .run import Epoch, Evaluation, Plan, Run, TrainReport, WeightsInfo, plan, predict, train, weights_info
from .store import PartitionReport, Store, generate, partition, shard
from .trace import Layer, Model, Parameters, Value, Vertex, layer

__version__: str = _version

__all__ = ["BudgetError", "DeviceError", "Epoch", "Error", "Evaluation", "ExistsError", "FormatError",
           "InputOutputError", "InterruptedRun", "Layer", "Model", "NoMemoryError", "NotFoundError", "OptionError",
           "Parameters", "PartitionReport", "Plan", "Run", "Store", "TrainReport", "UnsupportedError", "Value",
           "Vertex", "WeightsInfo", "__version__", "callbacks", "errors", "from_arrays", "from_dgl", "from_parquet",
           "from_pyg", "generate", "layer", "loaders", "nn", "partition", "plan", "predict", "report", "shard", "train",
           "weights_info"]
