"""Files of tensors and graphs, damaged at random: every one is read as what was saved, or refused as damaged.

A program saves an object that its seed draws, changes the file, and reads it. Its changes are lines of Python, so that a failing
one can be run as it is printed, and shrinks by leaving lines out. There are three kinds: bytes are changed anywhere; the numbers
and names in the headers of the archive are changed; values of the JSON document are changed, with all sums right. After one of
the first two, what is read is what was saved. What a changed document says may be another object, and a graph that is read can
be called.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import turnout
from random_programs.running import shrunk as without
from turnout import graphs
from turnout.errors import DeviceError, FileFormatError, TurnoutError, UnknownOperatorError
from turnout_aten import archives

DOCUMENTS = {False: "data.json", True: "graph.json"}  # of a file of tensors, and of a graph
BYTES, HEADERS, DOCUMENT = "bytes", "headers", "document"

# ---- what is saved

TENSORS = (
    "turnout.arange(6, dtype=turnout.int16)", "base", "base[2:]", "base.view(3, 4).t()", "base[1:10:3]", "turnout.ones(0, 3)",
    "turnout.tensor(5.0)", "turnout.ones(1).expand(4)", "turnout.ones(2, 3, device='meta')", "turnout.tensor([True, False])",
    "turnout.tensor([1 + 2j])", "turnout.ones(2, dtype=turnout.bfloat16)", "turnout.ones(3, requires_grad=True)",
    "turnout.arange(100, dtype=turnout.float64)", "turnout.arange(100, dtype=turnout.uint8)",
)  # fmt: skip
PLAIN = ("None", "True", "0", "-7", "10**20", "10**4000", "0.5", "float('nan')", "float('-inf')", "1j", "'text'", "turnout.int8")
GRAPHS = (
    "lambda x: x + turnout.arange(6.0, device='cpu').view(3, 2).t() + weight * base.view(3, 4)[:, 1]",
    "lambda x: x.sin()",
    "lambda x: {'y': x * 2 + weight, 'n': [None, 1.5, 'text']}",
    "lambda x: x.add_(1).view(-1).split(2)",
    "lambda x: (x.max(1), turnout.rand(2, 3, generator=generator, device='cpu') + x.sum())",
    "lambda x: turnout.cat([x, weight.expand(2, 3), turnout.full((1, 3), float('inf'), device='cpu')])",
    "lambda x: x.to(turnout.float64).transpose(0, 1).contiguous().sum(dim=[0, 1], keepdim=True)",
)


def _object(rng: random.Random, depth: int) -> str:
    """An object as Python text."""
    kind = rng.choice(["tensor", "tensor", "plain", "list", "tuple", "dict", "ordered"] if depth < 3 else ["tensor", "plain"])
    if kind == "tensor":
        return rng.choice(TENSORS)
    if kind == "plain":
        return rng.choice(PLAIN)
    parts = [_object(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == "list":
        return f"[{', '.join(parts)}]"
    if kind == "tuple":
        return f"({''.join(f'{part}, ' for part in parts)})"
    items = ", ".join(f"{rng.choice(['', 'k'])!r} + {str(i)!r}: {part}" for i, part in enumerate(parts))
    return f"{{{items}}}" if kind == "dict" else f"OrderedDict({{{items}}})"


# ---- what is changed

VALUES = (
    "None", "True", "-1", "0", "1", "2", "7", "2**31", "2**62", "2**63", "2**64", "10**30", "0.5", "1e308", "float('inf')", "''",
    "'x'", "'cpu'", "'meta'", "'float64'", "'no where'", "'value'", "'../x'", "'class'", "'\\ud800'", "'@deep@'", "'@long@'",
    "[]", "{}", "[[]]", "[1]", "[2**40, 2**40]", "[0] * 500", "[1] * 70", "{'tuple': []}", "{'again': 0}", "{'again': 99}",
    "{'ref': 0}", "{'ref': 10**9}", "{'generator': 0}", "{'dict': [[[], 1]]}", "{'dict': [[1, 1], [1, 2]]}", "{'float': '1_'}",
    "{'complex': ['1']}", "{'int': '0x_'}", "{'int': 'ff'}", "{'dtype': 'str'}", "{'device': 5}", "{'result': ['max', []]}",
    "{'result': ['__class__', {'tuple': []}]}", "{'list': [None], 'keys': 1}", "{'os.system': 'x'}", "{'constant': {'ref': 1}}",
    "'nowhere:1'", "'aten::nothing'", "'nothing::at_all'", "'aten::add.Tensor'", "'aten::sin'", "'aten::split.Tensor'",
)  # fmt: skip
FIELDS = {  # of a header, by its mark: format and offset of each number
    b"PK\3\4": [("<H", at) for at in (4, 6, 8, 10, 12, 26, 28)] + [("<L", at) for at in (14, 18, 22)],
    b"PK\1\2": [("<H", at) for at in (4, 6, 8, 28, 30, 32, 34)] + [("<L", at) for at in (16, 20, 24, 42)],
    b"PK\5\6": [("<H", at) for at in (4, 6, 8, 10, 20)] + [("<L", at) for at in (12, 16)],
    b"PK\7\x08": [("<L", at) for at in (4, 8, 12)],
}
NAMES = (
    b"../../../x", b"/etc/passw", b"storages/0", b"storages/1", b"storages/-", b"data.json\0", b"\xff\xfe345678", b"storages\\0",
    b"tensors/1", b"graph.jsoN",
)  # fmt: skip


def _bytes(rng: random.Random, size: int) -> str:
    at, length = rng.randrange(size), rng.choice((1, 2, 4, 30, 200))
    if rng.random() < 0.3:  # the directory and its end are small, and tell the most
        at = max(0, size - 1 - rng.randrange(200))
    if rng.random() < 0.4:
        return f"data[{at}] ^= {1 << rng.randrange(8)}"
    return rng.choice((
        f"data[{at}] = {rng.randrange(256)}",
        f"del data[{at}:{at + length}]",
        f"del data[{at}:]",
        f"data[{at}:{at}] = {rng.randbytes(length)!r}",
        f"data[{at}:{at + length}] = bytes({length})",
        f"data[{at}:{at + length}] = data[{rng.randrange(size)}:][:{length}]",
        f"data += {rng.randbytes(length)!r}",
        f"data += data[{at}:]",
    ))  # fmt: skip


def _header(rng: random.Random, data: bytes) -> str:
    mark = rng.choice(list(FIELDS))
    places = [at for at in range(len(data)) if data.startswith(mark, at)]
    if not places:
        return _bytes(rng, len(data))
    at = rng.choice(places)
    if mark in (b"PK\3\4", b"PK\1\2") and rng.random() < 0.25:
        name = at + (30 if mark == b"PK\3\4" else 46)
        (length,) = struct.unpack_from("<H", data, at + (26 if mark == b"PK\3\4" else 28))
        return f"data[{name}:{name + length}] = {rng.choice(NAMES)[:length]!r}"
    if mark == b"PK\5\6" and rng.random() < 0.3:  # fields of 64 bits before the end, which may say anything
        numbers = [rng.choice((0, 1, 2, 46, len(data), 2**40, 2**64 - 1)) for _ in range(4)]
        record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, *numbers) + struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
        return f"data[{at}:{at + 12}] = {record!r} + {data[at : at + 10] + bytes.fromhex('ffff')!r}"
    form, offset = rng.choice(FIELDS[mark])
    (now,) = struct.unpack_from(form, data, at + offset)
    top = 0xFFFF if form == "<H" else 0xFFFFFFFF
    value = rng.choice(
        (0, 1, 8, now + 1, max(0, now - 1), now ^ (1 << rng.randrange(16)), len(data), top, top - 1, rng.randrange(top))
    )
    return f"struct.pack_into({form!r}, data, {at + offset}, {min(value, top)})"


def _places(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value of a document but the whole, as Python text, and it."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        place = f"{path}[{key!r}]"
        yield place, value
        yield from _places(value, place)


def _change(rng: random.Random, document: Any) -> str:
    place, value = rng.choice(list(_places(document, "document")))
    other = rng.choice(VALUES)
    ways = [f"{place} = {other}"] * 3 + [f"del {place}"]
    if type(value) is int:
        ways += [f"{place} += {rng.choice((-1, 1, 2, 2**32))}"] * 2
    if isinstance(value, list):
        ways += [f"{place}.append({other})", f"{place} += {place}", f"{place}.reverse()"]
    if isinstance(value, dict):
        ways += [f"{place}[{rng.choice(['x', 'tuple', 'tensor', 'keys'])!r}] = {other}"]
        ways += [f"{place}['x'] = {place}.pop({key!r})" for key in list(value)[:2]]
    whole = rng.choice(list(_places(document, "document")))[0]
    return rng.choice([*ways, f"{place} = copy.deepcopy({whole})"])


# ---- programs


@dataclass(frozen=True)
class Program:
    """An object that is saved, as Python text, and lines that change the file's bytes `data`, or its `document`."""

    seed: int
    kind: str
    saves_graph: bool
    obj: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"# seed {self.seed}",
            "import copy, io, struct, turnout",
            "from collections import OrderedDict",
            "from random_programs.files import document_of, read, saved, with_document",
            *START,
            f"data = bytearray(saved({self.obj}, {self.saves_graph}))",
        ]
        if self.kind == DOCUMENT:
            lines += [f"document = document_of(data, {self.saves_graph})", *self.changes]
            lines.append(f"data = with_document(data, document, {self.saves_graph})")
        else:
            lines += self.changes
        return "\n".join([*lines, f"print(read(data, {self.saves_graph}))"])


