"""Functions changed at one place of their source: what tests of tests are made of."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class SourceMutation(ast.NodeTransformer):
    """Makes one change, the one that has a given number, and leaves everything else; `done` says what was changed."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.done = ""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for made in self.changed(node):
            if self.left == 0 and not self.done:
                self.done = f"{ast.unparse(node)} -> {ast.unparse(made)}"
                return made
            self.left -= 1
        return super().generic_visit(node)

    def changed(self, node: ast.AST) -> Iterator[ast.AST]:
        """What may stand in the place of a node."""
        raise NotImplementedError


def changes(
    tree: ast.FunctionDef, scope: Mapping[str, Any], change: Callable[[ast.FunctionDef, int], str]
) -> Iterator[tuple[str, Any]]:
    """What was changed, and the function with that change, for each.

    `change` makes that of a number, and returns "" when there are no more.
    """
    number = 0
    while True:
        changed = copy.deepcopy(tree)
        done = change(changed, number)
        if not done:
            return
        number += 1
        names = dict(scope)
        exec(compile(ast.fix_missing_locations(ast.Module([changed], [])), "<mutant>", "exec"), names)
        yield done, names[tree.name]
