"""`Graph`: operators in the order in which they ran, over values that are numbered from 0.

Inputs come first. A node's arguments are what the operator was called with, in schema order, with a `Ref` in the place of each
tensor; a node in whose place gradients were off says so, and its operator is called with them off again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.devices import Device, device
from turnout.explanation.html import preformatted
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer import data, errors, reading, source
from turnout_tracer.nodes import Constant, Node, Ref, mapped
from turnout_tracer.replay import Replay
from turnout_tracer.structures import Nested

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.files import FilePath
    from turnout_tracer.sizes import Formula, Sizes


class Graph:
    """The operators that a function called, to run on other inputs, print or `save`. `turnout.trace(f)(*inputs)` makes it.

    name        the function's
    inputs      the names of the tensors it takes, in order
    nodes       the calls, in order
    constants   tensors from outside
    sizes       what the graph was traced with: sizes that differ in each replay, and what must hold of them
    state       tensors of the graph's own by name: a model's parameters and buffers. Replays read and write these themselves
    state_refs  their values, by the same names
    replay      how a call runs the operators: "" one by one, else a way that the device of the inputs offers: "cuda_graph"
    """

    __unwrapped__ = ("__call__",)  # a traceback shows the line of the replay that failed

    def __init__(
        self, name: str, inputs: tuple[str, ...], signature: Nested, nodes: list[Node], constants: list[Constant],
        output: Nested, results: list[Ref | Formula], sizes: Sizes | None = None, state: dict[str, Tensor] | None = None,
        state_refs: dict[str, Ref] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.inputs = inputs
        self.signature = signature
        self.nodes = nodes
        self.constants = constants
        self.output = output
        self.results = results
        self.sizes = sizes
        self.state = {} if state is None else state
        self.state_refs = {} if state_refs is None else state_refs
        self.replay = ""
        self._replay: Replay | None = None
        self._way: tuple[Replay, str, Callable[[list[Any]], list[Any]]] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operators on other inputs, nested as the traced ones were; the result is nested as the function's result was.

        These are ordinary calls: they are differentiated, cast, batched and traced like any other. Sizes and numbers that the
        function computed in Python are constants, but for sizes that were symbols. Raises TraceError when the arguments are
        nested differently, and when something was decided about such sizes that does not hold for these inputs.
        """
        given = self.signature.values_of([args, kwargs], self.name)
        replay = self._replay
        if replay is None or not replay.is_of(self):
            replay = self._replay = Replay(self)
        if not self.replay:
            return self.output.build(replay.run(given, self.constants, self.state))
        way = self._way
        if way is None or way[0] is not replay or way[1] != self.replay:
            way = self._way = replay, self.replay, self._offered(replay, given)
        return self.output.build(way[2](given))

    def _offered(self, replay: Replay, given: list[Any]) -> Callable[[list[Any]], list[Any]]:
        """What the device of the first tensor makes of the replay. Raises TraceError where it does not have this way."""
        tensors = [*given, *self.state.values(), *[constant.tensor for constant in self.constants]]
        device = next((each.device for each in tensors if isinstance(each, Tensor)), None)
        ways = {} if device is None else device.backend.replays
        if self.replay not in ways:
            raise errors.TraceError(errors.no_such_replay(self.name, self.replay, device, list(ways)))
        constants, state = self.constants, self.state
        return ways[self.replay](lambda values: replay.run(values, constants, state))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_replay": None, "_way": None}  # code is prepared anew in another process

    def to(self, where: str | Device) -> Graph:
        """The same graph on another device: its constants and its state are copied there, and what it makes anew is made there.

        What requires a gradient in the state is a leaf there too.
        """
        target = device(where)
        nodes = [Node(n.op, mapped(partial(_moved, target), n.args), n.outputs, n.no_grad, n.line) for n in self.nodes]
        constants = [Constant(c.ref, c.tensor.to(target), c.written) for c in self.constants]
        state = _moved_state(self.state, target)
        own = (self.output, self.results, self.sizes, state, self.state_refs)
        moved = Graph(self.name, self.inputs, self.signature, nodes, constants, *own)
        moved.replay = self.replay
        return moved

    @property
    def code(self) -> str:
        """The graph as a Python function; `turnout` and its constants are the names that it needs."""
        return source.write(self)

    def __str__(self) -> str:
        return self.code

    def __repr__(self) -> str:
        return f"<Graph {self.name}({', '.join(self.inputs)}): {len(self.nodes)} calls>"

    def _repr_html_(self) -> str:
        return preformatted(self.code, f"{self.name}: {len(self.nodes)} calls")

    def save(self, path: FilePath) -> None:
        """Write it into a file, with its constants and its state; a file that exists is replaced at once, when all is written.

        Raises TraceError for a value that cannot be saved.
        """
        data.save(self, path)

    @staticmethod
    def load(path: FilePath, device: str | Device | None = None) -> Graph:
        """Read such a file, in any process; runs nothing. `device` is where its constants go, by default where they were.

        Raises FileFormatError for another file or a damaged one, UnknownOperatorError when an operator of it is not installed,
        DeviceError when a device is not there.
        """
        return Graph(*reading.load(path, device))

    @staticmethod
    def from_data(data: dict[str, Any], tensors: Sequence[Tensor], device: str | Device | None = None) -> Graph:
        """A graph from what the document of a file holds, checked as such a file is; it runs nothing.

        Where a file has the bytes of a constant or of the state, `data` has {"tensor": i}: the number of one of the `tensors`.
        Raises FileFormatError, UnknownOperatorError and DeviceError as `load`.
        """
        return Graph(*reading.from_data(data, tensors, device))


def _moved_state(state: dict[str, Tensor], target: Device) -> dict[str, Tensor]:
    """Copies on another device; one that is there under two names is copied once."""
    copies: dict[int, Tensor] = {}
    for tensor in state.values():
        if id(tensor) not in copies:
            moved = tensor.detach().to(target, copy=True)
            copies[id(tensor)] = moved.requires_grad_() if tensor.requires_grad else moved
    return {name: copies[id(tensor)] for name, tensor in state.items()}


def _moved(target: Device, value: Any) -> Any:
    if isinstance(value, Device):
        return target
    if isinstance(value, Generator):
        return Generator(target).set_state(value.get_state())
    return value
