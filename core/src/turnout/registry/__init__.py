"""The registry: which operators and kernels there are.

| module | holds |
|---|---|
| `store` | `Registry`: operators, fallbacks, backends; `REGISTRY`, that of the process |
| `registrations` | `Registrations`, a group of changes that can be undone |
| `preferences` | whose kernels come first at an operator and key, as configuration says |
| `namespaces` | `turnout.ops` |
| `modes` | `DispatchMode`, and subclasses of tensors that dispatch themselves |
| `core_kernels` | what core itself registers |
"""

from turnout.registry import core_kernels
from turnout.registry.registrations import Registrations
from turnout.registry.store import REGISTRY, Registry, find_operator

__all__ = ["REGISTRY", "Registrations", "Registry", "find_operator"]

core_kernels.install()
