"""Functions for traced layers (:func:`gnnstream.layer`), with the meaning that docs/models.md gives them.

A value is a row of columns, of a vertex or an edge; results have its shape where nothing else is said, and float32
numbers. What has no words in a text is a TraceError.

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


#: Of functions of one value: an example, whose layer gives what the second text says.
_EXAMPLE = """

>>> print(gs.layer("h[w] -> [w]")(lambda v: {0}).body.split(":")[1].strip())
return {1}
"""


def _one(name: str, what: str = "element by element") -> Callable[[Operand], Value]:
    def function(a: Operand) -> Value:
        return call(name, a)
    function.__name__ = function.__qualname__ = name
    of_edges = name == "softmax"
    function.__doc__ = f"{name}(a): {what}." + _EXAMPLE.format(
        f"sum(nn.{name}(u.h) for u in v.innbs)" if of_edges else f"nn.{name}(v.h)",
        f"sum({name}(u.h))" if of_edges else f"{name}(h)")
    return function


relu, sigmoid, tanh, exp, log, sqrt, rsqrt, gelu, silu, abs = map(
    _one, ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "gelu", "silu", "abs"))
act = _one("act", "the network's activation, which the option ``activation`` says, element by element")
softmax = _one("softmax", "over the in-edges, by head: a value of edges again")
row_softmax = _one("row_softmax", "softmax over the columns of a row")
head_mean = _one("head_mean", "the mean over the heads, [heads * d] -> [d]")


def leaky_relu(a: Operand, slope: Operand = 0.01) -> Value:
    """a where it is above 0, else `slope` times a.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.leaky_relu(v.h, 0.2)).body.split(":")[1].strip())
    return leaky_relu(h, 0.2)
    """
    return call("leaky_relu", a, slope)


def elu(a: Operand, alpha: Operand = 1) -> Value:
    """a where it is above 0, else `alpha` (exp(a) - 1).

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.elu(v.h)).body.split(":")[1].strip())
    return elu(h, 1)
    """
    return call("elu", a, alpha)


def pow(a: Operand, power: Operand) -> Value:
    """a to the `power`, element by element.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.pow(v.h, 2)).body.split(":")[1].strip())
    return pow(h, 2)
    """
    return call("pow", a, power)


def where(condition: Operand, a: Operand, b: Operand) -> Value:
    """a where `condition` is not 0, else b.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.where(v.h > 0, v.h, -1)).body.split(":")[1].strip())
    return where(h > 0, h, (-1))
    """
    return call("where", condition, a, b)


def dropout(a: Operand, p: Optional[Operand] = None) -> Value:
    """Sets numbers to 0 with the chance `p`, and the others of `a` to a / (1 - p), while training only; without `p`,
    the option ``dropout``.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.dropout(v.h, 0.5)).body.split(":")[1].strip())
    return dropout(h, 0.5)
    """
    return call("dropout", a) if p is None else call("dropout", a, p)


def dot(a: Operand, b: Operand) -> Value:
    """The sum of products of `a` and `b` within each head, [heads * d] -> [heads].

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.dot(v.h, v.h)).body.split(":")[1].strip())
    return dot(h, h)
    """
    return call("dot", a, b)


def concat(a: Operand, b: Operand, *more: Operand) -> Value:
    """The columns of a, then those of b, and so on for `more`.

    >>> print(gs.layer("h[w] -> [2 * w]")(lambda v: nn.concat(v.h, v.h)).body.split(":")[1].strip())
    return concat(h, h)
    """
    return call("concat", a, b, *more)


def part(a: Operand, k: int, n: int) -> Value:
    """The k-th of n equal parts of the columns of a, as torch.chunk.

    >>> print(gs.layer("h[2 * w] -> [w]")(lambda v: nn.part(v.h, 1, 2)).body.split(":")[1].strip())
    return part(h, 1, 2)
    """
    return call("part", a, k, n)


def layer_norm(a: Operand, name: Optional[str] = None) -> Value:
    """Rows of a to mean 0 and variance 1, then times and plus the parameters `name`.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.layer_norm(v.h)).body.split(":")[1].strip())
    return layer_norm(h)
    """
    return call("layer_norm", a) if name is None else call("layer_norm", a, name)


def layer_norm_all(a: Operand, name: Optional[str] = None) -> Value:
    """Over all elements of a, of all vertices, as PyG's LayerNorm(mode="graph"); `name` as of :func:`layer_norm`.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.layer_norm_all(v.h)).body.split(":")[1].strip())
    return layer_norm_all(h)
    """
    return call("layer_norm_all", a) if name is None else call("layer_norm_all", a, name)


def norm_act(a: Operand, name: str) -> Value:
    """The network's normalisation of a (the option ``norm``), with parameters `name`, and its activation.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.norm_act(v.h, "first")).body.split(":")[1].strip())
    return norm_act(h, first)
    """
    return call("norm_act", a, name)


def batch_norm(a: Operand, name: Optional[str] = None) -> Value:
    """Columns of a to mean 0 and variance 1 over the vertices, as torch's BatchNorm1d; `name` as of :func:`layer_norm`.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.batch_norm(v.h)).body.split(":")[1].strip())
    return batch_norm(h)
    """
    return call("batch_norm", a) if name is None else call("batch_norm", a, name)


def mean(body: Union[Value, Iterator[Value]], by: Optional[str] = None) -> Value:
    """The mean of `body` over the in-edges. ``by="type"``: of each type alone, and these added.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: nn.mean(u.h for u in v.innbs)).body.split(":")[1].strip())
    return mean(u.h)
    """
    return reduce("mean", body, by)


def lstm(body: Union[Value, Iterator[Value]], weight: Value) -> Value:
    """torch's LSTM over `body` of the in-neighbours in edge order, with its `weight`.

    >>> text = gs.layer("h[w] -> [w]", "all[8 * w, w]")(lambda v, p: nn.lstm((u.h for u in v.innbs), p.all)).body
    >>> print(text.splitlines()[-1].strip())
    return lstm(u.h, all)
    """
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
    function.__doc__ = (f"{name}(... for u in v.innbs): over the in-edges, 0 where there are none. Of anything else, "
                        f"Python's own {name}().") + _EXAMPLE.format(f"nn.{name}(u.h for u in v.innbs)", f"{name}(u.h)")
    return function


sum, max, min = _reduction("sum", builtin_sum), _reduction("max", builtin_max), _reduction("min", builtin_min)
