"""Programs from Python functions: calls of patterns build an expression, which is written as the text of an entry.

>>> import patsat.patterns as pt
>>> def asum(xs: pt.f32["n"]):
...     return pt.reduce(pt.add, 0, pt.map(abs, xs))
>>> print(pt.trace(asum))
entry asum [n] (xs: [n]f32) =
  reduce (+) 0 (map abs xs)

Every function of the language is an attribute of this module: `pt.map`, `pt.scan`, `pt.histogram`, ... Functions are given
as Python functions (`lambda x: x * x`), as operators (`pt.add`, `pt.max`), or as other patterns. What a Python variable
holds is computed once, and stands in a `let`.
"""

from __future__ import annotations

import builtins
import inspect
from typing import Any, Callable, Union


class Type:
    """The type of an element; with sizes, that of an array: `pt.f32["n", "m"]`."""

    def __init__(self, name: str, dims: tuple[str, ...] = ()):
        self.name, self.dims = name, dims

    def __getitem__(self, dims: Any) -> Type:
        dims = dims if isinstance(dims, tuple) else (dims,)
        return Type(self.name, tuple(str(d) for d in dims) + self.dims)

    def __str__(self) -> str:
        return "".join(f"[{d}]" for d in self.dims) + self.name


f16, f32, f64 = Type("f16"), Type("f32"), Type("f64")
i8, i16, i32, i64 = Type("i8"), Type("i16"), Type("i32"), Type("i64")
u8, u16, u32, u64 = Type("u8"), Type("u16"), Type("u32"), Type("u64")
bool = Type("bool")

#: Precedence of the forms of expressions: a form stands in parentheses where a higher one is asked for.
_LAMBDA, _OR, _AND, _COMPARE, _ADD, _MUL, _POWER, _APPLY, _ATOM = range(9)

_BINARY = {
    "+": _ADD, "-": _ADD, "*": _MUL, "/": _MUL, "%": _MUL, "**": _POWER,
    "<": _COMPARE, "<=": _COMPARE, ">": _COMPARE, ">=": _COMPARE, "==": _COMPARE, "!=": _COMPARE,
    "&&": _AND, "||": _OR,
}


class Expr:
    """An expression: its parts, and the number of functions around the variables that it mentions."""

    __slots__ = ("form", "parts", "depth")
    __hash__ = object.__hash__

    def __init__(self, form: str, *parts: Any):
        self.form, self.parts = form, parts
        self.depth = builtins.max((p.depth for p in parts if isinstance(p, Expr)), default=0)
        if form == "lambda":
            # The function mentions its own variables no more from outside.
            variables, body = parts
            own = variables[0].depth
            self.depth = _outer(body, own)

    def __getitem__(self, index: Any) -> Expr:
        index = index if isinstance(index, tuple) else (index,)
        return Expr("index", self, *(_expr(i) for i in index))

    def __iter__(self):
        raise TypeError("an expression has no known length; take components of a pair with pt.fst and pt.snd")

    def __bool__(self):
        raise TypeError("a condition is known only when the program runs; use pt.where(condition, a, b)")

    def __abs__(self) -> Expr:
        return _apply("abs", self)

    def __neg__(self) -> Expr:
        return Expr("neg", self)


def _outer(body: Expr, own: int) -> int:
    """Returns the depth of the variables in a function's body that are not its own."""
    seen: set[int] = set()
    most = 0
    stack = [body]
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if e.form == "variable" and e.depth < own:
            most = builtins.max(most, e.depth)
        stack.extend(_children(e))
    return most


def _children(e: Expr) -> list[Expr]:
    if e.form == "lambda":
        return [e.parts[1]]
    return [p for p in e.parts if isinstance(p, Expr)]


def _operator(symbol: str, swapped: builtins.bool = False) -> Callable[[Expr, Any], Expr]:
    def method(self: Expr, other: Any) -> Expr:
        a, b = (_expr(other), self) if swapped else (self, _expr(other))
        return Expr("binary", symbol, a, b)

    return method


for _name, _symbol in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "/", "mod": "%", "pow": "**",
}.items():
    setattr(Expr, f"__{_name}__", _operator(_symbol))
    setattr(Expr, f"__r{_name}__", _operator(_symbol, swapped=True))
for _name, _symbol in {
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&&", "or": "||",
}.items():
    setattr(Expr, f"__{_name}__", _operator(_symbol))

#: How many functions are being traced around the present place.
_depth = 0


class Pattern:
    """A function of the language. Calling it makes an expression."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *arguments: Any) -> Expr:
        return _apply(self.name, *arguments)


def _apply(name: str, *arguments: Any) -> Expr:
    return Expr("apply", name, *(_expr(a) for a in arguments))


Value = Union[Expr, float, int, Callable[..., Any]]


def _expr(value: Any) -> Expr:
    """Makes an expression of what a Python program passes to a pattern."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Pattern):
        return Expr("name", value.name)
    if value is builtins.abs:
        return Expr("name", "abs")
    if value is builtins.max or value is builtins.min:
        return Expr("name", value.__name__)
    if isinstance(value, (builtins.bool, int, float)):
        return Expr("number", repr(value).lower() if isinstance(value, builtins.bool) else repr(value))
    if isinstance(value, str):
        # A size, or a literal with a type such as `1u8`.
        return Expr("name", value)
    if isinstance(value, tuple):
        return Expr("tuple", *(_expr(v) for v in value))
    if callable(value):
        return _function(value)
    raise TypeError(f"{value!r} has no meaning in a pattern program")


