"""`Tensor`: a thin handle on a backend's array, with a key set, device, version, and the fields of the functionalities.

Creating a tensor is nine stores into slots (see `wrapping_lines`). There is no `__init__`: it would cost 50 ns of about 110.
There is no `__getattr__`: with it, CPython 3.11 cannot specialise attribute loads (300 ns of an addition). Everything that
computes is an operator; its method is made from its declaration.
"""

from __future__ import annotations

from turnout.config.lock import new_lock
from turnout.devices import Device
from turnout.dtypes import COMPLEX, FLOAT, DType
from turnout.errors import AliasError, ArgumentError, CallError, DimError
from turnout.errors import calls as texts
from turnout.operators.tracebacks import shorten
from turnout_aten import constants
from turnout_aten import operators as aten
from turnout_aten.functions.reductions import ReductionMethods
from turnout_aten.generated.methods import TensorMethods
from turnout_aten.tensor.conversions import Conversions
from turnout_aten.tensor.gradients import GradientMethods
from turnout_aten.tensor.late_methods import Late, LateProperty
from turnout_aten.tensor.levels import CLOCK, VERSION_MASK
from turnout_aten.tensor.pinning import is_pinned
from turnout_aten.tensor.reads import reads
from turnout_aten.tensor.size import Size
from turnout_aten.tensor.size import new as new_size
from turnout_aten.tensor.storage import UNCOUNTED, Storage, View
from turnout_aten.tensor.type_names import cuda_device, named_type, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, overload

    from turnout_aten.tensor.devices import TensorDevice


_ALIASING = new_lock()


