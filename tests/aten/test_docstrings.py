"""Every public function and method says what it computes, describes each of its arguments, and shows an example that runs."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path

import pytest

import turnout
from outcomes import printed
from turnout.operators.stubs import python_name
from turnout_aten.declarations import tables
from turnout_aten.declarations.documentation import Documentation, read
from turnout_aten.functions import docstrings, lookup
from turnout_aten.functions.public_modules import HOMES
from turnout_aten.generated import methods
from turnout_aten.generation.files import GENERATED, hidden_names


def public_module(home):
    if home == "turnout":
        return turnout
    return turnout.nn.functional if home == HOMES["nn"] else getattr(turnout, home.removeprefix("turnout."))


@cache
def functions():
    """Full name -> public function of an operator."""
    found = {}
    for home in HOMES.values():
        module = public_module(home)
        shown = set(module.__all__) - (hidden_names(home) if home != HOMES["nn"] else set())
        for name in lookup.names(home):
            made = getattr(module, name) if name in shown else None
            if made is not None and made is lookup.function(home, name):
                found[f"{home}.{name}"] = made
    return found


@cache
def tensor_methods():
    """Full name -> method of an operator. What `Tensor` defines itself hides that of the operator."""
    own = {name for cls in turnout.Tensor.__mro__ if cls is not methods.TensorMethods for name in vars(cls)}
    names = [name for name in methods.NAMES if name not in own and not (name.startswith("__") and name.endswith("__"))]
    return {f"turnout.Tensor.{name}": getattr(turnout.Tensor, name) for name in names}


def packet_of(full_name):
    """The rows of an operator that are behind a public name."""
    home, _, name = full_name.rpartition(".")
    table = tables.standard()
    if home == "turnout.Tensor":
        return [f for f in table.overloads(name) if f.is_method]
    module = {home: module for module, home in HOMES.items()}[home]
    for packet in (f"{module}_{name}", name):
        found = [f for f in table.overloads(packet) if f.module == module]
        if found:
            return found
    raise AssertionError(full_name)


def arguments_of(full_name):
    """The names of the arguments that the schemas of a public name have."""
    rows = packet_of(full_name)
    is_method = full_name.startswith("turnout.Tensor.")
    names = set()
    for row in rows:
        schema = row.schema
        if schema.kind == "out":
            names |= set() if is_method else {"out"}
            continue
        own = [a.name for a in schema.arguments]
        if not is_method and "self" in own and "input" not in own:
            own[own.index("self")] = "input"
        names |= {python_name(name) for name in own}
    if "pin_memory" in names and (not is_method or ".new_" in full_name):
        names.add("requires_grad")
    return names


ARGUMENT = re.compile(r"^    (\w+) \(([^:]*)\): (\S.*)$", re.MULTILINE)


def sections(text):
    """The paragraphs of a docstring: "" has the signatures and what is computed, the others have titles."""
    found = {"": []}
    title = ""
    for paragraph in re.split(r"\n\n+", text.strip()):
        head = re.match(r"(Arguments|Raises|Example|Operators?):(?:\n|$| )", paragraph)
        if head is not None:
            title = head.group(1)
        found.setdefault(title, []).append(paragraph)
    return {title: "\n\n".join(paragraphs) for title, paragraphs in found.items()}


def problems(text, arguments):
    """What is wrong with a docstring, for these arguments."""
    parts = sections(text or "")
    described = [name for name, _, _ in ARGUMENT.findall(parts.get("Arguments", ""))]
    heading = parts[""].split("\n\n")
    if len(heading) < 2 or "->" not in heading[0]:
        yield "it has no signatures, or no sentence below them"
    elif not heading[1].strip().endswith(".") or len(heading[1].split()) < 3:
        yield f"no sentence says what it computes: {heading[1]!r}"
    for name in sorted(arguments - set(described)):
        yield f"{name} is not described"
    for name in sorted(set(described) - arguments):
        yield f"{name} is described, but no schema has it"
    if len(set(described)) != len(described):
        yield "an argument is described twice"
    if ">>> " not in parts.get("Example", ""):
        yield "it has no example"


def documented() -> Iterator[tuple[str, object]]:
    yield from functions().items()
    yield from tensor_methods().items()


def docstring_of(full_name, made):
    text = made.__doc__
    assert text == docstrings.of(full_name), full_name
    return text


def test_every_function_and_method_of_an_operator_is_documented_as_its_schemas_say():
    wrong = [
        f"{name}: {problem}" for name, made in documented() for problem in problems(docstring_of(name, made), arguments_of(name))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_functions_and_methods_are_many():
    assert len(functions()) > 600
    assert len(tensor_methods()) > 450


def run_examples(texts):
    """Run the examples of (name, docstring); returns what failed, as text."""
    runner = doctest.DocTestRunner(verbose=False)
    failed: list[str] = []
    for name, text in texts:
        example = doctest.DocTestParser().get_doctest(text or "", {"turnout": turnout}, name, None, 0)
        runner.run(example, out=failed.append)
    return "".join(failed)


@pytest.mark.parametrize("part", range(8))
def test_every_example_prints_what_its_docstring_shows(part):
    failed = run_examples((name, made.__doc__) for name, made in list(documented())[part::8])
    assert not failed, failed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("f(x) -> Tensor\n\nThe square of x.\n\nArguments:\n    x (Tensor): a tensor\n\nExample:\n    >>> 1\n    1", []),
        ("f(x) -> Tensor\n\nThe square of x.\n\nExample:\n    >>> 1\n    1", ["x is not described"]),
        (
            "f(x) -> Tensor\n\nThe square of x.\n\nArguments:\n    x (Tensor): one\n    y (int): more\n\nExample:\n    >>> 1",
            ["y is described, but no schema has it"],
        ),
        ("f(x) -> Tensor\n\nThe square of x.\n\nArguments:\n    x (Tensor): a tensor", ["it has no example"]),
        ("aten::f", ["it has no signatures, or no sentence below them", "x is not described", "it has no example"]),
        (None, ["it has no signatures, or no sentence below them", "x is not described", "it has no example"]),
    ],
)
def test_a_docstring_that_misses_something_is_reported(text, found):
    assert list(problems(text, {"x"})) == found


def test_an_example_that_prints_something_else_is_reported():
    assert "Expected:\n    3\nGot:\n    2\n" in run_examples([("f", ">>> 1 + 1\n3\n")])


# ---- what is written in declarations/docs


@cache
def written() -> Documentation:
    return read()


def test_no_entry_describes_an_operator_or_an_argument_that_does_not_exist():
    wrong = []
    used: dict[str, set[str]] = {}
    for entry in written().entries.values():
        rows = tables.standard().overloads(entry.name)
        names = {python_name(a.name) for row in rows for a in row.schema.arguments} | {"input", "requires_grad"}
        if not rows:
            wrong.append(f"{entry.family}: there is no operator {entry.name}")
        wrong += [f"{entry.name} has no argument {name}" for name in entry.arguments if name not in names]
        if entry.alias and entry.alias not in written().entries:
            wrong.append(f"{entry.name}: {entry.alias} is not documented")
        used.setdefault(entry.family, set()).update(names)
    for name, family in written().families.items():
        wrong += [f"no operator of {name} has an argument {each}" for each in family.arguments if each not in used[name]]
    everywhere = {name for names in used.values() for name in names}
    wrong += [f"no operator has an argument {each}" for each in written().shared if each not in everywhere]
    assert not wrong, "\n".join(wrong)


tensor = turnout.tensor
# Entry or family, and an error that it names -> a call that raises it.
ERRORS = {
    ("clamp", "ArgumentError"): lambda: turnout.clamp(tensor([1.0])),
    ("is_nonzero", "ShapeError"): lambda: turnout.is_nonzero(tensor([1, 2])),
    ("imag", "DTypeError"): lambda: turnout.imag(tensor([1.0])),
    ("max", "DimError"): lambda: turnout.max(tensor([1.0]), 3),
    ("max", "ShapeError"): lambda: turnout.max(turnout.empty(0)),
    ("min", "DimError"): lambda: turnout.min(tensor([1.0]), 3),
    ("min", "ShapeError"): lambda: turnout.min(turnout.empty(0)),
    ("amax", "DimError"): lambda: turnout.amax(tensor([1.0]), 3),
    ("amax", "ShapeError"): lambda: turnout.amax(turnout.empty(0)),
    ("amin", "DimError"): lambda: turnout.amin(tensor([1.0]), 3),
    ("amin", "ShapeError"): lambda: turnout.amin(turnout.empty(0)),
    ("aminmax", "DimError"): lambda: turnout.aminmax(tensor([1.0]), dim=3),
    ("aminmax", "ShapeError"): lambda: turnout.aminmax(turnout.empty(0)),
    ("quantile", "ArgumentError"): lambda: turnout.quantile(tensor([1.0]), 2.0),
    ("nanquantile", "ArgumentError"): lambda: turnout.nanquantile(tensor([1.0]), 2.0),
    ("cov", "ShapeError"): lambda: turnout.cov(turnout.ones(2, 2, 2)),
    ("bincount", "ArgumentError"): lambda: turnout.bincount(tensor([-1])),
    ("topk", "DimError"): lambda: turnout.topk(tensor([1.0]), 1, 3),
    ("topk", "ShapeError"): lambda: turnout.topk(tensor([1.0]), 3),
    ("arange", "ArgumentError"): lambda: turnout.arange(0, 1, 0),
    ("linspace", "ShapeError"): lambda: turnout.linspace(0, 1, -1),
    ("logspace", "ShapeError"): lambda: turnout.logspace(0, 1, -1),
    ("view", "ShapeError"): lambda: tensor([1, 2]).view(3),
    ("t", "ShapeError"): lambda: turnout.t(turnout.ones(1, 1, 1)),
    ("as_strided", "ShapeError"): lambda: turnout.as_strided(tensor([1, 2]), (3,), (1,)),
    ("cholesky", "LinAlgError"): lambda: turnout.cholesky(-turnout.eye(2)),
    ("linalg_inv", "ShapeError"): lambda: turnout.linalg.inv(turnout.ones(2, 3)),
    ("linalg_inv", "LinAlgError"): lambda: turnout.linalg.inv(turnout.zeros(2, 2)),
    ("linalg_solve", "ShapeError"): lambda: turnout.linalg.solve(turnout.eye(2), turnout.ones(3, 1)),
    ("linalg_solve", "LinAlgError"): lambda: turnout.linalg.solve(turnout.zeros(2, 2), turnout.ones(2)),
    ("linalg_cholesky", "ShapeError"): lambda: turnout.linalg.cholesky(turnout.ones(2, 3)),
    ("linalg_cholesky", "LinAlgError"): lambda: turnout.linalg.cholesky(-turnout.eye(2)),
    ("stft", "ShapeError"): lambda: turnout.stft(turnout.ones(8), 9, center=False, return_complex=True),
    ("stft", "DTypeError"): lambda: turnout.stft(turnout.arange(8), 4, return_complex=True),
    ("istft", "ShapeError"): lambda: turnout.istft(turnout.ones(2, 3).to(turnout.complex64), 2, 1, window=turnout.zeros(2)),
    # Families, each by one of its operators.
    ("pointwise", "DTypeError"): lambda: turnout.erf(tensor([1j])),
    ("arithmetic", "ShapeError"): lambda: turnout.add(tensor([1, 2]), tensor([1, 2, 3])),
    ("arithmetic", "DTypeError"): lambda: turnout.sub(tensor([True]), tensor([True])),
    ("comparisons", "ShapeError"): lambda: turnout.eq(tensor([1, 2]), tensor([1, 2, 3])),
    ("comparisons", "DTypeError"): lambda: turnout.lt(tensor([1j]), tensor([1j])),
    ("reductions", "DimError"): lambda: turnout.sum(tensor([1]), 3),
    ("reductions", "DTypeError"): lambda: turnout.mean(tensor([1])),
    ("sorting", "DimError"): lambda: turnout.sort(tensor([1]), 3),
    ("factories", "ShapeError"): lambda: turnout.zeros(-1),
    ("random", "ArgumentError"): lambda: turnout.bernoulli(tensor([1.0]), 2.0),
    ("indexing", "DimError"): lambda: turnout.gather(tensor([1]), 0, tensor([5])),
    ("indexing", "ShapeError"): lambda: turnout.gather(turnout.ones(2, 2), 0, tensor([0])),
    ("joining", "DimError"): lambda: turnout.cat([tensor([1])], 3),
    ("joining", "ShapeError"): lambda: turnout.cat([turnout.ones(2, 2), turnout.ones(3, 3)]),
    ("views", "DimError"): lambda: turnout.transpose(tensor([1]), 0, 3),
    ("views", "ShapeError"): lambda: turnout.reshape(tensor([1]), (3,)),
    ("linear_algebra", "ShapeError"): lambda: turnout.mm(turnout.ones(2, 3), turnout.ones(2, 3)),
    ("linear_algebra", "DTypeError"): lambda: turnout.mm(turnout.ones(2, 2), turnout.ones(2, 2).to(turnout.float64)),
    ("linalg", "ShapeError"): lambda: turnout.linalg.det(turnout.ones(2, 3)),
    ("linalg", "DTypeError"): lambda: turnout.linalg.det(turnout.ones(2, 2).int()),
    ("special", "DTypeError"): lambda: turnout.special.ndtr(tensor([1j])),
    ("fourier", "DimError"): lambda: turnout.fft.fft(tensor([1.0]), dim=3),
    ("fourier", "ShapeError"): lambda: turnout.fft.fft(turnout.empty(0)),
    ("linalg_cross", "ShapeError"): lambda: turnout.linalg.cross(tensor([1.0]), tensor([1.0])),
    ("linalg_diagonal", "DimError"): lambda: turnout.linalg.diagonal(turnout.eye(2), dim1=5),
    ("neural", "DimError"): lambda: turnout.softmax(tensor([1.0]), 3),
    ("neural", "ShapeError"): lambda: turnout.conv1d(turnout.ones(3), turnout.ones(3)),
    ("neural", "DTypeError"): lambda: turnout.nn.functional.linear(turnout.ones(2), turnout.ones(2, 2).to(turnout.float64)),
}


def test_every_error_that_the_docs_name_has_a_call_that_raises_it():
    named = {(e.name, error) for e in written().entries.values() for error in e.raises}
    named |= {(name, error) for name, family in written().families.items() for error in family.raises}
    assert named == set(ERRORS)


@pytest.mark.parametrize("case", sorted(ERRORS), ids="-".join)
def test_an_error_that_a_docstring_names_is_raised(case):
    with pytest.raises(Exception) as raised:
        ERRORS[case]()
    assert type(raised.value).__name__ == case[1]


def test_texts_that_are_written_begin_and_end_as_sentences_do():
    wrong = [e.name for e in written().entries.values() if e.does and not e.does.endswith(".")]
    wrong += [e.name for e in written().entries.values() if re.match(r"(Performs|Computes|Returns|This) ", e.does)]
    for described in [written().shared, *(f.arguments for f in written().families.values())]:
        wrong += [name for name, text in described.items() if text.endswith(".") or text.startswith("'")]
    assert not wrong, wrong


# ---- where they are shown


def test_help_shows_the_signature_and_the_docstring(capsys):
    help(turnout.add)
    shown = capsys.readouterr().out
    plain = "".join(shown.replace("'", "").split())  # Python 3.14 shows annotations unquoted, and long signatures in lines
    assert plain.startswith("Helponfunctionaddinmoduleturnout:add(input:Tensor,other:Number|Tensor,*,alpha")
    assert "The sum input + alpha * other, element by element." in shown


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("turnout.add", "(input, other, *, alpha=1, out=None)"),
        ("turnout.exp", "(input, *, out=None)"),
        ("turnout.sum", "(input, dim=..., keepdim=False, *, dtype=None, out=None)"),
        ("turnout.zeros", "(*size, dtype=None, layout=None, device=None, pin_memory=None, out=None, requires_grad=False)"),
        ("turnout.std", "(input, dim=None, unbiased=True, *, keepdim=False, out=None, correction=None)"),
        ("turnout.where", "(condition, input=..., other=..., *, out=None)"),
        ("turnout.linalg.solve", "(A, B, *, left=True, out=None)"),
        ("turnout.Tensor.add_", "(self, other, *, alpha=1)"),
        ("turnout.Tensor.sum", "(self, dim=..., keepdim=False, *, dtype=None)"),
        ("turnout.Tensor.where", "(self, condition, other)"),
        ("turnout.Tensor.exp", "(self)"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_schemas(name, signature):
    found = turnout
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    typed = inspect.signature(found)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in typed.parameters.values()]
    assert str(inspect.Signature(bare)) == signature
    assert [p.name for p in typed.parameters.values() if p.annotation is p.empty and p.name != "self"] == []


def test_signatures_have_types_and_that_of_a_bound_method_leaves_out_the_tensor():
    shown = {
        turnout.ones(2).sum: "(dim: 'int | Sequence[int] | None' = ..., keepdim: 'bool' = False, *, "
        "dtype: 'DType | type | None' = None) -> 'Tensor'",
        turnout.cat: "(tensors: 'Sequence[Tensor]', dim: 'int' = 0, *, out: 'Any' = None) -> 'Tensor'",
    }
    assert {each: str(inspect.signature(each)) for each in shown} == shown
    assert inspect.signature(turnout.max).return_annotation is inspect.Signature.empty  # a tensor, or two


def test_the_source_of_a_generated_function_says_where_it_comes_from():
    first = inspect.getsource(turnout.exp).splitlines()[0]
    assert first == "def exp(input=MISSING, **more):  # written by turnout_aten.generation from the schemas of its overloads"
    stub = inspect.getsource(turnout.ops.aten.exp.default.stub)
    assert stub.startswith("def exp(self):  # the stub of aten::exp, written from its schema")


def test_every_signature_has_the_arguments_of_the_docstring():
    wrong = [
        name for name, made in documented() if set(inspect.signature(made).parameters) != arguments_of(name)
    ]  # fmt: skip
    assert not wrong, wrong


@pytest.mark.parametrize("file", ["functions", "linalg", "fft", "special", "methods"])
def test_editors_find_the_same_docstrings_in_the_type_stubs(file):
    home = {"functions": "turnout", "methods": "turnout.Tensor"}.get(file, f"turnout.{file}")
    body = ast.parse((GENERATED / f"{file}.pyi").read_text(encoding="utf-8")).body
    if file == "methods":
        body = next(each for each in body if isinstance(each, ast.ClassDef)).body
    shown: dict[str, str] = {}
    for each in body:
        if isinstance(each, ast.FunctionDef):
            shown.setdefault(each.name, ast.get_docstring(each) or "")
    expected = {name: made.__doc__ for name, made in documented() if name.rpartition(".")[0] == home}
    wrong = [name for name, text in expected.items() if shown[name.rpartition(".")[2]] != text.strip()]
    assert expected
    assert not wrong, wrong


def test_the_method_of_an_operator_of_python_says_which_operator():
    assert turnout.Tensor.__add__.__doc__ == "`self + other`; see `turnout.Tensor.add`."
    assert turnout.Tensor.__rsub__.__doc__ == "`other - self`; see `turnout.rsub`."
    assert turnout.Tensor.__iadd__.__doc__ == "`self += other`; see `turnout.Tensor.add_`."
    assert turnout.Tensor.__neg__.__doc__ == turnout.Tensor.neg.__doc__


# ---- functions that are written by hand

NAMESPACES = (
    "turnout", "turnout.Tensor", "turnout.amp", "turnout.array_api", "turnout.array_api.fft", "turnout.array_api.linalg",
    "turnout.autograd", "turnout.func", "turnout.graphs", "turnout.library", "turnout.masked", "turnout.nn.functional",
    "turnout.autograd.graph", "turnout.cuda", "turnout.host_fallback", "turnout.signal.windows", "turnout.testing",
    "turnout.trees",
)  # fmt: skip

# Functions that register something and return nothing to show: their examples are the programs of a page, which are run as well.
ON_PAGE = {
    "define", "register_autocast", "register_autograd", "register_fake", "register_vmap",
}  # fmt: skip
PAGE = Path(__file__).resolve().parents[2] / "docs" / "custom-operators.md"


@cache
def hand_written():
    """Full name -> function or method that is not one of an operator's declarations."""
    made_from_operators = {id(made) for _, made in documented()}
    found = {}
    for namespace in NAMESPACES:
        names = names_of(namespace)
        for name, value in names.items():
            if names.get(getattr(value, "__name__", name), value) is value and getattr(value, "__name__", name) != name:
                continue  # a former name of another one
            if inspect.isfunction(value) and id(value) not in made_from_operators and "::" not in value.__qualname__:
                found.setdefault(value, f"{namespace}.{name}")
    return {name: value for value, name in found.items() if owner(value) in PROVIDERS}