START = (
    "base = turnout.arange(12, dtype=turnout.float32)",
    "weight = turnout.ones(3)",
    "generator = turnout.Generator('cpu').manual_seed(1)",
)


def _scope() -> dict[str, Any]:
    import copy

    scope: dict[str, Any] = {"turnout": turnout, "OrderedDict": OrderedDict, "struct": struct, "copy": copy}
    exec("\n".join(START), scope)
    return scope


def saved(obj: Any, as_graph: bool) -> bytes:
    """The bytes of the file in which an object, or the trace of a function, is saved."""
    if not as_graph:
        file = io.BytesIO()
        turnout.save(obj, file)
        return file.getvalue()
    with TemporaryDirectory() as folder:
        turnout.trace(obj)(turnout.ones(2, 3)).save(Path(folder, "graph"))
        return Path(folder, "graph").read_bytes()


class Counting(io.BytesIO):
    """A file that counts the bytes that were read, and those that were asked for."""

    taken = asked = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        self.asked += len(data) if size is None or size < 0 else size
        return data


def read(data: bytes, as_graph: bool) -> Any:
    """What the bytes hold, read as `turnout.load` or `graphs.load` reads a file. No byte is read or asked for twice."""
    if not as_graph:
        file = Counting(bytes(data))
        try:
            return turnout.load(file)
        finally:
            assert file.taken <= len(data), f"{file.taken} bytes were read of {len(data)}"
            assert file.asked <= len(data), f"{file.asked} bytes were asked for of {len(data)}"
    with TemporaryDirectory() as folder:
        Path(folder, "graph").write_bytes(data)
        return graphs.load(Path(folder, "graph"))


