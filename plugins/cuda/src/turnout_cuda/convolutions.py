"""Convolution by cuDNN's Python front end (`nvidia-cudnn-frontend`, module `cudnn`), where it is installed.

Convolutions of few products have kernels of their own (`turnout_cuda.direct_convolutions`). Of others, a call is described as a
graph of one operation, which cuDNN builds a plan for; plans are kept by what they were built for. Without the front end, and for
float64, the shared row multiplies matrices.
"""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from turnout.config.lock import new_lock
from turnout.config.tuples import NamedTuple
from turnout.registry import Registrations
from turnout_arrays.convolutions import spread
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.extents import contiguous_strides, numel
from turnout_cuda.direct_convolutions import Direct, of_bias
from turnout_cuda.floats import kind
from turnout_cuda.programs import name_of

Table = dict[str, Any]
Ints = tuple[int, ...]
Window = tuple[Ints, Ints, Ints]
_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
_KEPT = 256  # plans
# An operation -> the names of its two inputs.
_INPUTS = {"conv_fprop": ("image", "weight"), "conv_dgrad": ("loss", "filter"), "conv_wgrad": ("image", "loss")}


def front_end() -> Any:
    """The module, or None where it or cuDNN itself is not installed."""
    try:
        import cudnn

        cudnn.backend_version()
    except Exception:  # noqa: BLE001 - a front end without its library fails in any way
        return None
    return cudnn


def kernels(xp: Any, cudnn: Any, precision: Callable[[], str], library: Registrations) -> Table:
    """The rows of this module; none without the front end. Undoing the library gives back plans and handles."""
    if cudnn is None:
        return {}
    made = _Convolutions(xp, cudnn, precision)
    atexit.register(made.close)  # the front end complains of plans that are left when the interpreter has ended
    library.on_undo(lambda: atexit.unregister(made.close))
    library.on_undo(made.close)
    return made.rows()


class Call(NamedTuple):
    """An operation on two contiguous arrays that writes a third one; `window` is (padding, stride, dilation)."""

    operation: str
    dtype: str
    shapes: tuple[Ints, Ints, Ints]
    window: Window


class _Plan:
    """A graph that was built, and its three tensors."""

    def __init__(self, graph: Any, tensors: tuple[Any, Any, Any]) -> None:
        self.graph = graph
        self.tensors = tensors
        self.room = int(graph.get_workspace_size())