# Tensor also has methods for other packages, and modules show what they import: neither is for users.
PROVIDERS = (
    "turnout", "turnout_array_api", "turnout_aten", "turnout_autocast", "turnout_autograd", "turnout_batched", "turnout_cuda",
    "turnout_functionalize", "turnout_masked", "turnout_meta", "turnout_opcheck", "turnout_signal", "turnout_tracer",
)  # fmt: skip


def owner(function):
    return function.__module__.partition(".")[0]


def import_path(name):
    found = turnout
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def names_of(namespace):
    """The public names of a module -> what they are, with the members of plugins that need a device which is not here."""
    module = import_path(namespace)
    found = {name: getattr(module, name) for name in getattr(module, "__all__", None) or dir(module) if not name.startswith("_")}
    for plugin in turnout.plugins.catalog().found if "." in namespace else ():
        for name, path in plugin.manifest.offers(namespace.partition(".")[2]).all.items():
            found.setdefault(name, getattr(import_module(path), name, None))
    return found


def problems_by_hand(name, function):
    text = inspect.getdoc(function) or ""
    described = set(re.findall(r"^    (\w+): \S", sections(text).get("Arguments", ""), re.MULTILINE))
    names = {p for p in inspect.signature(function).parameters if p != "self" and not p.startswith("_")}
    if not text.split("\n\n")[0].rstrip().endswith((".", "`")):
        yield f"{name}: no sentence says what it does"
    for each in sorted(names - described):
        yield f"{name}: {each} is not described"
    for each in sorted(described - names):
        yield f"{name}: {each} is described, but it is not an argument"
    if ">>> " not in text and name.removeprefix("turnout.library.") not in ON_PAGE:
        yield f"{name}: it has no example"


