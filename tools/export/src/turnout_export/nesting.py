"""How the arguments and results of a program are nested: the text of a tree in, the structure of the tracer's data out."""

from __future__ import annotations

from typing import Any

from turnout_aten import plain_data
from turnout_aten.files import Damaged, need
from turnout_aten.plain_data import DEEPEST, elements, row, shown

Structure = Any  # None for a leaf, else {"list": [...]}, {"tuple": [...]} or {"dict": [...], "keys": [...]}

_KINDS = {
    "builtins.tuple": "tuple", "builtins.list": "list", "builtins.dict": "dict", "collections.OrderedDict": "OrderedDict",
    "torch.fx.immutable_collections.immutable_list": "list", "torch.fx.immutable_collections.immutable_dict": "dict",
}  # fmt: skip
_VERSION = 1


def structure(text: Any) -> Structure:
    """The structure that a text describes. Raises Damaged, also for kinds of containers that no graph has."""
    need(isinstance(text, str), "a tree is not a text")
    version, tree = plain_data.fields(plain_data.parse(text.encode("utf-8", "replace")), 2, "a tree")
    need(version == _VERSION, f"a tree has version {shown(version)}, expected {_VERSION}")
    return _node(tree, 0)


def _node(data: Any, depth: int) -> Structure:
    need(depth < DEEPEST, "a tree is nested too deep")
    found = row(data, frozenset({"type", "context", "children_spec"}), "a tree")
    children = elements(found["children_spec"], "the branches of a tree")
    if found["type"] is None:
        need(not children, "a leaf of a tree has branches")
        return None
    kind = _KINDS.get(found["type"]) if isinstance(found["type"], str) else None
    if kind is None:
        raise Damaged(f"arguments or results are nested in {shown(found['type'])}; a graph has list, tuple, dict and OrderedDict")
    branches = [_node(each, depth + 1) for each in children]
    if kind in ("list", "tuple"):
        return {kind: branches}
    context = found["context"]
    need(isinstance(context, str), "a dict of a tree has no keys")
    keys = elements(plain_data.parse(context.encode("utf-8", "replace")), "the keys of a dict")
    need(all(isinstance(key, (str, int)) for key in keys), "a key of a dict is neither a str nor an int")
    plain_data.check_keys(keys, branches)
    return {kind: branches, "keys": keys}


def places(tree: Structure, at: str = "") -> list[str]:
    """Where each leaf stands: "[0]['a']"."""
    if tree is None:
        return [at]
    kind = next(iter(tree))
    keys = tree.get("keys", range(len(tree[kind])))
    return [place for key, branch in zip(keys, tree[kind], strict=True) for place in places(branch, f"{at}[{key!r}]")]
