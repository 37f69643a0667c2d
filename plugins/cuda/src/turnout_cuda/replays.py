"""`replay="cuda_graph"`: the operators of a graph recorded once as a CUDA graph, and launched by one call.

The first call with values of a kind runs the operators one by one, which compiles kernels and finds out which values are written.
The second one records, for recording runs nothing. A value that is written has to be the same tensor in each call, or it is
recorded anew; others are copied to where the recorded kernels read. Results are copies, so that the next launch changes none of
them. Gradients are off: a launch records none. Random numbers are those of the device's default generator, others in each launch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.config.lock import new_lock
from turnout.errors import CallError
from turnout_aten.errors.backends import ONE_BY_ONE
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.random import default_generator_states
from turnout_aten.tensor.tensor import Tensor
from turnout_cuda.graphs import CUDAGraph, graph
from turnout_cuda.streams import Stream

if TYPE_CHECKING:
    Values = list[Any]
    Run = Callable[[Values], Values]

_KEPT = 8  # recordings


class RecordedReplay:
    """Called with the values of a graph's inputs, it returns its results."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._written: dict[tuple[Any, ...], list[bool]] = {}  # kind of values -> which of them are written
        self._recorded: OrderedDict[tuple[Any, ...], _Recorded] = OrderedDict()
        self._lock = new_lock()

    def __call__(self, given: Values) -> Values:
        kind = tuple([_kind(value) for value in given])
        with no_grad(), self._lock:  # another thread would copy its values to where this one's are
            written = self._written.get(kind)
            if written is None:
                return self._first(kind, given)
            key = kind, tuple([value.data_ptr() for value, writes in zip(given, written, strict=True) if writes])
            recorded = self._recorded.get(key)
            if recorded is None:
                recorded = self._recorded[key] = _Recorded(self._run, given, written)
                if len(self._recorded) > _KEPT:
                    self._recorded.popitem(last=False)
            self._recorded.move_to_end(key)
            return recorded.launch(given)

    def _first(self, kind: tuple[Any, ...], given: Values) -> Values:
        """Run the operators one by one. Raises CallError where random numbers are drawn elsewhere: launches would repeat them."""
        before, states = [_version(value) for value in given], default_generator_states()
        results = self._run(given)
        own = {value.device for value in given}
        drawn = [str(place) for place, state in default_generator_states().items() if states.get(place) != state]
        if elsewhere := [place for place in drawn if place not in map(str, own)]:
            raise CallError(
                f"replay='cuda_graph': the graph draws random numbers on {elsewhere[0]}, and each launch would repeat them; "
                f"{ONE_BY_ONE}"
            )
        self._written[kind] = [_version(value) != old for value, old in zip(given, before, strict=True)]
        return results


class _Recorded:
    """One recording: `values` are what it reads and writes, `results` what it leaves."""

    def __init__(self, run: Run, given: Values, written: list[bool]) -> None:
        self.written = written
        self.values = [v if writes else v.detach().clone() for v, writes in zip(given, written, strict=True)]
        self.graph = CUDAGraph()
        try:
            with graph(self.graph, Stream(given[0].device if given else None)):
                self.results = run(self.values)
        except Exception as error:
            raise CallError(f"replay='cuda_graph': the graph cannot be recorded: {error}") from error

    def launch(self, given: Values) -> Values:
        """Copy the values in, launch, and copy the results out."""
        for target, value, writes in zip(self.values, given, self.written, strict=True):
            if not writes:
                target.copy_(value)
        self.graph.replay()
        return [self._result(value, given) for value in self.results]

    def _result(self, value: Any, given: Values) -> Any:
        """A copy of a tensor; a value that is written is the caller's own."""
        if not isinstance(value, Tensor):
            return value
        for mine, theirs, writes in zip(self.values, given, self.written, strict=True):
            if mine is value and writes:
                return theirs
        return value.clone()


def _kind(value: Any) -> tuple[Any, ...]:
    """What a recording is good for. Raises CallError for a generator."""
    if not isinstance(value, Tensor):
        raise CallError(f"replay='cuda_graph': inputs are tensors, got {type(value).__name__}")
    return value.shape, value.stride(), value.dtype, value.device


def _version(value: Any) -> Any:
    return value.version()
