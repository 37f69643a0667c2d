"""`Optimizer`: groups of parameters, their states, hooks, saving and loading, and what a step does around a rule."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError, CallError
from turnout.operators import shorten
from turnout.plugins import effect
from turnout_nn import errors
from turnout_nn.hooks import Handle
from turnout_nn.optim.operands import Lists, Recorded, on_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    Group = dict[str, Any]
    State = dict[Any, Any]
    Parameters = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]
    Closure = Callable[[], Any]


# What hyperparameters are, where the docstring of an optimiser does not say otherwise.
HYPERPARAMETERS = {
    "params": "tensors, pairs of name and tensor, or groups",
    "lr": "the learning rate, a number or a tensor of one element",
    "eps": "added to the root",
    "weight_decay": "how much of the parameter is added to its gradient",
    "foreach": "whether one operator serves a list of parameters; None: where the backend has kernels for it",
    "maximize": "whether the steps go up",
    "capturable": "not supported",
    "differentiable": "whether a step is recorded for gradients",
    "fused": "whether one operator does the whole step",
}


class Optimizer:
    """The base class of optimisers: parameters in groups, each with its own options, and a state for each parameter.

    A class of yours calls `super().__init__(params, defaults)` and defines `step`. The optimisers here define less: `_start`,
    the state of a parameter before its first step, and `_rule`, which changes parameter and state by a gradient.

    `params` are tensors, or pairs of a name and a tensor, as `named_parameters()` gives them, or dicts: each makes a group, with
    "params" and the options that are its own. Raises CallError for what is no such thing and ArgumentError for parameters that
    are in two groups, that have a history, or of which only some have names.

    Arguments:
        params: tensors, pairs of name and tensor, or groups
        defaults: the options of groups that do not say them

    Example:
        >>> weight = turnout.tensor([1.0], requires_grad=True)
        >>> optimizer = turnout.optim.SGD([weight], lr=0.1)
        >>> (weight * 2).sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.800000011920929]
    """

    numbers: ClassVar[tuple[str, ...]] = ("step",)  # which parts of a state are numbers; they are kept as tensors on the cpu
    lists: ClassVar[bool] = True  # whether the rule takes `Lists`

    _has_stepped = False  # schedulers look at it

    defaults: dict[str, Any]
    state: defaultdict[Any, State]
    param_groups: list[Group]

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._set_up_hooks()
        if isinstance(params, Tensor):
            raise CallError(
                f"{type(self).__name__}: params must be an iterable of tensors or groups, got a tensor\n"
                "  to fix  pass a list, [tensor]"
            )
        if not hasattr(params, "__iter__") and not hasattr(params, "__getitem__"):
            raise CallError(
                f"{type(self).__name__}: params must be an iterable of tensors or groups, got {type(params).__name__}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        given = list(params)
        if not given:
            raise ArgumentError(f"{type(self).__name__}: params is empty; there is nothing to optimise")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    # ---- a step

    def step(self, closure: Closure | None = None) -> Any:
        """Change each parameter that has a gradient. Returns what the closure returned, None without one.

        Arguments:
            closure: computes the loss and its gradients again, and returns the loss
        """
        with turnout.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            loss = None if closure is None else self._evaluated(closure)
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _evaluated(self, closure: Closure) -> Any:
        if not callable(closure):
            raise CallError(f"{type(self).__name__}.step: closure must be callable, got {type(closure).__name__}")
        with turnout.enable_grad():
            return closure()

    def _step_group(self, group: Group) -> None:
        parameters = [p for p in group["params"] if p.grad is not None]
        if not parameters:
            return
        for p in parameters:
            if p not in self.state:
                self._fill(p, group)
        differentiable = group.get("differentiable", False)
        fused = group.get("fused")
        # The fused operators take a tensor as `lr`: its number is not read, so that a compiled step serves all of them.
        rate = group["lr"] if fused else None
        is_kept = isinstance(rate, Tensor) and all(p.device == rate.device for p in parameters)
        options = {
            key: _plain(value, differentiable or (is_kept and value is rate)) for key, value in group.items() if key != "params"
        }
        if fused:
            for batch in self._batches(parameters, ()):
                states = [self.state.get(p, {}) for p in batch]
                self._fused_rule(batch, [self._gradient(p, options) for p in batch], states, options)
                self.state.update({p: state for p, state in zip(batch, states, strict=True) if state})
        elif differentiable:
            for p in parameters:
                self._apply([p], options, lambda tensors: Recorded(tensors[0]))
        elif self.lists and _wants_lists(group, parameters):
            for batch in self._batches(parameters, self.numbers):
                self._apply(batch, options, Lists)
        else:
            for p in parameters:
                if p.is_complex():
                    self._apply([p], options, _first)
                else:
                    self._apply_to(p, options)

    def _apply_to(self, parameter: Tensor, options: Group) -> None:
        """`_apply` for a real tensor as it is, without joining: what is around the rule decides what few elements cost."""
        state = self.state.get(parameter, {})
        given = state.copy()
        for key in self.numbers:
            if key in state:
                if key == "step":
                    state[key].add_(1)
                given[key] = state[key].item()
        before = given.copy()
        self._rule(parameter, self._gradient(parameter, options), given, options)
        for key, value in given.items():
            if value is before.get(key):
                continue
            if key in self.numbers:
                state[key].fill_(value)
            else:
                self.state[parameter][key] = value

    def _apply(self, batch: Sequence[Tensor], options: Group, operand: Callable[[Sequence[Tensor]], Any]) -> None:
        """Run the rule for parameters whose states have the same numbers, and keep what it made."""
        states = [self.state.get(p, {}) for p in batch]
        complex_ = batch[0].is_complex()

        def joined(tensors: Sequence[Tensor]) -> Any:
            return operand([turnout.view_as_real(t) for t in tensors] if complex_ else tensors)

        given: State = {}
        for key, value in states[0].items():
            if key in self.numbers:
                if key == "step":
                    for state in states:
                        state[key].add_(1)
                given[key] = value.item()
            else:
                given[key] = joined([state[key] for state in states])
        before = given.copy()
        parameter = joined(batch)
        self._rule(parameter, joined([self._gradient(p, options) for p in batch]), given, options)
        for key, value in given.items():
            if key in self.numbers:
                if value != before[key]:
                    for state in states:
                        state[key].fill_(value)
            elif value is not before.get(key) or isinstance(value, Recorded):
                for p, tensor in zip(batch, _tensors(value), strict=True):
                    self.state[p][key] = turnout.view_as_complex(tensor) if complex_ else tensor
        if isinstance(parameter, Recorded):
            batch[0].copy_(turnout.view_as_complex(parameter.tensor) if complex_ else parameter.tensor)

    def _gradient(self, parameter: Tensor, options: Group) -> Tensor:
        gradient: Tensor = parameter.grad
        return gradient.neg() if options.get("maximize") else gradient

    def _batches(self, parameters: Sequence[Tensor], numbers: Sequence[str]) -> list[list[Tensor]]:
        """The parameters by device, dtype, and what their states have."""
        found: dict[Hashable, list[Tensor]] = {}
        for p in parameters:
            state = self.state.get(p, {})
            values = tuple([state[key].item() for key in numbers if key in state])
            found.setdefault((p.device, p.dtype, p.grad.dtype, frozenset(state), values), []).append(p)
        return list(found.values())

    def _fill(self, parameter: Tensor, group: Group) -> None:
        """The state of a parameter before its first step, if it has one then."""
        start = self._start(parameter, group)
        if start:
            numbers = {key: _number(start[key], parameter, group) for key in self.numbers}
            self.state[parameter] = start | numbers

    def _start(self, parameter: Tensor, group: Group) -> State:
        """The state with which a parameter starts: numbers for `numbers`, tensors for all else."""
        return {}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        """Change a parameter and its state by a gradient. All are tensors, or operands that have their methods."""
        raise errors.undefined(self, "step")

    def _fused_rule(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], states: Sequence[State], options: Group
    ) -> None:
        """Change parameters and states by one operator."""
        raise NotImplementedError(f"{type(self).__name__} has no fused step")

    def _check_ways(self) -> None:
        """Refuse ways to run a step that exclude each other or do not exist."""
        name, options = type(self).__name__, self.defaults
        if options.get("capturable"):
            # differs from torch: `capturable=True` is refused, as optimisers do not capture a device's launches.
            raise ArgumentError(f"{name}: capturable=True is not supported: Turnout does not capture graphs of launches")
        if options.get("fused"):
            for other in ("differentiable", "foreach"):
                if options.get(other):
                    raise ArgumentError(f"{name}: fused=True and {other}=True exclude each other")
            for p in [p for group in self.param_groups for p in group["params"]]:
                if not p.is_floating_point():
                    raise ArgumentError(f"{name}: fused=True needs floating-point parameters, got {p.dtype}")

    # ---- groups

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own, for instance layers that are thawed while a model is fine-tuned.

        Arguments:
            param_group: a dict with "params" and options; options that it does not say are the optimiser's defaults
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise CallError(f"{name}: a group must be a dict, got {type(param_group).__name__}")
        given = param_group["params"]
        if isinstance(given, (set, frozenset)):
            raise CallError(f"{name}: params must have an order, which a set does not have\n  to fix  pass a list")
        members = [given] if isinstance(given, Tensor) else list(given)
        names = [m[0] for m in members if isinstance(m, tuple)]
        tensors = [m[1] if isinstance(m, tuple) else m for m in members]
        if names and len(names) != len(tensors):
            raise ArgumentError(
                f"{name}: either all parameters of a group have names or none, got {len(names)} names of {len(tensors)}"
            )
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise CallError(f"{name}: a parameter must be a tensor, got {type(tensor).__name__}")
            if not self.defaults.get("differentiable") and not (tensor.is_leaf or tensor.retains_grad):
                raise ArgumentError(f"{name}: a parameter has a history, so it is not a leaf that can be optimised")
        for group in self.param_groups:
            if bool(names) != ("param_names" in group):
                raise ArgumentError(f"{name}: either all groups have names of parameters or none")
            if not set(map(id, group["params"])).isdisjoint(map(id, tensors)):
                raise ArgumentError(f"{name}: a parameter is in two groups")
        if len(set(map(id, tensors))) != len(tensors):
            errors.warn(f"{name}: a parameter is twice in a group, so each step changes it twice")
        param_group["params"] = tensors
        if names:
            param_group["param_names"] = names
        for option, default in self.defaults.items():
            param_group.setdefault(option, default)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Arguments:
            set_to_none: whether they become None, or tensors of zeros
        """
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    with turnout.no_grad():
                        p.grad.detach_().zero_()

    # ---- saving and loading

    def state_dict(self) -> dict[str, Any]:
        """The states by the place of their parameter, and the groups, with places in place of parameters.

        The tensors are those of the optimiser, not copies.
        """
        for hook in self._hooks["save_before"].values():
            hook(self)
        places: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                places.setdefault(id(p), i)
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            groups.append(packed | {"params": [places[id(p)] for p in group["params"]]})
        state = {places[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        return self._changed("save_after", found)

    def _changed(self, table: str, state: dict[str, Any]) -> dict[str, Any]:
        """A state after the hooks of a table, which may return another one."""
        for hook in self._hooks[table].values():
            changed = hook(self, state)
            state = state if changed is None else changed
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where another optimiser was. Tensors are copied to the device and dtype of their parameter.

        Raises ArgumentError where the groups differ in number or size; nothing is changed then. Load it after making schedulers,
        which set the learning rate.

        Arguments:
            state_dict: what `state_dict()` of an optimiser of this class returned
        """
        state_dict = self._changed("load_before", state_dict.copy())
        saved = deepcopy(state_dict["param_groups"])
        sizes, own = ([len(group["params"]) for group in groups] for groups in (saved, self.param_groups))
        if sizes != own:
            raise ArgumentError(
                f"{type(self).__name__}.load_state_dict: the groups have {own} parameters, and those of the state have {sizes}"
            )
        by_place = {
            place: (p, new)
            for group, new in zip(self.param_groups, saved, strict=True)
            for p, place in zip(group["params"], new["params"], strict=True)
        }
        state: defaultdict[Any, State] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_place:
                state[by_place[key][0]] = self._moved(*by_place[key], value)
            else:
                state[key] = value
        for group, new in zip(self.param_groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._hooks["load_after"].values():
            hook(self)

    def _moved(self, parameter: Tensor, group: Group, value: Any, key: Any = None) -> Any:
        """A copy of a saved value where the parameter is and in its dtype; numbers stay where they are."""
        if isinstance(value, Tensor):
            if key in self.numbers:
                return value.to(parameter.device, turnout.float32) if group.get("fused") else value.clone()
            return value.to(parameter.device, parameter.dtype if parameter.is_floating_point() else None, copy=True)
        if isinstance(value, dict):
            return {k: self._moved(parameter, group, v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._moved(parameter, group, v) for v in value)
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state. Options and numbers that an older one does not have as tensors are completed."""
        self.__dict__.update(state)
        if "_hooks" not in self.__dict__:
            self._set_up_hooks()
        for group in self.param_groups:
            for option, default in self.defaults.items():
                group.setdefault(option, default)
            for p in group["params"]:
                held = self.state.get(p, {})
                for key in self.numbers:
                    if key in held and not isinstance(held[key], Tensor):
                        held[key] = _number(held[key], p, group)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ---- hooks

    def _set_up_hooks(self) -> None:
        self._hooks: dict[str, dict[int, Callable[..., Any]]] = {
            kind: {} for kind in ("before", "after", "save_before", "save_after", "load_before", "load_after")
        }

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return changed arguments, as a pair."""
        return Handle(self._hooks["before"], hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return Handle(self._hooks["after"], hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` before `state_dict()`."""
        return Handle(self._hooks["save_before"], hook, first=prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` after `state_dict()`; it may return another dict."""
        return Handle(self._hooks["save_after"], hook, first=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` before a state is loaded; it may return another dict."""
        return Handle(self._hooks["load_before"], hook, first=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` after a state was loaded."""
        return Handle(self._hooks["load_after"], hook, first=prepend)


_BEFORE_ALL: dict[int, Callable[..., Any]] = {}
_AFTER_ALL: dict[int, Callable[..., Any]] = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimiser; it may return changed arguments, as a pair."""
    effect("register_optimizer_step_pre_hook()")
    return Handle(_BEFORE_ALL, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimiser."""
    effect("register_optimizer_step_post_hook()")
    return Handle(_AFTER_ALL, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A method `step` that calls the hooks of its optimiser, unless a derived class calls it."""

    @wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        try:
            self._has_stepped = True
            own_before, own_after = self._hooks["before"], self._hooks["after"]
            if not (own_before or own_after or _BEFORE_ALL or _AFTER_ALL) or type(self).step is not hooked:
                return step(self, *args, **kwargs)
            before, after = [*_BEFORE_ALL.values(), *own_before.values()], [*_AFTER_ALL.values(), *own_after.values()]
            for hook in before:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise CallError(f"a hook before a step must return None or a pair (args, kwargs), got {changed!r}")
                    args, kwargs = changed
            result = step(self, *args, **kwargs)
            for hook in after:
                hook(self, args, kwargs)
            return result
        except Exception as error:
            errors.leave_out_last_frame(error)
            shorten(error)
            raise

    return hooked


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]


def _wants_lists(group: Group, parameters: Sequence[Tensor]) -> bool:
    wanted = group.get("foreach")
    return bool(wanted) or (wanted is None and all(map(on_lists, {p.device for p in parameters})))


def _plain(value: Any, differentiable: bool) -> Any:
    """The number of an option that is a tensor; where a step is differentiated, the tensor without dims."""
    if isinstance(value, Tensor):
        return value.reshape(()) if differentiable else value.item()
    return tuple([_plain(v, differentiable) for v in value]) if isinstance(value, tuple) else value


def _first(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0]


def _tensors(operand: Any) -> Sequence[Tensor]:
    if isinstance(operand, Lists):
        return operand.tensors
    return [operand.tensor if isinstance(operand, Recorded) else operand]


def _number(value: float, parameter: Tensor, group: Group) -> Tensor:
    """A number of a state: a tensor on the cpu, which is cheap to read, or beside the parameter for a fused step."""
    if group.get("fused"):
        return turnout.tensor(float(value), dtype=turnout.float32, device=parameter.device)
    dtype = turnout.float64 if turnout.get_default_dtype() is turnout.float64 else turnout.float32
    return turnout.tensor(float(value), dtype=dtype, device="cpu")


def arguments(local: dict[str, Any]) -> dict[str, Any]:
    """The hyperparameters of an optimiser: what its `__init__` was given besides parameters, from its first `locals()`."""
    return {name: value for name, value in local.items() if name not in ("self", "params", "__class__")}


def zeros(parameter: Tensor) -> Tensor:
    """The start of an average: zeros in the parameter's form."""
    return turnout.zeros_like(parameter, memory_format=turnout.preserve_format)


def decayed(gradient: Any, parameter: Any, options: Group) -> Any:
    """The gradient of the loss with half the squared norm of the parameter times `weight_decay`."""
    return gradient.add(parameter, alpha=options["weight_decay"]) if options["weight_decay"] else gradient
