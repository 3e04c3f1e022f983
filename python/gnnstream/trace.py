"""Layers as Python functions of one vertex, in the manner of Seastar, traced into the text that the engine compiles.

    from gnnstream.nn import dot, leaky_relu, softmax, sum

    @gnnstream.layer("h[in] -> [heads * d]", "lin.weight[heads * d, in]", "att_src[1, heads, d]",
                     "att_dst[1, heads, d]")
    def attend(v, p):
        v.x = v.h @ p["lin.weight"].T
        v.a = dot(v.x, p.att_src)
        v.b = dot(v.x, p.att_dst)
        return sum(softmax(leaky_relu(u.a + v.b, 0.2)) * u.x for u in v.innbs)

The function runs once, on symbols: ``v`` is this vertex, ``u`` an in-neighbour, and what comes out is a text as in
docs/models.md, which ``attend.text`` shows. Nothing of Python is left in what the engine runs.
"""
from __future__ import annotations

import builtins
import inspect
import re
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Union

from . import _engine
from ._options import check
from ._types import TrainOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Layer", "Model", "Operand", "Parameters", "TraceError", "Value", "Vertex", "layer"]

_COMPARE, _ADD, _MULTIPLY, _ATOM = range(4)


class TraceError(TypeError):
    """The function does something that a model's text has no words for.

    >>> gs.layer("h[in] -> [out]")(lambda v: sum(u.nothing for u in v.innbs))
    Traceback (most recent call last):
    gnnstream.trace.TraceError: v.nothing: not there; it has h
    """


class Value:
    """A symbol: rows of vertices, or, where it depends on an in-neighbour, of edges. Made by the function that is
    traced, with Python's operators and :mod:`gnnstream.nn`; `kind`, `inputs`, `text` and `over` say what it stands for.

    >>> print(gs.layer("h[w] -> [w]")(lambda v: 2 * v.h - v.h / 3).body.split(":")[1].strip())
    return 2 * h - h / 3
    """

    __hash__ = object.__hash__

    def __init__(self, kind: str, *inputs: Union[Value, str], text: str = "",
                 over: Optional[_Neighbours] = None) -> None:
        self.kind, self.text = kind, text
        self.inputs = inputs
        self.name: Optional[str] = None  # of its own, in the text
        self.precedence = _ATOM
        self.tail: list[str] = []        # words behind a reduction's arguments
        sets: set[_Neighbours] = {i.over for i in inputs if isinstance(i, Value) and i.over is not None}
        if over is not None:
            sets.add(over)
        if len(sets) > 1:
            raise TraceError("values of edges to two kinds of neighbours in one expression")
        self.over: Optional[_Neighbours] = None if kind == "reduce" else next(iter(sets), None)

    def __bool__(self) -> bool:
        raise TraceError("a value has no truth while it is traced: use where(condition, a, b)")

    def __iter__(self) -> Iterator[Value]:
        raise TraceError("a value cannot be iterated; part(a, k, n) is its k-th of n equal parts")

    def __add__(self, other: Operand) -> Value: return _binary("+", _ADD, self, other)
    def __sub__(self, other: Operand) -> Value: return _binary("-", _ADD, self, other)
    def __mul__(self, other: Operand) -> Value: return _binary("*", _MULTIPLY, self, other)
    def __truediv__(self, other: Operand) -> Value: return _binary("/", _MULTIPLY, self, other)
    def __matmul__(self, other: Operand) -> Value: return _binary("@", _MULTIPLY, self, other)
    def __rsub__(self, other: Operand) -> Value: return _binary("-", _ADD, other, self)
    def __rmul__(self, other: Operand) -> Value: return _binary("*", _MULTIPLY, other, self)
    def __rtruediv__(self, other: Operand) -> Value: return _binary("/", _MULTIPLY, other, self)
    def __lt__(self, other: Operand) -> Value: return _binary("<", _COMPARE, self, other)
    def __le__(self, other: Operand) -> Value: return _binary("<=", _COMPARE, self, other)
    def __gt__(self, other: Operand) -> Value: return _binary(">", _COMPARE, self, other)
    def __ge__(self, other: Operand) -> Value: return _binary(">=", _COMPARE, self, other)
    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return _binary("==", _COMPARE, self, other)
    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return _binary("!=", _COMPARE, self, other)
    def __neg__(self) -> Value: return Value("negative", self)
    def __abs__(self) -> Value: return call("abs", self)
    def __pow__(self, power: Operand) -> Value: return call("pow", self, power)

    def __radd__(self, other: Operand) -> Value:
        # The built-in sum() begins with the number 0: 0 + what the one in-neighbour gives is the sum over all of them.
        if other is not None and type(other) is int and other == 0 and self.over is not None and self.over.open:
            return reduce("sum", self)
        return _binary("+", _ADD, other, self)


