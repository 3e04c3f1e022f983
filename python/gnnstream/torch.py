"""Traced layers inside PyTorch: modules whose forward and backward passes the engine runs, on a graph in memory.

    from gnnstream.torch import Graph, GraphLayer

    graph = Graph(edge_index, num_nodes)
    conv = GraphLayer(attend, graph, 128, 64)          # attend: a gs.layer, or a model's name or text
    y = conv(x)                                        # x float32 [num_nodes, 128], on the CPU or on a GPU

Loaders over a store on disk are here, too: :mod:`gnnstream.loaders`.

No array of one row an edge exists, forward or backward. Parameters have the names of the layer's text. Tensors are read
and written where they are, on a GPU behind PyTorch's current stream. Where x is says where a layer computes; its
parameters must be there, too: ``layer.to("cuda")``.
"""
from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional, Protocol, Sequence, Union

import torch

from . import _engine
from ._arrays import unmasked
from ._options import check
from ._types import LayerOptions
from .loaders import ClusterLoader, LinkNeighborLoader, NeighborLoader, SaintLoader
from .trace import Layer, Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ClusterLoader", "GATConv", "GCNConv", "GINConv", "Graph", "GraphLayer", "LinkNeighborLoader", "NeighborLoader",
           "SAGEConv", "SaintLoader"]

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_ALIGNMENT = 16  # bytes: where kernels of a GPU read rows


def _floats(shape: Sequence[int], on: torch.device) -> torch.Tensor:
    """Of the engine's arrays, whatever PyTorch's defaults are."""
    return torch.empty(tuple(shape), dtype=torch.float32, device=on)


def _given(values: Any, name: str) -> torch.Tensor:
    tensor: torch.Tensor = torch.as_tensor(unmasked(values, name))
    if tensor.layout != torch.strided:
        raise TypeError(f"{name}: of layout {tensor.layout}; must be a dense tensor")
    return tensor


def _whole(values: Any, name: str) -> torch.Tensor:
    tensor = _given(values, name)
    if tensor.dtype not in _WHOLE and tensor.numel() > 0:
        raise TypeError(f"{name}: of type {tensor.dtype}; must be whole numbers, as torch.int64")
    return tensor.detach().to("cpu", torch.int64)


class Graph:
    """Edges in memory, for any number of layers: ``edge_index`` [2, E] as torch_geometric has it, of whole numbers
    from 0; ``edge_weight`` [E] numbers, which are rounded to float32 and get no gradient; ``edge_type`` [E] whole
    numbers from 0. Each layer keeps a sorted copy.

    `num_nodes` vertices; `num_edge_types`: None: as many as `edge_type` names. ValueError and TypeError say which array
    has which shape or type.

    >>> from gnnstream.torch import Graph
    >>> Graph(edges, num_nodes=100, edge_weight=np.ones(600))
    Graph(100 vertices, 600 edges)
    """

    def __init__(self, edge_index: Any, num_nodes: int, edge_weight: Any = None, edge_type: Any = None,
                 num_edge_types: Optional[int] = None) -> None:
        edges = _whole(edge_index, "edge_index")
        if edges.dim() != 2 or edges.shape[0] != 2:
            raise ValueError(f"edge_index: has the shape {list(edges.shape)}, must be [2, edges]")
        self.source, self.destination = edges[0].contiguous(), edges[1].contiguous()
        self.num_nodes = operator.index(num_nodes)
        self.weight = None if edge_weight is None else self._of_edges(_weights(edge_weight), "edge_weight")
        self.type = None if edge_type is None else self._of_edges(_whole(edge_type, "edge_type"), "edge_type")
        if self.type is not None and num_edge_types is None:
            num_edge_types = int(self.type.max()) + 1 if self.type.numel() else 1
        self.num_edge_types = operator.index(num_edge_types or 0)
        self._named()

    def _of_edges(self, values: torch.Tensor, name: str) -> torch.Tensor:
        if values.shape != self.source.shape:
            raise ValueError(f"{name}: has the shape {list(values.shape)}, must be [{self.source.numel()}], one an "
                             "edge")
        return values.contiguous()

    def _named(self) -> None:
        self.handle = next(_HANDLES)
        _OBJECTS[self.handle] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._named()

    def __deepcopy__(self, _: Any) -> Graph:
        return self  # nothing changes it

    def __repr__(self) -> str:
        return f"Graph({self.num_nodes:,} vertices, {self.source.numel():,} edges)"


