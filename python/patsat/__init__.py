"""patsat: functional pattern programs to fast OpenCL kernels, by equality saturation.

>>> import numpy as np
>>> import patsat
>>> asum = patsat.compile("entry asum [n] (xs: [n]f32) : f32 = reduce (+) 0 (map abs xs)", device="Portable")
>>> float(asum(np.arange(-4, 4, dtype=np.float32)))
16.0

A program is compiled for the sizes of its arguments when it is first called with them: with the verified kernels of the
tuning store, or else with those that the cost model ranks first. `Program.optimize` measures candidates, and later calls
(of this process and of others) use the best.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from json import loads
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np

from . import _patsat
from ._patsat import version as _version

__version__ = _version()
__all__ = [
    "Array",
    "Device",
    "Diagnostic",
    "Optimized",
    "PatsatError",
    "Program",
    "compile",
    "devices",
    "entry",
    "put",
]

#: The types of elements, by their names in the language.
_TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "bool": np.bool_,
}
_NAMES = {np.dtype(ty): name for name, ty in _TYPES.items()}

#: Starts the process in which candidates run, so that a kernel that crashes takes nothing else down.
_WORKER = [sys.executable, "-c", "from patsat import _patsat; _patsat.worker()"]


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning: its code, what it says, and where."""

    code: str
    severity: str
    message: str
    file: str | None = None
    labels: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    help: tuple[str, ...] = ()


class PatsatError(Exception):
    """An error with a code, a place and advice. Its text is what the command line prints.

    >>> patsat.compile("entry f (x: f32) = y")
    Traceback (most recent call last):
    ...
    patsat.PatsatError: error[E0201]: nothing is called `y`
    ...
    """

    __module__ = "patsat"

    def __init__(self, text: str, code: str, diagnostics: Sequence[Diagnostic]):
        super().__init__(text)
        self.code = code
        self.diagnostics = tuple(diagnostics)


def _raise(error: _patsat.Error) -> PatsatError:
    text, code, described = error.args
    known = Diagnostic.__dataclass_fields__
    diagnostics = [
        Diagnostic(**{k: tuple(v) if isinstance(v, list) else v for k, v in d.items() if k in known})
        for d in loads(described)
    ]
    return PatsatError(text, code, diagnostics)


def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls the extension module, and raises its errors as :class:`PatsatError`."""
    try:
        return function(*args, **kwargs)
    except _patsat.Error as error:
        raise _raise(error) from None


@dataclass(frozen=True)
class Device:
    """An OpenCL device."""

    index: int
    name: str
    platform: str
    driver: str
    kind: str
    compute_units: int
    max_work_group_size: int
    local_mem_bytes: int
    global_mem_bytes: int
    label: str
    short: str


def _device(described: Mapping[str, Any]) -> Device:
    return Device(**{k: described[k] for k in Device.__dataclass_fields__})


def devices() -> list[Device]:
    """Lists the OpenCL devices.

    >>> any(d.platform == "Portable Computing Language" for d in patsat.devices())
    True
    """
    return [_device(d) for d in loads(_called(_patsat.devices))]


@cache
def _numbered(number: int) -> _patsat.Device:
    return _called(_patsat.Device, f"#{number}")


@cache
def _opened(selector: str | None) -> _patsat.Device:
    """Opens a device, once for all selectors that mean it: programs on it share their arrays."""
    return _numbered(_called(_patsat.find, selector))


def _selector(device: str | Device | None) -> str | None:
    if isinstance(device, Device):
        return f"#{device.index}"
    return device if device is not None else os.environ.get("PATSAT_DEVICE")


class Array:
    """An array on a device. It is copied to the host when NumPy (or `float`) asks for it.

    >>> xs = patsat.put(np.ones((2, 3), np.float32), device="Portable")
    >>> xs
    patsat.Array(shape=(2, 3), dtype=float32)
    >>> np.asarray(xs).sum()
    np.float32(6.0)
    """

    def __init__(self, raw: _patsat.Array):
        self._raw = raw
        self._copy: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension."""
        return tuple(self._raw.shape)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return np.dtype(_TYPES[self._raw.dtype])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """Returns the elements. The copy is made once, and is read-only."""
        if self._copy is None:
            self._copy = np.frombuffer(_called(self._raw.get), self.dtype).reshape(self.shape)
        return self._copy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __repr__(self) -> str:
        return f"patsat.Array(shape={self.shape}, dtype={self.dtype})"


