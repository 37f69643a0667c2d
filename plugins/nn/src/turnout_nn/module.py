"""`Module`: an object with parameters, buffers and modules, which is called.

A module keeps what it holds as plain attributes, so reading one costs what reading an attribute costs. Three dicts have the names
of what is registered, in order: `_parameter_names`, `_buffer_names` (name -> whether it is persistent) and `_module_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, TypeVar

import turnout
from turnout import Tensor
from turnout.errors import CallError, DataError
from turnout.operators import shorten
from turnout_aten.plugin_api import role_of
from turnout_nn import errors, hooks, states
from turnout_nn.hooks import FOR_ALL, Handle, Hook, Hooks, registered
from turnout_nn.members import Members
from turnout_nn.parameters import BUFFER, PARAMETER, TEMPORARY, Parameter, is_uninitialized

T = TypeVar("T", bound="Module")
_SECOND = itemgetter(1)
_TABLES = ("_parameter_names", "_buffer_names", "_module_names")


class Module:
    """The base class of all modules: objects that hold tensors and other modules, and compute from them when they are called.

    A class of yours defines `forward`, and `__init__` where it has members; it calls `super().__init__()` first. Parameters,
    buffers and modules that are assigned to attributes are registered: `parameters()`, `to()` and `state_dict()` find them.

    Example:
        >>> class Line(turnout.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.slope = turnout.nn.Parameter(turnout.tensor(2.0))
        ...     def forward(self, x):
        ...         return self.slope * x
        >>> line = Line()
        >>> line(turnout.tensor(3.0))
        tensor(6., grad_fn=<MulBackward0>)
        >>> [name for name, _ in line.named_parameters()]
        ['slope']
    """

    __unwrapped__ = ("forward",)  # `__call__` has a `try`

    training: bool
    _parameter_names: dict[str, None]
    _buffer_names: dict[str, bool]
    _module_names: dict[str, None]
    _module_hooks: Hooks | None = None
    _version = 1  # of the layout of the state, saved in the metadata of `state_dict`

    def __init__(self) -> None:
        self.__dict__.update(training=True, _parameter_names={}, _buffer_names={}, _module_names={})

    forward: Callable[..., Any]

    if TYPE_CHECKING:  # what is registered by name is an attribute, too

        def __getattr__(self, name: str) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._module_hooks is not None:
                return hooks.call(self, self._module_hooks, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            errors.leave_out_last_frame(error)
            shorten(error)
            raise

    # ---- members

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            if isinstance(value, Tensor):
                role = role_of(value)
                if role == PARAMETER or isinstance(value, Parameter):
                    _place(self, name, "_parameter_names", None)
                    value = registered(FOR_ALL.parameters, self, name, value)
                elif role in (BUFFER, TEMPORARY):
                    _place(self, name, "_buffer_names", role == BUFFER)
                    value = registered(FOR_ALL.buffers, self, name, value)
                elif name in self.__dict__:
                    _check(self, name, value, "buffer")
                    if FOR_ALL.buffers and name in self._buffer_names:
                        value = registered(FOR_ALL.buffers, self, name, value)
            elif isinstance(value, Module):
                _place(self, name, "_module_names", None)
                value = registered(FOR_ALL.modules, self, name, value)
            elif value is not None and name in self.__dict__:
                _check(self, name, value, "")
            object.__setattr__(self, name, value)
        except Exception as error:
            shorten(error)
            raise

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        for table in _TABLES:
            self.__dict__[table].pop(name, None)

    @property
    def _parameters(self) -> Members[Parameter]:
        return Members(self, "_parameter_names", self.register_parameter)

    @property
    def _buffers(self) -> Members[Tensor]:
        return Members(self, "_buffer_names", self.register_buffer)

    @property
    def _modules(self) -> Members[Module]:
        return Members(self, "_module_names", self.add_module)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None keeps the name for one, which `state_dict` leaves out.

        Raises CallError for anything else, and an AttributeError that is a KeyError, too, for a bad name and one that is taken.

        Arguments:
            name: the name of the attribute
            param: the parameter
        """
        _check_name(self, "register_parameter", name, "_parameter_names")
        if param is not None and not isinstance(param, Parameter):
            raise CallError(errors.not_a_member("register_parameter", "parameter", param))
        if param is not None and not param.is_leaf:
            raise CallError(errors.has_history(name))
        _place(self, name, "_parameter_names", None)
        param = None if param is None else registered(FOR_ALL.parameters, self, name, param)
        object.__setattr__(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the state and is not trained; None keeps the name for one.

        Raises CallError for anything else, and an AttributeError that is a KeyError, too, for a bad name and one that is taken.

        Arguments:
            name: the name of the attribute
            tensor: the buffer
            persistent: whether `state_dict` has it
        """
        _check_name(self, "register_buffer", name, "_buffer_names")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise CallError(errors.not_a_member("register_buffer", "tensor", tensor))
        _place(self, name, "_buffer_names", persistent)
        object.__setattr__(self, name, registered(FOR_ALL.buffers, self, name, tensor))

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module; None keeps the name for one.

        Raises CallError for anything else, and an AttributeError that is a KeyError, too, for a bad name and one that is taken.

        Arguments:
            name: the name of the attribute
            module: the module
        """
        _check_name(self, "add_module", name, "_module_names")
        if module is not None and not isinstance(module, Module):
            raise CallError(errors.not_a_member("add_module", "module", module))
        _place(self, name, "_module_names", None)
        object.__setattr__(self, name, registered(FOR_ALL.modules, self, name, module))

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`.

        Arguments:
            name: the name of the attribute
            module: the module
        """
        self.add_module(name, module)

    # ---- what it holds

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once.

        Arguments:
            recurse: whether to include those of modules inside
        """
        return map(_SECOND, self.named_parameters(recurse=recurse))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names, such as ("layers.0.weight", ...).

        Arguments:
            prefix: what every name begins with
            recurse: whether to include those of modules inside
            remove_duplicate: whether a parameter that is held twice comes once
        """
        return _named(self, "_parameter_names", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once.

        Arguments:
            recurse: whether to include those of modules inside
        """
        return map(_SECOND, self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names.

        Arguments:
            prefix: what every name begins with
            recurse: whether to include those of modules inside
            remove_duplicate: whether a buffer that is held twice comes once
        """
        return _named(self, "_buffer_names", prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The modules that the module itself holds, each once."""
        return map(_SECOND, self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that the module itself holds, with their names."""
        return _named(self, "_module_names", "", recurse=False, remove_duplicate=True)

    def modules(self) -> Iterator[Module]:
        """The module itself and all modules inside, each once."""
        return map(_SECOND, self.named_modules())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and all modules inside, with their names; that of the module itself is `prefix`.

        Arguments:
            memo: the modules to leave out; those that come are added
            prefix: what every name begins with
            remove_duplicate: whether a module that is held twice comes once
        """
        yield from _modules(self, set() if memo is None else memo, prefix, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The module with a name, such as "layers.0"; "" is the module itself. Raises AttributeError if there is none.

        Arguments:
            target: the name
        """
        if not target:
            return self
        holder, name = _at(self, "get_submodule", target)
        found = getattr(holder, name)
        if not isinstance(found, Module):
            raise errors.MemberError(errors.not_what_was_asked("get_submodule", target, "module", found))
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place of the one with a name. Raises AttributeError where the path does not lead to a module.

        Arguments:
            target: the name, such as "layers.0"
            module: the new module
            strict: whether there must be one already
        """
        if not isinstance(module, Module):
            raise CallError(errors.not_a_member("set_submodule", "module", module))
        above, _, name = target.rpartition(".")
        holder = self.get_submodule(above)
        if not name:
            raise errors.MemberError(errors.bad_name("set_submodule", target))
        if strict or hasattr(holder, name):
            self.get_submodule(target)
        setattr(holder, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a name, such as "layers.0.weight". Raises AttributeError if there is none.

        Arguments:
            target: the name
        """
        return _member(self, "get_parameter", target, "_parameter_names", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a name. Raises AttributeError if there is none.

        Arguments:
            target: the name
        """
        return _member(self, "get_buffer", target, "_buffer_names", "buffer")

    # ---- changing it

    def _apply(self, function: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the memory of every parameter and buffer, and of gradients, by what a function makes of it."""
        for module in _children(self) if recurse else ():
            module._apply(function)
        for name in self._parameter_names:
            parameter = getattr(self, name)
            if parameter is None:
                continue
            grad = parameter.grad
            parameter.data = function(parameter.data)
            if grad is not None:
                parameter.grad = function(grad.detach()).requires_grad_(grad.requires_grad)
        for name in self._buffer_names:
            buffer = getattr(self, name)
            if is_uninitialized(buffer):  # of a class of its own, which a converted tensor would not have
                buffer.data = function(buffer.data)
            elif buffer is not None:
                object.__setattr__(self, name, function(buffer))
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module inside, and with the module itself last; returns the module.

        Arguments:
            fn: the function, such as one that sets initial weights
        """
        _call_with_all(self, fn)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, or convert those with fractions to a dtype; returns the module, changed.

        It is called as `Tensor.to` is: `to(device, dtype, non_blocking)`, `to(dtype)`, `to(tensor)`, or by keywords. Optimisers
        keep their parameters, whose memory changes.

        Raises CallError for a dtype without fractions.

        Arguments:
            args: a device, a dtype, or a tensor whose device and dtype are meant
            kwargs: `device`, `dtype`, `non_blocking`, `memory_format`
        """
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        dtype = next((each for each in [*args, kwargs.get("dtype")] if isinstance(each, turnout.DType)), None)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise CallError(errors.not_floating(dtype))
        places = [each for each in args if each is not None and not isinstance(each, (turnout.DType, bool))]
        rest = {name: value for name, value in kwargs.items() if name != "dtype" and value is not None}
        if any(each is True for each in args):
            rest["non_blocking"] = True
        format_ = rest.pop("memory_format", None)

        def move(tensor: Tensor) -> Tensor:
            converted = tensor.is_floating_point() or tensor.is_complex()
            wanted = {"dtype": dtype} if dtype is not None and converted else {}
            if format_ is not None and tensor.ndim in (4, 5):
                wanted["memory_format"] = format_
            if not places and not rest and not wanted:
                return tensor
            return tensor.to(*places, **rest, **wanted)

        return self._apply(move)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give every parameter and buffer new memory on a device, without copying values; returns the module.

        Arguments:
            device: where
            recurse: whether to include modules inside
        """
        return self._apply(lambda tensor: turnout.empty_like(tensor, device=device), recurse=recurse)

    def cpu(self) -> Self:
        """Move parameters and buffers to the device "cpu"; returns the module."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device; returns the module.

        Arguments:
            device: the device or its index; None is the current one
        """
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def type(self, dst_type: Any) -> Self:
        """Convert parameters and buffers to a dtype; returns the module.

        Arguments:
            dst_type: the dtype
        """
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Convert parameters and buffers with fractions to float32; returns the module."""
        return self.to(turnout.float32)

    def double(self) -> Self:
        """Convert parameters and buffers with fractions to float64; returns the module."""
        return self.to(turnout.float64)

    def half(self) -> Self:
        """Convert parameters and buffers with fractions to float16; returns the module."""
        return self.to(turnout.float16)

    def bfloat16(self) -> Self:
        """Convert parameters and buffers with fractions to bfloat16; returns the module."""
        return self.to(turnout.bfloat16)

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in all modules inside, which dropout and normalisation ask for; returns the module.

        Raises DataError, a TypeError and a ValueError, for a mode other than True and False.

        Arguments:
            mode: whether the module is trained
        """
        if not isinstance(mode, bool):
            raise DataError(errors.wrong_mode(mode))
        _train(self, mode)
        return self

    def eval(self) -> Self:
        """`train(False)`; returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether all parameters require gradients; returns the module.

        Arguments:
            requires_grad: whether they do
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Arguments:
            set_to_none: False fills them with zeros instead
        """
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    # ---- its state

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The parameters and persistent buffers by name, in an `OrderedDict`. They share memory with those of the module.

        Arguments:
            args: `destination`, `prefix` and `keep_vars` in this order, as old programs give them
            destination: a dict to add them to; None makes one
            prefix: what every name begins with
            keep_vars: whether tensors keep their history
        """
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        chosen: dict[str, Any] = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars} | given
        return states.save(self, Module.state_dict, **chosen)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> states.Loaded:
        """Copy a state into parameters and buffers. Returns the names that were missing, and those that are not known.

        Raises StateError, a RuntimeError, that names all that does not fit; what fits has been copied by then. Raises CallError
        for a state that is not a mapping.

        Arguments:
            state_dict: name -> tensor
            strict: whether missing and unknown names are errors
            assign: whether the given tensors take the place of the module's own, in dtype and device too
        """
        return states.load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add what the module itself holds to a state. Classes with a state of another form override it."""
        states.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take what the module itself holds from a state. Classes that read older states override it."""
        states.load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self) -> Any:
        """What `state_dict` keeps beside tensors, under "_extra_state". Classes that define it define `set_extra_state`, too."""
        raise errors.undefined(self, "get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` returned.

        Arguments:
            state: what it returned
        """
        raise errors.undefined(self, "set_extra_state")

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not Module.get_extra_state

    # ---- hooks

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Call `hook(module, args)` before each `forward`. What it returns takes the place of the arguments, if not None.

        Arguments:
            hook: the function
            prepend: whether it comes before the hooks that are there
            with_kwargs: whether it is called as `hook(module, args, kwargs)`, and returns both
        """
        return Handle(_table(self, "before"), Hook(hook, with_kwargs), first=prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after each `forward`. What it returns takes the place of the output, if not None.

        Arguments:
            hook: the function
            prepend: whether it comes before the hooks that are there
            with_kwargs: whether it is called as `hook(module, args, kwargs, output)`
            always_call: whether it is called when `forward` or a hook raises, too, with None for the output
        """
        return Handle(_table(self, "after"), Hook(hook, with_kwargs, always_call), first=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known. It may return others.

        Arguments:
            hook: the function
            prepend: whether it comes before the hooks that are there
        """
        return Handle(_table(self, "backward_before"), hook, first=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the arguments are known. It may return others.

        Gradients are those of the arguments given by position. Where none of them requires a gradient, the hook is called when
        those of the outputs are known, and `grad_input` has None for each.

        Arguments:
            hook: the function
            prepend: whether it comes before the hooks that are there
        """
        return Handle(_table(self, "backward"), hook, first=prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects what the module holds.

        Arguments:
            hook: the function
        """
        return Handle(_table(self, "save_before"), hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` has collected. It changes the dict.

        Arguments:
            hook: the function
        """
        return Handle(_table(self, "save_after"), hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` before
        the module takes its part of a state. It may change the dict and the lists.

        Arguments:
            hook: the function
        """
        return Handle(_table(self, "load_before"), hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, incompatible_keys)` after the module has taken its part. It may change the two lists.

        Arguments:
            hook: the function
        """
        return Handle(_table(self, "load_after"), hook)

    # ---- Python's protocols

    def __dir__(self) -> list[str]:
        return sorted(name for name in object.__dir__(self) if not name[:1].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def extra_repr(self) -> str:
        """What `repr` says of the module beside the modules inside. Classes override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        inside = []
        for name in self._module_names:  # no comprehension, which is a frame more at each level of nesting before Python 3.12
            inside.append(f"({name}): " + _indented(repr(getattr(self, name))))
        if len(extra) <= 1 and not inside:
            return f"{self._get_name()}({''.join(extra)})"
        return "\n".join([f"{self._get_name()}(", *(f"  {line}" for line in [*extra, *inside]), ")"])


def _forward(self: Module, *args: Any, **kwargs: Any) -> Any:
    """Raise NotImplementedError: a class of modules defines its own `forward`."""
    raise NotImplementedError(errors.no_forward(self))


_forward.__name__, _forward.__qualname__ = "forward", "Module.forward"
Module.forward = _forward


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _place(module: Module, name: str, table: str, mark: Any) -> None:
    """Register a name in one table, and in no other."""
    own = module.__dict__
    if table not in own:
        raise errors.MemberError(errors.not_initialised(module, name))
    if name not in own[table] or table == "_buffer_names":
        for each in _TABLES:
            if each != table:
                own[each].pop(name, None)
        own[table][name] = mark


def _check(module: Module, name: str, value: Any, allowed: str) -> None:
    """Raise CallError for a value that what is registered under the name cannot be."""
    for table, kind in zip(_TABLES, ("parameter", "buffer", "module"), strict=True):
        if kind != allowed and name in module.__dict__.get(table, ()):
            raise CallError(errors.wrong_member(module, name, kind, value))


def _check_name(module: Module, function: str, name: Any, table: str) -> None:
    """Raise an error for a name that cannot be registered in a table."""
    if table not in module.__dict__:
        raise errors.MemberError(errors.not_initialised(module, name))
    if not isinstance(name, str):
        raise CallError(errors.bad_name(function, name))
    if not name or "." in name:
        raise errors.MemberNameError(errors.bad_name(function, name))
    if hasattr(module, name) and name not in module.__dict__[table]:
        raise errors.MemberNameError(errors.name_taken(function, module, name))


def _has_own(module: Module, method: str) -> bool:
    """Whether a class, or the module itself, overrides a method of `Module`."""
    return getattr(type(module), method) is not getattr(Module, method) or method in module.__dict__


# What goes through all modules inside. A level of nesting takes one frame at most, that of the function here, so that modules can
# be nested as deep as Python's recursion limit: methods, which take a second one for the errors that leave them, call it once.
# Where a module overrides the method, that is called.


def _children(module: Module) -> Iterator[Module]:
    return map(_SECOND, _named(module, "_module_names", "", recurse=False, remove_duplicate=True))


def _modules(root: Module, memo: set[Module], prefix: str, remove_duplicate: bool) -> Iterator[tuple[str, Module]]:
    if root in memo:
        return
    if remove_duplicate:
        memo.add(root)
    yield prefix, root
    left = [(prefix, root, iter(root._module_names))]
    while left:
        path, module, names = left[-1]
        for name in names:
            child = getattr(module, name)
            inside = f"{path}.{name}" if path else name
            if child is None:
                continue
            if _has_own(child, "named_modules"):
                yield from child.named_modules(memo, inside, remove_duplicate)
            elif child not in memo:
                if remove_duplicate:
                    memo.add(child)
                yield inside, child
                left.append((inside, child, iter(child._module_names)))
                break
        else:
            left.pop()


def _call_with_all(module: Module, function: Callable[[Module], Any]) -> None:
    for child in _children(module):
        if _has_own(child, "apply"):
            child.apply(function)
        else:
            _call_with_all(child, function)
    function(module)


def _train(module: Module, mode: bool) -> None:
    module.training = mode
    for child in _children(module):
        if _has_own(child, "train"):
            child.train(mode)
        else:
            _train(child, mode)


def _named(root: Module, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
    """What is registered in one table, with names."""
    try:
        seen: set[int] = set()
        modules: Iterable[tuple[str, Module]] = [(prefix, root)]
        if recurse and _has_own(root, "named_modules"):
            modules = root.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        elif recurse:
            modules = _modules(root, set(), prefix, remove_duplicate)
        for path, module in modules:
            for name in module.__dict__[table]:
                value = getattr(module, name)
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value
    except Exception as error:
        shorten(error)
        raise


def _at(root: Module, function: str, path: str) -> tuple[Any, str]:
    """The module that holds what a path names, and the last name."""
    holder: Any = root
    found: Any = root
    for name in path.split("."):
        holder = found
        if not isinstance(holder, Module):
            raise errors.MemberError(errors.not_what_was_asked(function, path, "module", holder))
        if not hasattr(holder, name):
            known = [each for table in _TABLES for each in holder.__dict__[table]]
            raise errors.MemberError(errors.no_member(function, holder, path, name, known))
        found = getattr(holder, name)
    return holder, path.rpartition(".")[2]


def _member(root: Module, function: str, target: str, table: str, kind: str) -> Any:
    """What a path names, which must be registered in a table."""
    holder, name = _at(root, function, target)
    found = getattr(holder, name)
    if name not in holder.__dict__[table] or (found is None and table == "_parameter_names"):
        raise errors.MemberError(errors.not_what_was_asked(function, target, kind, found))
    return found


def _table(module: Module, table: str) -> dict[int, Any]:
    """A table of hooks of a module, which gets `Hooks` with its first one."""
    if module.__dict__.get("_module_hooks") is None:
        module._module_hooks = Hooks()
    return getattr(module._module_hooks, table)