def test_every_function_that_is_written_by_hand_is_documented():
    wrong = [problem for name, made in hand_written().items() for problem in problems_by_hand(name, made)]
    assert not wrong, "\n".join(wrong)


def test_functions_without_an_example_have_one_on_their_page():
    programs = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert sorted(ON_PAGE) == sorted(name for name in ON_PAGE if re.search(rf"\b{name}\b", programs))
    assert all(f"turnout.library.{name}" in hand_written() for name in ON_PAGE)


@pytest.mark.parametrize("part", range(4))
def test_the_examples_of_functions_that_are_written_by_hand_print_what_they_show(part):
    texts = [(name, inspect.getdoc(made)) for name, made in hand_written().items() if not name.startswith("turnout.library.")]
    failed = run_examples(texts[part::4])
    assert not failed, failed


def test_the_examples_of_turnout_library_print_what_they_show():
    """In a process of its own, as what they register is kept for the life of the process."""
    texts = [(name, inspect.getdoc(made)) for name, made in hand_written().items() if name.startswith("turnout.library.")]
    assert len(texts) > 10
    code = inspect.getsource(run_examples) + f"import doctest, turnout\nprint(run_examples({texts!r}))"
    assert printed(code) == ""


def test_an_example_of_turnout_library_that_prints_something_else_is_reported():
    code = inspect.getsource(run_examples) + "import doctest, turnout\nprint(run_examples([('f', '>>> 1 + 1\\n3')]))"
    assert "Expected:\n    3\nGot:\n    2" in printed(code)