Argument = Union[Array, np.ndarray, np.generic, float, int, bool]


def put(array: Any, device: str | Device | None = None) -> Array:
    """Copies an array to a device, so that several calls use it without a copy."""
    name, shape, data = _host(np.asarray(array))
    return Array(_called(_opened(_selector(device)).put, name, shape, data))


def _host(array: np.ndarray) -> tuple[str, list[int], bytes]:
    name = _NAMES.get(array.dtype.newbyteorder("="))
    if name is None:
        known = ", ".join(str(np.dtype(ty)) for ty in _TYPES.values())
        raise TypeError(f"patsat has no elements of type {array.dtype}; the types are {known}")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return name, list(array.shape), native.tobytes()


def _argument(value: Argument) -> Any:
    if isinstance(value, Array):
        return value._raw
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, np.integer)):
        return repr(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return _host(np.asarray(value))


@dataclass(frozen=True)
class Optimized:
    """The result of a search. Times are in microseconds, rates in GB/s and GFLOP/s."""

    entry: str
    sizes: Mapping[str, int]
    device: str
    cost_model: str
    median_us: float | None
    spread_us: float | None
    predicted_us: float
    bound: str
    gbytes_per_s: float | None
    gflops: float | None
    share_of_copy: float | None
    share_of_read: float | None
    max_rel_err: float | None
    term: str
    tunables: Mapping[str, int]
    kernels: str
    kernels_us: Sequence[float]
    candidates: Mapping[str, Any]
    total_ms: float
    #: Everything that `patsat optimize --json` prints.
    all: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def time_us(self) -> float:
        """The measured time, or the predicted one if nothing was measured."""
        return self.predicted_us if self.median_us is None else self.median_us

    def _repr_html_(self) -> str:
        """Shows the result in a notebook: times, a bar for the share of the bandwidth, term and kernels."""
        from html import escape

        share = self.share_of_copy or self.share_of_read
        rows = [
            ("time", f"{self.time_us:.2f} µs" + ("" if self.median_us else " (predicted)")),
            ("bound by", self.bound),
            ("sizes", " ".join(f"{n}={v}" for n, v in self.sizes.items())),
            ("device", self.device),
        ]
        if self.gbytes_per_s is not None:
            rows.append(("rate", f"{self.gbytes_per_s:.2f} GB/s, {self.gflops or 0:.2f} GFLOP/s"))
        table = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows)
        bar = ""
        if share is not None:
            bar = (
                f'<meter min="0" max="1" value="{min(share, 1):.3f}"></meter> '
                f"{100 * share:.0f}% of the device's bandwidth"
            )
        return (
            f"<h4>{escape(self.entry)}</h4><table>{table}</table><p>{bar}</p>"
            f"<details><summary>term</summary><pre>{escape(self.term)}</pre></details>"
            f"<details><summary>kernels</summary><pre>{escape(self.kernels)}</pre></details>"
        )


