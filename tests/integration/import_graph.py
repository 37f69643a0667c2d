"""Who imports whom inside a distribution, read from the sources: files, the rooms they stand in, circles and layers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from workspace import Distribution, imported, modules

Graph = dict[str, set[str]]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node, in functions too, but for those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield other
                yield from statements(other)
            continue
        yield child
        yield from statements(child)


def files(one: Distribution) -> Graph:
    """File -> the files of the same distribution that it imports. A package's name stands for its `__init__`."""
    return graph_of(dict(modules(one.source)))


def graph_of(trees: Mapping[str, ast.Module]) -> Graph:
    """The same of trees by their dotted names, `__init__` written out."""
    names = {module.removesuffix(".__init__") for module in trees}
    graph: Graph = {}
    for module, tree in trees.items():
        here = module.removesuffix(".__init__")
        graph[here] = set()
        for node in statements(tree):
            for name in imported(module, node):
                while name and name not in names:
                    name = name.rpartition(".")[0]
                if name and name != here:
                    graph[here].add(name)
    return graph


def rooms(graph: Graph) -> Graph:
    """The same for folders and files directly below the package; the package's own `__init__` is left out."""
    found: Graph = {}
    for module, imports in graph.items():
        if "." in module:
            inside = found.setdefault(_room(module), set())
            inside.update(_room(other) for other in imports if "." in other and _room(other) != _room(module))
    return found


def _room(module: str) -> str:
    return module.split(".")[1]


def without(graph: Graph, arrows: Iterable[tuple[str, str]]) -> Graph:
    """The graph less some arrows."""
    left_out = set(arrows)
    return {module: {other for other in imports if (module, other) not in left_out} for module, imports in graph.items()}


def layers(graph: Graph) -> list[list[str]]:
    """What imports nothing, then what imports only that, and so on. What stands in a circle is one element, joined by +."""
    found: list[list[str]] = []
    left = {tuple(circle): {o for m in circle for o in graph[m]} - set(circle) for circle in groups(graph)}
    done: set[str] = set()
    while left:
        ready = sorted(circle for circle, needed in left.items() if needed <= done)
        found.append([" + ".join(circle) for circle in ready])
        done.update(module for circle in ready for module in circle)
        for circle in ready:
            del left[circle]
    return found


def circles(graph: Graph) -> list[list[str]]:
    """Groups of two and more that reach each other."""
    return [group for group in groups(graph) if len(group) > 1]


def groups(graph: Graph) -> list[list[str]]:
    """Each node with those that it reaches and that reach it (Tarjan's strongly connected components, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in sorted(graph):
        if start in index:
            continue
        work: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            module, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in stack:
                    low[module] = min(low[module], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    at = stack.index(module)
                    found.append(sorted(stack[at:]))
                    del stack[at:]
    return found
