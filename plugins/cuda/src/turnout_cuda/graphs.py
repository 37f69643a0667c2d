"""Recorded work in `turnout.cuda`: what a stream is given, kept as a graph of CUDA that runs again at one call."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout.errors import CallError
from turnout_cuda.devices import backend_in_use, synchronize
from turnout_cuda.recordings import Recording
from turnout_cuda.streams import Stream, stream

if TYPE_CHECKING:
    from collections.abc import Iterator


class CUDAGraph:
    """Work that was recorded from a stream, and runs again at one call, with the same tensors.

    What it reads and writes stays where it was when it was recorded: copy new values into these tensors before `replay`. Nothing
    else takes memory from the pool that it has while it lives.
    """

    def __init__(self) -> None:
        self._backend = backend_in_use()
        self._cuda = self._backend.cupy.cuda
        self._graph: Any = None
        self._recording: Recording | None = None
        self._stream: Any = None

    def capture_begin(self) -> None:
        """Record what the current stream is given from now on, instead of running it. The default stream cannot be recorded."""
        effect("CUDAGraph.capture_begin()")
        current = self._cuda.get_current_stream()
        if self._stream is not None:
            raise CallError("cuda graph: it is being recorded already")
        if current.ptr == 0:
            raise CallError("cuda graph: the default stream cannot be recorded; use turnout.cuda.graph, or a stream of your own")
        made = Recording(self._backend.cupy, self._backend.peaks.allocator, self._backend.current_device())
        made.begin()
        try:
            current.begin_capture()
        except BaseException:
            made.end()
            raise
        self._graph, self._recording, self._stream = None, made, current

    def capture_end(self) -> None:
        """Stop recording. What could not be recorded is CUDA's error."""
        effect("CUDAGraph.capture_end()")
        if self._stream is None or self._recording is None:
            raise CallError("cuda graph: it is not being recorded")
        recorded, self._stream = self._stream, None
        try:
            self._graph = recorded.end_capture()
        finally:
            self._recording.end()

    def replay(self) -> None:
        """Run what was recorded, on the current stream. Random numbers are those that come next."""
        effect("CUDAGraph.replay()")
        if self._graph is None or self._recording is None:
            raise CallError("cuda graph: nothing was recorded; record work with turnout.cuda.graph first")
        self._recording.renew()
        self._graph.launch(stream=self._cuda.get_current_stream())
        self._recording.launched()

    def reset(self) -> None:
        """Forget what was recorded, and give its memory back."""
        effect("CUDAGraph.reset()")
        self._graph = self._recording = None


def graph(cuda_graph: CUDAGraph, stream: Stream | None = None) -> AbstractContextManager[None]:
    """A block whose work on a stream is recorded into a graph, instead of run.

    Where the block raises, the graph stays empty.

    Arguments:
        cuda_graph: the graph to record into
        stream: the stream to record; None makes one

    Example:
        >>> if turnout.cuda.is_available():
        ...     x, g = turnout.zeros(2, device="cuda"), turnout.cuda.CUDAGraph()
        ...     with turnout.cuda.graph(g):
        ...         y = x + 1
        ...     g.replay()
    """
    return _recording(cuda_graph, stream)


@contextmanager
def _recording(cuda_graph: CUDAGraph, on: Stream | None) -> Iterator[None]:
    chosen = Stream() if on is None else on
    synchronize(chosen.device)
    with stream(chosen):
        cuda_graph.capture_begin()
        try:
            yield
        except BaseException:
            with suppress(Exception):  # CUDA refuses to end what it could not capture; the first error says why
                cuda_graph.capture_end()
            cuda_graph.reset()
            raise
        cuda_graph.capture_end()