def _weights(values: Any) -> torch.Tensor:
    weight = _given(values, "edge_weight")
    if weight.requires_grad:
        raise NotImplementedError("edge_weight: wants a gradient, and layers give none to weights of edges; give "
                                  "edge_weight.detach()")
    if weight.dtype.is_complex or weight.dtype == torch.bool:
        raise TypeError(f"edge_weight: of type {weight.dtype}; must be real numbers")
    return weight.to("cpu", torch.float32)


def _autocast(kind: str) -> bool:
    try:
        return torch.is_autocast_enabled(kind)
    except TypeError:  # before PyTorch 2.4
        return bool(torch.is_autocast_cpu_enabled() if kind == "cpu" else torch.is_autocast_enabled())


def _seed(drops: bool) -> torch.Tensor:
    """Of PyTorch's generator, which torch.manual_seed() sets and torch.utils.checkpoint() sets back; within vmap of its
    kind of randomness."""
    return torch.randint(1 << 32, (), dtype=torch.int64, device="cpu") if drops else torch.zeros((), dtype=torch.int64)


def _rows(x: Any, rows: int, columns: int) -> torch.Tensor:
    """x as the engine takes it, if it is that many rows."""
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.device.type not in ("cpu", "cuda"):
        where = f"of layout {x.layout} on {x.device}" if isinstance(x, torch.Tensor) else f"a {type(x).__name__}"
        raise TypeError(f"x: {where}; must be a dense tensor on the CPU or on a GPU of CUDA")
    if x.shape != (rows, columns):
        raise ValueError(f"x: has the shape {list(x.shape)}, must be [{rows}, {columns}]")
    if x.dtype in (torch.float16, torch.bfloat16) and _autocast(x.device.type):
        return x.float()
    if x.dtype != torch.float32:
        raise TypeError(f"x: of type {x.dtype}; a layer computes in torch.float32: give x.float(), and take "
                        f"y.to({x.dtype})")
    return x