class Tensor(ReductionMethods, GradientMethods, TensorMethods, Conversions):
    """An n-dimensional array on a device, with the keys that decide what its operators do.

    Make one with `turnout.tensor`, a factory such as `turnout.zeros`, or `turnout.from_numpy`.

    These fields are for authors of plugins; programs use the attributes and methods.

    array    the backend's own array
    keys     the key set, an int
    device   a `Device`
    gmask    the gradient levels that track it, an int of bits; bit 0 is `requires_grad`
    node     the tape's node that made it, or None; its type belongs to the Autograd functionality
    ver      the version while no other tensor shares the memory; after that, `storage` knows it
    storage  None until the tensor is first aliased
    view_of  None, or the `View` record
    offset   in elements from the storage's root; set when `storage` is
    extra    None, or a dict of rare fields: the gradient of a leaf, hooks
    """

    __module__ = "turnout"  # where users find it
    __slots__ = (
        "__weakref__", "array", "device", "extra", "gmask", "keys", "node", "offset", "storage", "ver", "view_of",
    )  # fmt: skip

    __unwrapped__ = ("*",)  # methods that a small call uses have a `try` of their own
    schema_type = "Tensor"  # in annotations of custom operators
    __array_priority__ = 1000  # NumPy's scalars and arrays leave an operator to the tensor

    array: Any
    device: TensorDevice
    keys: int
    gmask: int
    node: Any
    ver: int
    storage: Storage | None
    view_of: View | None
    offset: int
    extra: dict[str, Any] | None

    # ---- properties

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.array.shape)

    def dim(self) -> int:
        """The number of dimensions.

        Example:
            >>> turnout.zeros(2, 3).dim()
            2
        """
        return len(self.array.shape)

    if TYPE_CHECKING:

        @overload
        def size(self, dim: None = None) -> Size: ...

        @overload
        def size(self, dim: int) -> int: ...

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension.

        Arguments:
            dim: the dimension; None asks for the shape

        Example:
            >>> turnout.zeros(2, 3).size(1)
            3
        """
        try:
            shape = self.array.shape
            try:
                return new_size(Size, shape) if dim is None else shape[dim]
            except IndexError:
                raise DimError(f"size: dim {dim} is out of range for a tensor of shape {list(shape)}") from None
        except Exception as error:
            shorten(error)
            raise

    def numel(self) -> int:
        """The number of elements.

        Example:
            >>> turnout.zeros(2, 3).numel()
            6
        """
        count = 1
        for length in self.array.shape:
            count *= length
        return count

    nelement = numel
    ndimension = dim

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together."""
        return self.numel() * self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes per element.

        Example:
            >>> turnout.zeros(2).element_size()
            4
        """
        return self.dtype.itemsize

    if TYPE_CHECKING:

        @overload
        def stride(self, dim: None = None) -> tuple[int, ...]: ...

        @overload
        def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements, or the stride of one dimension.

        Arguments:
            dim: the dimension; None asks for all

        Example:
            >>> turnout.zeros(2, 3).stride()
            (3, 1)
        """
        strides = self.device.backend.strides(self.array)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """The position of the first element in the storage, in elements.

        Example:
            >>> turnout.zeros(2, 3)[1].storage_offset()
            3
        """
        return 0 if self.storage is None else self.offset

    def is_contiguous(self, memory_format: str = "contiguous_format") -> bool:
        """Whether the elements lie in memory in the order of a memory format (row-major by default), without gaps.

        Arguments:
            memory_format: the order that is asked for

        Example:
            >>> turnout.zeros(2, 3).t().is_contiguous()
            False
        """
        array = self.array
        shape = array.shape
        if memory_format == "contiguous_format":
            backend = self.device.backend
            if backend.row_major is not None and array.__class__ is backend.array_type:
                return backend.row_major(array)
        strides = self.stride()
        if memory_format == "contiguous_format":
            if len(shape) < 2:
                return not shape or strides[0] == 1 or shape[0] < 2
            dims: Any = reversed(range(len(shape)))
        else:
            order = constants.MEMORY_FORMATS.get(memory_format) if isinstance(memory_format, str) else None
            if order is None:
                raise ArgumentError(f"is_contiguous: {memory_format!r} is not a memory format that a tensor can have")
            if len(shape) != len(order):
                return False
            dims = reversed(order)
        expected = 1
        for d in dims:
            if shape[d] == 0:
                return True
            if shape[d] != 1:
                if strides[d] != expected:
                    return False
                expected *= shape[d]
        return True

    # The same as the operators with these names, but a trace does not record them.

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating-point one.

        Example:
            >>> turnout.tensor([1.0]).is_floating_point()
            True
        """
        return self.dtype.category == FLOAT

    def is_complex(self) -> bool:
        """Whether the dtype is complex.

        Example:
            >>> turnout.tensor([1j]).is_complex()
            True
        """
        return self.dtype.category == COMPLEX

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers.

        Example:
            >>> turnout.tensor([1]).is_signed()
            True
        """
        return self.dtype.is_signed

    @property
    def layout(self) -> constants.layout:
        """How the elements are stored: `turnout.strided`, as no other layout exists."""
        return constants.strided

    @property
    def is_sparse(self) -> bool:
        """False, as no sparse layout exists."""
        return False

    # ---- where it is

    @property
    def is_cpu(self) -> bool:
        """Whether the device type is "cpu"."""
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether the device type is "cuda"."""
        return self.device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        """Whether the device type is "meta": the tensor has a shape and no data."""
        return self.device.type == "meta"

    def get_device(self) -> int:
        """The index of the device, or -1 for a device type without indices, such as "cpu".

        Example:
            >>> turnout.ones(2).get_device()
            -1
        """
        return -1 if self.device.index is None else self.device.index

    def data_ptr(self) -> int:
        """The address of the first element in the memory of its device; 0 for a tensor without elements or data.

        Raises NoDataError if the backend does not have addresses.

        Example:
            >>> x = turnout.tensor([1, 2])
            >>> x[1].data_ptr() - x.data_ptr()
            8
        """
        reads("data_ptr()")
        return self.device.backend.data_ptr(self.array) if self.numel() else 0

    def is_pinned(self) -> bool:
        """Whether the elements lie in page-locked memory of the host.

        Example:
            >>> turnout.ones(2).is_pinned()
            False
        """
        return is_pinned(self)

    def pin_memory(self) -> Tensor:
        """`self` if it lies in page-locked memory of the host, else a copy that does: `non_blocking=True` copies it to a device
        while the program goes on.

        Raises DeviceError for a tensor on another device, and where no device is available that reads such memory.

        Example:
            >>> x = turnout.ones(2)
            >>> x = x.pin_memory() if turnout.cuda.is_available() else x
        """
        if self.is_pinned():
            return self
        return aten._to_copy(self, pin_memory=True)

    @property
    def fake_mode(self) -> Any:
        """The `FakeMode` of a fake tensor, None for any other."""
        return self.device.backend.fake_mode

    # ---- versions and views

    def version(self) -> int:
        """The version counter, epoch included: it rises with every write through this tensor or an alias.

        Example:
            >>> x = turnout.tensor([1])
            >>> before = x.version()
            >>> x.add_(1).version() > before
            True
        """
        storage = self.storage
        return self.ver if storage is None else storage.ver if storage.ver is not None else storage.version()

    @property
    def _version(self) -> int:
        if self.is_inference():
            raise AliasError("an inference tensor has no version: writes into it are not counted")
        return self.version() & VERSION_MASK

    def bump_version(self) -> None:
        """Record a write.

        Example:
            >>> x = turnout.tensor([1])
            >>> before = x.version()
            >>> x.bump_version()
            >>> x.version() > before
            True
        """
        storage = self.storage
        if storage is None:
            self.ver += 1
        elif storage.ver is not None:
            storage.ver += 1
        else:
            storage.count()

    def count_apart(self) -> None:
        """Give a new alias a version counter of its own, which its views will share: writes into one do not count for the other.

        Example:
            >>> x = turnout.tensor([1])
            >>> alias = x.detach()
            >>> alias.count_apart()
            >>> before = x.version()
            >>> alias.add_(1).version() > before, x.version() > before
            (True, False)
        """
        storage = self.storage
        if storage is not None and storage.memory.kind is not UNCOUNTED:
            self.storage = storage.apart()

    def is_inference(self) -> bool:
        """Whether the tensor was made in `inference_mode`: then it has no version and is never saved for a gradient.

        Example:
            >>> turnout.tensor([1]).is_inference()
            False
        """
        return self.storage is not None and self.storage.memory.kind is UNCOUNTED

    def shared_storage(self) -> Storage:
        """The storage record, made when the tensor is first aliased.

        Example:
            >>> x = turnout.tensor([1, 2])
            >>> x.shared_storage() is x.shared_storage()
            True
        """
        storage = self.storage
        if storage is None:
            with _ALIASING:
                storage = self.storage
                if storage is None:
                    self.offset = 0
                    storage = self.storage = Storage(self.array, self.ver)
        return storage

    def new_alias(self, array: Any, offset: int) -> Tensor:
        """A new untracked tensor over the same storage. It is not an operator; kernels of view operators use it.

        Arguments:
            array: the backend's array of the new tensor
            offset: the position of its first element in the storage, in elements

        Example:
            >>> x = turnout.tensor([1, 2])
            >>> x.new_alias(x.array, 0).is_alias_of(x)
            True
        """
        made = wrap(array, self.device)
        made.storage = self.shared_storage()
        made.offset = offset
        return made

    def shares_memory_with(self, other: Tensor) -> bool:
        """Whether both tensors share one storage or one array.

        Arguments:
            other: the other tensor

        Example:
            >>> x = turnout.tensor([1, 2])
            >>> x.shares_memory_with(x[0])
            True
        """
        return self.is_alias_of(other) or self.array is other.array

    def is_alias_of(self, other: Tensor) -> bool:
        """Whether both tensors share one storage.

        Arguments:
            other: the other tensor

        Example:
            >>> x = turnout.tensor([1, 2])
            >>> x.is_alias_of(x[0])
            True
        """
        if self is other:
            return True
        if not isinstance(other, Tensor):
            raise CallError(texts.wrong_type("is_alias_of", "other", "a tensor", other))
        mine, theirs = self.storage, other.storage
        return mine is not None and theirs is not None and mine.memory is theirs.memory

    @property
    def _base(self) -> Tensor | None:
        return None if self.view_of is None else self.view_of.base

    def live_views(self) -> Iterator[Tensor]:
        """The views of this base that are still alive.

        Example:
            >>> x = turnout.tensor([1, 2])
            >>> first = x[0]
            >>> [view is first for view in x.live_views()]
            [True]
        """
        if self.storage is not None:
            for reference in list(self.storage.views):
                view = reference()
                if view is not None and view.view_of is not None and view.view_of.base is self:
                    yield view

    # ---- other dtypes and devices

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """In another dtype, on another device, or both: `x.to(float32)`, `x.to("cuda")`, `x.to("cuda", float32)`, `x.to(other)`.

        Returns `self` if nothing changes, unless `copy=True`. Raises OverloadError for any other call.

        Arguments:
            args: a dtype, a device, both, or a tensor that has both
            kwargs: `dtype`, `device`, `non_blocking`, `copy` and `memory_format` by name

        Example:
            >>> turnout.tensor([1, 2]).to(turnout.float32)
            tensor([1., 2.])
        """
        try:
            if len(args) == 1 and not kwargs and args[0].__class__ is DType:
                return aten.to__dtype(self, args[0])
            if args and (args[0] is None or isinstance(args[0], (str, Device))):
                if len(args) > 4:
                    raise CallError(f"to: takes at most 4 positional arguments after a device, got {len(args)}")
                kwargs = {**dict(zip(("device", "dtype", "non_blocking", "copy"), args, strict=False)), **kwargs}
                args = ()
            return super().to(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def cpu(self, memory_format: str = "preserve_format") -> Tensor:
        """On the host: `to("cpu")`.

        Arguments:
            memory_format: how the result lies in memory, if it is a copy

        Example:
            >>> turnout.tensor([1]).cpu()
            tensor([1])
        """
        return self.to("cpu", memory_format=memory_format)

    def cuda(
        self, device: str | Device | int | None = None, non_blocking: bool = False, memory_format: str = "preserve_format"
    ) -> Tensor:
        """On a device of type "cuda"; `self` if it is there already. Raises DeviceError for a device of another type.

        Arguments:
            device: the device or its index; None is the current device of type "cuda"
            non_blocking: whether to go on while the elements are copied, where they lie in page-locked memory
            memory_format: how the result lies in memory, if it is a copy

        Example:
            >>> weight = turnout.ones(2)
            >>> weight = weight.cuda() if turnout.cuda.is_available() else weight
        """
        wanted = cuda_device(device)
        return self.to(wanted, non_blocking=non_blocking, memory_format=memory_format)

    if TYPE_CHECKING:

        @overload
        def type(self, dtype: None = None, non_blocking: bool = False) -> str: ...

        @overload
        def type(self, dtype: DType | str, non_blocking: bool = False) -> Tensor: ...

    def type(self, dtype: DType | str | None = None, non_blocking: bool = False) -> Any:
        """The name of the tensor's type, such as "turnout.FloatTensor"; or, for a dtype, the tensor in that dtype.

        Returns `self` if nothing changes. Raises ArgumentError for a name that is not one of a type.

        Arguments:
            dtype: a dtype, or the name of a type, which may name a device: "turnout.cuda.HalfTensor"; None asks for the name
            non_blocking: accepted, and without effect

        Example:
            >>> turnout.tensor([1.0]).type()
            'turnout.FloatTensor'
            >>> turnout.tensor([1.0]).type("turnout.LongTensor")
            tensor([1])
        """
        try:
            if dtype is None:
                return type_name(self.dtype, self.device.type)
            place, wanted = (self.device.type, dtype) if isinstance(dtype, DType) else named_type(dtype)
            return self.to(self.device if place == self.device.type else place, wanted, non_blocking=non_blocking)
        except Exception as error:
            shorten(error)
            raise

    # ---- in other modules

    if TYPE_CHECKING:

        def item(self) -> int | float | bool:  # and complex, which would make each comparison an error: as in PyTorch
            """The Python number in a tensor of one element, on any device. Raises CallError for any other number of elements."""

        def tolist(self) -> Any:
            """Nested lists of Python numbers; the number itself for a 0-dim tensor."""

        def numpy(self, *, force: bool = False) -> Any:
            """A NumPy array over the same memory, for a tensor on the host that requires no gradient.

            `force=True` detaches the tensor and copies it to the host if needed.
            """

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...

        def __dlpack__(
            self,
            *,
            stream: Any = None,
            max_version: tuple[int, int] | None = None,
            dl_device: tuple[int, int] | None = None,
            copy: bool | None = None,
        ) -> Any: ...

        def __dlpack_device__(self) -> tuple[int, int]: ...

        @property
        def __cuda_array_interface__(self) -> Any: ...

        def _operand(self, array: Any) -> Tensor:
            """A copy of a NumPy array as a tensor, for an operator between this tensor and the array."""

        @property
        def shape(self) -> Size: ...

        @property
        def dtype(self) -> DType: ...

        def __getitem__(self, index: Any) -> Tensor: ...

        def __setitem__(self, index: Any, value: Any) -> None: ...

        def __repr__(self) -> str: ...

        def _repr_html_(self) -> str: ...

        def __copy__(self) -> Tensor: ...

        def __deepcopy__(self, memo: dict[int, Any]) -> Tensor: ...

        def __reduce_ex__(self, protocol: Any) -> Any: ...

    else:
        item = Late("turnout_aten.tensor.interop:item")
        tolist = Late("turnout_aten.tensor.interop:tolist")
        numpy = Late("turnout_aten.tensor.interop:numpy")
        __array__ = Late("turnout_aten.tensor.interop:array")
        __dlpack__ = Late("turnout_aten.tensor.interop:to_dlpack")
        __dlpack_device__ = Late("turnout_aten.tensor.interop:dlpack_device")
        __cuda_array_interface__ = Late("turnout_aten.tensor.interop:cuda_array_interface")
        shape = LateProperty("turnout_aten.tensor.facts:shape")
        dtype = LateProperty("turnout_aten.tensor.facts:dtype")
        _operand = Late("turnout_aten.tensor.creation:operand")
        __getitem__ = Late("turnout_aten.tensor.indexing:get")
        __setitem__ = Late("turnout_aten.tensor.indexing:set")
        __repr__ = Late("turnout_aten.tensor.printing:tensor_text")
        _repr_html_ = Late("turnout_aten.tensor.printing:tensor_html")
        __copy__ = Late("turnout_aten.tensor.copying:shallow_copy")
        __deepcopy__ = Late("turnout_aten.tensor.copying:deepcopy")
        __reduce_ex__ = Late("turnout_aten.tensor.copying:reduce")

    # ---- Python's sequence and number protocols

    def __len__(self) -> int:
        try:
            if not self.array.shape:
                raise CallError("len() of a 0-dim tensor")
            return self.array.shape[0]
        except Exception as error:
            shorten(error)
            raise

    def __iter__(self) -> Iterator[Tensor]:
        try:
            if not self.array.shape:
                raise CallError("iteration over a 0-dim tensor")
            return iter([self[i] for i in range(self.array.shape[0])])
        except Exception as error:
            shorten(error)
            raise

    def __bool__(self) -> bool:
        try:
            if self.array.shape and self.numel() != 1:
                raise ArgumentError(
                    f"the truth value of a tensor with {self.numel()} elements is ambiguous; use .any() or .all()"
                )
            plain = self.__class__ is Tensor and not self.array.shape  # then without the frame of `item`
            return bool(aten._local_scalar_dense(self) if plain else self.item())
        except Exception as error:
            shorten(error)
            raise

    def __float__(self) -> float:
        try:
            plain = self.__class__ is Tensor and not self.array.shape
            return float(aten._local_scalar_dense(self) if plain else self.item())
        except Exception as error:
            shorten(error)
            raise

    def __int__(self) -> int:
        try:
            plain = self.__class__ is Tensor and not self.array.shape
            return int(aten._local_scalar_dense(self) if plain else self.item())
        except Exception as error:
            shorten(error)
            raise

    def __complex__(self) -> complex:
        try:
            return complex(self.item())
        except Exception as error:
            shorten(error)
            raise

    def __index__(self) -> int:
        try:
            if self.numel() != 1 or self.dtype.category >= FLOAT:
                kind = f"a {self.dtype.name} tensor of shape {list(self.shape)}"
                raise CallError(f"only a tensor of one integer can be used as an index, got {kind}")
            return int(self.item())
        except Exception as error:
            shorten(error)
            raise

    def __hash__(self) -> int:
        return id(self)

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.array.shape else self

    def __contains__(self, value: Any) -> bool:
        try:
            found: Any = self == value
            if not isinstance(found, Tensor):
                raise ArgumentError(f"'value in tensor' needs a number or a tensor, got {type(value).__name__}")
            return bool(found.any().item())
        except Exception as error:
            shorten(error)
            raise

    def __format__(self, spec: str) -> str:
        try:
            if self.shape == () and self.device.backend.has_values and (spec or self.__class__ is Tensor):
                return format(self.item(), spec)
            if spec:
                raise CallError(f"the format {spec!r} is for numbers, got a tensor of shape {list(self.shape)}; use .item()")
            return repr(self)
        except Exception as error:
            shorten(error)
            raise


def wrapping_lines(
    *,
    array: str = "array",
    keys: str = "device.backend.keys",
    device: str = "device",
    ver: str = "CLOCK.epoch",
    storage: str = "None",
    view_of: str = "None",
    cls: str = "Tensor",
) -> list[str]:
    """The source that makes `t`, a new untracked tensor, from expressions for its fields.

    It alone defines the fields of a new tensor. Generated wrappers contain it inline: a call of `wrap` would cost 200 ns of 970.
    The globals `Tensor` (or `cls`) and `CLOCK` are required.
    """
    fields = {
        "array": array, "keys": keys, "device": device, "gmask": "0", "node": "None", "ver": ver, "storage": storage,
        "view_of": view_of, "extra": "None",
    }  # fmt: skip
    return [f"t = {cls}()", *(f"t.{name} = {value}" for name, value in fields.items())]


if TYPE_CHECKING:

    def wrap(array: Any, device: Device) -> Tensor:
        """A new tensor around a backend's array: untracked, not a view, with the version of the current epoch."""

else:
    _LINES = ["def wrap(array, device):", *(f"    {line}" for line in [*wrapping_lines(), "return t"]), ""]
    _NAMES = {"Tensor": Tensor, "CLOCK": CLOCK, "__name__": __name__}
    exec("\n".join(_LINES), _NAMES)
    wrap = _NAMES["wrap"]
    wrap.__doc__ = "A new tensor around a backend's array; untracked, not a view, with the version of the current epoch."
