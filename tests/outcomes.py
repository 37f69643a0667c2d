"""What tests ask of calls: what an error says, whether results agree, what threads give and a fresh interpreter prints.

Tests of core use it too, where there is no NumPy: what compares numbers imports it when it is called.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import pytest


def refused(
    error: type[BaseException] | tuple[type[BaseException], ...], call: Callable[..., Any], /, *args: Any, **options: Any
) -> str:
    """What the error says that a call raises. Nothing of the call is alive then."""
    with pytest.raises(error) as caught:
        call(*args, **options)
    text = str(caught.value)
    del caught  # it holds this frame, which holds it
    return text


def flat(value: Any) -> list[Any]:
    """What is in a result of nested tuples and lists, in order."""
    return [v for part in value for v in flat(part)] if isinstance(value, (tuple, list)) else [value]


def as_array(tensor: Any) -> Any:
    """The numbers of a tensor as a NumPy array on the host; floats of two bytes as float32, which holds all of them."""
    there = tensor.detach().cpu()
    return (there.float() if there.dtype.name in ("float16", "bfloat16") else there).numpy()


def agree(found: Any, expected: Any, tolerance: float = 0.0, *, strides: bool = False) -> None:
    """Two results have the same parts: dtypes, shapes (and strides), and numbers up to a tolerance, relative and absolute."""
    import numpy as np

    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        if want is None or got is None:
            assert got is want
            continue
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert not strides or got.stride() == want.stride()
        np.testing.assert_allclose(as_array(got), as_array(want), rtol=tolerance, atol=tolerance)


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """What calls give that run at once, each in a thread of its own. An error of one of them is raised."""
    made: list[Future[Any]] = [Future() for _ in calls]

    def run(call: Callable[[], Any], future: Future[Any]) -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised below
            future.set_exception(error)

    threads = [Thread(target=run, args=pair) for pair in zip(calls, made, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [future.result() for future in made]


def printed(
    program: str, *arguments: str, options: tuple[str, ...] = ("-W", "error"), cwd: Path | None = None, **environment: str
) -> str:
    """What a fresh interpreter prints that runs a program. It has to end well."""
    command = [sys.executable, *options, "-c", program, *arguments]
    given = {**os.environ, **environment}
    done = subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
