"""`custom_op`: the decorator that makes an operator with checked kernels from an annotated Python function, and its handle.

The handle has a group of registrations for each key, so that a kernel can be replaced or switched off and the former one
comes back.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter, methodcaller
from types import DynamicClassAttribute
from typing import Any

from turnout.dtypes import DType
from turnout.errors import ConflictError
from turnout.errors import library as texts
from turnout.errors.library import LibraryError
from turnout.keys import EXPLICIT
from turnout.library import fake, rules
from turnout.library.results import checked
from turnout.operators import Operator
from turnout.operators.kernels import ARRAY, INTERNAL, Kernel
from turnout.operators.tracebacks import shortening
from turnout.registry import REGISTRY, Registrations
from turnout.registry.modes import add_rule
from turnout.schema import FunctionSchema
from turnout.schema.infer import UNKNOWN, infer_schema
from turnout.schema.kernels import check_kernel_signature

from turnout.library.libraries import (  # isort: skip
    RESERVED, calling_package, check_kernel, check_redefinition, finish_undoing, key_of, listed, on_arrays, parse_nameless,
    parse_namespace, registered, require_callable,
)  # fmt: skip

Call = Callable[..., Any]
Devices = str | Iterable[str] | None
Register = Callable[[Registrations], object]
Form = tuple[Call, bool]  # a function, and whether it takes arrays

# qualified name -> the handle that defines it now.
CUSTOM: dict[str, CustomOpDef] = {}


@shortening
def custom_op(
    name: str, fn: Call | None = None, /, *, mutates_args: str | Iterable[str], device_types: Devices = None,
    schema: str | None = None, tags: str | Iterable[str] | None = None, arrays: bool = False,
) -> Any:  # fmt: skip
    """Make an operator from a function on tensors; a decorator if `fn` is omitted. Returns its CustomOpDef.

    The function must not return its inputs or views of them. Raises LibraryError for a bad name or schema, SchemaError when
    none can be inferred, ConflictError when another package has defined the name. Then nothing is changed.

    Arguments:
        name: "namespace::name"; a second definition by the same package replaces the first
        fn: the function
        mutates_args: the arguments that the function writes, or "unknown" for all tensors
        device_types: the devices for which it is the kernel, None for all
        schema: "(Tensor x) -> Tensor", by default inferred from the annotations
        tags: words that describe the operator, such as "pointwise"
        arrays: whether the function takes and returns the backend's arrays in place of tensors

    Example:
        >>> twice = turnout.library.custom_op("docs::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
        >>> twice(turnout.ones(2))
        tensor([2., 2.])
    """
    package = calling_package()
    tags = (tags,) if isinstance(tags, str) else tuple(tags or ())
    mutates_args = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)

    def make(function: Call) -> CustomOpDef:
        require_callable("custom_op", function)
        namespace, _ = parse_namespace("custom_op", name)
        if namespace in RESERVED:
            raise LibraryError(texts.reserved(namespace, "custom_op"))
        text = infer_schema(function, mutates_args=mutates_args, tags=tags) if schema is None else schema
        parsed = parse_nameless("custom_op", name, text)
        if schema is not None:
            _check_mutates(name, mutates_args, parsed)
        return CustomOpDef(name, parsed, (function, arrays), device_types, tags, package)

    return make if fn is None else make(fn)


def _check_mutates(name: str, mutates_args: str | tuple[str, ...], schema: FunctionSchema) -> None:
    if mutates_args == UNKNOWN:
        said = {a.name for a in schema.arguments if a.type.is_tensor_like}
    else:
        said = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    if said != {a.name for a in schema.mutated_arguments}:
        raise LibraryError(texts.mutates(name, said, schema))


class CustomOpDef:
    """The handle of a custom operator, made by `custom_op`: call it, or register more kernels and rules.

    `operator` is the operator itself, `name` its qualified name, `registrations` the group of its definition.
    """

    __slots__ = ("__dict__", "__weakref__", "operator")

    def __init__(
        self, name: str, schema: FunctionSchema, fn: Form, device_types: Devices, tags: tuple[str, ...], package: str
    ) -> None:
        self.name = name
        self._first = fn
        self._package = package
        self._kernels: dict[str | None, Form] = {}
        self._disabled: set[str] = set()
        self._groups: dict[str, tuple[Registrations, Register]] = {}
        devices = _checked_devices(name, schema, fn[0], device_types)
        finish_undoing()
        REGISTRY.keys.discovered()
        with REGISTRY.lock:
            old = self._check_definition(str(schema), map(_key, devices))
            if old is not None:
                old.undo()
            self.registrations = self._new_group()
            self.operator: Operator = self.registrations.define(str(schema), tags=tags)
            CUSTOM[name] = self
            self.registrations.on_undo(lambda: CUSTOM.pop(name, None))
            placeholder = fake.missing(self.operator)
            for key in REGISTRY.keys.dataless_backends:
                self.impl_all(name, [key], placeholder.fn, label=placeholder.label, checked=False)
            for device in devices:
                self._kernels[device] = fn
                self._register_device(device)

    def _new_group(self) -> Registrations:
        return Registrations(self.name.partition("::")[0], package=self._package)

    def _check_definition(self, schema: str, keys: Iterable[str]) -> CustomOpDef | None:
        """Make all checks of the definition and its kernels. Returns the handle that this one replaces."""
        old = CUSTOM.get(self.name)
        group = self._new_group()
        op = REGISTRY.get(self.name)
        if old is not None and old._package != self._package:
            raise ConflictError(texts.REDEFINED_ELSEWHERE.format(self.name, old.registrations.origin, group.origin))
        if op is None:
            return old
        if op.is_defined and old is None:
            group.define(schema)  # raises that the name is taken
        gone = {id(each) for each, _ in old._groups.values()} if old is not None else set()
        check_redefinition(op, schema, lambda library: id(library) in gone)
        for key in (*keys, *REGISTRY.keys.dataless_backends):
            if not any(id(k.library) in gone for k in op.kernels.get(key, ())):
                check_kernel(self.name, key, Kernel(self._first[0], library=group), checked=False)
        return old

    # ---- calling

    __call__ = property(attrgetter("operator.call"))  # without a frame of its own: 200 ns
    __signature__ = DynamicClassAttribute(lambda self: inspect.signature(self.operator.stub))

    def __repr__(self) -> str:
        return f"<CustomOpDef({self.name})>"

    def undo(self) -> None:
        """Take back the definition and all registrations of this handle. From then on a call is an error."""
        with REGISTRY.lock:
            for group, _ in reversed(self._groups.values()):
                group.undo()
            self._groups.clear()
            self._kernels.clear()
            self.registrations.undo()

    # ---- kernels

    def register_kernel(self, device_types: Devices, fn: Call | None = None, /, *, arrays: bool = False) -> Any:
        """Register the kernel of one or several device types, None for all; a decorator if `fn` is omitted.

        With `arrays` it takes and returns the backend's arrays in place of tensors. A new kernel replaces the one before.
        Raises DeviceError for an unknown device, KernelSignatureError, LibraryError if no argument names a device.
        """

        def register(function: Call) -> None:
            devices = _checked_devices(self.name, self.operator.schema, function, device_types)
            finish_undoing()
            with REGISTRY.lock:
                for key in map(_key, devices):
                    group = self._groups[key][0] if key in self._groups else self._new_group()
                    check_kernel(self.operator.qualified_name, key, Kernel(function, library=group))
                for device in devices:
                    self._kernels[device] = (function, arrays)
                    self._register_device(device)

        return registered("register_kernel", fn, register)

    def _register_device(self, device: str | None) -> None:
        fn, arrays = self._first if device in self._disabled else self._kernels[device]
        form, binder = (ARRAY, on_arrays) if arrays else (INTERNAL, checked)
        self._put(self.operator.qualified_name, _key(device), fn, form=form, binder=binder)

    def _put(self, name: str, key: str, fn: Any, **options: Any) -> None:
        """Replace the kernel of this handle at a key. After an error the former kernel is back."""
        register = methodcaller("impl", name, key, fn, **options)
        with REGISTRY.lock:
            old = self._groups.get(key)
            if old is not None:
                old[0].undo()
            group = self._new_group()
            try:
                register(group)
            except BaseException:
                group.undo()
                if old is not None:
                    old[1](old[0])
                raise
            self._groups[key] = (group, register)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """While entered, the kernel of a device is on or off, in the whole process. While it is off, the first function runs.

        Warns if no kernel is registered for the device.
        """
        if device_type not in self._kernels:
            there = [d for d in self._kernels if d is not None]
            warnings.warn(texts.no_kernel_to_switch(self.name, device_type, there), UserWarning, stacklevel=3)
        before = device_type in self._disabled
        self._switch(device_type, off=not enabled)
        try:
            yield
        finally:
            self._switch(device_type, off=before)

    def _switch(self, device_type: str, *, off: bool) -> None:
        with REGISTRY.lock:
            if off == (device_type in self._disabled):
                return
            (self._disabled.add if off else self._disabled.discard)(device_type)
            if device_type in self._kernels:
                self._register_device(device_type)

    # ---- what else an operator can have

    def impl_all(self, name: str, keys: Iterable[str], fn: Any, *, checked: bool = True, **options: Any) -> None:
        """As `Library.impl_all`; each kernel replaces the one that this handle has registered at the key."""
        if checked:
            check_kernel_signature(fn, self.operator.schema)
        with REGISTRY.lock:
            for key in keys:
                self._put(name, key, fn, form=INTERNAL, **options)

    def register_fake(self, fn: Call, /) -> Call:
        """Register the function that computes shapes for tensors without data. A new one replaces the old. Returns `fn`."""
        require_callable("register_fake", fn)
        self.impl_all(self.name, fake.fake_keys(), fn, binder=fake.in_context)
        return fn

    def register_autograd(self, backward: Call, /, *, setup_context: Call | None = None) -> None:
        """Register the gradient: `backward(ctx, *grads)` returns a gradient or None for each input.

        `setup_context(ctx, inputs, output)` runs after the forward and saves what `backward` needs. An operator with
        keyword-only arguments gets `keyword_only_inputs` before `output`. A new rule replaces the old one. Raises
        RegistrationError for an operator that writes, returns views or has keyword-only tensors.
        """
        rules.add_gradient(self.impl_all, self.name, self.operator.schema, backward, setup_context)

    def register_autocast(self, device_type: str, cast_inputs: DType, /) -> None:
        """Inside `turnout.autocast(device_type)`, cast floating tensors to `cast_inputs`. A new rule replaces the old one.

        float64 tensors and tensors on other devices are not cast. Raises CallError for a dtype that is not floating,
        DeviceError for an unknown device type.
        """
        rules.add_cast(self.impl_all, self.name, device_type, cast_inputs)

    def register_torch_dispatch(self, cls: type, fn: Call | None = None, /) -> Any:
        """Register how a mode or a Tensor subclass handles the operator: see `library.register_torch_dispatch`."""
        return registered("register_torch_dispatch", fn, lambda f: add_rule(self.registrations, self.name, cls, f))

    def register_vmap(self, fn: Call | None = None, /, *, opaque: bool = False) -> Any:
        """Register how a batch is computed; a decorator if `fn` is omitted. A new rule replaces the old one. Returns `fn`.

        `fn(info, in_dims, *args)` returns (result, out_dims). `in_dims` holds the batch dim of each argument, or None, and
        out_dims that of each result. `info` has `batch_size` and `randomness`. A rule that calls operators has their
        gradients. A rule that calls an array library is `opaque`: its gradient is that of the operator, example by example.
        """
        return registered("register_vmap", fn, lambda f: rules.add_batching(self.impl_all, self.name, f, opaque))


def _key(device: str | None) -> str:
    return EXPLICIT if device is None else key_of(device)


def _checked_devices(name: str, schema: FunctionSchema, fn: Call, device_types: Devices) -> list[str | None]:
    """The devices that `fn` is for. Raises LibraryError if no argument names one, DeviceError, KernelSignatureError."""
    words = listed(device_types)
    devices: list[str | None] = list(dict.fromkeys(words))
    for device in devices:
        _key(device)
    check_kernel_signature(fn, schema)
    chosen_by = (a for a in schema.arguments if a.type.is_tensor_like or a.type.canonical.rstrip("?") == "Device")
    if device_types is not None and not any(chosen_by):
        raise LibraryError(texts.NO_DEVICE_ARGUMENT.format(name=name, schema=schema))
    return devices