class GraphLayer(torch.nn.Module):
    """One layer on one graph. ``layer`` is what :func:`gnnstream.layer` gives, a model's name ("gat"), or its text; of
    several layers the last counts. Options are those of :class:`gnnstream.Run` that speak of a layer: ``heads``,
    ``bases``, ``activation``, ``dropout``, ``set``; and ``threads``, ``no_move``, ``no_fuse``, and ``seed`` of the
    initial weights. Dropout is drawn by PyTorch's generator, which ``torch.manual_seed`` sets.

    Modules may be copied, pickled and used by several threads at once, which take turns. x and the parameters are
    float32, on the CPU or all on one GPU; within ``torch.autocast`` x may be of a half type, and y is float32.

    `graph` is the :class:`Graph`; x is [vertices, `in_channels`], y [vertices, `out_channels`]. TypeError and
    ValueError say what x or a parameter is otherwise.

    >>> import torch
    >>> from gnnstream.torch import Graph, GraphLayer
    >>> conv = GraphLayer("gat", Graph(edges, 100), in_channels=8, out_channels=3, dropout=0.5)
    >>> y = conv.eval()(torch.from_numpy(x))
    >>> y.sum().backward()
    >>> tuple(y.shape), sorted(dict(conv.named_parameters()))
    ((100, 3), ['att_dst', 'att_src', 'bias', 'lin.weight'])
    """

    def __init__(self, layer: Union[Layer, Model, str, os.PathLike[str]], graph: Graph, in_channels: int,
                 out_channels: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__()
        given = check(options, LayerOptions.__annotations__, "GraphLayer()")
        given["model"] = layer.text if isinstance(layer, (Layer, Model)) else os.fspath(layer)
        self.graph = graph
        self.in_channels, self.out_channels = operator.index(in_channels), operator.index(out_channels)
        self._drops = _may_drop(given)
        widths = (self.in_channels, self.out_channels)
        self._training = _Engine(graph, widths, given, False)
        self._evaluating = _Engine(graph, widths, given, True) if self._drops else self._training
        self._parameter_names: list[str] = []
        cpu = torch.device("cpu")  # whatever PyTorch's default is
        engine = self._training.engine(cpu)
        for index, (name, shape, _) in enumerate(engine.tensors()):
            values = _floats(shape, cpu)
            engine.start(index, values)
            _register(self, name, torch.nn.Parameter(values))
            self._parameter_names.append(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = _rows(x, self.graph.num_nodes, self.in_channels)
        named = dict(self.named_parameters())
        parameters = [named[name] for name in self._parameter_names]
        for name, parameter in zip(self._parameter_names, parameters):
            if parameter.dtype != torch.float32 or parameter.device != x.device:
                raise TypeError(f"{name}: of type {parameter.dtype} on {parameter.device}; the parameters of a layer "
                                f"are torch.float32 where x is: take layer.float().to({str(x.device)!r})")
        drops = self.training and self._drops
        return _apply(self._training if self.training else self._evaluating, drops, x, parameters)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, {self.graph}"


def _may_drop(options: dict[str, Any]) -> bool:
    """Whether a pass of training may draw dropout: by the option, or where the model's text says how much."""
    text = str(options["model"])
    if "\n" not in text and os.path.isfile(text):
        with open(text, encoding="utf-8", errors="replace") as file:
            text = file.read()
    return bool(options.get("dropout")) or "\n" in text and "dropout" in text


def _register(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter) -> None:
    """"lin.weight" is the parameter `weight` of a submodule `lin`, as PyTorch's state dicts have it."""
    *path, last = name.split(".")
    for part in path:
        if not hasattr(module, part):
            module.add_module(part, torch.nn.Module())
        module = getattr(module, part)
    module.register_parameter(last, parameter)


class _Engine:
    """The engine's layer, opened when it is first used (again in a copy, another process, or a forked child), and which
    forward pass it can go back through."""

    def __init__(self, graph: Graph, widths: tuple[int, int], options: dict[str, Any], no_dropout: bool) -> None:
        self.graph, self.widths = graph, widths
        self.options, self.no_dropout = options, no_dropout
        self._close()

    def _close(self) -> None:
        self._opened: Any = None
        self._on = torch.device("cpu")  # where it computes
        self._process = os.getpid()
        self.handle = next(_HANDLES)
        _OBJECTS[self.handle] = self
        self._lock = threading.Lock()  # of a forward pass and of going back through it
        self._kept = 0  # number of the pass, of those of all layers, that the engine can go back through; 0: none

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "handle"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._close()

    def engine(self, on: torch.device) -> Any:
        """The layer on that device; the one of another device is given back."""
        if self._opened is None or self._on != on:
            self._opened, self._kept = None, 0
            g, place = self.graph, "cpu" if on.type == "cpu" else f"cuda:{on.index}"
            self._opened = _engine.Layer(g.num_nodes, g.source, g.destination, g.weight, g.type, g.num_edge_types,
                                         *self.widths, self.no_dropout, {**self.options, "device": place})
            self._on = on
        return self._opened

    said = ""  # as a _Source
    numbers: Sequence[int] = (-1,)
    width = property(lambda self: self.widths[1])

    def found(self, x: torch.Tensor, index: Optional[torch.Tensor], weight: Optional[torch.Tensor]) -> _Engine:
        return self

    def asked(self, said: str, width: int, numbers: Sequence[int]) -> _Engine:
        return self

    def _forward(self, x: torch.Tensor, parameters: Sequence[torch.Tensor], training: bool, seed: int,
                 y: torch.Tensor) -> None:
        self._kept = 0
        engine = self.engine(x.device)
        if x.device.type == "cpu":
            engine.forward(x, parameters, training, seed, y)
        else:
            engine.forward_there(_there(x), [_there(p) for p in parameters], training, seed, _there(y), _stream(x))

    def _backward(self, x: torch.Tensor, parameters: Sequence[torch.Tensor], upstream: torch.Tensor,
                  x_gradient: Optional[torch.Tensor], gradients: Sequence[Optional[torch.Tensor]]) -> None:
        engine = self.engine(x.device)
        if x.device.type == "cpu":
            engine.backward(x, parameters, upstream, x_gradient, gradients)
            return
        if x_gradient is None:  # nobody wants it, but it is made
            x_gradient = _floats(x.shape, x.device)
        engine.backward_there(_there(x), [_there(p) for p in parameters], _there(upstream), _there(x_gradient),
                              [_there(g) for g in gradients], _stream(x))

    def forward(self, x: torch.Tensor, parameters: Sequence[torch.Tensor], training: bool,
                seed: int) -> tuple[torch.Tensor, int]:
        """y, and the number of the pass. `training`: with dropout, and kept for backward()."""
        if self._process != os.getpid():
            self._close()
        y = _floats((self.graph.num_nodes, self.widths[1]), x.device)
        with self._lock:
            self._forward(x, parameters, training, seed, y)
            number = next(_PASSES)
            self._kept = number if training else 0
            return y, number

    def backward(self, number: int, x: torch.Tensor, parameters: Sequence[torch.Tensor], seed: int,
                 upstream: torch.Tensor, x_gradient: Optional[torch.Tensor],
                 gradients: Sequence[Optional[torch.Tensor]]) -> None:
        if self._process != os.getpid():
            self._close()
        with self._lock:
            if self._kept != number:  # the layer ran again since: once more, as it was
                y = _floats((self.graph.num_nodes, self.widths[1]), x.device)
                self._forward(x, parameters, True, seed, y)
                self._kept = max(number, 0)
            self._backward(x, parameters, upstream, x_gradient, gradients)


class _Source(Protocol):
    """Which engine computes a call. Within torch.compile it is asked for anew, of the object with this handle, by what
    was said: words, the width of y, and numbers, the first of which is a Graph's handle or -1."""

    handle: int
    said: str
    numbers: Sequence[int]

    @property
    def width(self) -> int: ...

    def found(self, x: torch.Tensor, index: Optional[torch.Tensor], weight: Optional[torch.Tensor]) -> _Engine:
        """Of rows x and these edges, as they come; None: it knows them."""


def _one(values: Sequence[Any], dims: Sequence[Optional[int]], at: int) -> list[Any]:
    """Of arguments of vmap those of one sample."""
    return [value if dim is None else value.select(dim, at) for value, dim in zip(values, dims)]


_NO_FORWARD_MODE = "a layer has no forward-mode derivative; use torch.func.grad, vjp or jacrev"


class _Function(torch.autograd.Function):
    """What runs but within torch.compile: (y, engine, number of the pass). `keep`: a gradient or dropout is wanted;
    where nothing was kept, backward() computes it. torch.func wants each pass to be a function by itself; vmap runs the
    samples one after the other, whose passes then have no number."""

    @staticmethod
    def forward(source: _Source, keep: bool, seed: torch.Tensor, x: torch.Tensor, index: Optional[torch.Tensor],
                weight: Optional[torch.Tensor], *parameters: torch.Tensor) -> tuple[torch.Tensor, Any, int]:
        engine = source.found(x, index, weight)
        y, number = engine.forward(_plain(x), [_plain(p) for p in parameters], keep, int(seed))
        return y, engine, number

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, Any, int]) -> None:
        source, _, *tensors = inputs
        ctx.source, ctx.number = output[1] or source, output[2]
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor, *_: Any) -> Any:
        needs = ctx.needs_input_grad[3:4] + ctx.needs_input_grad[6:]
        made = iter(_Back.apply(ctx.source, ctx.number, tuple(needs), upstream, *ctx.saved_tensors))
        of_x, *of_parameters = (next(made) if need else None for need in needs)
        return None, None, None, of_x, None, None, *of_parameters

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(_NO_FORWARD_MODE)

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], *values: Any) -> Any:
        each = [_Function.apply(*_one(values, dims, k))[0] for k in range(info.batch_size)]
        return (torch.stack(each), None, -1), (0, None, None)


