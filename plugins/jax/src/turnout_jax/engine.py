"""The engine `xla`: a graph as one program of XLA, for tensors on `jax` and on `cpu`.

`jax.jit` traces the graph once: its operators run as those of the device `jax` do, on the values that JAX traces. An operator
that has no row there, or has to know numbers, runs on cpu, in a callback. Tensors of cpu go in as their NumPy arrays, which XLA
reads where they lie if they begin at a multiple of 64 bytes. Results are tensors over values of XLA, which nobody else holds, and
a large tensor is moved to memory for such a value when it goes in; where these go in again, XLA gets the value.

What is known when a graph is compiled is decided then: a call reads arrays, calls XLA and lays tensors over what it gives.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from ctypes import Array, c_char
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import SingleDeviceSharding
from jaxlib import xla_client
from turnout.compiler import EngineError
from turnout.graphs import Graph, Node, Ref

import turnout
from turnout_arrays.random import TracedSeed, start_of
from turnout_aten.declarations.tables import SEEDED
from turnout_aten.tensor.checks import postponed
from turnout_aten.tensor.random import Generator, default_generator
from turnout_aten.tensor.taking_over import is_alone, move
from turnout_aten.tensor.tensor import wrap
from turnout_jax.backend import STANDS_FOR_DEFAULT, wide

Run = Callable[..., list[Any]]
LINE = 64  # bytes, at a multiple of which XLA's arrays begin
LARGE = 1 << 16  # bytes of arrays that become values of XLA
KINDS = 1024  # shapes and dtypes of which it is known that a value of XLA has them
EACH = 4096  # numbers that take an eager call of cpu as long as the call itself
SHARED = 8_000_000  # results of arithmetic, from which several threads take less time than one
TRANSCENDENTAL = 10  # of these count as much as an exponential: an estimate
# Whether a program waits for the code that runs. It holds a thread, which a program that this code called might wait for.
CALLED_BACK: ContextVar[bool] = ContextVar("turnout_jax.called_back", default=False)


def new_host(threads: str | None) -> Any:
    """A device for programs on tensors of `cpu`, which no other code has, and whose programs begin in the thread that calls them.

    JAX's own hands each to another thread, and to wake that one, and then the caller, can take as long as the program. XLA has no
    argument for the number of threads, but an environment variable that it reads when the device is made.
    """
    before = os.environ.get("NPROC")
    try:
        if threads is not None:
            os.environ["NPROC"] = threads
        return xla_client.make_cpu_client(asynchronous=False, num_devices=1).local_devices()[0]
    finally:
        if threads is not None:
            del os.environ["NPROC"]
            if before is not None:
                os.environ["NPROC"] = before


HOST = new_host(None)  # its programs share their work between all processors
HOST_OF_ONE = new_host("1")  # for programs that take less time than it takes to share their work


def compile(graph: Graph, examples: Sequence[Any], options: Mapping[str, Any]) -> Run | str:
    """A function of the graph's inputs that returns its results, or why eager calls are faster. Raises EngineError for what XLA
    cannot do.

    Arguments:
        graph: what `turnout.compile` has recorded
        examples: its inputs as fake tensors
        options: `name` is that of the function, `device` where the graph runs
    """
    tensors = [each for each in examples if isinstance(each, turnout.Tensor)]
    device, program = options["device"], Program(graph, str(options["name"]), len(tensors))
    jitted, on_cpu = jax.jit(program), device.type == "cpu"
    host = HOST_OF_ONE if on_cpu else None
    facts = [(tuple(each.shape), native(each.dtype)) for each in tensors]
    if program.draws:
        facts.append(((len(examples) - len(tensors) + 1, 2), np.dtype("uint64")))

    def lower() -> Any:
        place = None if host is None else SingleDeviceSharding(host)
        return wide(jitted.lower)(*[jax.ShapeDtypeStruct(shape, dtype, sharding=place) for shape, dtype in facts])

    try:
        lowered = lower()
        if program.draws and len(tensors) == len(examples) and not any(program.drawn):
            # What may draw does not, as a dropout of 0: no call has to say where the default generator stands.
            program.draws = False
            facts.pop()
            lowered = lower()
    except turnout.errors.TurnoutError as error:
        raise EngineError(str(error)) from error
    least = turnout.config.get("plugin.jax.compile_from")
    if on_cpu and program.work < least:
        return small(program.work, least)
    if on_cpu:
        if _is_shared(lowered):
            host = HOST
            lowered = lower()  # JAX has kept what it traced
        compiled = wide(lowered.compile)()
        # JAX makes 32 bits of what goes in, and of what a callback gives.
        call = wide(compiled) if program.callbacks or any(dtype.itemsize > 4 for _, dtype in facts) else compiled
        kinds = [result_class(*each, host) for each in facts[: program.count]]
        made = [result_class(each.shape, each.dtype, host) for each in lowered.out_info[1]]
        run = _running(graph, program, call, _read, kinds, partial(_results, made, device), device, options["written"])
    else:
        call = wide(jitted)
        if device.backend.indexed:  # a program that reads no input would run on the first device
            call = device.backend.guarded(call, device)
        read, results = (lambda tensor, _: tensor.array.value()), (lambda values: [*map(turnout.as_tensor, values)])
        run = _running(graph, program, call, read, facts[: program.count], results, device, ())
    run.notes = [f"{name} runs on cpu, in a callback" for name in sorted(set(program.callbacks))]  # type: ignore[attr-defined]
    return run


def _is_shared(lowered: Any) -> bool:
    """Whether a program takes longer than to share its work between threads, by what XLA counts in it."""
    cost: Mapping[str, float] | None = lowered.cost_analysis()
    return cost is None or cost.get("flops", 0) + TRANSCENDENTAL * cost.get("transcendentals", 0) >= SHARED


def small(work: int, least: int) -> str:
    """Why a graph on cpu is not compiled: to call XLA would take longer than the operators do. The sizes alone decide."""
    return (
        f"a small graph is faster so: the numbers that its operators read and write, and {EACH:,} for each operator, "
        f"are {work:,}, and plugin.jax.compile_from is {least:,}"
    )


def _running(
    graph: Graph, program: Program, call: Callable[..., Any], read: Callable[[Any, Any], Any], kinds: Sequence[Any],
    results: Callable[[Sequence[Any]], list[Any]], device: Any, written: Sequence[int],
) -> Run:  # fmt: skip
    """What calls a compiled program with what `read` gives of each tensor and its kind; `results` makes tensors of its values."""

    def run(*given: Any) -> list[Any]:
        if CALLED_BACK.get():
            return graph(*given)
        tensors = finished(given, *call(*map(read, given, kinds)))  # a generator that nothing draws from stands after the tensors
        return graph(*given) if tensors is None else tensors  # which raises what is wrong

    def finished(given: Sequence[Any], wrong: Any, made: Sequence[Any]) -> list[Any] | None:
        """The results, or None where a check has found something wrong."""
        held = False in [type(given[i].array.base) is kinds[i] for i in written]
        if on_cpu:
            for value in made:  # to ask where a value lies that is not computed yet takes longer than to wait for it
                value.block_until_ready()
            if wrong is not None:
                wrong = over(wrong.block_until_ready(), wrong.unsafe_buffer_pointer(), CHECK)  # JAX would take 20 us for the bool
        if wrong:
            return None
        tensors = results(made)
        if held:
            # JAX may hold an array of NumPy until it looks for garbage, which it does together with Python's collector.
            gc.collect(0)
        return tensors

    def run_drawing(*given: Any) -> list[Any]:
        if CALLED_BACK.get():
            return graph(*given)
        generators = [default_generator(device), *given[count:]]
        if any(each is generators[0] for each in generators[1:]):
            return graph(*given)  # one generator in two places: its words go to both in turn
        states = [each.reserve(words) for each, words in zip(generators, program.drawn, strict=True)]
        drawn = np.array([start_of(*state) for state in states], np.uint64)
        tensors = finished(given, *call(*map(read, given, kinds), drawn))
        if tensors is not None:
            return tensors
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        return graph(*given)

    count, on_cpu = program.count, device.type == "cpu"
    return run_drawing if program.draws else run


def draws(op: Any) -> bool:
    """Whether an operator draws random numbers."""
    return SEEDED in op.tags


def native(dtype: Any) -> Any:
    """JAX's dtype."""
    return turnout.empty(0, dtype=dtype, device="jax").array.value().dtype


