"""What a row of a backend's table may do, and how a row that does something else is noticed."""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import turnout
import turnout_aten
from outcomes import refused
from turnout import config
from turnout.dtypes import bool_, dtype_named, float64
from turnout.errors import RegistrationError
from turnout.library.libraries import on_arrays
from turnout.operators.kernels import ARRAY
from turnout.operators.values import flat
from turnout.registry import Registrations
from turnout_arrays import ArrayBackend, kernels
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.errors.rows import KernelFault, RowError
from turnout_aten.kernels import paths, rows, rules
from turnout_aten.kernels.binding import combined
from turnout_aten.kernels.contract import misfit, row_signature
from turnout_aten.kernels.paths import Question
from turnout_aten.kernels.rows import COUNT, KERNEL, Accepts, Row, Sizes, Steps
from turnout_aten.kernels.tables import register_kernels
from turnout_conformance import cases as operator_cases
from turnout_conformance.cases import CASES
from turnout_conformance.comparing import find, form


class Rep(ArrayBackend):
    name = "Rep"
    device_type = "rep"


@pytest.fixture
def on_rep():
    """Calls a function with a tensor on a backend that has one row of its own."""
    turnout.ones(1)

    def run(rows, call):
        with Registrations("rep") as library:
            backend = Rep(np)
            library.backend(backend)
            register_kernels(library, backend, kernels(np) | rows)
            return call(turnout.ones(2, device="rep")).tolist()

    yield run
    config.unset()


def place(fn):
    return f"{fn.__qualname__.rpartition('<locals>.')[2]} ({fn.__code__.co_filename}:{fn.__code__.co_firstlineno})"


def called_at(call):
    return f"\n  called at  {call.__code__.co_filename}:{call.__code__.co_firstlineno} in {call.__name__}"


def returns(a, out):
    return np.exp(a)


def silent(a, out):
    np.exp(a, out)


def other_array(a, out):
    np.exp(a, out)
    return out[:]


def text(a, out=None):
    return "hello" if out is None else np.exp(a, out)


WRITES = (
    "; what a row returns is not the result\n"
    "  to fix  write the result into the last argument and return None or that argument, such as numpy.exp(x, out)"
)


@pytest.mark.parametrize(("row", "debug"), [(returns, True), (other_array, False)])
@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("exp", lambda x: x.exp()),
        ("exp_", lambda x: x.exp_()),
        ("exp.out", lambda x: turnout.exp(x, out=turnout.empty(2, device="rep"))),
    ],
)
def test_a_row_that_returns_an_array_of_its_own_is_an_error(on_rep, row, op, call, debug):
    config.set({"debug.kernels": debug})
    said = refused(KernelFault if debug else RowError, on_rep, {"exp.out": row}, call)
    line = called_at(call) if debug else ""
    assert said == f"aten::{op}: the row of Rep, {place(row)}, returned ndarray of shape [2]{WRITES}{line}"


@pytest.mark.parametrize(("row", "debug"), [(silent, True), (np.exp, False), (lambda a, out: (np.exp(a, out),), True)])
def test_a_row_that_writes_may_return_nothing_or_its_output(on_rep, row, debug):
    config.set({"debug.kernels": debug})
    for call in (lambda x: x.exp(), lambda x: x.exp_(), lambda x: turnout.exp(x, out=turnout.empty(2, device="rep"))):
        assert on_rep({"exp.out": row}, call) == pytest.approx([np.e, np.e])


def test_an_array_that_is_no_array_is_an_error(on_rep):
    assert refused(RowError, on_rep, {"exp.out": Row(text, "always")}, lambda x: x.exp()) == (
        f"aten::exp: the row of Rep, {place(text)}, returned str, which is not an array\n"
        "  to fix  return an array of the backend, or raise NotImplementedError where the row needs its output argument"
    )


def nothing(a, out):
    pass


def half(a, out):
    out[:1] = 1


def resizes(a, out):
    out.resize(7, refcheck=False)


def longer(a, out=None):
    return np.ones(5, "f4") if out is None else np.exp(a, out)


def wider(a, out=None):
    return np.exp(a, dtype="f8") if out is None else np.exp(a, out)


NOT_WRITTEN = "does not write every element of its output\n  to fix  write the whole output: its memory is not initialised"