class _Back(torch.autograd.Function):
    @staticmethod
    def forward(source: _Source, number: int, needs: tuple[bool, ...], upstream: torch.Tensor, seed: torch.Tensor,
                x: torch.Tensor, index: Optional[torch.Tensor], weight: Optional[torch.Tensor],
                *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        engine = source.found(x, index, weight)
        made = _gradients(engine, number, int(seed), x, parameters, upstream, needs[0], needs[1:])
        return tuple(each for each in made if each is not None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        raise NotImplementedError("a layer's gradient has no gradient: there are no second derivatives")

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError("a layer's gradient has no gradient: there are no second derivatives")

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], source: _Source, number: int, needs: Any, *values: Any) -> Any:
        if any(dim is not None for dim in dims[4:]):  # of several samples, not several gradients of one
            number = -1
        each = [_Back.apply(source, number, needs, *_one(values, dims[3:], k)) for k in range(info.batch_size)]
        return tuple(map(torch.stack, zip(*each))), (0,) * len(each[0])


def _gradients(engine: _Engine, number: int, seed: int, x: torch.Tensor, parameters: Sequence[torch.Tensor],
               upstream: torch.Tensor, needs_x: bool, needs: Sequence[bool]) -> list[Optional[torch.Tensor]]:
    x_gradient = _floats(x.shape, x.device) if needs_x else None
    gradients = [_floats(p.shape, x.device) if need else None for p, need in zip(parameters, needs)]
    engine.backward(number, _plain(x), [_plain(p) for p in parameters], seed, _plain(upstream), x_gradient, gradients)
    return [x_gradient, *gradients]


def _apply(source: _Source, drops: bool, x: torch.Tensor, parameters: Sequence[torch.Tensor],
           index: Optional[torch.Tensor] = None, weight: Optional[torch.Tensor] = None) -> torch.Tensor:
    """y of a layer, with its gradients, also within torch.compile and torch.func."""
    for parameter in parameters:
        if parameter.device != x.device:
            raise TypeError(f"x: on {x.device}, and the layer's parameters on {parameter.device}; take "
                            f"layer.to({str(x.device)!r}), or x.to({str(parameter.device)!r})")
    keep = drops or torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in parameters))
    if _OPERATOR is not None and torch.compiler.is_compiling():
        y: torch.Tensor = _OPERATOR(x, list(parameters), _seed(drops), keep, index, weight, source.handle, source.said,
                                    source.width, list(source.numbers))[0]
    else:
        y = _Function.apply(source, keep, _seed(drops), x, index, weight, *parameters)[0]
    return y


