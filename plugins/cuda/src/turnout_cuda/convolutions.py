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
from turnout.registry import Registrations
from turnout_arrays.convolutions import spread
from turnout_cuda.direct_convolutions import Direct, of_bias
from turnout_cuda.floats import kind
from turnout_cuda.programs import name_of

Table = dict[str, Any]
Ints = tuple[int, ...]
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

    def run(self, operation: str, inputs: tuple[Any, Any], shape: Ints, window: tuple[Ints, Ints, Ints], made: Any = None) -> Any:
        """Write an operation on two contiguous arrays into a third one, or a new one; `window` is (padding, stride, dilation)."""
        inputs = (_aligned(inputs[0]), _aligned(inputs[1]))
        made = self.xp.empty(shape, inputs[0].dtype) if made is None else made
        device = int(self.xp.cuda.runtime.getDevice())
        key = (device, operation, name_of(inputs[0]), inputs[0].shape, inputs[1].shape, shape, window, self.precision())
        with self.lock:  # another thread would give the handle its own stream
            handle = self.handles.get(device)
            if handle is None:
                handle = self.handles[device] = self.cudnn.create_handle()
            self.cudnn.set_stream(handle=handle, stream=self.xp.cuda.get_current_stream().ptr)
            plan = self.plans.get(key)
            if plan is None:
                plan = self.plans[key] = self.built(handle, operation, (*inputs, made), window)
                if len(self.plans) > _KEPT:
                    self.plans.popitem(last=False)
            self.plans.move_to_end(key)
            workspace = self.xp.empty(max(plan.room, 1), "uint8")
            # Addresses: CuPy exports no bfloat16.
            addresses = {tensor: int(array.data.ptr) for tensor, array in zip(plan.tensors, (*inputs, made), strict=True)}
            plan.graph.execute(addresses, int(workspace.data.ptr), handle=handle)
        return made

    def built(self, handle: Any, operation: str, arrays: tuple[Any, Any, Any], window: tuple[Ints, Ints, Ints]) -> _Plan:
        """A plan for arrays of these shapes. Products are added up in float32."""
        cudnn, modes = self.cudnn, self.cudnn.heur_mode
        elements, number = getattr(cudnn.data_type, _TYPES[name_of(arrays[0])]), cudnn.data_type.FLOAT
        graph = cudnn.pygraph(
            handle=handle, io_data_type=elements, intermediate_data_type=number, compute_data_type=number
        )  # fmt: skip
        given = [graph.tensor(dim=list(a.shape), stride=_steps(a), data_type=elements) for a in arrays[:2]]
        padding, stride, dilation = (list(each) for each in window)
        named = dict(zip(_INPUTS[operation], given, strict=True))
        result = getattr(graph, operation)(**named, padding=padding, stride=stride, dilation=dilation)
        result.set_output(True).set_data_type(elements).set_dim(list(arrays[2].shape)).set_stride(_steps(arrays[2]))
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
        operation = "conv_dgrad" if transposed else "conv_fprop"
        own = out.flags.c_contiguous and out.dtype == x.dtype and not out.data.ptr % 16
        target = _flat(out) if own and out.data.ptr not in (x.data.ptr, w.data.ptr) else None
        made = self.run(operation, (x, w), _wide(out.shape), _window(input.ndim - 2, padding, stride, dilation), target)
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


def _steps(array: Any) -> list[int]:
    """Strides in elements."""
    return [step // array.dtype.itemsize for step in array.strides]


def _wide(shape: Ints) -> Ints:
    """[N, C, L] as [N, C, 1, L]: cuDNN has two spatial dims or three."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else shape


def _flat(array: Any) -> Any:
    return array.reshape(_wide(array.shape))


def _aligned(array: Any) -> Any:
    """The array, or a copy where it does not begin at a multiple of 16 bytes, as cuDNN wants it."""
    return array.copy() if array.data.ptr % 16 else array


def _window(ndim: int, padding: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """(padding, stride, dilation), a number for each of two dims or three."""

    def of(numbers: Sequence[int], first: int) -> Ints:
        each = spread(numbers, ndim)
        return (first, *each) if ndim == 1 else each

    return of(padding, 0), of(stride, 1), of(dilation, 1)
