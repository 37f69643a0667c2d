"""Where the value `row` goes, from its table to the call that runs: note 0001 draws it, and the code and what runs agree."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.registry import Registrations
from turnout_arrays import ArrayBackend, kernels
from turnout_aten.kernels.rows import Accepts, Row, Sizes
from turnout_aten.kernels.tables import register_kernels, register_over

ROOT = Path(__file__).resolve().parents[2]
ATEN = ROOT / "plugins" / "aten" / "src" / "turnout_aten"
NOTE = (ROOT / "docs" / "notes" / "0001-how-the-parts-fit.md").read_text("utf-8")
PLUGINS = str(ROOT / "plugins")  # core keeps what is called when a call is first resolved, and knows no row
PUBLIC = "plugin_api.py"  # hands the class on to packages from outside


def drawn() -> tuple[list[str], list[str]]:
    """The files of the drawing: those that a row enters, in order, and those that the KernelSpec made of it enters."""
    drawing = NOTE.partition("## Where a row goes")[2].partition("```\n")[2].partition("```")[0]
    before, found, after = drawing.partition("here the row ends")
    assert found
    files = [re.findall(r"kernels/\w+\.py", part) for part in (before, after)]
    return files[0], files[1]


def naming(name: str, module: str, root: Path) -> list[str]:
    """The files below a folder whose code imports a class, or its module as a whole; that of the module is one of them."""
    found = [path for path in root.rglob("*.py") if imports(path.read_text("utf-8"), name, module)]
    return sorted(path.relative_to(root).as_posix() for path in [*found, *root.rglob(f"kernels/{module}.py")])


def imports(source: str, name: str, module: str) -> bool:
    """Whether a source imports a class from `turnout_aten.kernels.<module>` or the public module, or such a module as a whole."""
    whole = f"turnout_aten.kernels.{module}"
    for node in ast.walk(ast.parse(source)) if "turnout_aten" in source else ():
        if isinstance(node, ast.ImportFrom):
            asked = {f"{node.module}.{alias.name}" for alias in node.names}
            if asked & {f"{whole}.{name}", f"turnout_aten.plugin_api.{name}", whole}:
                return True
        elif isinstance(node, ast.Import) and whole in {alias.name for alias in node.names}:
            return True
    return False


def test_the_drawing_has_at_most_five_files_for_a_row_and_none_twice():
    row, spec = drawn()
    assert row[0] == "kernels/rows.py"
    assert len(row) <= 5
    assert len({*row, *spec}) == len([*row, *spec])
    assert all((ATEN / file).is_file() for file in [*row, *spec])


def test_no_other_file_of_the_tensor_library_names_the_class():
    row, spec = drawn()
    assert naming("Row", "rows", ATEN) == sorted([*row, PUBLIC])
    others = {"kernels/custom.py", row[-1]}  # a kernel of the user, and where that of a row is made
    assert {*naming("KernelSpec", "specs", ATEN)} == {*spec, *others}


def test_the_compiled_call_path_names_no_row():
    assert naming("Row", "rows", ROOT / "plugins" / "speed" / "src") == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from turnout_aten.kernels.rows import Row", True),
        ("def f():\n    from turnout_aten.kernels.rows import Accepts, Row as R", True),
        ("from turnout_aten.plugin_api import Row", True),
        ("from turnout_aten.kernels import rows", True),
        ("import turnout_aten.kernels.rows", True),
        ("from turnout_aten.kernels.rows import Accepts", False),
        ("from turnout_aten.declarations.tables import Row", False),
    ],
)
def test_a_class_is_found_however_a_source_imports_it(source: str, found: bool):
    assert imports(source, "Row", "rows") is found


# ---- what runs


class Rep(ArrayBackend):
    name = "Rep"
    device_type = "rep"


def rows_in(value: Any) -> Iterator[Row]:
    """The rows that a value is or has: a binder has one, what registers has a table of them."""
    if isinstance(value, Row):
        yield value
    elif isinstance(value, dict):
        yield from (each for each in value.values() if isinstance(each, Row))
    elif type(value).__module__.startswith("turnout_aten.kernels."):
        for name in ("row", "binder"):
            yield from rows_in(getattr(value, name, None))


def walked(call: Callable[[], object]) -> list[tuple[Row, str]]:
    """The rows among the arguments of every function that is called meanwhile, each with the function's file."""
    seen: list[tuple[Row, str]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PLUGINS):
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                seen.extend((row, code.co_filename) for row in rows_in(frame.f_locals.get(name)))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