@pytest.mark.parametrize(
    ("row", "fn", "problem"),
    [
        (nothing, nothing, NOT_WRITTEN),
        (half, half, NOT_WRITTEN),
        (resizes, resizes, "gave an array of shape [7] and dtype float32; expected shape [2] and dtype float32"),
        (Row(longer, "always"), longer, "gave an array of shape [5] and dtype float32; expected shape [2] and dtype float32"),
        (Row(wider, "always"), wider, "gave an array of shape [2] and dtype float64; expected shape [2] and dtype float32"),
    ],
)
def test_what_a_row_writes_is_checked_while_debugging(on_rep, row, fn, problem):
    config.set({"debug.kernels": True})
    call = lambda x: x.exp()  # noqa: E731
    said = refused(KernelFault, on_rep, {"exp.out": row}, call)
    assert said == f"aten::exp: the row of Rep, {place(fn)}, {problem}{called_at(call)}"


BROKEN = [False]


def squash(a, *given):
    """A kernel with any number of outputs and defaults; it gives nan while it is broken."""
    made = np.tanh(a) if not given or given[-1].__class__ is int else given[-1]
    made[...] = np.nan if BROKEN[0] else np.tanh(a)
    return made


def twice(a, *given):
    return squash(a, *given)


class Foreign(np.ndarray):
    """The arrays of another backend."""