# ---- classes and modules

MODULES = (
    *NAMESPACES, "turnout.config", "turnout.errors", "turnout.fft", "turnout.linalg", "turnout.nn", "turnout.plugins",
    "turnout.return_types", "turnout.schema", "turnout.special",
)  # fmt: skip

# Functions make them; users do not call these classes.
MADE = {
    "turnout.SymBool", "turnout.SymInt", "turnout.autograd.Handle", "turnout.graphs.Graph", "turnout.library.CustomOpDef",
    "turnout.library.FakeContext", "turnout.trees.Structure",
}  # fmt: skip


@cache
def classes():
    """Full name -> public class of these packages."""
    found = {}
    for module in MODULES:
        for name, value in names_of(module).items():
            if inspect.isclass(value) and owner(value) in PROVIDERS:
                found.setdefault(value, f"{module}.{name}")
    return {name: value for value, name in found.items()}


def parameters_of(made):
    """The arguments of a class that is called; none for errors and for parts of schemas, which are made of text."""
    init = vars(made).get("__init__") or vars(made).get("__new__")
    function = getattr(init, "__func__", init)
    if not inspect.isfunction(function) or issubclass(made, BaseException) or owner(made) + ".schema" in made.__module__:
        return []
    return [name for name in list(inspect.signature(function).parameters)[1:] if not name.startswith("_")]


