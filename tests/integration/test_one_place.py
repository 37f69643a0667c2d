"""A text or function of the product stands in one file: the same condition with the same words is one fact, written twice.

Compared are literals of Python and C without what is filled in, however it is filled in: whole, by rows and by clauses. The name
before a text (`add: ...`) does not count, because several functions may say the same of their arguments. Docstrings, the words
that `describe` puts into them, code that is compiled, and the lists of operators in the cases of the conformance kit are not
compared.
Functions are compared by their bodies, whatever their names and those of their variables are; test_workspace_imports.py compares
those of C.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path

import pytest

from turnout.schema.types import BASE_TYPES

ROOT = Path(__file__).resolve().parents[2]
SHORTEST = 24  # characters, without what is filled in

# Texts that several files have -> why.
TWICE = {
    "module {} has no attribute {}": "Python's own words for a module's name that is not there",
    "object has no attribute {}": "Python's own words for an object's name that is not there",
    "it cannot be changed in place": "of a leaf and of an input of a transform, each with its remedy",
    "which Turnout does not have": "of a file of safetensors and of a program, the ends of two sentences",
    "padding_idx must name one of {} rows, got {}": "turnout-nn checks when a module is made, and uses no inner module of aten",
}  # fmt: skip

_NAME = re.compile(r"^(?:to fix )?(?:(?:[\w.']|\{\})+: )?")
_FIELD = re.compile(r"%[-+ #0-9.*]*(?:[hlz]*[a-zA-Z])")  # of C
_FILLED = re.compile(r"['\"`]?(?:\{[^{}\s:]*(?::[^{}\s]*)?\}|%[sdr])['\"`]?")  # of Python, with the quotes that `!r` would give
_CLAUSES = re.compile(r"[,;:] ")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


def is_code(text: str) -> bool:
    """Whether a text is a line of Python, or the first line of a block."""
    for program in (text, f"{text} pass", f"try: pass\n{text} pass"):
        try:
            ast.parse(program)
        except (SyntaxError, ValueError):
            continue
        return True
    return False


parsed = lru_cache(None)(ast.parse)  # read only


def of_python(source: str) -> Iterator[str]:
    """The texts of a file of Python."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(parsed(source)):  # a node comes after those that hold it
        if node in skipped:
            skipped.update(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "describe":
            skipped.update(node.args, node.keywords)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(part for part in node.values if isinstance(part, ast.Constant))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def of_c(source: str) -> Iterator[str]:
    """The texts of a file of C."""
    for literals in _LITERALS.findall(_COMMENT.sub(lambda found: found[1] or " ", source)):
        yield _FIELD.sub("{}", "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literals)))


def plain(text: str) -> str:
    """On one line, without the name at the start."""
    return _NAME.sub("", " ".join(_FILLED.sub("{}", text).split())).removeprefix("{}").strip()


def parts(text: str) -> Iterator[str]:
    """A text, its rows and their clauses."""
    yield plain(text)
    for row in () if is_code(text.strip()) else re.split(r"\n|\\n", text):
        yield plain(row)
        yield from map(plain, _CLAUSES.split(plain(row)))


def places(sources: dict[str, str]) -> dict[str, list[str]]:
    """Each long text -> the files that have it."""
    found: dict[str, list[str]] = {}
    for file, source in sources.items():
        texts = of_python(source) if file.endswith(".py") else of_c(source)
        for text in {part for each in texts for part in parts(each)}:
            if len(text.replace("{}", "")) >= SHORTEST and " " in text:
                found.setdefault(text, []).append(file)
    return found


def copies(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Each text in several files -> the files; not a clause of another of them in the same files, and no code."""
    several = {text: files for text, files in found.items() if len(files) > 1 and not is_code(text)}
    whole = list(several.items())
    return {text: files for text, files in whole if not any(text in o and text != o and files == fs for o, fs in whole)}


@lru_cache(None)
def product() -> dict[str, str]:
    found = {}
    for folder in sorted(path for pattern in ("core", "plugins/*", "tools/*") for path in ROOT.glob(f"{pattern}/src")):
        for path in sorted(folder.rglob("*")):
            other = path.is_symlink() or {"generated", "cases"} & set(path.parts)
            if path.suffix in (".py", ".c", ".h", ".cl", ".cu", ".cuh") and not other:
                found[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
    return found


def test_no_text_stands_in_two_files_of_the_product() -> None:
    found = places(product())
    assert len(found) > 2500
    twice = copies(found)
    lines = [f"{text!r}: {', '.join(files)}" for text, files in twice.items() if text not in TWICE]
    assert not lines, "\n".join(["Write these once, and let the other files import them:", *lines])
    assert twice.keys() == TWICE.keys(), "an exception that is none"


FIRST = '''
"""A module whose docstring is as long as any text of an error."""
def f(x, name):
    """A function whose docstring is as long as any text."""
    raise ArgumentError(f"{name}: the number must not be below the other, got {x}")

describe(globals(), x="words of a docstring that two files share")
LINE = "if x is not None and y is not None:"
'''


def texts_in_both(second: str) -> list[str]:
    return [*copies(places({"a.py": FIRST, "b.py": second}))]


SAID = "the number must not be below the other, got {}"


def test_a_text_is_found_in_both_files_whatever_name_stands_before_it() -> None:
    second = FIRST.replace('f"{name}: ', 'f"add: ').replace("below the other", 'below "\n        f"the other')
    assert texts_in_both(second) == [SAID]
    found = places({"a.py": FIRST, "b.py": second})
    assert [text for text in found if is_code(text)] == ["if x is not None and y is not None:"]


@pytest.mark.parametrize("filled", ["{}", "{!r}", "'{}'", "{0}", "{1.__class__.__name__}", "{given}", "{given:>3}", "%s", "%r"])
def test_a_text_is_found_however_it_is_filled_in(filled: str) -> None:
    assert texts_in_both(f'TEXT = "{{}}: the number must not be below the other, got {filled}"') == [SAID]


@pytest.mark.parametrize(
    ("text", "common"),
    [
        ("{name}the number must not be below the other, got {}", SAID),
        ("f: it fails\\n  to fix  the number must not be below the other, got {}", SAID),
        ("f: the number must not be below the other; give another", "the number must not be below the other"),
        ("f: {}: the number must not be below the other, of course", "the number must not be below the other"),
    ],
)
def test_a_row_and_a_clause_of_a_text_are_found(text: str, common: str) -> None:
    assert texts_in_both(f'TEXT = "{text}"') == [common]


def test_a_text_of_c_is_found_beside_that_of_python() -> None:
    text = '/* "a comment does not count as text" */ f("add: the number must not be "\n "below the other, got %zd", x);'
    found = places({"a.py": FIRST, "b.h": text})
    assert found[SAID] == ["a.py", "b.h"]
    assert not any("comment" in each for each in found)


def test_the_same_words_for_other_arguments_are_no_copy() -> None:
    assert texts_in_both(FIRST.replace("the number must", "the length must")) == []


# ---- functions

SMALLEST = 56  # characters of a body


def functions(source: str) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(parsed(source)) if isinstance(node, ast.FunctionDef))


def form(node: ast.FunctionDef) -> tuple[type, ...]:
    """The kinds of what a body consists of: where they differ, bodies need not be compared, which takes longer."""
    lines = node.body[1:] if ast.get_docstring(node) else node.body
    return tuple(type(each) for line in lines for each in ast.walk(line))


def body(node: ast.FunctionDef) -> str:
    """What a function does, with numbers for its names, and without its docstring."""
    node = deepcopy(node)
    names = {each.arg: f"_{i}" for i, each in enumerate(n for n in ast.walk(node.args) if isinstance(n, ast.arg))}
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.setdefault(each.id, f"_{len(names)}")
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            each.id = names.get(each.id, each.id)
    return "\n".join(map(ast.unparse, node.body[1:] if ast.get_docstring(node) else node.body))


def twice(sources: dict[str, str]) -> list[list[str]]:
    """The files and names of the functions that do the same in several files."""
    forms: dict[tuple[type, ...], list[tuple[str, ast.FunctionDef]]] = {}
    for file, source in sources.items():
        for node in functions(source):
            forms.setdefault(form(node), []).append((file, node))
    found: dict[str, list[tuple[str, str]]] = {}
    for file, node in (each for alike in forms.values() if len({file for file, _ in alike}) > 1 for each in alike):
        found.setdefault(body(node), []).append((file, node.name))
    same = [where for text, where in found.items() if len({file for file, _ in where}) > 1 and len(text) >= SMALLEST]
    return [[": ".join(each) for each in where] for where in same]


def test_no_function_in_python_stands_twice() -> None:
    sources = {file: source for file, source in product().items() if file.endswith(".py")}
    assert sum(source.count("def ") for source in sources.values()) > 5000
    assert twice(sources) == []


def test_a_function_is_found_whatever_its_names_are() -> None:
    first = 'def f(x, n):\n    """Text."""\n    made = [each * n for each in x if each is not None]\n'
    first += '    return tuple(made), x, "some"\n'
    second = 'def other(me, k):\n    y = [v * k for v in me if v is not None]\n    return tuple(y), me, "some"\n'
    assert twice({"a.py": first, "b.py": second}) == [["a.py: f", "b.py: other"]]
    for old, new in (("* k", "+ k"), (", me,", ", k,"), ("some", "other")):
        assert twice({"a.py": first, "b.py": second.replace(old, new)}) == []


# ---- decisions

# What is decided in one place -> how the same decision would look elsewhere, and the files that have it.
DECIDED = {
    "in which dtype several steps are computed": (
        r'float(?:32"?\)?|\(\)) if [^\n]*(?:itemsize|float16|TWO_BYTES|\.half\b)',
        ["plugins/arrays/src/turnout_arrays/numbers.py", "plugins/aten/src/turnout_aten/dtypes.py"],
    ),
    "how the tags that decide something are spelt": (
        (r'"(?:nondeterministic_seeded|dynamic_output_shape|data_dependent_output|inplace_view|shares_storage|resizes|finite)"'
        r'|"\w+" (?:not )?in (?:\w+\.)+tags\b'),
        ["plugins/aten/src/turnout_aten/declarations/tables.py"],
    ),
    "which operators resize": (  # where an error names one
        r'"(?:aten::)?resize_(?:as_)?"',
        ["plugins/aten/src/turnout_aten/composites/copies.py"],
    ),
    "whether an operator takes or gives tensors": (
        r'\.type\)\.startswith\("Tensor"\)|\bany\((\w)\.type\.is_tensor_like for \1 in [\w.]+\)',
        ["core/src/turnout/schema/model.py"],
    ),
    "which operators are written in operators": (
        r"\.calls_operators\b",
        ["core/src/turnout/operators/kernels.py", "plugins/aten/src/turnout_aten/declarations/standard.py"],
    ),
    "which images have elements": (
        r"0 in \w+\[-(?:ndim|\d)",
        ["plugins/aten/src/turnout_aten/shapes/images.py"],
    ),
    "which inputs a module takes": (
        r"\.ndim not in \((?:self\.ndim|\w+\.dims)|errors\.wrong_ndim\(type\(module\)",
        ["plugins/nn/src/turnout_nn/layers.py"],
    ),
    "which tensors are left out of a join": (r"\bfor (\w+) in (?:tensors|batches|shapes)\b[^\n]* [!=]= \(0,\)", []),
    "which ints are compared quickly": (  # where a name would be looked up at each call
        r"\b1073741824\b",
        ["core/src/turnout/operators/arguments.py", "core/src/turnout/operators/stubs.py"],
    ),
    "which kernels compete at a key": (r"\bwinner\((\w+), (\w+), \1\.kernels\[", []),
}  # fmt: skip


# Choices in places that cannot import the list of them, which is slow to import: where they stand, and the list.
CHOICES = [
    ("tools/cli/src/turnout_cli/demo.py", r"click\.Choice\((\[.*?\])\)", "turnout_cli.digits", "MODELS"),
    ("tools/cli/src/turnout_cli/graph.py", r"click\.Choice\((\[.*?\])\)", "turnout_autograd.drawing.graph_drawing", "FORMATS"),
]


@pytest.mark.parametrize(("file", "pattern", "module", "name"), CHOICES)
def test_choices_are_all_that_there_are(file: str, pattern: str, module: str, name: str) -> None:
    (choices, *_) = re.findall(pattern, (ROOT / file).read_text("utf-8"))
    assert list(ast.literal_eval(choices)) == list(getattr(importlib.import_module(module), name))


# The tables `_KINDS` of Python's classes for the types of the schema language: what each leaves out, and why.
TYPES = {
    # A file has the numbers of tensors, and nothing of the other types.
    "turnout_tracer.reading": "Tensor QScheme Storage Stream DimVector Dimname GraphModule TensorOptions",
    # Tensors are asked for by themselves; no standard operator returns anything of the other types.
    "turnout_opcheck.checks.schema": (
        "Tensor DeviceIndex ScalarType Device Layout MemoryFormat QScheme Generator Storage Stream DimVector Dimname GraphModule "
        "TensorOptions"
    ),
}


@pytest.mark.parametrize("module", TYPES)
def test_a_table_of_types_has_each_or_leaves_it_out(module: str) -> None:
    assert sorted([*importlib.import_module(module)._KINDS, *TYPES[module].split()]) == sorted(BASE_TYPES)


@pytest.mark.parametrize("what", DECIDED)
def test_a_decision_is_written_where_the_others_ask_for_it(what: str) -> None:
    pattern, files = DECIDED[what]
    assert [file for file, source in product().items() if re.search(pattern, source)] == files
