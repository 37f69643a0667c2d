"""The plugins of the process: their states, as `states` decides them, their activation and deactivation.

All changes happen under the one lock, and nothing is imported under it. An active plugin stays active until it is deactivated or
disabled. Every other state is decided again after the configuration or the environment was read.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module, invalidate_caches
from importlib.machinery import ExtensionFileLoader
from types import TracebackType
from typing import TypeVar

import pluggy

import turnout.config.store  # noqa: F401 - the first use of the configuration may be under the lock
from turnout import config
from turnout.config import LOCK
from turnout.errors import ConfigError, ConflictError, DisabledError, PluginError, TurnoutError
from turnout.errors import plugins as errors
from turnout.plugins import providers
from turnout.plugins.activation import Active, LibraryFactory, UnavailableError, activate, prepare
from turnout.plugins.discovery import Found, Identity
from turnout.plugins.environment import ACTIVE, RUNNING, catalog, forget_catalog
from turnout.plugins.records import BROKEN, STATES, USABLE, PluginRecord
from turnout.plugins.states import Judge, Verdict, record
from turnout.plugins.turns import is_mine, turn
from turnout.registry import Registrations

T = TypeVar("T")
# What preparing plugins gave: their hooks, or the error.
Prepared = dict[Identity, pluggy.PluginManager | BaseException]


class Manager:
    """States, and what the functions of `turnout.plugins` do.

    `library_factory` makes the group that a plugin registers through; tests pass their own.
    """

    def __init__(self, library_factory: LibraryFactory | None = None) -> None:
        self._factory: LibraryFactory = library_factory or Registrations
        self._active: dict[str, Active] = {}  # in the order of activation
        self._activating: list[str] = []  # under LOCK, by one thread
        self._activating_in = 0
        self._at_hand: Prepared = {}  # for what the hook that runs now asks for
        self._past: dict[Identity, Verdict] = {}
        self._warned: set[Identity] = set()
        self._unsubscribe: Callable[[], None] | None = None
        self._judge: Judge | None = None
        self._on_deactivation: list[Callable[[Found], object]] = []

    # ---- what there is

    def is_usable(self, found: Found) -> bool:
        """Whether a plugin is active or, as far as known without trying, can be activated."""
        return self._verdict(found)[0] in USABLE

    def active(self) -> list[Found]:
        """The active plugins, ordered by name and distribution."""
        with LOCK:
            return sorted((each.found for each in self._active.values()), key=lambda found: found.identity)

    def records(self) -> list[PluginRecord]:
        """Every installed plugin. A configuration that cannot be read is ignored."""
        catalog()
        with LOCK:
            try:
                judge = self._judged()
            except ConfigError:
                judge = Judge(catalog().found, _default, self._past)
            return [self._record(found, judge) for found in catalog().found]

    def _judged(self) -> Judge:
        judge = self._judge
        if judge is None:
            if self._unsubscribe is None:
                self._unsubscribe = config.on_change(self._configuration_changed)
            judge = self._judge = Judge(catalog().found, _configured, self._past)
        return judge

    def _verdict(self, found: Found, judge: Judge | None = None) -> Verdict:
        active = self._active.get(found.name)
        if active is not None and active.found.identity == found.identity:
            return _running(found)
        return (judge or self._judged()).verdict(found)

    def _record(self, found: Found, judge: Judge | None = None) -> PluginRecord:
        return record(found, self._verdict(found, judge))

    def _survey(self, asked: list[Found]) -> None:
        """Warn once about each broken plugin that was not asked for; with `strict`, raise for all of them."""
        wanted = {found.identity for found in asked}
        broken = [f for f in self._judged().broken if f.identity not in wanted and f.name not in self._active]
        if broken and config.get("strict"):
            raise errors.strict([self._record(found).line() for found in broken])
        for found in broken:
            self._warn_of(found)

    # ---- asking for what plugins provide

    def _in_turn(self, found: Found, act: Callable[[Prepared], T]) -> T:
        """`act` under the lock, when all that activating a plugin needs was prepared without it: see `activation`.

        One thread does this, and others that need the plugin wait until it is active. What it requires is active before it is
        prepared, because its modules may use that while they are imported.
        """
        prepared = dict(self._at_hand) if LOCK._is_owned() else {}  # type: ignore[attr-defined] # a hook asks for a plugin
        with ExitStack() as turns:
            turns.callback(prepared.clear)  # an error knows this frame
            with LOCK:
                if found.name not in self._active and not self.is_activating([found]) and not self.is_usable(found):
                    self._forget_unavailable(found.name, set())
            while True:
                with LOCK:
                    each, is_required = self._next(found, prepared)
                    if each is None:
                        return act(prepared)
                own = ExitStack()
                if not own.enter_context(turn(each.name)) or each.name in self._active:
                    own.close()  # another thread may deactivate it meanwhile: then it is prepared in another turn
                    continue
                turns.push(own)
                try:
                    prepared[each.identity] = prepare(each)
                    if is_required:
                        with LOCK:
                            self._activate(each, "", prepared)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
                    prepared[each.identity] = error
                    if isinstance(error, ImportError) and _in_subinterpreter():
                        remedy = f"use {each.name} in the main interpreter"
                        prepared[each.identity] = UnavailableError(errors.not_in_a_subinterpreter(error), remedy)

    def _next(
        self, found: Found, prepared: Prepared, waiting: tuple[str, ...] = (), *, is_required: bool = False
    ) -> tuple[Found | None, bool]:
        """What is to be prepared next, and whether it is required: what a plugin requires, what registers beside it, then itself.

        None if nothing is left, or it cannot be used. What requires one of the plugins that are `waiting` for this one cannot
        register beside that: it is activated after it.
        """
        done = found.name in self._active or found.identity in prepared or self.is_activating([found])
        if done or found.manifest is None or not self.is_usable(found):
            return None, False
        required = [self._best(catalog().claiming("plugin", name)) for name in found.manifest.requires_plugins]
        if self.is_activating(required) or any(isinstance(prepared.get(each.identity), BaseException) for each in required):
            return None, False
        if not {each.name for each in required}.isdisjoint(waiting):
            return None, False
        waiting = (*waiting, found.name)
        for each, needed in (*((each, True) for each in required), *((each, False) for each in self._beside(found, required))):
            following = self._next(each, prepared, waiting, is_required=needed)
            if following[0] is not None:
                return following
        return found, is_required

    def _beside(self, found: Found, required: list[Found]) -> list[Found]:
        """The plugins that a backend activates while it registers: they have kernels for the same operators."""
        if found.manifest is None or not found.manifest.backends:
            return []
        namespaces = [name for each in required if each.manifest is not None for name in each.manifest.namespaces]
        return [each for name in namespaces for each in catalog().claiming("namespace", name) if each.name != found.name]

    def check_device(self, name: str) -> None:
        """Raise DeviceError for a device that nobody provides: see `plugins.check_device`."""
        if not catalog().claiming("device", name) and providers.provider_of("device", name) is None:
            raise self._nobody("device", name, f"device {name!r}")

    def require(self, kind: str, name: str, asked: str = "") -> None:
        """Activate the plugin that provides a device or functionality: see `plugins.require_device`."""
        errors.check_name(kind, name)
        claiming = catalog().claiming(kind, name)
        asked = asked or (f"device {name!r}" if kind == "device" else name)
        if not claiming:
            self._survey(claiming)
            raise self._nobody(kind, name, asked)

        found = self._best(claiming)

        def act(prepared: Prepared) -> None:
            if (kind, name) not in ACTIVE:
                self._survey(claiming)
                self._activate(found, asked, prepared)

        self._in_turn(found, act)

    def is_activating(self, plugins: list[Found]) -> bool:
        """Whether this thread is activating one of them."""
        mine = self._activating if self._activating_in == get_ident() else []
        names = [found.name for found in plugins if found.name not in self._active]
        return any(name in mine or is_mine(name) for name in names)

    def require_namespace(self, namespace: str) -> bool:
        """Activate all plugins with operators in a namespace. If one works, the broken ones are only recorded."""
        claiming = catalog().claiming("namespace", namespace)
        asked = f"the operators {namespace}::*"
        if not claiming:
            if providers.provider_of("namespace", namespace) is None:
                return False
            raise self._nobody("namespace", namespace, asked)

        self._survey(claiming)
        claiming.sort(key=lambda found: not providers.is_known(found.distribution))  # their operators are theirs
        problems: list[PluginError | DisabledError] = []
        for found in claiming:
            try:
                self._in_turn(found, partial(self._activate, found, asked))
            except (PluginError, DisabledError) as error:
                problems.append(error)
        if problems and not any(found.name in self._active for found in claiming):
            raise problems[0]
        for found in claiming:
            self._warn_of(found)
        with LOCK:
            if any(found.name in self._active for found in claiming):  # they were not deactivated meanwhile
                ACTIVE.add(("namespace", namespace))
        return True

    def _warn_of(self, found: Found) -> None:
        each = self._record(found)
        if each.state in BROKEN and found.identity not in self._warned:
            self._warned.add(found.identity)
            errors.warn(each.line(), providers.is_ours)

    def _best(self, claiming: list[Found]) -> Found:
        """The plugin to activate or, if none can be used, the one whose state is reported."""
        order = tuple(STATES)
        return min(claiming, key=lambda found: order.index(self._verdict(found)[0]))

    def _nobody(self, kind: str, name: str, asked: str) -> Exception:
        package = providers.provider_of(kind, name)
        if package is not None:
            return errors.not_installed(asked, providers.install(package), self._broken())
        asked = f"{kind} {asked}" if asked == name else asked
        return errors.unknown(kind, asked, name, catalog().provided(kind), providers.known(kind), self._broken())

    def _broken(self) -> list[str]:
        return [r.line() for r in self.records() if r.state in BROKEN]

    # ---- activation

    def activate(self, name: str) -> PluginRecord:
        errors.check_name("plugin", name)
        claiming = catalog().claiming("plugin", name)
        if not claiming:
            raise self._nobody("plugin", name, f"the plugin {name}")

        found = self._best(claiming)

        def act(prepared: Prepared) -> PluginRecord:
            self._survey(claiming)
            self._activate(found, "", prepared)
            return self._record(found)

        return self._in_turn(found, act)

    def activate_all(self, *, replacing: bool = False) -> None:
        """Activate all plugins that can be activated, or those with replacements. The states of the others say why not."""
        wanted = [f for f in catalog().found if not replacing or (f.manifest is not None and f.manifest.replacements)]
        for found in wanted:
            if self._record(found).state in ("discovered", "unavailable"):
                with suppress(TurnoutError):  # its record has the reason
                    self._in_turn(found, partial(self._activate, found, ""))

    def _activate(self, found: Found, asked: str, prepared: Prepared) -> None:
        if found.name in self._active:
            return
        if found.name in self._activating or (is_mine(found.name) and found.identity not in prepared):
            raise errors.activating_already(found.name, self._activating)
        verdict = self._judged().verdict(found)
        if verdict[0] != "discovered":
            failed = (e for e in prepared.values() if isinstance(e, (PluginError, DisabledError)))  # of what it requires
            raise _unusable(found, verdict, asked) from next(failed, verdict[3])
        assert found.manifest is not None
        at_hand, self._at_hand = self._at_hand, prepared
        self._activating_in = get_ident()
        self._activating.append(found.name)
        try:
            for name in found.manifest.requires_plugins:
                self._require_for(found, name, asked, prepared)
            self._active[found.name] = self._attempt(found, asked, prepared)
            RUNNING[found.identity] = found
        finally:
            self._activating.pop()
            self._at_hand = at_hand
        ACTIVE.update(_claims(found))

    def _require_for(self, found: Found, name: str, asked: str, prepared: Prepared) -> None:
        try:
            self._activate(self._best(catalog().claiming("plugin", name)), "", prepared)
        except (PluginError, DisabledError) as error:
            verdict = self._judged().verdict(found)
            if verdict[0] == "discovered":
                raise  # the requirement is being activated: its state is not the problem
            raise _unusable(found, verdict, asked) from error

    def _attempt(self, found: Found, asked: str, prepared: Prepared) -> Active:
        try:
            hooks = prepared[found.identity]
            if isinstance(hooks, BaseException):
                raise hooks
            return activate(found, hooks, self._factory)
        except UnavailableError as error:
            verdict: Verdict = ("unavailable", str(error), error.remedy, None)  # the modules that it needs are there
        except (Exception, SystemExit) as error:
            if isinstance(error, RecursionError) and _is_deep():
                raise  # the program's recursion has left no room: the plugin is as good as before
            reason = f"{type(error).__name__}: {error}{_innermost(error.__traceback__)}"
            remedy = f"upgrade {found.distribution}, tell its authors, or name {found.name} in plugins.disable"
            verdict = ("failed", reason, remedy, error)
            if isinstance(error, ConflictError) and (rival := self._rival(found, error.definer)) is not None:
                reason = f"the operator {error.operator} is defined by {' and '.join(sorted((found.name, rival.name)))}"
                verdict = ("conflict", reason, "name one of them in plugins.disable", error)
                with suppress(PluginError):  # of its clean-up: it is deactivated all the same
                    self.deactivate(rival.name, with_dependents=True)
                self._past[rival.identity] = verdict
        self._past[found.identity] = verdict
        self._judge = None
        raise _unusable(found, verdict, asked) from verdict[3]

    def _rival(self, found: Found, definer: str) -> Found | None:
        """The plugin that defined an operator of `found` before it; None if it may: a known package, or what `found` requires."""
        active = self._active.get(definer)
        if active is None or providers.is_known(active.found.distribution):
            return None
        needed = {found.name}
        for each in (found, *(each.found for each in reversed(self._active.values()))):
            if each.name in needed and each.manifest is not None:
                needed.update(each.manifest.requires_plugins)
        return None if definer in needed else active.found

    def _forget_unavailable(self, name: str, seen: set[str]) -> None:
        """Forget that a plugin or a requirement was unavailable: the missing module or device may be there now."""
        seen.add(name)
        for found in catalog().claiming("plugin", name):
            past = self._past.get(found.identity)
            if past is not None and past[0] == "unavailable":
                del self._past[found.identity]
            if past is None or past[0] != "failed":
                self._judge = None  # the judge looks for modules
            for required in found.manifest.requires_plugins if found.manifest is not None else ():
                if required not in seen:
                    self._forget_unavailable(required, seen)

    # ---- deactivation

    def on_deactivation(self, callback: Callable[[Found], object]) -> None:
        """Call `callback(found)` whenever a plugin is about to be deactivated."""
        self._on_deactivation.append(callback)

    def deactivate(self, name: str, *, with_dependents: bool = False) -> None:
        errors.check_name("plugin", name)
        with LOCK:
            if name not in self._active:
                if not catalog().claiming("plugin", name):
                    raise errors.unknown("plugin", f"the plugin {name}", name, catalog().plugin_names(), [], self._broken())
                return
            dependents = self._dependents(name)
            if dependents and not with_dependents:
                raise errors.has_dependents(name, dependents)
            problems = [(each, self._deactivate(each)) for each in [*dependents, name]]
            for each, problem in problems:
                if problem is not None and not isinstance(problem, Exception):
                    raise problem
                if problem is not None:
                    raise errors.deactivation_failed(each, f"{type(problem).__name__}: {problem}") from problem

    def _dependents(self, name: str) -> list[str]:
        """The active plugins that require it, directly or not, newest first."""
        needed = {name}
        found = []
        for each, active in self._active.items():
            assert active.found.manifest is not None
            if needed.intersection(active.found.manifest.requires_plugins):
                needed.add(each)
                found.append(each)
        return found[::-1]

    def _deactivate(self, name: str) -> BaseException | None:
        active = self._active.pop(name)
        try:
            ACTIVE.clear()
            ACTIVE.update(claim for other in self._active.values() for claim in _claims(other.found))
            del RUNNING[active.found.identity]
            for callback in self._on_deactivation:
                callback(active.found)
        finally:  # also after an interrupt: nobody else has what takes it back
            problem = active.deactivate()
        if any(each.instead is not None for each in catalog().claiming("plugin", name)):
            forget_catalog()  # from now on what is installed counts
            self._judge = None
        return problem

    def reload(self, name: str) -> PluginRecord:
        with LOCK:
            if (active := self._active.get(name)) is not None:
                why = _once(active.found, [each.found for each in self._active.values()])
                if why:
                    raise errors.not_reloaded(name, why)
                self.deactivate(name)
            for found in catalog().claiming("plugin", name):
                for module in _modules(found):
                    del sys.modules[module]
            forget_catalog()
            self.reset()
        invalidate_caches()
        return self.activate(name)

    def _configuration_changed(self, names: frozenset[str]) -> None:
        """Decide states again. Active plugins that are disabled now are deactivated with those that require them."""
        if not any(name.startswith("plugins.") for name in names):
            return
        with LOCK:
            self._judge = None
            self._past = {key: past for key, past in self._past.items() if past[0] != "conflict"}
            judge = self._judged()
            _forget_namespaces()
            for name in list(self._active):
                active = self._active.get(name)
                if active is not None and judge.verdict(active.found)[0] in ("disabled", "conflict", "blocked"):
                    try:
                        self.deactivate(name, with_dependents=True)
                    except PluginError as error:  # it is deactivated all the same
                        errors.warn(str(error), providers.is_ours)

    def reset(self) -> None:
        """Forget failures and warnings. The next use reads the environment again."""
        with LOCK:
            self._past.clear()
            self._warned.clear()
            self._judge = None
            _forget_namespaces()


def _forget_namespaces() -> None:
    ACTIVE.difference_update([pair for pair in ACTIVE if pair[0] == "namespace"])


def _claims(found: Found) -> set[tuple[str, str]]:
    """The pairs of a plugin in `ACTIVE`. Its namespaces are not among them, because other plugins may share them."""
    claims = (claim.partition(":") for claim in found.claims)
    return {(kind, name) for kind, _, name in claims if kind != "namespace"}


def _configured(name: str) -> tuple[object, int, str]:
    value = config.current_store().value(name)
    return value.value, value.rank, str(value.origin)


def _default(name: str) -> tuple[object, int, str]:
    return (None if name.startswith("plugins.choose.") else ()), 99, "default"


def _running(found: Found) -> Verdict:
    """The verdict of an active plugin. Something else may be installed in its place since."""
    if found.instead is None:
        return "active", "", "", None
    if not found.instead:
        return "active", "it is not installed any more", "restart", None
    return "active", f"{found.instead} is installed", f'restart, or turnout.plugins.reload("{found.name}")', None


def _modules(found: Found) -> list[str]:
    """The loaded modules of a plugin's package."""
    top = found.entry.partition(":")[0].partition(".")[0].strip()
    return [name for name in list(sys.modules) if f"{name}.".startswith(f"{top}.")]