def problems_of_class(name, made):
    text = inspect.cleandoc(vars(made).get("__doc__") or "")
    if not text.split("\n\n")[0].rstrip().endswith((".", ":")):
        yield f"{name}: no sentence says what it is"
    for each in parameters_of(made) if name not in MADE else ():
        if not re.search(rf"`{each}`|^ *{each}(, \w+)*(: |  +)\S", text, re.MULTILINE):
            yield f"{name}: {each} is not described"
    for each, value in vars(made).items():
        value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if each.startswith("_") or (not isinstance(value, (property, cached_property)) and not inspect.isfunction(value)):
            continue
        if not (inspect.getdoc(value) or inspect.getdoc(getattr(made, each)) or "").strip():
            yield f"{name}.{each}: no docstring"


def test_every_public_class_says_what_it_is_and_describes_its_arguments_methods_and_properties():
    wrong = [problem for name, made in classes().items() for problem in problems_of_class(name, made)]
    assert not wrong, "\n".join(wrong)
    assert len(classes()) > 100
    assert set(classes()) >= MADE


def test_a_class_that_misses_something_is_reported():
    class Undocumented:
        def __init__(self, size):
            self.size = size

        @property
        def half(self):
            return self.size / 2

        def twice(self):
            return 2 * self.size

    assert list(problems_of_class("C", Undocumented)) == [
        "C: no sentence says what it is", "C: size is not described", "C.half: no docstring", "C.twice: no docstring",
    ]  # fmt: skip