#: Engines, convolutions and graphs by their handles, as an operator takes no objects.
_OBJECTS: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_HANDLES, _PASSES = itertools.count(), itertools.count(1)


def _operator() -> Any:
    """The layer as an operator, which torch.compile takes as it is, by shapes alone. None before PyTorch 2.4."""
    if not hasattr(torch.library, "custom_op"):
        return None

    def engine_of(x: torch.Tensor, index: Any, weight: Any, handle: int, said: str, width: int,
                  numbers: Sequence[int]) -> _Engine:
        source: _Source = _OBJECTS[handle].asked(said, width, numbers)
        return source.found(x, index, weight)

    def forward(x: torch.Tensor, parameters: Sequence[torch.Tensor], seed: torch.Tensor, keep: bool,
                index: Optional[torch.Tensor], weight: Optional[torch.Tensor], handle: int, said: str, width: int,
                numbers: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        engine = engine_of(x, index, weight, handle, said, width, numbers)
        y, number = engine.forward(_plain(x), [_plain(p) for p in parameters], keep, int(seed))
        return y, torch.tensor(number)

    def backward(upstream: torch.Tensor, number: torch.Tensor, x: torch.Tensor, parameters: Sequence[torch.Tensor],
                 seed: torch.Tensor, index: Optional[torch.Tensor], weight: Optional[torch.Tensor], handle: int,
                 said: str, width: int, numbers: Sequence[int]) -> list[torch.Tensor]:
        engine = engine_of(x, index, weight, handle, said, width, numbers)
        made = _gradients(engine, int(number), int(seed), x, parameters, upstream, True, [True] * len(parameters))
        return [each for each in made if each is not None]

    def keep_inputs(ctx: Any, inputs: Any, output: Any) -> None:
        x, parameters, seed, _, index, weight, *ctx.asked = inputs
        ctx.save_for_backward(output[1], x, seed, index, weight, *parameters)

    def gradients(ctx: Any, upstream: torch.Tensor, _: Any) -> Any:
        number, x, seed, index, weight, *parameters = ctx.saved_tensors
        of_x, *of_parameters = back(upstream, number, x, parameters, seed, index, weight, *ctx.asked)
        return of_x, of_parameters, *[None] * 8

    tensor: Any = torch.Tensor
    maybe: Any = Optional[torch.Tensor]
    kinds: dict[str, Any] = {"x": tensor, "seed": tensor, "number": tensor, "upstream": tensor, "index": maybe,
                             "weight": maybe, "keep": bool, "handle": int, "said": str, "width": int,
                             "numbers": Sequence[int], "parameters": Sequence[torch.Tensor]}
    for function, made in ((forward, tuple[torch.Tensor, torch.Tensor]), (backward, list[torch.Tensor])):
        function.__annotations__ = {name: kinds.get(name, made) for name in function.__annotations__}
    operator_ = torch.library.custom_op("gnnstream::layer", forward, mutates_args=())
    back = torch.library.custom_op("gnnstream::layer_backward", backward, mutates_args=())
    operator_.register_fake(lambda x, parameters, seed, keep, index, weight, handle, said, width, numbers: (
        _floats((x.shape[0], width), x.device), torch.empty((), dtype=torch.int64)))
    back.register_fake(lambda upstream, number, x, parameters, *_: [
        _floats(each.shape, x.device) for each in (x, *parameters)])
    operator_.register_autograd(gradients, setup_context=keep_inputs)
    return operator_


_OPERATOR = _operator()


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach().to(torch.float32).contiguous()
    at_odds = tensor.device.type != "cpu" and tensor.data_ptr() % _ALIGNMENT != 0
    return tensor.clone() if at_odds else tensor


def _there(tensor: Optional[torch.Tensor]) -> Optional[tuple[int, int]]:
    """Memory of a GPU, as the engine takes it: where, and how many numbers."""
    return None if tensor is None else (tensor.data_ptr(), tensor.numel())


def _stream(tensor: torch.Tensor) -> int:
    """PyTorch's current one there."""
    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


# At the end, as they are made of what stands above.
from .convs import GATConv, GCNConv, GINConv, SAGEConv  # noqa: E402