class Program:
    """A compiled entry: a function over arrays. Made by :func:`compile` and :func:`entry`."""

    def __init__(
        self,
        text: str | None,
        name: str,
        entry: str | None,
        *,
        device: str | Device | None,
        budget: int,
        float: str,
        rules: Sequence[str],
        store: str | os.PathLike | None,
        strategy: str,
        cost_model: str | None,
    ):
        self._selector = _selector(device)
        self._raw = _called(
            _patsat.Function,
            text,
            name,
            entry,
            device=self._selector,
            worker=_WORKER,
            budget=budget,
            float=float,
            rules=list(rules),
            store=None if store is None else os.fspath(store),
            strategy=strategy,
            cost_model=cost_model,
        )
        about = loads(self._raw.signature())
        self.__name__ = self.name = about["name"]
        self.parameters: dict[str, str] = {p["name"]: p["type"] for p in about["params"]}
        self.sizes: tuple[str, ...] = tuple(about["sizes"])
        self.type: str = about["type"]
        #: The program's text, with its imports.
        self.source: str = about["text"]
        #: Describes the last call: sizes, `device_us`, term and kernels.
        self.last: dict[str, Any] = {}
        self._results = about["results"]
        self._thread: ThreadPoolExecutor | None = None

    def __call__(self, *arguments: Argument, **sizes: int) -> Array | tuple[Array, ...]:
        """Calls the program with a value for each parameter, in order (for each component of one that holds tuples).

        Sizes that do not follow from the shapes of arrays are given by name. Returns an array on the device, or a
        tuple of the components of a result that is a tuple.
        """
        if self._selector == "none":
            raise ValueError("compiled for no device: `optimize` predicts, `interpret` runs the interpreter")
        device = _opened(self._selector)
        given = [_argument(a) for a in arguments]
        outputs, about = _called(self._raw.call, device, given, sizes)
        self.last = loads(about)
        arrays = tuple(Array(raw) for raw in outputs)
        return arrays[0] if self._results == 1 else arrays

    def submit(self, *arguments: Argument, **sizes: int) -> Future:
        """Calls the program in another thread, and returns a future. The calls of a program run in order."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"patsat-{self.name}")
        return self._thread.submit(self, *arguments, **sizes)

    def optimize(
        self,
        *,
        budget: int | None = None,
        progress: Callable[[dict[str, Any]], None] | None = None,
        **sizes: int,
    ) -> Optimized:
        """Searches for the best kernels for the given sizes, on generated data. Later calls use them.

        `budget` is the number of candidates that are measured. `progress` is called with each event: a dictionary
        with `type`, which is `phase`, `candidate` or `warning`. An exception in it, or Ctrl-C, ends the search.
        """
        device = None if self._selector == "none" else _opened(self._selector)
        told = None if progress is None else lambda event: progress(loads(event))
        budget = 40 if budget is None else budget
        result = loads(_called(self._raw.optimize, device, sizes, budget, told))
        known = Optimized.__dataclass_fields__
        return Optimized(**{k: v for k, v in result.items() if k in known}, all=result)

    def interpret(self, *arguments: Argument, **sizes: int) -> np.ndarray | tuple[np.ndarray, ...]:
        """Runs the program in the reference interpreter, which needs no device."""
        parts = _called(self._raw.interpret, [_argument(a) for a in arguments], sizes)
        arrays = tuple(np.frombuffer(data, _TYPES[ty]).reshape(shape) for ty, shape, data in parts)
        return arrays[0] if self._results == 1 else arrays

    def __repr__(self) -> str:
        sizes = "".join(f" [{n}]" for n in self.sizes)
        params = "".join(f" ({n}: {t})" for n, t in self.parameters.items())
        return f"<patsat entry {self.name}{sizes}{params} : {self.type}>"


def compile(
    program: str | os.PathLike,
    entry: str | None = None,
    *,
    device: str | Device | None = None,
    budget: int = 0,
    float: str = "contract",
    rules: Sequence[str] = (),
    store: str | os.PathLike | bool = True,
    strategy: str = "default",
    cost_model: str | None = None,
) -> Program:
    """Compiles a program: its text, or the path of a `.pat` file.

    Args:
        program: the text, or a path (a `pathlib.Path`, or a string that ends in `.pat`).
        entry: the entry, if there are several.
        device: a device, a part of its or its platform's name, `#k`, or `"none"`; the first one by default.
        budget: how many candidates a first call measures; with 0, the cost model chooses.
        float: which changes to float arithmetic are allowed: `exact`, `contract` or `relaxed`.
        rules: as `--rules` on the command line.
        store: the tuning store; `True` for that of the command line, `False` for none.
        strategy: how candidates are chosen for measurement.
        cost_model: a file, or the name of a shipped model, instead of that for the device.

    Raises:
        PatsatError: when the program is wrong.
    """
    is_path = isinstance(program, os.PathLike) or (
        "\n" not in program and program.endswith(".pat")
    )
    if store is True:
        store = _patsat.default_store()
    options = dict(
        device=device, budget=budget, float=float, rules=rules, store=store or None,
        strategy=strategy, cost_model=cost_model,
    )
    if is_path:
        return Program(None, os.fspath(program), entry, **options)
    return Program(program, "<program>", entry, **options)


def entry(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a program of a Python function over patterns; see :mod:`patsat.patterns`.

    >>> import patsat.patterns as pt
    >>> @patsat.entry(device="Portable")
    ... def scaled(a: pt.f32, xs: pt.f32["n"]):
    ...     return pt.map(lambda x: a * x, xs)
    >>> print(scaled.source)
    entry scaled [n] (a: f32) (xs: [n]f32) =
      map (\\v0 -> a * v0) xs
    >>> np.asarray(scaled(2.0, np.ones(3, np.float32)))
    array([2., 2., 2.], dtype=float32)
    """
    from .patterns import trace

    if function is None:
        return lambda function: entry(function, **options)
    made = compile(trace(function), **options)
    made.__doc__ = function.__doc__
    return made
