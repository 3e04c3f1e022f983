"""Functions for traced layers (:func:`gnnstream.layer`), with the meaning that docs/models.md gives them.

``sum``, ``mean``, ``max``, ``min`` and ``lstm`` run over in-edges: ``sum(u.x for u in v.innbs)``. ``sum``, ``max`` and
``min`` of anything else are Python's own.
"""
from __future__ import annotations

import types
from typing import Any, Callable, Iterator, Optional, Protocol, Union, overload

from .trace import Operand, Value, builtin_max, builtin_min, builtin_sum, call, reduce

__all__ = ["abs", "act", "batch_norm", "concat", "dot", "dropout", "elu", "exp", "gelu", "head_mean", "layer_norm",
           "layer_norm_all", "leaky_relu", "log", "lstm", "max", "mean", "min", "norm_act", "part", "pow", "relu",
           "row_softmax", "rsqrt", "sigmoid", "silu", "softmax", "sqrt", "sum", "tanh", "where"]


def _one(name: str) -> Callable[[Operand], Value]:
    def function(a: Operand) -> Value:
        return call(name, a)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(a), element by element."
    return function


relu, sigmoid, tanh, exp, log, sqrt, rsqrt, gelu, silu, abs, act = map(
    _one, ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "gelu", "silu", "abs", "act"))
softmax, row_softmax, head_mean = map(_one, ("softmax", "row_softmax", "head_mean"))
softmax.__doc__ = "Softmax over the in-edges, by head: a value of edges again."
row_softmax.__doc__ = "Softmax over the columns of a row."
head_mean.__doc__ = "The mean over the heads."


def leaky_relu(a: Operand, slope: Operand = 0.01) -> Value:
    return call("leaky_relu", a, slope)


def elu(a: Operand, alpha: Operand = 1) -> Value:
    return call("elu", a, alpha)


def pow(a: Operand, power: Operand) -> Value:
    return call("pow", a, power)


def where(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where `condition` is not 0, else b."""
    return call("where", condition, a, b)


def dropout(a: Operand, p: Optional[Operand] = None) -> Value:
    """While training only; without `p`, the option ``dropout``."""
    return call("dropout", a) if p is None else call("dropout", a, p)


def dot(a: Operand, b: Operand) -> Value:
    """The sum of products within each head."""
    return call("dot", a, b)


def concat(a: Operand, b: Operand, *more: Operand) -> Value:
    """The columns of a, then those of b, and so on."""
    return call("concat", a, b, *more)


def part(a: Operand, k: int, n: int) -> Value:
    """The k-th of n equal parts of the columns, as torch.chunk."""
    return call("part", a, k, n)


def layer_norm(a: Operand, name: Optional[str] = None) -> Value:
    return call("layer_norm", a) if name is None else call("layer_norm", a, name)


def layer_norm_all(a: Operand, name: Optional[str] = None) -> Value:
    """Over all elements of all vertices, as PyG's LayerNorm(mode="graph")."""
    return call("layer_norm_all", a) if name is None else call("layer_norm_all", a, name)


def norm_act(a: Operand, name: str) -> Value:
    """The network's normalisation (the option ``norm``), with parameters `name`, and its activation."""
    return call("norm_act", a, name)


def batch_norm(a: Operand, name: Optional[str] = None) -> Value:
    return call("batch_norm", a) if name is None else call("batch_norm", a, name)


def mean(body: Union[Value, Iterator[Value]], by: Optional[str] = None) -> Value:
    """The mean over the in-edges. ``by="type"``: of each type alone, and these added."""
    return reduce("mean", body, by)


def lstm(body: Union[Value, Iterator[Value]], weight: Value) -> Value:
    """torch's LSTM over the in-neighbours in edge order: ``lstm((u.g for u in v.innbs), p.weight)``."""
    return reduce("lstm", body, None, weight)


class _Reduction(Protocol):
    @overload
    def __call__(self, body: Union[Value, Iterator[Value]]) -> Value: ...
    @overload
    def __call__(self, a: Value, b: Operand) -> Value: ...
    @overload
    def __call__(self, *arguments: Any, **options: Any) -> Any: ...


def _reduction(name: str, builtin: Callable[..., Any]) -> _Reduction:
    def function(*arguments: Any, **options: Any) -> Any:
        first = arguments[0] if arguments else None
        if len(arguments) == 2 and any(isinstance(a, Value) for a in arguments):
            return call(name, *arguments)
        if len(arguments) == 1 and isinstance(first, Value):
            return reduce(name, first)
        if len(arguments) == 1 and isinstance(first, types.GeneratorType):
            values = list(first)
            if len(values) == 1 and isinstance(values[0], Value):
                return reduce(name, values[0])
            return builtin(values, **options)
        return builtin(*arguments, **options)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(... for u in v.innbs): over the in-edges. Of anything else, Python's own {name}()."
    return function


sum, max, min = _reduction("sum", builtin_sum), _reduction("max", builtin_max), _reduction("min", builtin_min)
