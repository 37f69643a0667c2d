"""Texts of errors about plugins: which one, of which distribution, why it cannot be used, the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from turnout.errors import CallError, DeviceError, DisabledError, ManifestError, PluginError, PluginWarning
from turnout.errors.calls import describe
from turnout.errors.layout import near, report


def manifest_not_accepted(owner: str, path: str, problems: Sequence[tuple[str, str]]) -> ManifestError:
    """Everything wrong with one manifest: pairs of place ("line 3", "missing") and text."""
    return ManifestError(report(f"the manifest of {owner} is not accepted", ("file", path), *problems))


def manifest_not_found(owner: str, entry: str, where: Sequence[str]) -> ManifestError:
    """A distribution whose entry point names a manifest that is not among its files."""
    looked = ("looked", ", ".join(where) or "the files that the distribution recorded")
    remedy = ("to fix", "ship the manifest with the package (setuptools: [tool.setuptools.package-data])")
    rows = (("entry", f"{entry} in the group turnout.plugins"), looked, remedy)
    return ManifestError(report(f"the manifest of {owner} is not among its files", *rows))


_PHRASES = {"failed": "has failed", "conflict": "is in conflict with another"}


def unusable(name: str, state: str, why: str, origin: str, remedy: str, asked: str) -> PluginError | DisabledError:
    """A plugin that was asked for, by its name or by what it provides (`asked`), and is not going to be active."""
    head = f"{asked}: the plugin {name}" if asked else f"the plugin {name}"
    text = report(f"{head} {_PHRASES.get(state, f'is {state}')}", ("why", why), ("from", origin), ("to fix", remedy))
    return DisabledError(text) if state == "disabled" else PluginError(text)


def not_in_a_subinterpreter(error: ImportError) -> str:
    """Why a plugin is unavailable there: the package whose import failed, and the first line of what it says."""
    from traceback import walk_tb

    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    package = "a module"
    for frame, _ in walk_tb(cause.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return f"{package} cannot be loaded in this subinterpreter: {str(cause).partition(chr(10))[0]}"


def not_compiled(distribution: str, error: ImportError) -> str:
    """Why a plugin of compiled code is unavailable."""
    return f"its extension module cannot be loaded ({error}): install {distribution} where a C compiler is at hand"


def not_installed(asked: str, remedy: str, broken: Sequence[str]) -> PluginError:
    """Something that a plugin of a known package provides, which is not installed."""
    return PluginError(report(f"{asked}: no installed plugin provides it", ("to fix", remedy), *_broken(broken)))


def check_name(kind: str, value: object) -> None:
    """Raise CallError for what cannot be the name of a plugin, a device or a functionality."""
    if not isinstance(value, str):
        raise CallError(f"the name of a {kind} is a text, got {describe(value)}")


def unknown(
    kind: str, asked: str, name: str, known: Sequence[str], elsewhere: Sequence[str], broken: Sequence[str]
) -> DeviceError | PluginError:
    """A device, functionality or plugin that neither an installed plugin nor a known package provides."""
    names, is_device = [*known, *elsewhere], kind == "device"
    problem = "there is no such device" if is_device else "no installed plugin provides it and no package is known to"
    head = f"{asked}: {problem}{near(name, names, spell=repr if is_device else str)}"
    text = report(head, ("installed", ", ".join(known) or "none"), *_broken(broken))
    return DeviceError(text) if is_device else PluginError(text)


def _broken(broken: Sequence[str]) -> list[tuple[str, str]]:
    return [("broken", text) for text in broken]


def functionality_disabled(name: str, entry: str, origin: str) -> DisabledError:
    head = f"{name} was asked for, but keys.disable switches it off"
    return DisabledError(report(head, ("set in", origin), ("to fix", f"take {entry} out of keys.disable")))


def strict(broken: Sequence[str]) -> PluginError:
    """With `strict`, plugins that were found and are broken, without having been asked for."""
    remedy = ("to fix", "uninstall them, or name them in plugins.disable")
    return PluginError(report("the setting strict is on and installed plugins are broken", *_broken(broken), remedy))


def wrong_module(module: str, expected: str, found: str) -> PluginError:
    """Another package of the same import name stands before the one that the manifest came with."""
    head = f"the package {module} that would be imported is not the one of the plugin"
    remedy = ("to fix", "remove or rename the other one; see sys.path")
    return PluginError(report(head, ("installed", expected), ("imported", found), remedy))


def promises_broken(module: str, path: str, missing: Sequence[str], extra: Sequence[str]) -> ManifestError:
    """A plugin that registered other things than its manifest names: "backend:CUDA", "namespace:mylib"."""
    head = "what was registered is not what the manifest says; all of it was taken back"
    rows = [(label, ", ".join(names).replace(":", " ")) for label, names in (("missing", missing), ("not named", extra))]
    return ManifestError(report(head, ("manifest", path), ("module", module), *rows))


def not_replaceable(module: str, names: Sequence[str]) -> PluginError:
    """Replacements of functions that do not exist, or that are not marked."""
    head = f"the module {module} replaces functions that are not replaceable"
    remedy = ("to fix", "name functions marked with turnout.plugins.replaceable, as 'module:function'")
    return PluginError(report(head, ("replaced", ", ".join(names)), remedy))


def no_activation(module: str) -> ManifestError:
    """An activation module without the one hook that it needs."""
    hook = "turnout_activate(library, options) marked with @turnout.plugins.hookimpl"
    return ManifestError(f"the module {module} has no function {hook}")


def activating_already(name: str, chain: Sequence[str]) -> PluginError:
    """A plugin that, while it is activated, leads back to itself."""
    return PluginError(f"the plugin {name} asks for itself while it is activated: {' -> '.join([*chain, name])}")


def has_dependents(name: str, dependents: Sequence[str]) -> PluginError:
    """A deactivation that would pull the ground from under other plugins."""
    head = f"the plugin {name} cannot be deactivated while others that need it are active"
    remedy = f"turnout.plugins.deactivate({name!r}, with_dependents=True)"
    return PluginError(report(head, ("needed by", ", ".join(dependents)), ("to fix", remedy)))


def not_reloaded(name: str, why: str) -> PluginError:
    return PluginError(report(f"the plugin {name} cannot be loaded again in this process", ("why", why), ("to fix", "restart")))


def deactivation_failed(name: str, why: str) -> PluginError:
    return PluginError(report(f"the plugin {name} was deactivated, but its clean-up raised", ("why", why)))


def warn(text: str, is_ours: Callable[[str], bool], category: type[Warning] = PluginWarning) -> None:
    """Issue a warning that points at the first caller outside of Turnout: `is_ours` says whether a module is part of it."""
    import sys
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_between(str(frame.f_globals.get("__name__")), is_ours):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _is_between(module: str, is_ours: Callable[[str], bool]) -> bool:
    return module.startswith("importlib.") or is_ours(module)


def no_public_name(package: str, name: str, remedy: str | None, known: Iterable[str]) -> str:
    """A name of the facade that no installed plugin provides."""
    head = f"module {package!r} has no attribute {name!r}"
    if remedy is None:
        return head + near(name, known, cutoff=0.75)
    return report(head, ("why", "no installed package provides it"), ("to fix", remedy))


def two_providers(public: str, name: str, owners: Sequence[str], first: str) -> str:
    key = f'"{name}"' if "." in name else name
    remedy = f'choose one: [names.choose] {key} = "{first}", or disable the other in plugins.disable'
    return report(f"{public} is provided by {' and '.join(owners)}", ("to fix", remedy))