# ---- calls


def _read(tensor: Any, kind: type[Result]) -> Any:
    """What XLA gets of a tensor of `cpu`: what it lies over, if that is of this kind, or its array.

    A large array is copied to memory of this kind, over which the tensor then lies, unless others see its memory, or XLA had it
    before. XLA reads an array where it lies if it begins at a multiple of 64 bytes; to copy one takes XLA two or three times as
    long as NumPy.
    """
    base: Any = tensor.array.base
    if type(base) is kind:  # NumPy's arrays may be given another shape in place
        if type(base.held) is np.ndarray:  # it goes in again: to ask JAX each time takes 4 us more
            base.held = wide(jax.device_put)(base.held, kind.host)
        return base.held
    is_moved = isinstance(base, Result)  # as a value of the other device: the memory would go to and fro
    del base  # so that none but the tensor holds its memory
    version, stays = tensor.version(), is_moved or tensor.array.nbytes < LARGE or not is_alone(tensor)
    array = tensor.array
    if (
        array.nbytes < LARGE or not array.flags.c_contiguous or (stays and _address(array) % LINE == 0)
        or (array.shape, array.dtype) != kind.facts
    ):  # fmt: skip
        return array
    room = np.empty(array.nbytes + LINE, np.uint8)
    there: np.ndarray[Any, Any] = room[-_address(room) % LINE :][: array.nbytes].view(array.dtype).reshape(array.shape)
    there[...] = array
    del array
    if not stays:
        move(tensor, over(there, _address(there), kind), version)
    return there


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


