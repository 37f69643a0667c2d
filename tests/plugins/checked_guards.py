"""Guards of compiled functions, checked: where one says that a call has a signature, a walk has to say so too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from turnout_tracer.compiling import functions
from turnout_tracer.compiling.signatures import Walk


class Counts:
    """How often a signature was found by a walk, and how often by a guard."""

    def __init__(self) -> None:
        self.walks = self.hits = 0


@contextmanager
def checked_guards() -> Iterator[Counts]:
    """A block in which each guard that fits is compared with a walk over the same call."""
    counts = Counts()

    class Checked(Walk):
        def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any, code: Any) -> None:
            counts.walks += 1
            self.function = function
            super().__init__(function, args, kwargs, code)

        def guard(self, slots: list[int]) -> Any:
            made, before = super().guard(slots), (len(self._code.names), self._code.computed)
            if made is None:
                return None

            def run(args: Any, kwargs: Any) -> Any:
                found = made(args, kwargs)
                if found is not None:
                    counts.hits += 1
                    walk = Walk(self.function, args, kwargs, self._code)
                    assert not walk.reason
                    if before == (len(self._code.names), self._code.computed):  # else keys are longer by now
                        assert walk.key == self.key
                    expected = walk.found(slots)
                    for ours, theirs in zip(found[:2], expected[:2], strict=True):
                        assert len(ours) == len(theirs)
                        assert all(a is b for a, b in zip(ours, theirs, strict=True))
                    for (owner, name), (other, its) in zip(found[2], expected[2], strict=True):
                        assert owner is other
                        assert name == its
                return found

            return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "Walk", Checked)
        yield counts