class Parameter(Value):
    """A learned array. ``.T`` is the transposed, ``[u.edge.type]`` the matrix, row or number of an edge's type."""

    def __init__(self, text: str, matrix: bool = True) -> None:
        super().__init__("leaf", text=text)
        self._matrix = matrix

    @property
    def T(self) -> Parameter:
        return Parameter(self.text + "'", False)

    def __getitem__(self, index: Value) -> Parameter:
        if not (isinstance(index, Value) and index.text == "e.type"):
            raise TraceError("a parameter has no index but [u.edge.type]")
        typed = Parameter(self.text + "[e.type]", False)
        typed.over = index.over
        return typed


Operand = Union[Value, int, float]


def _value(thing: object) -> Value:
    if isinstance(thing, Value):
        return thing
    if isinstance(thing, (int, float)) and not isinstance(thing, bool):
        text = repr(float(thing)) if isinstance(thing, float) else repr(thing)
        return Value("number", text=text)
    raise TraceError(f"{thing!r}: no value; numbers, vertices' values and parameters are")


def _binary(operator: str, precedence: int, left: object, right: object) -> Value:
    made = Value("binary", _value(left), _value(right), text=operator)
    made.precedence = precedence
    return made


def call(name: str, *arguments: Union[Operand, str]) -> Value:
    """NAME(arguments), of values, numbers and words."""
    return Value("call", *[a if isinstance(a, str) else _value(a) for a in arguments], text=name)


def reduce(name: str, body: Union[Value, Iterable[Value]], by: Optional[str] = None, *more: Value) -> Value:
    """NAME(body) over the in-edges. `body`: a value of edges, or a generator over ``v.innbs`` that gives one."""
    if not isinstance(body, Value):
        values = list(body)
        if len(values) != 1 or not isinstance(values[0], Value):
            raise TraceError(f"{name}(): wants `{name}(... for u in v.innbs)`")
        body = values[0]
    if body.over is None:
        raise TraceError(f"{name}(): what is reduced does not depend on the in-neighbour u or its edge")
    made = Value("reduce", body, *more, text=name)
    made.tail = ([by] if by else []) + (["self"] if body.over.itself else [])
    return made


class _Neighbours:
    """v.innbs: gives one symbol for all of them. `itself`: the vertex is one of them, exactly once."""

    def __init__(self, vertex: Vertex, itself: bool) -> None:
        self.vertex, self.itself, self.open = vertex, itself, False

    def __iter__(self) -> Iterator[_Neighbour]:
        self.open = True
        yield _Neighbour(self.vertex, self)
        self.open = False


class _Neighbour:
    _of: tuple[Vertex, _Neighbours]
    edge: _Edge

    def __init__(self, vertex: Vertex, over: _Neighbours) -> None:
        object.__setattr__(self, "_of", (vertex, over))
        object.__setattr__(self, "edge", _Edge(over))

    def __getattr__(self, name: str) -> Value:
        vertex, over = self._of
        return Value("leaf", text="u." + vertex._known(name), over=over)

    def __setattr__(self, name: str, value: object) -> None:
        raise TraceError(f"u.{name} = ...: values belong to v; every vertex is the u of its out-neighbours")


class _Edge:
    """u.edge: ``weight`` and ``type`` of the edge from u to v."""

    def __init__(self, over: _Neighbours) -> None:
        self.weight = Value("leaf", text="e.weight", over=over)
        self.type = Value("leaf", text="e.type", over=over)