def _function(function: Callable[..., Any]) -> Expr:
    global _depth
    count = len(inspect.signature(function).parameters)
    _depth += 1
    try:
        variables = tuple(Expr("variable") for _ in range(count))
        for v in variables:
            v.depth = _depth
        body = _expr(function(*variables))
    finally:
        _depth -= 1
    return Expr("lambda", variables, body)


#: Operators as functions.
add, sub, mul, div = (Pattern(f"({s})") for s in "+-*/")


def where(condition: Any, yes: Any, no: Any) -> Expr:
    """Returns one of two values, by a condition."""
    return Expr("if", _expr(condition), _expr(yes), _expr(no))


def fst(pair: Any) -> Expr:
    """Returns the first component of a pair."""
    return Expr("component", _expr(pair), 0)


def snd(pair: Any) -> Expr:
    """Returns the second component of a pair."""
    return Expr("component", _expr(pair), 1)


def __getattr__(name: str) -> Pattern:
    if name.startswith("_"):
        raise AttributeError(name)
    return Pattern(name)


class _Writer:
    """Writes expressions as text. Expressions that are used more than once stand in `let`s, as far out as their variables
    allow."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count - 1}"

    def body(self, root: Expr, depth: int, indent: str) -> str:
        """Writes the body of a function whose variables have a depth."""
        uses: dict[int, int] = {}
        order: list[Expr] = []

        def visit(e: Expr) -> None:
            uses[id(e)] = uses.get(id(e), 0) + 1
            if uses[id(e)] == 1:
                for part in _children(e):
                    visit(part)
                order.append(e)

        visit(root)
        lets = ""
        for e in order:
            shared = uses[id(e)] > 1 and e.depth == depth and id(e) not in self.names
            if shared and e.form in ("apply", "binary", "index", "if", "neg", "tuple") and e is not root:
                text = self.text(e, _LAMBDA, indent + "  ")
                name = self.fresh()
                self.names[id(e)] = name
                lets += f"let {name} = {text}\n{indent}"
        if lets:
            return f"{lets}in {self.text(root, _LAMBDA, indent)}"
        return self.text(root, _LAMBDA, indent)

    def text(self, e: Expr, least: int, indent: str) -> str:
        """Writes an expression, in parentheses if its form binds less than `least`."""
        known = self.names.get(id(e))
        if known is not None:
            return known
        text, form = self.form(e, indent)
        return f"({text})" if form < least else text

    def form(self, e: Expr, indent: str) -> tuple[str, int]:
        parts = e.parts
        if e.form in ("name", "number"):
            return parts[0], _ATOM if not parts[0].startswith("-") else _ADD
        if e.form == "binary":
            symbol, a, b = parts
            level = _BINARY[symbol]
            # Operators of one level are written with parentheses on the right; comparisons on both sides.
            left = level + 1 if level == _COMPARE else level
            return f"{self.text(a, left, indent)} {symbol} {self.text(b, level + 1, indent)}", level
        if e.form == "apply":
            name, *arguments = parts
            texts = [self.text(a, _ATOM, indent) for a in arguments]
            return " ".join([name, *texts]), _APPLY if texts else _ATOM
        if e.form == "neg":
            return f"-{self.text(parts[0], _ATOM, indent)}", _ADD
        if e.form == "index":
            array, *indices = parts
            texts = "".join(f"[{self.text(i, _LAMBDA, indent)}]" for i in indices)
            return f"{self.text(array, _ATOM, indent)}{texts}", _ATOM
        if e.form == "component":
            return f"{self.text(parts[0], _ATOM, indent)}.{parts[1]}", _ATOM
        if e.form == "tuple":
            return f"({', '.join(self.text(p, _LAMBDA, indent) for p in parts)})", _ATOM
        if e.form == "if":
            condition, yes, no = (self.text(p, _LAMBDA, indent) for p in parts)
            return f"if {condition} then {yes} else {no}", _LAMBDA
        if e.form == "lambda":
            variables, body = parts
            for v in variables:
                self.names[id(v)] = self.fresh()
            names = " ".join(self.names[id(v)] for v in variables)
            text = self.body(body, variables[0].depth if variables else 0, indent + "  ")
            return f"\\{names} -> {text}", _LAMBDA
        raise TypeError(f"a variable is used outside its function: {e.form}")


def trace(function: Callable[..., Any]) -> str:
    """Returns the text of the entry that a Python function describes.

    The annotations of its parameters are types: `pt.f32`, `pt.f32["n"]`. Sizes are introduced in the order in which they
    occur first.
    """
    parameters = inspect.signature(function, eval_str=True).parameters
    writer = _Writer()
    variables, declared, sizes = [], [], {}
    for name, parameter in parameters.items():
        ty = parameter.annotation
        if not isinstance(ty, Type):
            raise TypeError(f'parameter `{name}` needs a type, such as `{name}: pt.f32["n"]`')
        for dim in ty.dims:
            if dim.isidentifier():
                sizes[dim] = None
        variable = Expr("variable")
        writer.names[id(variable)] = name
        variables.append(variable)
        declared.append(f" ({name}: {ty})")
    result = _expr(function(*variables))
    head = function.__name__ + "".join(f" [{n}]" for n in sizes) + "".join(declared)
    return f"entry {head} =\n  {writer.body(result, 0, '  ')}"
