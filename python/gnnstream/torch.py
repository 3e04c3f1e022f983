"""Traced layers inside PyTorch: modules whose forward and backward passes the engine runs, on a graph in memory.

    from gnnstream.torch import Graph, GraphLayer

    graph = Graph(edge_index, num_nodes)
    conv = GraphLayer(attend, graph, 128, 64)          # attend: a gs.layer, or a model's name or text
    y = conv(x)                                        # x float32 [num_nodes, 128], on the CPU

No array of one row an edge exists, forward or backward. Parameters have the names of the layer's text. Tensors are read
and written where they are; rows of x and y are copied once, into and out of the engine's memory.
"""
import torch

from . import _engine
from ._options import check
from .run import Run
from .trace import Layer, Model

__all__ = ["Graph", "GraphLayer"]


class Graph:
    """Edges in memory, for any number of layers: ``edge_index`` [2, E] as torch_geometric has it, of whole numbers
    from 0; ``edge_weight`` [E] numbers; ``edge_type`` [E] whole numbers from 0. Each layer keeps a sorted copy."""

    def __init__(self, edge_index, num_nodes, edge_weight=None, edge_type=None, num_edge_types=None):
        edges = torch.as_tensor(edge_index).detach().to("cpu", torch.int64)
        if edges.dim() != 2 or edges.shape[0] != 2:
            raise ValueError(f"edge_index: has the shape {list(edges.shape)}, must be [2, edges]")
        self.source, self.destination = edges[0].contiguous(), edges[1].contiguous()
        self.num_nodes = int(num_nodes)
        self.weight = None if edge_weight is None else _floats(torch.as_tensor(edge_weight))
        self.type = None if edge_type is None else torch.as_tensor(edge_type).detach().to("cpu", torch.int64).contiguous()
        if self.type is not None and num_edge_types is None:
            num_edge_types = int(self.type.max()) + 1 if self.type.numel() else 1
        self.num_edge_types = int(num_edge_types or 0)

    def __repr__(self):
        return f"Graph({self.num_nodes:,} vertices, {self.source.numel():,} edges)"


def _floats(tensor):
    return tensor.detach().to("cpu", torch.float32).contiguous()


class GraphLayer(torch.nn.Module):
    """One layer on one graph. ``layer`` is what :func:`gnnstream.layer` gives, a model's name ("gat"), or its text; of
    several layers the last counts. Options are those of :class:`gnnstream.Run` that speak of the model: ``heads``,
    ``bases``, ``activation``, ``dropout``, ``set``; and ``seed``, ``threads``."""

    def __init__(self, layer, graph, in_channels, out_channels, **options):
        super().__init__()
        options = check(options, Run.options, "GraphLayer()")
        options["model"] = layer.text if isinstance(layer, (Layer, Model)) else layer
        self.graph, self.in_channels, self.out_channels = graph, int(in_channels), int(out_channels)
        self._options = options
        self._step = 0       # of forward passes: what dropout is drawn by
        self._training = _Engine(self, options)
        self._evaluating = None if options.get("dropout") else self._training
        self._parameter_names = []
        for index, (name, shape, _) in enumerate(self._training.engine.tensors()):
            values = torch.empty(shape, dtype=torch.float32)
            self._training.engine.start(index, values)
            _register(self, name, torch.nn.Parameter(values))
            self._parameter_names.append(name)

    def forward(self, x):
        if x.shape != (self.graph.num_nodes, self.in_channels):
            raise ValueError(f"x: has the shape {list(x.shape)}, must be [{self.graph.num_nodes}, {self.in_channels}]")
        if not self.training and self._evaluating is None:  # the same without dropout
            self._evaluating = _Engine(self, {**self._options, "dropout": 0.0})
        named = dict(self.named_parameters())
        self._step += 1
        return _Function.apply(self._training if self.training else self._evaluating, self._step, x,
                               *(named[name] for name in self._parameter_names))

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}, {self.graph}"


def _register(module, name, parameter):
    """"lin.weight" is the parameter `weight` of a submodule `lin`, as PyTorch's state dicts have it."""
    *path, last = name.split(".")
    for part in path:
        if not hasattr(module, part):
            module.add_module(part, torch.nn.Module())
        module = getattr(module, part)
    module.register_parameter(last, parameter)


class _Engine:
    """The engine's layer, and which forward pass it can go back through."""

    def __init__(self, module, options):
        graph = module.graph
        self.rows, self.width, self.kept = graph.num_nodes, module.out_channels, None
        self.engine = _engine.Layer(graph.num_nodes, graph.source, graph.destination, graph.weight, graph.type,
                                    graph.num_edge_types, module.in_channels, module.out_channels, options)

    def run(self, x, parameters, keep, step):
        y = torch.empty(self.rows, self.width)
        self.kept = None
        self.engine.forward(x, parameters, keep, step, y)
        self.kept = step if keep else None
        return y


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, engine, step, x, *parameters):
        ctx.engine, ctx.step = engine, step
        ctx.save_for_backward(x, *parameters)
        return engine.run(_floats(x), [_floats(p) for p in parameters], any(ctx.needs_input_grad), step)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        engine, (x, *parameters) = ctx.engine, ctx.saved_tensors
        plain = [_floats(p) for p in parameters]
        if engine.kept != ctx.step:  # the layer ran again since: once more, as it was
            engine.run(_floats(x), plain, True, ctx.step)
        needs_x, *needs = ctx.needs_input_grad[2:]
        x_gradient = torch.empty(x.shape) if needs_x else None
        gradients = [torch.empty(p.shape) if need else None for p, need in zip(parameters, needs)]
        engine.engine.backward(plain, _floats(upstream), x_gradient, gradients)
        return None, None, x_gradient, *gradients