def _once(found: Found, active: list[Found]) -> str:
    """Why an active plugin cannot be loaded again in this process; "" when it can."""
    assert found.manifest is not None
    if found.manifest.replacements:
        return "it replaces functions of the call path, which is decided once for a process"
    modules = _modules(found)
    compiled = [name for name in modules if isinstance(getattr(sys.modules[name], "__loader__", None), ExtensionFileLoader)]
    if compiled:
        return f"{min(compiled)} is compiled, and a process loads a compiled module once"
    beside = [each.name for each in active if each is not found and each.manifest and each.manifest.module in modules]
    return f"the plugin {beside[0]} runs from the same package" if beside else ""


def _is_deep() -> bool:
    """Whether this is called from so many frames that half of what the recursion limit allows is used."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth > sys.getrecursionlimit() // 2


def _innermost(traceback: TracebackType | None) -> str:
    """The innermost place of a traceback, in brackets."""
    text = ""
    while traceback is not None:
        text, traceback = f" ({traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})", traceback.tb_next
    return text


def _unusable(found: Found, verdict: Verdict, asked: str) -> PluginError | DisabledError:
    state, reason, remedy, _ = verdict
    lines = reason.replace("\n", "\n           ")  # aligned below the label
    return errors.unusable(found.name, state, lines, found.origin, remedy, asked)


def _in_subinterpreter() -> bool:
    """Whether this is not the main interpreter of the process: extension modules may refuse to be loaded there. May import."""
    private = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"  # the public module is 3.14's
    with suppress(ImportError):
        interpreters = import_module(private)
        return bool(interpreters.get_current() != interpreters.get_main())
    return False