def document_of(data: bytes, as_graph: bool) -> Any:
    """The JSON document in a file's bytes."""
    return json.loads(archives.Archive(io.BytesIO(data)).read(DOCUMENTS[as_graph]))


def with_document(data: bytes, document: Any, as_graph: bool) -> bytes:
    """The file with another document, and sums that fit it."""
    text = json.dumps(document).replace('"@deep@"', "[" * 5000 + "]" * 5000).replace('"@long@"', "9" * 5000)
    archive, made, name = archives.Archive(io.BytesIO(data)), io.BytesIO(), DOCUMENTS[as_graph]
    others = [(other, archive.read(other)) for other in archive.entries if other != name]
    archives.write(made, [(name, text.encode()), *others])
    return made.getvalue()


def draw(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    as_graph = rng.random() < 0.35
    kind = rng.choice((BYTES, HEADERS, DOCUMENT))
    obj = rng.choice(GRAPHS) if as_graph else _object(rng, 0)
    data = saved(eval(obj, _scope()), as_graph)
    count = rng.choice((1, 1, 1, 2, 3))
    if kind == BYTES:
        changes = tuple(_bytes(rng, len(data)) for _ in range(count))
    elif kind == HEADERS:
        changes = tuple(_header(rng, data) for _ in range(count))
    else:
        document = document_of(data, as_graph)
        changes = tuple(_change(rng, document) for _ in range(count))
    return Program(seed, kind, as_graph, obj, changes)


# ---- how a program ends

SAME, OTHER, REFUSED, ABSENT = "read as saved", "read as another", "refused as damaged", "refused for what is not there"


def run(program: Program) -> str:
    """How a program ends. Raises AssertionError, saying why, where it must not end so; any other error must not be raised."""
    scope = _scope()
    as_graph = program.saves_graph
    obj = eval(program.obj, scope)
    scope["data"] = data = bytearray(saved(obj, as_graph))
    if program.kind == DOCUMENT:
        scope["document"] = document_of(data, as_graph)
    for line in program.changes:
        try:
            exec(line, scope)
        except (LookupError, TypeError, ValueError, AttributeError, struct.error):
            pass  # an earlier change took away what this one would change
    if program.kind == DOCUMENT:
        try:
            changed = with_document(data, scope["document"], as_graph)
        except (ValueError, RecursionError):
            return SAME  # a change made the document contain itself
    else:
        changed = bytes(scope["data"])
    try:
        found = read(changed, as_graph)
    except (FileFormatError, DeviceError, UnknownOperatorError) as error:
        return _refused(program, error)
    if as_graph:
        original = read(bytes(saved(obj, True)), True)
        same = str(found) == str(original)
        assert same or program.kind == DOCUMENT, "another graph than the one that was saved was read"
        call(found)
        return SAME if same else OTHER
    size = sum({id(t.storage): t.dtype.itemsize * t.storage.array.size for t in tensors_in(found) if not t.is_meta}.values())
    assert size <= len(changed), f"tensors of {size} bytes were made from {len(changed)}"
    same = described(found) == described(obj)
    assert same or program.kind == DOCUMENT, "another object than the one that was saved was read"
    return SAME if same else OTHER


def _refused(program: Program, error: Exception) -> str:
    """How a program ends that is refused: a file may name a device or an operator that is not there, and little else."""
    text = str(error)
    if isinstance(error, FileFormatError):
        assert text.startswith("load: "), text
        assert len(text) < 1000, "an error's text is as long as the file"
        return REFUSED
    if isinstance(error, DeviceError):
        assert program.kind == DOCUMENT, f"nobody named a device that is not there: {text}"
    else:
        assert (program.kind, program.saves_graph) == (DOCUMENT, True), f"nobody named an operator: {text}"
    return ABSENT


def call(graph: Any) -> None:
    """Call a graph that was read, where no memory is taken: it gives a result or an error of Turnout's, as any program does."""
    with TemporaryDirectory() as folder:
        graph.save(Path(folder, "graph"))
        moved = graphs.load(Path(folder, "graph"), device="meta")
    compile(moved.code, "<graph>", "exec")
    try:
        moved(*[turnout.ones(2, 3, device="meta") for _ in moved.inputs])
    except TurnoutError:
        pass


def tensors_in(obj: Any) -> Iterator[Any]:
    """The tensors of an object that was read."""
    if isinstance(obj, turnout.Tensor):
        yield obj
    elif isinstance(obj, dict):
        for pair in obj.items():
            yield from tensors_in(pair)
    elif isinstance(obj, (list, tuple)):
        for each in obj:
            yield from tensors_in(each)


def described(obj: Any) -> Any:
    """All that is kept of an object, comparable where nan is among it."""
    if isinstance(obj, turnout.Tensor):
        held = None if obj.is_meta else repr(obj.tolist())
        return ("tensor", obj.dtype.name, str(obj.device), obj.shape, obj.stride(), obj.storage_offset(), obj.requires_grad, held)
    if isinstance(obj, dict):
        return type(obj).__name__, [(described(k), described(v)) for k, v in obj.items()]
    if isinstance(obj, (list, tuple)):
        return type(obj).__name__, [described(each) for each in obj]
    return type(obj).__name__, hex(obj) if type(obj) is int else repr(obj)


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program with as few changes, and as simple an object, as still fail."""
    for obj in (*TENSORS, "[]") if not program.saves_graph else GRAPHS:
        simpler = replace(program, obj=obj)
        if len(obj) < len(program.obj) and fails(simpler):
            program = simpler
    changes = without(program.changes, lambda fewer: fails(replace(program, changes=tuple(fewer))))
    return replace(program, changes=tuple(changes))
