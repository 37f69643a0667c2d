"""`turnout.export`: programs that `torch.export` saved, as graphs."""

from __future__ import annotations

import importlib
import io
import warnings
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.errors import CallError, FileFormatError
from turnout_aten.files import Damaged, name_of, need, reading, require_file
from turnout_aten.plain_data import row, shown
from turnout_aten.tensor.devices import device as device_of
from turnout_export import errors
from turnout_export.archive import Package
from turnout_export.errors import ExportError
from turnout_export.translation import SCHEMA, translate

if TYPE_CHECKING:
    from typing import IO

    from turnout.devices import Device
    from turnout_aten.files import FilePath
    from turnout_tracer.graph import Graph

__all__ = ["ExportError", "from_torch", "load"]
__dir__ = __all__.copy

_PROGRAM = frozenset({"graph_module", "schema_version", "range_constraints"})


def load(path: FilePath | IO[bytes], device: str | Device = "cpu") -> Graph:
    """Read the program that `torch.export.save` wrote, as a graph. PyTorch need not be installed, and nothing in the file is run.

    The graph takes the model's inputs, nested as they were, and returns its results. `graph.state` holds parameters and buffers
    by their names in the model; parameters require a gradient as they did there, and buffers are written where the model writes
    them. Sizes that were dynamic may differ in each call. Raises FileFormatError for a file that is none, or is damaged, and
    ExportError that names all operators that are missing.

    Arguments:
        path: a str, bytes or path object, or a file object that is open for reading in binary mode
        device: where the graph runs, and its state is
    """
    require_file("load", path, "read")
    plugins.require_functionality("Tracer")
    name, where = name_of(path), device_of(device)
    with reading(path) as file:
        try:
            package = Package(file, where)
            program = row(package.program, _PROGRAM, "the program")
            _check_version(name, program["schema_version"])
            return translate(program, package.tensors("weights"), package.tensors("constants"), where)
        except Damaged as error:
            raise FileFormatError(errors.not_a_program(name, str(error))) from None


def _check_version(name: str, data: Any) -> None:
    found = row(data, frozenset({"major", "minor"}), "the version of the schema")
    major, minor = found["major"], found["minor"]
    need(type(major) is int and type(minor) is int, "the version of the schema is not two ints")
    if major != SCHEMA[0]:
        known = ".".join(map(str, SCHEMA))
        raise FileFormatError(errors.newer(name, f"{shown(major)}.{shown(minor)}", known))


def from_torch(exported_program: Any, device: str | Device = "cpu") -> Graph:
    """The graph of a `torch.export.ExportedProgram`, as `load` reads it. Its tensors are copies of the program's.

    Arguments:
        exported_program: what `torch.export.export` returned, or its `run_decompositions()`
        device: where the graph runs, and its state is
    """
    if type(exported_program).__name__ != "ExportedProgram" or not type(exported_program).__module__.startswith("torch."):
        raise CallError(errors.not_a_program_object(exported_program))
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, about its own code
        importlib.import_module("torch.export").save(exported_program, file)
    return load(file, device)