PATHS = {  # path: (row, call)
    "makes": ("tanh.out", Row(squash, "always"), lambda x: x.tanh()),
    "makes, simple": ("triu.out", Row(twice, "always", sizes=Sizes(simple=squash)), lambda x: x.triu()),
    "makes, few": ("tanh.out", Row(twice, "always", sizes=Sizes(9, fn=squash)), lambda x: x.tanh()),
    "makes, of steps": ("tanh.out", Row(squash, "always", program=Steps(((np.tanh, "self"),))), lambda x: x.tanh()),
    "plan": ("tanh.out", squash, lambda x: x.tanh()),
    "plan, few": ("tanh.out", Row(twice, sizes=Sizes(9, fn=squash)), lambda x: x.tanh()),
    "plan, prepared": ("tanh.out", Row(twice, prepares=lambda outs, *args: squash), lambda x: x.tanh()),
    "in place": ("tanh.out", Row(squash, "always", pointwise=True), lambda x: x.tanh_()),
    "in place, many": ("tanh.out", Row(squash, "always", pointwise=True), lambda x: x.tanh_()),
    "out": ("tanh.out", Row(squash, "always"), lambda x: turnout.tanh(x, out=turnout.empty(2, 2, device="rep"))),
    "general": ("tanh.out", Row(squash, "always"), lambda x: turnout.tanh(x, out=turnout.empty(2, 4, device="rep")[:, ::2])),
    "no shape function": ("contract::squash", squash, lambda x: turnout.ops.contract.squash(x)),
    "of the user": ("contract::own", None, lambda x: turnout.ops.contract.own(x)),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_fault_is_found_on_every_path(path):
    name, row, call = PATHS[path]
    turnout.ones(1)
    with Registrations("rep") as library:
        config.set({"debug.kernels": True})
        library.backend(backend := Rep(np))
        for op in ("squash", "own"):
            library.define(f"contract::{op}(Tensor a) -> Tensor", tags=("finite",))
        library.impl("contract::own", "Rep", squash, form=ARRAY, binder=on_arrays)
        namespace, _, name = name.rpartition("::")
        if row is not None:
            register_kernels(library, backend, {name: row}, namespace=namespace or "aten")
        BROKEN[0] = False
        call(x := turnout.ones(2, 3000 if "many" in path else 2, device="rep"))  # what is kept of calls serves the next ones
        try:
            BROKEN[0] = True
            said = refused(KernelFault, call, x)
        finally:
            BROKEN[0] = False
        line, op = called_at(call), said.partition(": ")[0]
        assert said == f"{op}: the kernel of Rep, {place(squash)}, gave nan or infinity for finite arguments{line}"
        x.array = x.array.view(Foreign)
        said = refused(KernelFault, call, x)
        # A plan that Python has kept names the function for few elements; without it, only arrays of the backend are counted.
        named = {place(fn) for fn in ((squash, twice) if path in ("plan, few", "plan, prepared") else (squash,))}
        given = f", was given Foreign of shape {list(x.shape)}, an array of another backend{line}"
        assert said in {f"{op}: the kernel of Rep, {each}{given}" for each in named}
        config.unset()


def calls_of(case):
    """An operator with its in-place and its out form, each with arguments."""
    op, dtype = find(case.op), next(iter(case.dtypes))
    make = lambda data, of: turnout.tensor(data, dtype=dtype_named(of))  # noqa: E731
    for kind in ("functional", "inplace", "out"):
        same = op if kind == "functional" else form(op, kind)
        for args, kwargs in list(operator_cases.calls(case, dtype, make))[:2] if same is not None else ():
            given = {}
            if kind == "out":
                made = flat(op(*args, **kwargs))
                given = {a.name: turnout.empty_like(t) for a, t in zip(same.schema.out_arguments, made, strict=True)}
            yield same, args, kwargs | given


@pytest.mark.parametrize("cases", [CASES[::240], CASES], ids=["sample", "all"])
def test_explain_names_the_path_that_serves_a_call_with_and_without_the_setting(cases, monkeypatch):
    question, taken = Question(sys._getframe()), []

    def watched(op, backend, fn, contract):
        def run(*args, **keywords):
            word = KERNEL if contract is None else contract.word
            outs = () if contract is None else contract.outputs(args)
            taken.append((op.qualified_name, question.path(sys._getframe(1), word, args, outs)))
            return fn(*args, **keywords)

        return run

    monkeypatch.setattr(rules, "_checked", watched)
    calls = [call for case in cases for call in calls_of(case)]
    without = [turnout.explain(op, *args, **kwargs).path[-1].path for op, args, kwargs in calls]
    config.set({"debug.kernels": True})
    explained = 0
    for path, (op, args, kwargs) in zip(without, calls, strict=True):
        assert turnout.explain(op, *args, **kwargs).path[-1].path == path, op
        found = None
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            op(*args, **kwargs)  # what is kept of a call serves the next one
            taken.clear()
            op(*args, **kwargs)
            found = dict(reversed(taken)).get(op.qualified_name)
        explained += found is not None
        assert not path or found in (None, path.partition(";")[0]), (op, args, kwargs)
    config.unset()
    assert explained > len(cases) / 4


@pytest.mark.parametrize(
    ("op", "changes", "path"),
    [
        ("add.Tensor", {}, "array kernel, simple"),
        ("add.Tensor", {"alpha": 2}, "array kernel"),
        ("add.Tensor", {"other": float64}, "kept plan; other has another dtype than self"),
        ("add_.Tensor", {"self": float64}, "kept plan; other has another dtype than self"),
        ("add.out", {"out": (0,)}, "general; the output is resized"),
        ("add.out", {"self": (40000,), "out": (40000,), "other": (1,)}, "general; out has more than 32768 elements"),
        ("add.out", {"out": float64}, "array kernel, simple; then general: the result has another dtype"),
        ("add.Tensor", {"other": bool_}, "kept plan; other has another dtype than self"),
    ],
)
def test_explain_says_which_path_serves_a_call_and_why(op, changes, path):
    names = ["self", "other", *(["out"] if op == "add.out" else [])]
    made = {name: turnout.ones(3) for name in names}
    for name, change in changes.items():
        made[name] = change if name == "alpha" else turnout.ones(change) if change.__class__ is tuple else made[name].to(change)
    text = str(turnout.explain(f"aten::{op}", *[made.pop(n) for n in names if n != "out"], **made))
    told, _, whose = text.rpartition("\n   path  ")[2].partition("; computed by turnout-")
    assert told.removeprefix("compiled: ").removeprefix("text: ") == path
    assert whose == "kernels, which may leave the call to turnout-cpu" or ("simple" in path and whose == "cpu")


@pytest.mark.parametrize("share", [lambda out: out[0], lambda out: out.__setitem__(0, 1.0), lambda out: out.reshape(3, 1)])
def test_an_output_whose_memory_views_share_goes_the_short_way_and_one_that_shares_an_input_does_not(share):
    def path(*args, out):
        return str(turnout.explain("aten::add.out", *args, out=out)).rpartition("\n   path  ")[2].partition("; computed by")[0]

    x, out = turnout.ones(3), turnout.zeros(3)
    short = path(x, x, out=out)
    assert short in ("compiled: array kernel, simple", "text: array kernel, simple")
    for _ in range(2):
        view = share(out)
        assert path(x, x, out=out) == short
        version = out.version()
        assert turnout.add(x, x, out=out) is out
        assert (out.tolist(), out.version()) == ([2.0] * 3, version + 1)
        assert view is None or view.flatten().tolist() == [2.0] * view.numel()
    memory = turnout.arange(6.0)
    assert path(memory[:3], x, out=memory[3:]) == "general; out and self may share memory"
    assert turnout.add(memory[:3], 1, out=memory[3:]).tolist() == [1.0, 2.0, 3.0]
    assert path(x, memory[1:4], out=memory[:3]) == "general; it raises AliasError"
    for args in ((x, memory[1:4]), (memory[1:4], x)):
        with pytest.raises(turnout.errors.AliasError):
            turnout.add(*args, out=memory[:3])
    assert memory.tolist() == [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]


def test_rows_that_cannot_be_called_are_reported_together_when_they_are_registered(on_rep):
    short, long, named = (lambda a: a), (lambda a, b, out: a), (lambda a, b, c, d, *, out: a)
    assert refused(RegistrationError, on_rep, {"exp.out": short, "add.out": long, "sum.IntList_out": named}, lambda x: x) == (
        "rep: the table of Rep has rows that cannot be called as their operators call them\n"
        f"  aten::exp.out  {place(short)} takes 1 positional argument; it is called with 2: self, out\n"
        f"  aten::add.out  {place(long)} takes 3 positional arguments; it is called with 4: self, other, alpha, out\n"
        f"  aten::sum.IntList_out  {place(named)} takes the keyword-only out; it is called with 5: self, dim, keepdim, dtype, out"
    )


UNFIT = [
    (Row(text, "sometimes"), "allocates is 'sometimes'; expected 'always', 'same' or 'bool'"),
    (Row(text, accepts="c"), "accepts is 'c'; expected Accepts(...)"),
    (Row(text, sizes=8), "sizes is 8; expected Sizes(...)"),
    (Row(text, program="sort"), "program is 'sort'; expected Steps(...), a Move or Compiled(...)"),
    (
        Row(text, accepts=Accepts("c")),
        "refuses, bools and ranks are about calls for which the kernel allocates the result; give allocates, too",
    ),
    (Row(text, "same", accepts=Accepts("complex")), "refuses is 'complex'; expected letters of 'biufcV'"),
    (Row(text, sizes=Sizes(simple=np.exp)), "simple makes its result; give allocates, too"),
    (Row(text, sizes=Sizes(4, 8)), "halves is 8, above upto, which is 4"),
    (Row(text, sizes=Sizes(fn=text)), "fn serves few elements; say with upto how many"),
    (Row(text, sizes=Sizes(4, by="b")), "by is 'b', which is not an argument"),
    (Row(text, program=Steps(((np.add, "self", "b"),))), "step 0 reads 'b', which is not an argument"),
    (Row(text, program=Steps(((np.exp, "self"), (np.true_divide, 1, COUNT)))), "step 1 reads step 1, which is not before it"),
]


def test_options_that_do_not_fit_together_are_reported_when_they_are_registered(on_rep):
    assert [row.problem(("self", "out")) for row, _ in UNFIT] == [problem for _, problem in UNFIT]
    assert refused(RegistrationError, on_rep, {"exp.out": UNFIT[0][0], "log.out": UNFIT[7][0]}, lambda x: x) == (
        f"rep: the table of Rep has rows whose options do not fit\n  aten::exp.out  {UNFIT[0][1]}\n  aten::log.out  {UNFIT[7][1]}"
    )
    assert refused(TypeError, lambda: Row(text, limits=4)).endswith("got an unexpected keyword argument 'limits'")


def test_a_row_over_another_one_keeps_all_that_it_does_not_decide():
    steps = Steps(((np.add, "self", "other"),), 8)
    below = Row(text, "always", True, True, Accepts("c", False, (1, 1)), Sizes(8, 4, "", text, np.add), steps, text)
    above = Row(silent, "", True, True, sizes=Sizes(100))
    made = combined(above, below, turnout.ops.aten.add.out, 2)
    assert {name for name, own, kept in zip(Row._fields, made, below, strict=True) if own != kept} == {"fn", "prepares"}
    plain = combined(above.but(pointwise=False, quiet=False, sizes=Sizes()), below, turnout.ops.aten.add.out, 2)
    assert (plain.pointwise, plain.quiet, plain.sizes, plain.program) == (False, False, Sizes(8, 4), None)


class Method:
    def two(self, a, out):
        return None


@pytest.mark.parametrize(
    ("fn", "counts", "problem"),
    [
        (lambda a, out: None, [2], ""),
        (lambda *args: None, [2, 1], ""),
        (lambda a, *rest: None, [0], "at least 1 positional arguments"),
        (lambda a, out=None: None, [2, 1], ""),
        (lambda a, out: None, [2, 1], "2 positional arguments"),
        (lambda a, b=1, out=None: None, [4], "1 to 3 positional arguments"),
        (lambda a, *, out: None, [2], "the keyword-only out"),
        (lambda a, out, *, fast=True: None, [2], ""),
        (partial(lambda n, a, out: None, 3), [2], ""),
        (partial(lambda a, out, n: None, n=3), [2], ""),
        (partial(lambda a, out: None, 3), [2], "1 positional argument"),
        (Method().two, [2], ""),
        (Method().two, [3], "2 positional arguments"),
        (np.add, [3, 2], ""),
        (np.exp, [3], "1 to 2 positional arguments"),
        (max, [7], ""),
    ],
)
def test_what_a_function_takes_is_read_from_it(fn, counts, problem):
    assert misfit(fn, *counts) == problem


def test_a_row_is_called_with_the_arguments_of_its_schema_or_what_the_shape_function_replaces_them_by():
    add = turnout.ops.aten.add.out.schema
    assert row_signature(add, {}) == (("self", "other", "alpha", "out"), 1, 2)
    assert row_signature(add, {"other": ("x", "y"), "": ("z",)}) == (("self", "x", "y", "alpha", "z", "out"), 1, 4)
    names, outputs, _ = row_signature(turnout.ops.aten.topk.values.schema, {})
    assert (names, outputs) == (("self", "k", "dim", "largest", "sorted", "values", "indices"), 2)


def test_every_row_of_the_cpu_keeps_the_contract():
    config.set({"debug.kernels": True})
    try:
        for case in CASES:
            op = turnout.ops.aten
            name, _, overload = case.op.partition(".")
            function = getattr(getattr(op, name), overload or "default")
            dtype = next(iter(case.dtypes))
            make = lambda data, of: turnout.tensor(data, dtype=dtype_named(of))  # noqa: E731
            for args, kwargs in operator_cases.calls(case, dtype, make):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*args, **kwargs)
    finally:
        config.unset()


