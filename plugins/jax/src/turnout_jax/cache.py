"""JAX's cache of compiled programs, in a folder of the user's.

What lies there is machine code that JAX runs, so only a folder that nobody else may write into is used.
"""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import jax
from jax.experimental.compilation_cache import compilation_cache

from turnout_aten.files import cache_path, is_ours

if TYPE_CHECKING:
    from contextlib import ExitStack

_LEAST_SECONDS = "jax_persistent_cache_min_compile_time_secs"  # JAX's setting: programs that compile faster are not kept


def use(until: ExitStack) -> None:
    """Let JAX keep programs until `until` is closed. A folder that the program has named to JAX stays the one."""
    if jax.config.jax_compilation_cache_dir:
        return
    path = cache_path("xla")
    why = "the user has no home folder" if path is None else _unfit(path)
    if why:
        warnings.warn(f"plugin.jax.cache: compiled programs are not kept: {why}", stacklevel=2)
        return
    before = getattr(jax.config, _LEAST_SECONDS)
    jax.config.update(_LEAST_SECONDS, 0.0)  # loading a program takes a quarter of compiling it, however small it is
    compilation_cache.set_cache_dir(str(path))

    def leave() -> None:
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update(_LEAST_SECONDS, before)
        compilation_cache.reset_cache()

    until.callback(leave)


def _unfit(path: Path) -> str:
    """Why a folder, which is made where there is none, cannot be used; "" if it can."""
    try:
        for each in (path.parent, path):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
            facts = os.lstat(each)
            if not stat.S_ISDIR(facts.st_mode):
                return f"{each} is a link"
            if not is_ours(facts) or (facts.st_mode & 0o022 and os.name == "posix"):
                return f"others may write into {each}"
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""