def test_every_public_module_says_what_it_holds():
    texts = {name: inspect.getdoc(import_path(name)) or "" for name in MODULES}
    assert [name for name, text in texts.items() if not text.split("\n\n")[0].rstrip().endswith(".")] == []


def test_the_examples_of_classes_print_what_they_show():
    texts = []
    for name, made in classes().items():
        members = {each: value for each, value in vars(made).items() if not each.startswith("_") and inspect.isfunction(value)}
        texts += [(name, inspect.cleandoc(vars(made).get("__doc__") or ""))]
        texts += [(f"{name}.{each}", inspect.getdoc(value)) for each, value in members.items() if made is not turnout.Tensor]
    failed = run_examples(texts)
    assert not failed, failed


# ---- defaults

DEFAULT = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?|int64) by default\b|by default,? (-?\d+(?:\.\d+)?|int64)\b(?! [*/])")
INTS, FLOATS = turnout.tensor([1, 2, 3], dtype=turnout.int32), turnout.tensor([1.0, float("nan"), 4.0])
# Arguments whose default no schema has: the operator without them, and with what their words name, computes the same.
ALONE = {
    ("arange", "start"): lambda *given: turnout.arange(*given, 5),
    ("gradient", "spacing"): lambda given=None: turnout.gradient(INTS * 1.5, spacing=given),
    ("hamming_window", "alpha"): lambda *given: turnout.hamming_window(5, True, *given),
    ("hamming_window", "beta"): lambda *given: turnout.hamming_window(5, True, 0.54, *given),
    ("kaiser_window", "beta"): lambda *given: turnout.kaiser_window(5, True, *given),
    ("randint", "low"): lambda *given: turnout.randint(*given, 50, (9,)),
    ("randint_like", "low"): lambda *given: turnout.randint_like(FLOATS, *given, 50),
    ("random_", "from_"): lambda *given: turnout.ones(9).random_(*given, 50),
    ("slice_scatter", "start"): lambda given=None: turnout.slice_scatter(INTS, INTS[:2], 0, given, 2),
    ("sym_constrain_range_for_size", "min"): lambda given=None: turnout.sym_constrain_range_for_size(-1, min=given),
    ("nan_to_num", "nan"): lambda *given: turnout.nan_to_num(FLOATS, *given),
    ("nan_to_num_", "nan"): lambda *given: turnout.nan_to_num_(FLOATS.clone(), *given),
    **{(name, "start"): partial(getattr(turnout, name), INTS, 0) for name in ("slice", "slice_copy")},
}