class Result(Array[c_char]):
    """What XLA reads, as writable memory over which NumPy's arrays may lie: nobody else has it.

    held   a value of XLA, or an array of NumPy that becomes one when it goes in again; it keeps the memory alive
    facts  its shape and dtype
    host   the device of the value
    """

    __slots__ = ("held",)
    _type_, _length_ = c_char, 0
    made_for_tensor = True  # for `held_alone` of the backend of cpu
    held: Any
    facts: tuple[tuple[int, ...], Any]
    host: Any


@lru_cache(KINDS)
def result_class(shape: tuple[int, ...], dtype: Any, host: Any) -> type[Result]:
    """The class of values of a shape and dtype: an array over one of them has both, and nothing has to be asked of the value."""
    length = prod(shape) * dtype.itemsize
    facts = {"facts": (shape, dtype), "host": host}
    return type("Result", (Result,), {"__slots__": (), "_type_": c_char, "_length_": length, **facts})


def over(held: Any, address: int, kind: type[Result]) -> Any:
    """An array of NumPy over what XLA reads and writes at an address."""
    memory: Any = kind.from_address(address)
    memory.held = held
    return np.ndarray(*kind.facts, memory)


def _results(kinds: Sequence[type[Result]], device: Any, values: Sequence[Any]) -> list[Any]:
    """Tensors of `cpu` over values of XLA."""
    return [wrap(over(value, value.unsafe_buffer_pointer(), kind), device) for value, kind in zip(values, kinds, strict=True)]


CHECK = result_class((), np.dtype(bool), HOST)


# ---- what JAX traces


class Program:
    """A graph as a function of JAX's values: its `count` tensors and, if it draws, a row for each generator.

    A row is what `start_of` gives for the place where the program begins to draw. The first one is of the device's default
    generator, the others of those that are inputs.

    callbacks  the operators that run on cpu
    drawn      how many words it draws from each generator
    work       how many numbers its operators read and write, and EACH for each of them
    """

    def __init__(self, graph: Graph, name: str, count: int) -> None:
        self.graph = graph
        self.count = count
        self.__name__ = name  # what JAX calls the program
        self.callbacks: list[str] = []
        self.draws = any(draws(node.op) for node in graph.nodes)
        self.drawn: list[int] = []
        self.work = 0

    def __call__(self, *values: Any) -> tuple[Any, list[Any]]:
        """Whether a check of numbers found something wrong, None without checks, and the results."""
        known: dict[int, Any] = {i: turnout.as_tensor(value) for i, value in enumerate(values[: self.count])}  # on `jax`
        known |= {each.ref.index: each.tensor.to("jax") for each in self.graph.constants}
        self.callbacks.clear()
        self.work = 0
        generators = [] if len(values) == self.count else [_traced_generator(*row) for row in values[self.count]]
        known |= {self.count + i: each for i, each in enumerate(generators[1:])}
        with turnout.config.override(default_device="jax"), _default(generators), postponed() as wrong:
            for node in self.graph.nodes:
                self._run(node, known)
        self.drawn = [each.get_state()[1] for each in generators]
        wrong[:] = [each.array.value() if isinstance(each, turnout.Tensor) else each for each in wrong]
        made: list[Any] = []
        seen = [id(value) for value in values]
        for ref in self.graph.results:
            assert isinstance(ref, Ref)  # a graph of one size has no sizes for results
            value = known[ref.index].contiguous().array.value()
            # What goes in, and what has come out, would come out as the same memory.
            made.append(jnp.copy(value) if id(value) in seen else value)
            seen.append(id(value))
        return jnp.any(jnp.stack(wrong)) if wrong else None, made

    def _run(self, node: Node, known: dict[int, Any]) -> None:
        args = [_valued(each, known) for each in node.args]
        try:
            made = node.op.call_boxed(tuple(args))
        except Exception as error:
            if not _asks_for_numbers(error):
                raise
            if draws(node.op):
                raise EngineError(f"{node.op.qualified_name} draws random numbers and has to know numbers") from error
            made = _called_back(node, args)
            self.callbacks.append(node.op.qualified_name)
        if not node.op.is_view:
            tensors = [each for each in turnout.trees.flatten([args, made])[0] if isinstance(each, turnout.Tensor)]
            self.work += EACH + sum(each.numel() for each in tensors)
        _keep(node.outputs, made, known)