def files_of(seen: list[tuple[Row, str]]) -> dict[int, list[str]]:
    """The files of each row in the order in which it enters them. The class is at home in the first one, which is left out."""
    home, entered = drawn()[0][0], dict[int, list[str]]()
    for row, file in seen:
        path = Path(file)
        name = path.relative_to(ATEN).as_posix() if path.is_relative_to(ATEN) else file
        files = entered.setdefault(id(row), [])
        if name != home and files[-1:] != [name]:
            files.append(name)
    return entered


CALLS = {
    "functional": lambda x: turnout.exp(x),
    "a plan": lambda x: turnout.var(x),
    "in place": lambda x: x.exp_(),
    "out": lambda x: turnout.exp(x, out=turnout.ones(3, 3, device="rep")),
    "several outputs": lambda x: turnout.sort(x),
    "a list": lambda x: turnout.cat([x, x]),
    "no shape function": lambda x: turnout.nonzero(x),
    "over a row": lambda x: turnout.tanh(x),
    "over a row, in place": lambda x: x.tanh_(),
    "over a composite": lambda x: turnout.logit(x),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("checked", [False, True], ids=["", "debug.kernels"])
def test_a_row_enters_the_files_of_the_drawing_and_comes_back_to_none(case: str, checked: bool):
    turnout.ones(1)
    drawing, rows = drawn()[0], {"exp.out": Row(np.exp, allocates="same", pointwise=True, sizes=Sizes(8, fn=np.exp))}
    leaves = Accepts(unless=lambda *args: None)
    above = {"tanh.out": Row(lambda x, out: np.tanh(x, out), accepts=leaves), "logit": Row(lambda x, eps: x, accepts=leaves)}

    def run() -> None:
        with Registrations("rep") as library, Registrations("others") as others:
            library.backend(backend)
            register_kernels(library, backend, table)
            register_over(others, "Rep", above)
            CALLS[case](turnout.ones(3, 3, device="rep"))

    backend, table = Rep(np), kernels(np) | rows
    turnout.config.set({"debug.kernels": checked})
    try:
        seen = walked(run)
    finally:
        turnout.config.unset()
    files = files_of(seen)
    assert {file for entered in files.values() for file in entered} == set(drawing[1:])
    for entered in files.values():
        assert entered == [file for file in drawing if file in entered]  # in the order of the drawing, and each once


def made(*, like: Callable[..., Any] | None = None) -> Callable[..., Any]:
    def kernel(*arrays: Any) -> Any:
        return None

    if like is not None:
        kernel.__wrapped__ = like  # type: ignore[attr-defined]
    return kernel


def halves(*arrays: Any) -> None: ...


SHOWN = {
    "a function": (halves, "halves"),
    "a ufunc": (np.square, "square"),
    "one that another function made": (made(), "exp"),
    "around a function": (made(like=halves), "halves"),
    "a lambda": (lambda *arrays: None, "exp"),
    "a partial": (partial(halves, 1), "exp"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_row_is_shown_as_its_function_or_as_its_operator(case: str):
    function, shown = SHOWN[case]
    kernels = turnout.ops.aten.exp.out.kernels
    with Registrations("rep") as library, Registrations("others") as others:
        backend = Rep(np)
        library.backend(backend)
        register_kernels(library, backend, {"exp.out": function})
        register_over(others, "Rep", {"exp.out": function})
        assert [kernel.name for kernel in kernels["Rep"]] == [shown, f"{shown}, or the kernel below"]


def test_a_return_would_be_found():
    row, (_, tables, binding) = Row(np.exp), drawn()[0]
    seen = [(row, str(ATEN / file)) for file in (tables, binding, tables)]
    assert files_of(seen) == {id(row): [tables, binding, tables]}