def without_and_with(name, argument, value):
    """The results of an operator, or its errors, without an argument and with this value."""
    call = ALONE.get((name, argument))
    if call is None:
        function = partial(getattr(turnout, name.removesuffix("_")), INTS * 1.5 if argument == "correction" else INTS)
        if name.startswith("cum"):
            function = partial(function, 0)
        yield from (repr(function()), repr(function(**{argument: value})))
        return
    for given in ((), (value,)):
        turnout.manual_seed(0)
        try:
            yield repr(call(*given))
        except turnout.TurnoutError as error:
            yield str(error)


def said_defaults(text):
    """The names of arguments, and the number or dtype that their words call a default."""
    for name, _, words in ARGUMENT.findall(re.sub(r"\n {8,}", " ", sections(text or "").get("Arguments", ""))):
        for number, dtype in DEFAULT.findall(words):
            said = number or dtype
            yield name, turnout.int64 if said == "int64" else ast.literal_eval(said)


def has_default(full_name, name, value):
    """Whether a value is the default in a schema or, where no schema has one, of a call."""
    rows = [argument for row in packet_of(full_name) for argument in row.schema.arguments if python_name(argument.name) == name]
    literal = {argument.default_value for argument in rows if argument.has_default} - {None}
    if literal:
        return literal == {value}
    without, given = without_and_with(full_name.rpartition(".")[2], name, value)
    return without == given


def test_a_default_in_the_words_of_an_argument_is_the_one_that_a_call_has():
    found = [(full, *said) for full, made in documented() for said in said_defaults(made.__doc__)]
    assert len(found) > 40
    assert [each for each in found if not has_default(*each)] == []
    other = [(full, name, turnout.float64 if isinstance(value, turnout.dtype) else 2) for full, name, value in found]
    assert [each for each in other if has_default(*each)] == []
