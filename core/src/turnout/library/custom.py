"""`custom_op`: one decorator from a Python function with annotations to an operator with checked kernels, and its handle.

Each key that the handle registers has a group of its own, so that a kernel can be replaced or switched off and what stood
there before comes back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from turnout.dtypes import DType
from turnout.errors import ConflictError
from turnout.errors import library as texts
from turnout.errors.library import LibraryError
from turnout.keys import EXPLICIT
from turnout.library import fake, rules
from turnout.library.devices import key_of
from turnout.library.libraries import (
    RESERVED,
    calling_package,
    check_kernel,
    check_redefinition,
    finish_undoing,
    on_arrays,
    parse_nameless,
    parse_namespace,
    require_callable,
)
from turnout.library.results import checked
from turnout.operators import Operator
from turnout.operators.kernels import ARRAY, INTERNAL
from turnout.registry import REGISTRY, Registrations
from turnout.schema import FunctionSchema, infer_schema
from turnout.schema.infer import UNKNOWN
from turnout.schema.kernels import check_kernel_signature

Call = Callable[..., Any]
Devices = str | Iterable[str] | None
Register = Callable[[Registrations], object]
Form = tuple[Call, bool]  # a function, and whether it takes arrays

# qualified name -> the handle that defines it now.
_CUSTOM: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Call | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Devices = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
    arrays: bool = False,
) -> Any:
    """Make an operator of a function on tensors; a decorator when `fn` is left out. Returns its CustomOpDef.

    name          "namespace::name"; a second definition by the same package replaces the first
    mutates_args  the arguments that the function writes, or "unknown" for all tensors
    device_types  the devices it is the kernel for, None for all
    schema        "(Tensor x) -> Tensor"; by default it is inferred from the annotations
    arrays        the function takes and returns the backend's arrays where its annotations say Tensor

    The function may not return its inputs or views of them. Raises LibraryError for a bad name or schema, SchemaError for one
    that cannot be inferred, ConflictError when another package has defined the name; nothing is changed then.
    """
    package = calling_package()
    tags = (tags,) if isinstance(tags, str) else tuple(tags or ())
    mutates_args = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)

    def make(function: Call) -> CustomOpDef:
        require_callable("custom_op", function)
        namespace, _ = parse_namespace("custom_op", name)
        if namespace in RESERVED:
            raise LibraryError(texts.reserved(namespace, "custom_op"))
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
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


def custom_operator(name: str) -> CustomOpDef | None:
    """The handle of a custom operator by its qualified name."""
    return _CUSTOM.get(name)


class CustomOpDef:
    """A custom operator: call it, and register for it what `custom_op` did not. Made by `custom_op`.

    `operator` is the operator itself, `name` its qualified name.
    """

    def __init__(
        self, name: str, schema: FunctionSchema, fn: Form, device_types: Devices, tags: tuple[str, ...], package: str
    ) -> None:
        self.name = name
        self._first = fn
        self._package = package
        self._kernels: dict[str | None, Form] = {}
        self._disabled: set[str] = set()
        self._groups: dict[str, tuple[Registrations, Register]] = {}
        devices = _device_list(device_types)
        keys = [EXPLICIT if d is None else key_of(d) for d in devices]
        check_kernel_signature(fn[0], schema)
        if device_types is not None:
            _check_device_argument(name, schema)
        finish_undoing()
        with REGISTRY.lock:
            old = self._check_definition(str(schema), keys)
            if old is not None:
                old.undo()
            definition = Registrations(name.partition("::")[0], package=package)
            self.operator: Operator = definition.define(str(schema), tags=tags)
            self._definition = definition
            _CUSTOM[name] = self
            definition.on_undo(lambda: _CUSTOM.pop(name, None))
            placeholder = fake.missing(self.operator)
            for key in REGISTRY.keys.dataless_backends:
                self.impl_all(name, [key], placeholder.fn, label=placeholder.label, checked=False)
            for device in devices:
                self._kernels[device] = fn
                self._register_device(device)

    def _check_definition(self, schema: str, keys: list[str]) -> CustomOpDef | None:
        """Everything that could refuse the definition or its kernels; returns the definition that this one replaces."""
        old = _CUSTOM.get(self.name)
        group = Registrations(self.name.partition("::")[0], package=self._package)
        op = REGISTRY.get(self.name)
        if old is not None and old._package != self._package:
            raise ConflictError(texts.redefined_elsewhere(self.name, old._definition.origin, group.origin))
        if op is None:
            return old
        if op.is_defined and old is None:
            group.define(schema)  # raises that the name is taken
        gone = {id(each) for each, _ in old._groups.values()} if old is not None else set()
        check_redefinition(op, schema, lambda library: id(library) in gone)
        for key in (*keys, *REGISTRY.keys.dataless_backends):
            if not any(id(k.library) in gone for k in op.kernels.get(key, ())):
                check_kernel(group, self.name, key, self._first[0], checked=False)
        return old

    # ---- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.operator.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self.name})>"

    def undo(self) -> None:
        """Take back the definition and all that was registered through this handle; calls are an error from then on."""
        with REGISTRY.lock:
            for group, _ in reversed(self._groups.values()):
                group.undo()
            self._groups.clear()
            self._kernels.clear()
            self._definition.undo()

    # ---- kernels

    def register_kernel(self, device_types: Devices, fn: Call | None = None, /, *, arrays: bool = False) -> Any:
        """Register the kernel of one or several device types, None for all; a decorator when `fn` is left out.

        With `arrays` it takes and returns the backend's arrays in the places of tensors. The newest kernel of a device
        replaces the one before. Raises DeviceError for an unknown device, KernelSignatureError, LibraryError when calls
        name no device to choose by.
        """

        def register(function: Call) -> Call:
            require_callable("register_kernel", function)
            schema = self.operator.schema
            if device_types is not None:
                _check_device_argument(self.name, schema)
            check_kernel_signature(function, schema)
            devices = _device_list(device_types)
            finish_undoing()
            with REGISTRY.lock:
                for device in devices:
                    key = _key(device)
                    group = (
                        self._groups[key][0]
                        if key in self._groups
                        else Registrations(self.operator.namespace, package=self._package)
                    )
                    check_kernel(group, self.operator.qualified_name, key, function)
                for device in devices:
                    self._kernels[device] = (function, arrays)
                    self._register_device(device)
            return function

        return register if fn is None else register(fn)

    def _register_device(self, device: str | None) -> None:
        key = _key(device)
        fn, arrays = self._first if device in self._disabled else self._kernels[device]
        name = self.operator.qualified_name
        form, binder = (ARRAY, on_arrays) if arrays else (INTERNAL, checked)
        self._put(key, lambda group: group.impl(name, key, fn, form=form, binder=binder))

    def _put(self, key: str, register: Register) -> None:
        """Replace what this handle has registered at a key; on an error what was there is back."""
        with REGISTRY.lock:
            old = self._groups.get(key)
            if old is not None:
                old[0].undo()
            group = Registrations(self.operator.namespace, package=self._package)
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
        """While entered, the kernel of a device is on, or off: then the function that `custom_op` was given runs.

        For the whole process, not only for this context. Warns when no kernel is registered for the device.
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

    def impl_all(
        self, name: str, keys: Iterable[str], fn: Any, *, binder: Call | None = None, tracked_only: bool = False,
        allow_override: bool = False, checked: bool = True, label: str = "",
    ) -> None:  # fmt: skip
        """`Library.impl_all`, but each key's kernel replaces the one that this handle has registered there before."""
        if checked:
            check_kernel_signature(fn, self.operator.schema)

        def register(group: Registrations, key: str) -> None:
            group.impl(
                name, key, fn, form=INTERNAL, binder=binder, tracked_only=tracked_only, allow_override=allow_override,
                label=label,
            )  # fmt: skip

        with REGISTRY.lock:
            for key in keys:
                self._put(key, partial(register, key=key))

    def register_fake(self, fn: Call, /) -> Call:
        """Register how shapes are computed for tensors without data; the newest one counts. Returns `fn`."""
        require_callable("register_fake", fn)
        self.impl_all(self.name, fake.fake_keys(), fn, binder=fake.in_context)
        return fn

    def register_autograd(self, backward: Call, /, *, setup_context: Call | None = None) -> None:
        """Register the gradient: `backward(ctx, *grads)` returns one for each input, None where there is none.

        `setup_context(ctx, inputs, output)` runs after the forward and saves what `backward` needs, with
        `keyword_only_inputs` before `output` where the operator has keyword-only arguments. The newest rule counts. Raises
        RegistrationError for an operator that writes, returns views or has keyword-only tensors.
        """
        rules.add_gradient(self, self.name, self.operator.schema, backward, setup_context)

    def register_autocast(self, device_type: str, cast_inputs: DType, /) -> None:
        """Inside `turnout.autocast(device_type)`, run on floating tensors cast to `cast_inputs`; the newest rule counts.

        float64 and tensors on other devices are left as they are. Raises CallError for a dtype that is not floating,
        DeviceError for an unknown device type.
        """
        rules.add_cast(self, self.name, device_type, cast_inputs)

    def register_vmap(self, fn: Call | None = None, /, *, opaque: bool = False) -> Any:
        """Register how a batch is computed; a decorator when `fn` is left out. The newest rule counts. Returns `fn`.

        `fn(info, in_dims, *args)` returns (result, out_dims). `in_dims` has for each argument the dim that is the batch, None
        where it has none, `info` has `batch_size` and `randomness`; out_dims says the same of the result, or of each of
        several. What it does in operators has the operators' gradients; a rule that calls an array library is `opaque`: its
        gradient is then the operator's own, example by example.
        """

        def register(function: Call) -> Call:
            rules.add_batching(self, self.name, function, opaque)
            return function

        return register if fn is None else register(fn)


def _key(device: str | None) -> str:
    return EXPLICIT if device is None else key_of(device)


def _device_list(device_types: Devices) -> list[str | None]:
    if device_types is None or isinstance(device_types, str):
        return [device_types]
    return list(dict.fromkeys(device_types))


def _check_device_argument(name: str, schema: FunctionSchema) -> None:
    """Something in a call must say which device's kernel is meant."""
    if not any(a.type.is_tensor_like or a.type.canonical.rstrip("?") == "Device" for a in schema.arguments):
        raise LibraryError(texts.no_device_argument(name, schema))