class Vertex:
    """v: its values by name, among them ``in_degree`` and ``loops``; ``input[k]``, what the network's k-th layer got;
    ``innbs`` and ``innbs_and_self``. ``v.name = value`` gives a value its name, by which u has it.

    `first` is the name of what the layer gets, `parameters` are names that values cannot have.

    >>> @gs.layer("h[w] -> [w]")
    ... def double(v):
    ...     v.twice = 2 * v.h
    ...     return sum(u.twice for u in v.innbs) / v.in_degree
    >>> print(double.body)
    layer double(h[w]) -> [w]:
        twice = 2 * h
        return sum(u.twice) / in_degree
    <BLANKLINE>
    """

    _KEYWORDS = ("in_degree", "loops")

    _trace: tuple[dict[str, str], list[tuple[str, Value]]]
    _taken: set[str]
    innbs: _Neighbours
    innbs_and_self: _Neighbours
    input: _Inputs

    def __init__(self, first: str, parameters: Iterable[str]) -> None:
        names = {first: first, **{k: k for k in self._KEYWORDS}}
        object.__setattr__(self, "_trace", (names, []))
        object.__setattr__(self, "_taken", {*names, *parameters})
        object.__setattr__(self, "innbs", _Neighbours(self, False))
        object.__setattr__(self, "innbs_and_self", _Neighbours(self, True))
        object.__setattr__(self, "input", _Inputs())

    def _known(self, name: str) -> str:
        names, _ = self._trace
        if name not in names:
            raise TraceError(f"v.{name}: not there; it has {', '.join(n for n in names if n not in self._KEYWORDS)}")
        return names[name]

    def __getattr__(self, name: str) -> Value:
        return Value("leaf", text="v." + self._known(name))

    def __setattr__(self, name: str, value: object) -> None:
        names, statements = self._trace
        found = _value(value)
        if found.over is not None:
            raise TraceError(f"v.{name} = ...: a value of edges; reduce it first: sum(... for u in v.innbs)")
        unique, k = name, 1
        while unique in self._taken:
            k += 1
            unique = f"{name}_{k}"
        self._taken.add(unique)
        statements.append((unique, found))
        names[name] = unique


class _Inputs:
    def __getitem__(self, k: int) -> Value:
        return Value("leaf", text=f"v.input.{int(k)}")


class Parameters:
    """p: parameters by name, and the numbers that constants and the header's widths stand for.

    `names` are those of the layer's header, `numbers` its widths and constants.

    >>> scaled = gs.layer("h[in] -> [out]", "w[out, in]", constants={"alpha": 0.1})
    >>> scaled = scaled(lambda v, p: p.alpha * (v.h @ p["w"].T))
    >>> print(scaled.text.splitlines()[-1].strip())
    return alpha * (h @ w')
    """

    def __init__(self, names: list[str], numbers: list[str]) -> None:
        self._names, self._numbers = names, numbers

    def __getitem__(self, name: str) -> Parameter:
        if name in self._names:
            return Parameter(name)
        if name in self._numbers:
            return Parameter(name, False)
        raise TraceError(f"p[{name!r}]: no such parameter; there are {', '.join([*self._names, *self._numbers])}")

    def __getattr__(self, name: str) -> Parameter:
        return self[name]


