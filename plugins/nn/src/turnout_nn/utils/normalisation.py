"""Weight and spectral norm as hooks that compute a weight before each call, with the names that older checkpoints have.

New programs use `turnout.nn.utils.parametrizations`, where the weight is computed when it is read.
"""

from __future__ import annotations

from typing import Any, TypeVar

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import check_count
from turnout_nn.hooks import Handle
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter
from turnout_nn.utils.power_method import channels_of, matrix_of, norm_except, spread

T = TypeVar("T", bound=Module)


class _Computed:
    """A hook that sets an attribute of its module before each call."""

    handle: Handle

    def __init__(self, function: str, name: str) -> None:
        self.function = function
        self.name = name

    def value(self, module: Any) -> Tensor:
        raise NotImplementedError

    def parts(self) -> tuple[str, ...]:
        """The names of the parameters and buffers from which the weight is computed."""
        raise NotImplementedError

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, self.value(module))

    def start(self, module: T, **parts: Tensor) -> T:
        weight = getattr(module, self.name, None)
        if isinstance(weight, Parameter):
            delattr(module, self.name)
        for name, tensor in parts.items():
            if isinstance(tensor, Parameter):
                module.register_parameter(name, tensor)
            else:
                module.register_buffer(name, tensor)
        setattr(module, self.name, self.value(module))
        self.handle = module.register_forward_pre_hook(self)
        return module

    def stop(self, module: T) -> T:
        with turnout.no_grad():
            weight = self.value(module)
        self.handle.remove()
        for name in (self.name, *self.parts()):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight.detach().clone()))
        return module


def _hooks_of(module: Module, name: str) -> list[_Computed]:
    """The hooks that compute an attribute of the module."""
    held = module._module_hooks
    found = [] if held is None else [hook.function for hook in held.before.values()]
    return [hook for hook in found if isinstance(hook, _Computed) and hook.name == name]


def _hook_of(function: str, module: Module, name: str) -> _Computed:
    for hook in _hooks_of(module, name):
        if hook.function == function:
            return hook
    raise ArgumentError(f"remove_{function}: {type(module).__name__} has no {function} of {name!r}")


def _weight_of(function: str, module: Module, name: str) -> Tensor:
    for hook in _hooks_of(module, name):
        raise ArgumentError(f"{function}: {name!r} of {type(module).__name__} is computed by {hook.function} already")
    weight = getattr(module, name, None)
    if not isinstance(weight, Parameter):
        raise ArgumentError(f"{function}: {type(module).__name__} has no parameter {name!r}")
    return weight


class _WeightNorm(_Computed):
    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__("weight_norm", name)
        self.dim = dim

    def parts(self) -> tuple[str, ...]:
        return f"{self.name}_g", f"{self.name}_v"

    def value(self, module: Any) -> Tensor:
        length, direction = (getattr(module, part) for part in self.parts())
        return direction * (length / norm_except(direction, self.dim))


def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """Compute a weight from the parameters `<name>_g`, its length, and `<name>_v`, its direction. Returns the module.

    Salimans and Kingma (2016). `turnout.nn.utils.parametrizations.weight_norm` is the newer form.

    Arguments:
        module: the module
        name: the name of the weight
        dim: the dimension along which each part has a length; None for one length

    Raises:
        ArgumentError: the module has no such parameter, or it is computed already.

    Example:
        >>> layer = turnout.nn.utils.weight_norm(turnout.nn.Linear(3, 2))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (turnout.Size([2, 1]), turnout.Size([2, 3]))
    """
    weight = _weight_of("weight_norm", module, name)
    parts = {f"{name}_g": Parameter(norm_except(weight.detach(), dim)), f"{name}_v": Parameter(weight.detach())}
    return _WeightNorm(name, dim).start(module, **parts)


def remove_weight_norm(module: T, name: str = "weight") -> T:
    """Make a weight that `weight_norm` computes a parameter again, with the value that it has. Returns the module.

    Arguments:
        module: the module
        name: the name of the weight

    Raises:
        ArgumentError: the weight is not computed by `weight_norm`.

    Example:
        >>> layer = turnout.nn.utils.remove_weight_norm(turnout.nn.utils.weight_norm(turnout.nn.Linear(3, 2)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    return _hook_of("weight_norm", module, name).stop(module)


class _SpectralNorm(_Computed):
    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__("spectral_norm", name)
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def parts(self) -> tuple[str, ...]:
        return f"{self.name}_orig", f"{self.name}_u", f"{self.name}_v"

    def value(self, module: Any) -> Tensor:
        weight, u, v = (getattr(module, part) for part in self.parts())
        matrix = matrix_of(weight, self.dim)
        if module.training:
            with turnout.no_grad():
                # The right vector comes first here, from the left one that is kept.
                for _ in range(self.n_power_iterations):
                    v.copy_(functional.normalize(matrix.mH @ u, dim=0, eps=self.eps))
                    u.copy_(functional.normalize(matrix @ v, dim=0, eps=self.eps))
        return weight / spread(matrix, u.clone(), v.clone())


def spectral_norm(module: T, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> T:
    """Divide the parameter `<name>_orig` by its largest singular value before each call. Returns the module.

    Miyato et al. (2018). Each call in training mode improves the estimate of the value, in the buffers `<name>_u` and `<name>_v`.
    `turnout.nn.utils.parametrizations.spectral_norm` is the newer form.

    Arguments:
        module: the module
        name: the name of the weight
        n_power_iterations: how many iterations each call makes
        eps: the smallest norm that is divided by
        dim: the dimension of the output channels; by default 0, and 1 for transposed convolutions

    Raises:
        ArgumentError: the module has no such parameter, it is computed already, or the number of iterations is not above 0.

    Example:
        >>> layer = turnout.nn.utils.spectral_norm(turnout.nn.Linear(3, 2))
        >>> sorted(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    weight = _weight_of("spectral_norm", module, name)
    check_count("spectral_norm", "n_power_iterations", n_power_iterations)
    dim = channels_of(module) if dim is None else dim
    with turnout.no_grad():
        matrix = matrix_of(weight.detach(), dim)
        u, v = (functional.normalize(matrix.new_empty(n).normal_(), dim=0, eps=eps) for n in matrix.shape)
    hook = _SpectralNorm(name, n_power_iterations, dim, eps)
    return hook.start(module, **{f"{name}_orig": weight, f"{name}_u": u, f"{name}_v": v})


def remove_spectral_norm(module: T, name: str = "weight") -> T:
    """Make a weight that `spectral_norm` computes a parameter again, with the value that it has. Returns the module.

    Arguments:
        module: the module
        name: the name of the weight

    Raises:
        ArgumentError: the weight is not computed by `spectral_norm`.

    Example:
        >>> layer = turnout.nn.utils.remove_spectral_norm(turnout.nn.utils.spectral_norm(turnout.nn.Linear(3, 2)))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    return _hook_of("spectral_norm", module, name).stop(module)
