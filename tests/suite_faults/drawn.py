"""Draws faults: a file by its number of statements, then a kind of mutation, then a place where the file has it.

A mutation is an edit of the text at a node of the syntax tree, so that all else in the file stays as it was written.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

FOLDERS = ("core/src", "plugins/*/src", "tools/*/src")
PAIRS = [("<", "<="), (">", ">="), ("==", "!="), ("is", "is not"), ("in", "not in"), ("+", "-"), ("*", "/"), ("and", "or"),
         ("min", "max"), ("any", "all")]  # fmt: skip
EXCHANGED = dict(PAIRS) | {b: a for a, b in PAIRS}
LONGEST = 6  # lines of a fault: the list has to stay readable
BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try)
Edit = tuple[int, int, str]  # the first byte, the end, the text instead


class Places(ast.NodeVisitor):
    """Every edit of one file, by kind. Annotations, docstrings, `__all__` and what only type checkers read are passed over."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.kinds: dict[str, list[list[Edit]]] = {}
        self.visit(ast.parse(source))

    def add(self, kind: str, *edits: Edit) -> None:
        self.kinds.setdefault(kind, []).append(sorted(edits))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        return self.source[slice(*self.span(node))].decode()

    def operator(self, kind: str, left: ast.AST, right: ast.AST) -> None:
        """Exchange the operator between two operands, if it is one of the table."""
        start, end = self.span(left)[1], self.span(right)[0]
        between = self.source[start:end].decode()
        if (found := re.fullmatch(r"([\s)]*)(\S+(?: not| in)?)([\s(]*)", between)) and found[2] in EXCHANGED:
            self.add(kind, (start, end, found[1] + EXCHANGED[found[2]] + found[3]))

    def swapped(self, kind: str, nodes: list) -> None:
        for one, other in pairwise(nodes):
            if self.text(one) != self.text(other):
                self.add(kind, (*self.span(one), self.text(other)), (*self.span(other), self.text(one)))

    def visit(self, node: ast.AST) -> None:
        test = getattr(node, "test", None)
        if isinstance(node, ast.JoinedStr) or (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
            return
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return
        if isinstance(node, ast.Compare):
            for left, right in pairwise([node.left, *node.comparators]):
                self.operator("comparison", left, right)
        elif isinstance(node, ast.BinOp):
            self.operator("arithmetic", node.left, node.right)
        elif isinstance(node, ast.BoolOp):
            for left, right in pairwise(node.values):
                self.operator("and, or", left, right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.add("not", (self.span(node)[0], self.span(node)[0] + len("not "), ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            self.add("constant", (*self.span(node), str(not node.value if isinstance(node.value, bool) else node.value + 1)))
        elif isinstance(node, ast.Return) and node.value is not None and self.text(node.value) != "None":
            self.add("returned", (*self.span(node.value), "None"))
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, ast.Dict):
            self.swapped("key", [key for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)])
        elif isinstance(node, BLOCKS):
            self.deletions([*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])])
        if test is not None and not isinstance(node, ast.Assert):
            self.add("condition", (*self.span(test), f"not ({self.text(test)})"))
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns") and not (isinstance(node, ast.Assert) and name == "msg"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.visit(child)

    def call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in EXCHANGED:
            self.add("min, max, any, all", (*self.span(node.func), EXCHANGED[node.func.id]))
        arguments = sorted([*node.args, *node.keywords], key=self.span)
        for one, other in pairwise(arguments):
            self.add("argument dropped", (self.span(one)[1], self.span(other)[1], ""))
        if len(arguments) == 1:
            self.add("argument dropped", (*self.span(arguments[0]), ""))
        self.swapped("arguments exchanged", [a for a in node.args if not isinstance(a, ast.Starred)])

    def deletions(self, body: list) -> None:
        for statement in body:
            call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            if call or isinstance(statement, (ast.Assign, ast.AugAssign)):
                self.add("statement deleted", (*self.span(statement), "pass"))


def changed(source: bytes, edits: list[Edit]) -> tuple[int, str, str]:
    """The number of the first line, the lines as they are, and the lines with the edits."""
    first = source.rfind(b"\n", 0, edits[0][0]) + 1
    last = source.find(b"\n", edits[-1][1])
    after, position = b"", first
    for start, end, text in edits:
        after, position = after + source[position:start] + text.encode(), end
    return source.count(b"\n", 0, first) + 1, source[first:last].decode(), (after + source[position:last]).decode()


def draws(root: Path, seed: int) -> Iterator[dict]:
    """Faults without end, none twice. A mutation that does not parse, or changes nothing, is passed over."""
    chance = random.Random(seed)
    paths = sorted(p for folder in FOLDERS for p in root.glob(f"{folder}/**/*.py") if "generated" not in p.parts)
    weights = [sum(isinstance(n, ast.stmt) for n in ast.walk(ast.parse(p.read_bytes()))) for p in paths]
    seen = set()
    while True:
        path = chance.choices(paths, weights)[0]
        source = path.read_bytes()
        kinds = Places(source).kinds
        if not kinds:
            continue
        kind = chance.choice(sorted(kinds))
        edits = chance.choice(kinds[kind])
        line, before, after = changed(source, edits)
        lines = source.decode().split("\n")
        lines[line - 1 : line + before.count("\n")] = after.split("\n")
        try:
            same = ast.dump(ast.parse("\n".join(lines))) == ast.dump(ast.parse(source))
        except SyntaxError:
            continue
        fault = {"path": path.relative_to(root).as_posix(), "line": line, "what": kind, "before": before, "after": after}
        if not same and before.count("\n") < LONGEST and (path, line, after) not in seen:
            seen.add((path, line, after))
            yield fault