class _Printer:
    """Statements of a text. What is used twice gets a name, so that the text does not grow as the tree would."""

    def __init__(self, statements: list[tuple[str, Value]], taken: set[str]) -> None:
        self.lines: list[str] = []
        self.uses: dict[int, int] = {}
        self.fresh, self.taken = 0, taken
        for _, value in statements:
            self.count(value)
        for name, value in statements:
            text = self.expression(value, False, 0)
            self.lines.append(f"{name} = {text}")

    def count(self, value: Value) -> None:
        self.uses[id(value)] = self.uses.get(id(value), 0) + 1
        if self.uses[id(value)] == 1:
            for each in value.inputs:
                if isinstance(each, Value):
                    self.count(each)

    def named(self, value: Value) -> str:
        """The name of a value that is used more than once, whose statement is printed at its first use."""
        if value.name is None:
            while f"t{self.fresh}" in self.taken:
                self.fresh += 1
            name = f"t{self.fresh}"
            self.fresh += 1
            text = self.bare(value, value.over is not None, 0)
            self.lines.append(f"{name} = {text}")
            value.name = name
        return value.name

    def expression(self, value: Union[Value, str], inside: bool, precedence: int) -> str:
        """`inside`: of a reduction, where this vertex's values are called v.x."""
        if isinstance(value, str):
            return value
        if value.kind not in ("leaf", "number") and self.uses[id(value)] > 1:
            name = self.named(value)
            return "v." + name if inside and value.over is None else name
        return self.bare(value, inside, precedence)

    def bare(self, value: Value, inside: bool, precedence: int) -> str:
        if value.kind == "leaf":
            return value.text if inside or not value.text.startswith("v.") else value.text[2:]
        if value.kind == "number":
            return f"({value.text})" if value.text.startswith("-") else value.text
        if value.kind == "negative":
            return f"(-{self.expression(value.inputs[0], inside, _ATOM)})"
        if value.kind == "binary":
            own = value.precedence
            left, right = value.inputs
            right_needs = own + 1 if own != _COMPARE else _ADD
            left_needs = own if own != _COMPARE else _ADD
            text = (f"{self.expression(left, inside, left_needs)} {value.text} "
                    f"{self.expression(right, inside, right_needs)}")
            return f"({text})" if own < precedence else text
        if value.kind == "reduce" and inside:
            raise TraceError(f"{value.text}() within a reduction: give it a name first, as v.{value.text}med = ...")
        inside = inside or value.kind == "reduce"
        arguments = [self.expression(each, inside, 0) for each in value.inputs] + value.tail
        return f"{value.text}({', '.join(arguments)})"


class Layer:
    """A traced layer; ``text`` is what the engine gets. ``constants`` stand above it: ``alpha=0.2`` of the option
    ``set`` changes one.

    `name` is its own, `body` its text without the `constants`.

    >>> mean = gs.layer("h[w] -> [w]", name="average")(lambda v: nn.mean(u.h for u in v.innbs))
    >>> mean.name, mean.text
    ('average', 'layer average(h[w]) -> [w]:\\n    return mean(u.h)\\n')
    """

    def __init__(self, name: str, body: str, constants: Optional[Mapping[str, float]] = None) -> None:
        self.name, self.body, self.constants = name, body, dict(constants or {})

    @property
    def text(self) -> str:
        return _declared(self.constants) + self.body

    def __repr__(self) -> str:
        return self.text


def _declared(constants: Mapping[str, float]) -> str:
    lines = [f"const {name} = {_number(name, value)}" for name, value in constants.items()]
    return "\n".join(lines) + "\n\n" if lines else ""


def _number(name: str, value: float) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TraceError(f"constant {name}: {value!r} is no number")
    return repr(value)


def _all_constants(layers: Iterable[Layer]) -> dict[str, float]:
    """Of all layers; a name that two of them give other numbers is refused."""
    found: dict[str, float] = {}
    for each in layers:
        for name, value in each.constants.items():
            if found.setdefault(name, value) != value:
                raise TraceError(f"constant {name}: {found[name]!r} in one layer and {value!r} in another")
    return found


_HEADER = re.compile(r"\s*([A-Za-z_]\w*)\s*(\[[^\]]*\])\s*->\s*(\[[^\]]*\])\s*")
_PARAMETER = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\[[^\]]*\]\s*")


