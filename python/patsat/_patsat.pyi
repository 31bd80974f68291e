"""The extension module. Values cross the border as (type, shape, bytes), and descriptions as JSON."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike

class Error(Exception): ...

class Device:
    def __new__(cls, selector: str | None) -> Device: ...
    def put(self, ty: str, shape: Sequence[int], data: bytes) -> Array: ...

class Array:
    @property
    def shape(self) -> list[int]: ...
    @property
    def dtype(self) -> str: ...
    def get(self) -> bytes: ...

Value = Array | str | tuple[str, Sequence[int], bytes]

class Function:
    def __new__(
        cls,
        text: str | None,
        name: str,
        entry: str | None,
        *,
        device: str | None,
        worker: Sequence[str],
        budget: int,
        float: str,
        rules: Sequence[str],
        store: str | PathLike[str] | None,
        strategy: str,
        cost_model: str | None,
    ) -> Function: ...
    def signature(self) -> str: ...
    def call(
        self, device: Device, arguments: Sequence[Value], sizes: Mapping[str, int]
    ) -> tuple[list[Array], str]: ...
    def optimize(
        self,
        device: Device | None,
        sizes: Mapping[str, int],
        budget: int | None,
        progress: Callable[[str], object] | None,
    ) -> str: ...
    def interpret(
        self, arguments: Sequence[Value], sizes: Mapping[str, int]
    ) -> list[tuple[str, list[int], bytes]]: ...

def devices() -> str: ...
def find(selector: str | None) -> int: ...
def default_store() -> str | None: ...
def worker() -> None: ...
def version() -> str: ...