MAKES_ARRAYS = {
    "adopt", "as_array", "copy", "counted", "duplicate", "empty", "fill", "from_host", "from_numbers", "identity", "item",
    "joined", "new_array", "normal", "over_memory", "positions", "ramp", "random_bits", "read_number", "receive_later",
    "received", "retyped", "row_major_copy", "spaced", "spread", "strided", "tolist", "transposed", "uniform", "view_array",
    "zero_array",
}  # fmt: skip


def test_what_computes_without_a_row_is_listed():
    package, note = Path(turnout_aten.__file__).parent, Path(__file__).parents[2] / "docs/notes/0034-what-describes-a-call.md"
    assert {name for name in dir(TensorBackend) if name in MAKES_ARRAYS} == MAKES_ARRAYS
    said = re.search(r"`TensorBackend`\s+itself has (\w+) methods;", note.read_text())
    own = [each for name, each in vars(TensorBackend).items() if name[0] != "_" and isinstance(each, FunctionType)]
    assert said is not None
    assert {"sixteen": 16}[said[1]] == len(own)
    assert f"A `Row` of a backend's table has eight options: `{'`, `'.join(rows.Row._fields)}`." in note.read_text()
    assert len(rows.Row._fields) == 8
    lines = re.findall(r"^\| `([\w/]+\.py.*)` \| `(.+)` \|$", note.read_text(), re.MULTILINE)
    listed = {file: names for files, names in lines for file in files.split("`, `")}
    files = [package / "kernels/factories.py", *package.glob("composites/*.py"), *package.glob("views/*.py")]
    asked = {file: set(re.findall(r"\b(?:backend|_at)\.(\w+)", file.read_text())) & MAKES_ARRAYS for file in files}
    found = {f.relative_to(package).as_posix(): "`, `".join(sorted(names)) for f, names in asked.items() if names}
    assert listed == found


def test_the_page_has_the_words_of_all_paths_and_no_others():
    page = Path(__file__).parents[2] / "docs/how-dispatch-works.md"
    table = page.read_text("utf-8").partition("| path | meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    said = {word for row in table.splitlines() for word in re.findall(r"`(.+?)`", row.split(" | ")[0])}
    source = Path(paths.__file__).read_text("utf-8")
    assert all(f"{word}" in source for word in ('f"compiled: ', 'f"text: ', '"general', "computed by "))
    words = {*paths.WORDS.values(), paths.SILENT, rows.SIMPLE, rows.FEW, rows.PREPARED}
    assert said == {"compiled: ...", "text: ...", "general", "computed by ...", *words}