def layer(shape: str, *parameters: str, name: Optional[str] = None, buffers: Iterable[str] = (),
          constants: Optional[Mapping[str, float]] = None) -> Callable[[Callable[..., Any]], Layer]:
    """Traces a function of a vertex, ``f(v)`` or ``f(v, p)`` with parameters, into a :class:`Layer`.

    shape       "h[in] -> [out]": the value that the layer gets, its width, and the width that it gives
    parameters  "lin.weight[out, in]", ...: ``p["lin.weight"]``, or ``p.bias`` where the name has no dot
    buffers     the same, of arrays that are not learned
    constants   {"alpha": 0.1}: ``p.alpha``, a number that the option ``set`` can change

    The widths of `shape` are numbers, too: ``p.d``.

    `name` is the layer's, without it the function's. TraceError: what the function does has no words in a text.

    >>> @gs.layer("h[in] -> [out]", "weight[out, in]", "bias[out]")
    ... def plain(v, p):
    ...     return nn.mean(u.h for u in v.innbs) @ p.weight.T + p.bias
    >>> print(plain)
    layer plain(h[in]) -> [out]:
        param weight[out, in], bias[out]
        return mean(u.h) @ weight' + bias
    <BLANKLINE>
    """
    numbers_of, buffers = dict(constants or {}), list(buffers)
    header = _HEADER.fullmatch(shape)
    if header is None:
        raise TraceError(f'{shape!r}: must be as "h[in] -> [out]"')
    names = []
    for text in (*parameters, *buffers):
        match = _PARAMETER.fullmatch(text)
        if match is None:
            raise TraceError(f'{text!r}: must be as "weight[out, in]"')
        names.append(match.group(1))

    def traced(function: Callable[..., Any]) -> Layer:
        called = name or (function.__name__ if function.__name__.isidentifier() else "layer_of_lambda")
        vertex = Vertex(header.group(1), [*names, *numbers_of])
        two = len(inspect.signature(function).parameters) > 1
        widths = re.findall(r"[A-Za-z_]\w*", header.group(2) + header.group(3))
        numbers = [*numbers_of, *dict.fromkeys(widths)]
        result = _value(function(vertex, Parameters(names, numbers)) if two else function(vertex))
        if result.over is not None:
            raise TraceError("the layer gives a value of edges; reduce it: sum(... for u in v.innbs)")
        lines = [f"layer {called}({header.group(1)}{header.group(2)}) -> {header.group(3)}:"]
        lines += [f"    param {', '.join(parameters)}"] if parameters else []
        lines += [f"    buffer {', '.join(buffers)}"] if buffers else []
        statements = [*vertex._trace[1], ("return", result)]
        body = [f"    {line}" for line in _Printer(statements, vertex._taken).lines]
        body[-1] = body[-1].replace("return = ", "return ", 1)
        return Layer(called, "\n".join(lines + body) + "\n", numbers_of)
    return traced


class Model:
    """A network of traced layers: the last one is the network's last, those before it are used in order, the one
    before the last as often as needed. One layer alone is all of them. ``text`` is what the engine gets; a model's
    text can be given as a string, too.

    `layers`: of :func:`layer`, or texts. A path is no text: give it as it is to :class:`Run`.

    >>> sums = gs.layer("h[in] -> [out]", "w[out, in]")(lambda v, p: nn.sum(u.h for u in v.innbs) @ p.w.T)
    >>> gs.train(store, gs.Model(sums), hidden=8, epochs=2).epochs
    2
    """

    def __init__(self, *layers: Union[Layer, str]) -> None:
        if not layers:
            raise TraceError("a model needs a layer")
        traced = [each for each in layers if isinstance(each, Layer)]
        text = _declared(_all_constants(traced)) + "\n".join(
            each.body if isinstance(each, Layer) else str(each) for each in layers)
        self.text = text if text.endswith("\n") else text + "\n"  # by which the engine knows a text from a path

    def __repr__(self) -> str:
        return self.text

    def compiled(self, features: int, classes: int, *,  # type: ignore[misc] # not among `options` here
                 edge_types: int = 0, dot: bool = False,
                 **options: Unpack[TrainOptions]) -> str:
        """What the compiler makes of it, forward and backward, as ``gnnstream model`` prints it.

        `features` and `classes`: columns; `edge_types`: types of edges, 0: none; `dot`: for Graphviz.

        >>> sums = gs.layer("h[in] -> [out]", "w[out, in]")(lambda v, p: nn.sum(u.h for u in v.innbs) @ p.w.T)
        >>> "sum_in" in gs.Model(sums).compiled(8, 3)
        True
        """
        given = check({**options, "model": self.text}, _engine.train_fields, "compiled()")
        text: str = _engine.print_model(given, features, classes, edge_types, dot)
        return text


builtin_sum, builtin_max, builtin_min = builtins.sum, builtins.max, builtins.min
