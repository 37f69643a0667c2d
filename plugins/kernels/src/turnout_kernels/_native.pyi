from collections.abc import Callable
from typing import Any

KERNELS: tuple[str, ...]
POINTWISE: tuple[str, ...]

def run(
    kernel: int, outputs: tuple[Any, ...], inputs: tuple[Any, ...], ints: tuple[int, ...], floats: tuple[float, ...],
    parts: int, threads: int, /,
) -> None: ...  # fmt: skip
def row(name: str, logarithm: bool, most: int, other: Callable[..., Any], /) -> Callable[..., Any]: ...
def instructions(name: str, /) -> str: ...