def _traced_generator(start: Any, key: Any) -> Generator:
    """A generator whose words are values of the program."""
    seed = TracedSeed()
    seed.start, seed.key = start, key
    return Generator("jax").set_state((seed, 0))


@contextmanager
def _default(generators: list[Generator]) -> Iterator[None]:
    """A block in which the first of these, if there is one, stands for the default generator."""
    token = STANDS_FOR_DEFAULT.set(generators[0] if generators else None)
    try:
        yield
    finally:
        STANDS_FOR_DEFAULT.reset(token)


def _asks_for_numbers(error: BaseException | None) -> bool:
    """Whether an operator needed what JAX does not know yet, on the host or in a row of its own."""
    while error is not None:
        if isinstance(error, (jax.errors.JAXTypeError, jax.errors.JAXIndexError, turnout.errors.NoDataError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _valued(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, Ref):
        return known[value.index]
    if isinstance(value, (list, tuple)):
        return type(value)([_valued(each, known) for each in value])
    return turnout.device("jax") if isinstance(value, turnout.device) else value  # where JAX runs the program


def _keep(outputs: Any, made: Any, known: dict[int, Any]) -> None:
    if isinstance(outputs, Ref):
        known[outputs.index] = made
    elif isinstance(outputs, (list, tuple)):
        for output, each in zip(outputs, made, strict=True):
            _keep(output, each, known)


def _called_back(node: Node, args: Sequence[Any]) -> Any:
    """The operator on cpu, called when XLA has its arguments."""
    leaves, structure = turnout.trees.flatten(list(args))
    at = [i for i, each in enumerate(leaves) if isinstance(each, turnout.Tensor)]

    def call(make: Callable[[Any], Any], *values: Any) -> list[Any]:
        given = list(leaves)
        for i, value in zip(at, values, strict=True):
            given[i] = make(value)
        on_cpu = [turnout.device("cpu") if isinstance(each, turnout.device) else each for each in given]
        found = node.op.call_boxed(tuple(turnout.trees.unflatten(structure, on_cpu)))
        made = list(found) if isinstance(found, (list, tuple)) else [found]
        if not all(isinstance(each, turnout.Tensor) for each in made):
            raise EngineError(f"{node.op.qualified_name} gives numbers")
        return made

    with turnout.FakeMode(), postponed():  # the operator makes its checks on cpu
        fakes = call(lambda each: turnout.empty(tuple(each.shape), dtype=each.dtype), *[leaves[i] for i in at])
    specs = [jax.ShapeDtypeStruct(tuple(each.shape), native(each.dtype)) for each in fakes]
    dtypes = [native(leaves[i].dtype) for i in at]

    def on_host(*values: Any) -> list[Any]:
        arrays = [np.array(value).view(dtype).reshape(value.shape[:-1]) for value, dtype in zip(values, dtypes, strict=True)]
        token = CALLED_BACK.set(True)
        try:
            with turnout.no_grad():
                return [each.contiguous().numpy() for each in call(turnout.from_numpy, *arrays)]
        finally:
            CALLED_BACK.reset(token)

    made = jax.pure_callback(on_host, specs, *[_bytes(leaves[i].contiguous().array.value()) for i in at])
    tensors = [turnout.as_tensor(each) for each in made]
    return tensors if isinstance(node.outputs, (list, tuple)) else tensors[0]


def _bytes(value: Any) -> Any:
    """A value as its bytes, in another dim at the end: the thread of a callback would make 32 bits of 64."""
    kind = value.dtype.kind
    parts = jnp.stack([value.real, value.imag], -1) if kind == "c" else value.astype(jnp.uint8) if kind == "b" else value
    return lax.bitcast_convert_type(parts, jnp.uint8).reshape(*value.shape, value.dtype.itemsize)
