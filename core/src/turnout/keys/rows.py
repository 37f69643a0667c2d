"""Keys as rows of data: the standard functionalities in their order, and the properties that dispatch reads.

Code that resolves a call never asks for a functionality by its name: it reads the properties of the row. Rows of other
functionalities, and all rows of backends, come from the manifests of plugins.
"""

from __future__ import annotations

from collections.abc import Iterable

from turnout.errors import UniverseError, printed
from turnout.keys.universe import AUTOCAST, AUTOGRAD

NEVER = "never"
UNTRACKED = "untracked"
ALWAYS = "always"
PASSES = (NEVER, UNTRACKED, ALWAYS)


class Functionality:
    """One functionality: its place in the order and how its slots behave.

    prefix        the start of its per-backend keys: "" for Dense, "Autograd" for Autograd; None for one key in all
    each_backend  the row stands for one functionality per backend, named `name` + backend (Autocast)
    before/after  the functionalities above and below it, see `order`; "Name?" may be absent; none for a standard one
    passes        when a call passes over a missing slot: NEVER (it is an error), UNTRACKED (when no argument requires a
                  gradient) or ALWAYS
    opt_in        it starts excluded, and takes part only while the state includes `switch`
    included      it is part of the state of a fresh context
    on_tensors    it is part of the key set of every plain tensor
    guards_below  kernels below it that call operators run with all such functionalities excluded, which have done their work
    backend_key   its per-backend keys count as backend keys for the composite aliases
    asks_lines    while it is on, what is recorded keeps the line of the program, for `turnout.user_frame`
    holds_values  it makes a tensor what it is, rather than does something to calls: without it, operators would read other values
    """

    def __init__(
        self, name: str, prefix: str | None = None, *, each_backend: bool = False, before: str | Iterable[str] = (),
        after: str | Iterable[str] = (), passes: str = NEVER, opt_in: bool = False, included: bool = False,
        on_tensors: bool = False, guards_below: bool = False, backend_key: bool = False, holds_values: bool = False,
        asks_lines: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.family = name  # the row with `each_backend` that this one was made from: plugins provide that
        self.prefix = prefix
        self.each_backend = each_backend
        self.before = (before,) if isinstance(before, str) else tuple(before)
        self.after = (after,) if isinstance(after, str) else tuple(after)
        self.passes = passes
        self.opt_in = opt_in
        self.included = included
        self.on_tensors = on_tensors
        self.guards_below = guards_below
        self.backend_key = backend_key
        self.holds_values = holds_values
        self.asks_lines = asks_lines
        self.bit = self.switch = 0

    def takes_part(self, ks: int) -> bool:
        """Whether it takes part in a call with that key set."""
        return bool(ks & self.bit and (ks & self.switch or not self.opt_in))

    def keys_of(self, backends: Iterable[str]) -> dict[str, str]:
        """Its runtime keys, each with its backend: "" for the only key of a functionality that has no key per backend."""
        start = self.name if self.prefix is None else self.prefix
        return {start + backend: backend for backend in backends} if self.each_backend or self.prefix is not None else {start: ""}

    def of(self, backend: str) -> Functionality:
        """The functionality of one backend, for a row with `each_backend`."""
        made = Functionality(self.name + backend, opt_in=self.opt_in, on_tensors=self.on_tensors, passes=self.passes)
        made.family = self.name
        return made


# The standard functionalities, lowest priority first.
# fmt: off
STANDARD: tuple[Functionality, ...] = (
    Functionality("Dense",           prefix="", backend_key=True, on_tensors=True),
    Functionality("BackendSelect",   passes=ALWAYS, included=True),
    Functionality("Fake",            holds_values=True),
    Functionality("Functionalize",   holds_values=True),
    Functionality("Python",          holds_values=True),
    Functionality("ADInplaceOrView", passes=ALWAYS, included=True, on_tensors=True, guards_below=True),
    Functionality("AutogradOther",   passes=UNTRACKED, guards_below=True),
    Functionality(AUTOGRAD,          prefix=AUTOGRAD, passes=UNTRACKED, on_tensors=True, guards_below=True),
    Functionality("Tracer"),
    Functionality(AUTOCAST,          each_backend=True, opt_in=True, on_tensors=True),
    Functionality("Batched",         holds_values=True),
    Functionality("BatchedMode",     holds_values=True),
)
# fmt: on

LOWEST, MIDDLE, HIGHEST = "lowest", "", "highest"
RANKS = (LOWEST, MIDDLE, HIGHEST)

KEY_NAME = r"[A-Z][A-Za-z0-9]*"
DEVICE_NAME = r"[a-z][a-z0-9_]*"


def check_names(owner: str, name: str, device: str) -> None:
    """Raise UniverseError for a backend's name or device string of another form, as a manifest refuses it."""
    check_name(f"{owner}.name", KEY_NAME, name, "CUDA")
    check_name(f"{owner}.device_type", DEVICE_NAME, device, "cuda")


def check_name(what: str, pattern: str, value: object, such: str) -> None:
    """Raise UniverseError for a name of another form."""
    import re  # not loaded by `import turnout`

    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise UniverseError(f"{what}: expected a name such as {such!r}, got {printed(value)}")


class BackendRow:
    """One backend as dispatch sees it.

    device           its device string
    rank             when several backends meet in a call, the highest rank serves it; equal ranks are ordered by name
    functional_only  it cannot write in place, and CompositeExplicitAutogradNonFunctional does not cover it
    dataless         its tensors have no data, and fake kernels serve its key
    adopts           the packages of the objects that it takes as its arrays, as they are
    """

    def __init__(
        self, name: str, *, device: str = "", rank: str = MIDDLE, functional_only: bool = False, dataless: bool = False,
        adopts: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.device = device
        self.rank = rank
        self.functional_only = functional_only
        self.dataless = dataless
        self.adopts = adopts

    @property
    def order(self) -> tuple[int, str]:
        """The sort key, lowest rank first. The order of installation does not matter."""
        return (RANKS.index(self.rank), self.name)
