from collections.abc import Callable
from typing import Any

KERNELS: tuple[str, ...]
POINTWISE: tuple[str, ...]
QUESTIONS: tuple[str, ...]
functions: Any

def run(
    kernel: int, outputs: tuple[Any, ...], inputs: tuple[Any, ...], ints: tuple[int, ...], floats: tuple[float, ...],
    parts: int, threads: int, /,
) -> None: ...  # fmt: skip
def row(
    name: str, number: int, most: int, inputs: int, numbers: int, single: bool, empty_like: Callable[..., Any],
    threads: Callable[[], int], other: Callable[..., Any], /,
) -> Callable[..., Any]: ...  # fmt: skip
def instructions(name: str, /) -> str: ...