class _Convolutions(Direct):
    def __init__(self, xp: Any, cudnn: Any, precision: Callable[[], str]) -> None:
        super().__init__(xp, xp.programs)
        self.cudnn = cudnn
        self.precision = precision
        self.handles: dict[int, Any] = {}
        self.plans: OrderedDict[tuple[Any, ...], _Plan] = OrderedDict()
        self.lock = new_lock()  # of handles and plans

    def close(self) -> None:
        """Give back all plans and handles; calls make new ones."""
        with self.lock:
            self.plans.clear()
            while self.handles:
                self.cudnn.destroy_handle(self.handles.popitem()[1])

    def run(self, operation: str, inputs: tuple[Any, Any], shape: Ints, window: Window, made: Any = None) -> Any:
        """Write an operation on two contiguous arrays into a third one, or a new one."""
        inputs = (_aligned(inputs[0]), _aligned(inputs[1]))
        made = self.xp.empty(shape, inputs[0].dtype) if made is None else made
        call = Call(operation, name_of(inputs[0]), (inputs[0].shape, inputs[1].shape, shape), window)
        self.start(call, (inputs[0].data.ptr, inputs[1].data.ptr, made.data.ptr))
        return made

    def start(self, call: Call, addresses: tuple[int, int, int]) -> None:
        """Start an operation on the arrays at these addresses, multiples of 16."""
        device = int(self.xp.cuda.runtime.getDevice())
        key = device, self.precision(), call
        with self.lock:  # another thread would give the handle its own stream
            handle = self.handles.get(device)
            if handle is None:
                handle = self.handles[device] = self.cudnn.create_handle()
            self.cudnn.set_stream(handle=handle, stream=self.xp.cuda.get_current_stream().ptr)
            plan = self.plans.get(key)
            if plan is None:
                plan = self.plans[key] = self.built(handle, call)
                if len(self.plans) > _KEPT:
                    self.plans.popitem(last=False)
            self.plans.move_to_end(key)
            room = self.xp.empty(plan.room, "uint8") if plan.room else None
            # Addresses: CuPy exports no bfloat16.
            given = dict(zip(plan.tensors, addresses, strict=True))
            plan.graph.execute(given, addresses[2] if room is None else room.data.ptr, handle=handle)

    def built(self, handle: Any, call: Call) -> _Plan:
        """A plan for a call. Products are added up in float32."""
        cudnn, modes = self.cudnn, self.cudnn.heur_mode
        elements, number = getattr(cudnn.data_type, _TYPES[call.dtype]), cudnn.data_type.FLOAT
        graph = cudnn.pygraph(
            handle=handle, io_data_type=elements, intermediate_data_type=number, compute_data_type=number
        )  # fmt: skip
        *shapes, shape = call.shapes
        given = [graph.tensor(dim=list(s), stride=list(contiguous_strides(s)), data_type=elements) for s in shapes]
        padding, stride, dilation = (list(each) for each in call.window)
        named = dict(zip(_INPUTS[call.operation], given, strict=True))
        result = getattr(graph, call.operation)(**named, padding=padding, stride=stride, dilation=dilation)
        result.set_output(True).set_data_type(elements).set_dim(list(shape)).set_stride(list(contiguous_strides(shape)))
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([modes.A, modes.FALLBACK])
        if elements is number and self.precision() == "highest":
            notes = cudnn.numerical_note  # engines that compute in TF32 have one of these, or both
            graph.deselect_numeric_notes([notes.DOWN_CONVERT_INPUTS, notes.TENSOR_CORE])
        graph.check_support()
        graph.build_plans()
        return _Plan(graph, (*given, result))

    # ---- rows

    def rows(self) -> dict[str, Any]:
        return super().rows() | {"convolution.out": Row(self.forward, prepares=self.prepared)}

    def prepared(
        self, outs: Any, input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
        dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    ) -> Callable[..., Any] | None:  # fmt: skip
        """What plans of convolutions with many products start, where nothing is copied."""
        if kind(input, weight) not in _TYPES or not (input.size and numel(outs[0].shape)) or input.ndim > 5:
            return None
        if not (input.flags.c_contiguous and weight.flags.c_contiguous):
            return None
        operation, window = _operation(transposed), _window(input.ndim - 2, padding, stride, dilation)
        call = Call(operation, name_of(input), (_wide(input.shape), _wide(weight.shape), _wide(outs[0].shape)), window)
        along = (-1, *(1,) * (input.ndim - 2))

        def start(input: Any, weight: Any, bias: Any, *rest: Any) -> Any:
            addresses = input.data.ptr, weight.data.ptr, rest[-1].data.ptr
            if (addresses[0] | addresses[1] | addresses[2]) % 16:
                return self.forward(input, weight, bias, *rest)
            self.start(call, addresses)
            if bias is not None:
                self.xp.add(rest[-1], bias.reshape(along), rest[-1])
            return None

        return start

    def forward(
        self, input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
        transposed: bool, output_padding: Sequence[int], groups: int, out: Any,
    ) -> Any:  # fmt: skip
        args = (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out)
        if super().forward(*args) is not NotImplemented:
            return out
        if kind(input, weight) not in _TYPES or not out.size or not input.size or input.ndim > 5:
            return NotImplemented
        x, w = _flat(self.arrays.packed(input)), _flat(self.arrays.packed(weight))
        own = out.flags.c_contiguous and out.dtype == x.dtype and not out.data.ptr % 16
        target = _flat(out) if own and out.data.ptr not in (x.data.ptr, w.data.ptr) else None
        made = self.run(
            _operation(transposed), (x, w), _wide(out.shape), _window(input.ndim - 2, padding, stride, dilation), target
        )
        if bias is not None:
            made += bias.reshape(-1, *(1,) * (made.ndim - 2))
        return self.arrays.deliver(made, out) if target is None else out

    def backward(
        self, grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Sequence[int], padding: Sequence[int],
        dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        arrays = (grad_output, input, weight)
        args: Any = (*arrays, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask)
        made = super().backward(*args)
        if made is not NotImplemented:
            return made
        if kind(*arrays) not in _TYPES or not all(a.size and a.flags.c_contiguous for a in arrays) or input.ndim > 5:
            return NotImplemented
        window = _window(input.ndim - 2, padding, stride, dilation)
        grad, x, w = (_flat(array) for array in arrays)
        found: list[Any] = [None, None, None]
        if output_mask[0]:
            found[0] = self.run("conv_fprop" if transposed else "conv_dgrad", (grad, w), x.shape, window).reshape(input.shape)
        if output_mask[1]:
            image, loss = (grad, x) if transposed else (x, grad)
            found[1] = self.run("conv_wgrad", (image, loss), w.shape, window).reshape(weight.shape)
        if output_mask[2]:
            found[2] = of_bias(self.xp, grad_output)
        return tuple(found)


def _operation(transposed: bool) -> str:
    return "conv_dgrad" if transposed else "conv_fprop"


def _wide(shape: Ints) -> Ints:
    """[N, C, L] as [N, C, 1, L]: cuDNN has two spatial dims or three."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else shape


def _flat(array: Any) -> Any:
    return array.reshape(_wide(array.shape)) if array.ndim == 3 else array


def _aligned(array: Any) -> Any:
    """The array, or a copy where it does not begin at a multiple of 16 bytes, as cuDNN wants it."""
    return array.copy() if array.data.ptr % 16 else array


def _window(ndim: int, padding: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Window:
    """(padding, stride, dilation), a number for each of two dims or three."""

    def of(numbers: Sequence[int], first: int) -> Ints:
        each = spread(numbers, ndim)
        return (first, *each) if ndim == 1 else each

    return of(padding, 0), of(stride, 1), of(dilation, 1)
