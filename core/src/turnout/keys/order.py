"""Where functionalities stand: the order of a chain, with others placed in it by their anchors.

The one idea: each functionality that is added hangs on one anchor, above or below it, and the order is that tree read from the
left. Hanging another one on it moves nothing. So the order depends on what is there, and not on what came first.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from turnout.keys.rows import Functionality

Anchors = dict[str, bool]  # anchor -> whether it may be absent


def anchors(functionality: Functionality) -> tuple[Anchors, Anchors]:
    """What it stands after and before."""
    after, before = (
        {name.rstrip("?"): name.endswith("?") for name in names} for names in (functionality.after, functionality.before)
    )
    return after, before


class Placing:
    """The order of `chain` with `added` placed by their anchors.

    A functionality stands directly above the highest of `after`, which must be below the lowest of `before`, or without `after`
    directly below the lowest of `before`. Several at one place are ordered by name, lowest first. An anchor "Name?" that is
    absent does not count. Nor does one that closes a circle, or that contradicts the others.

    rows      in their order, lowest first
    problems  the functionalities without a place, which are omitted: name -> why
    places    name -> why it stands there, in words, for what was added
    notes     name -> which of its anchors do not count, and why
    """

    def __init__(self, chain: Sequence[Functionality], added: Mapping[str, Functionality]) -> None:
        self._roots = [row.name for row in chain]
        self._added = dict(sorted(added.items()))
        self._after: dict[str, Anchors] = {}
        self._before: dict[str, Anchors] = {}
        for name, row in self._added.items():
            self._after[name], self._before[name] = anchors(row)
        self.problems: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self._above: dict[str, list[str]] = {}
        self._below: dict[str, list[str]] = {}
        self._remove_circles()
        self._remove_absent()
        self._drop_soft_circles()
        placed = {name: self._edges(name, soft=True) for name in self._added if name not in self.problems}
        for name in TopologicalSorter(placed).static_order():
            self._hang(name)
        every = {**{row.name: row for row in chain}, **self._added}
        self.rows = [every[name] for name in self._names(self._roots)]
        self._tell_ties()

    # ---- what has no place

    def _edges(self, name: str, *, soft: bool) -> list[str]:
        every = [*self._after[name].items(), *self._before[name].items()]
        return [anchor for anchor, may in every if anchor in self._added and anchor not in self.problems and (soft or not may)]

    def _reached(self, start: str, *, soft: bool) -> set[str]:
        seen: set[str] = set()
        waiting = self._edges(start, soft=soft)
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += self._edges(name, soft=soft)
        return seen

    def _in_circles(self, *, soft: bool) -> dict[str, set[str]]:
        """What each reaches along its anchors; empty where there is no circle, so that long chains cost nothing."""
        placed = [name for name in self._added if name not in self.problems]
        edges = {name: self._edges(name, soft=soft) for name in placed}
        if not any(edges.values()):
            return {}
        try:
            TopologicalSorter(edges).prepare()
        except CycleError:
            return {name: self._reached(name, soft=soft) for name in placed}
        return {}

    def _remove_circles(self) -> None:
        reached = self._in_circles(soft=False)
        for name, seen in reached.items():
            if name in seen:
                circle = sorted(each for each in seen if name in reached[each])
                self.problems[name] = f"functionalities are placed in a cycle: {', '.join(circle)}"

    def _remove_absent(self) -> None:
        """Remove what is placed by something that does not exist, and then what is placed by that."""
        found = True
        while found:
            found = False
            known = {*self._roots} | (self._added.keys() - self.problems.keys())
            for name in self._added.keys() - self.problems.keys():
                for word, given in (("before", self._before[name]), ("after", self._after[name])):
                    absent = [anchor for anchor, may in given.items() if anchor not in known and not may]
                    if absent:
                        found = True
                        there = ", ".join(self._roots)
                        text = f"functionality {name} is placed {word} {absent[0]}, which does not exist; there are {there}"
                        self.problems.setdefault(name, text)
        for each in (*self._after.values(), *self._before.values()):
            for anchor in [anchor for anchor in each if anchor not in known]:
                del each[anchor]

    def _drop_soft_circles(self) -> None:
        reached = self._in_circles(soft=True)
        for name in reached:
            for given in (self._after[name], self._before[name]):
                dropped = [a for a, may in given.items() if may and (a == name or name in reached.get(a, ()))]
                self._drop(name, given, dropped, "it closes a circle")

    def _drop(self, name: str, given: Anchors, dropped: Iterable[str], why: str) -> None:
        for anchor in dropped:
            del given[anchor]
            text = f"{anchor}? does not count for the place of {name}: {why}"
            self.notes[name] = "; ".join(filter(None, (self.notes.get(name), text)))

    # ---- the tree

    def _names(self, roots: Iterable[str]) -> list[str]:
        """The tree below some names, read from the left."""
        found: list[str] = []
        waiting: list[tuple[str, bool]] = [(name, False) for name in reversed(list(roots))]
        while waiting:
            name, is_read = waiting.pop()
            if is_read:
                found.append(name)
                continue
            above, below = self._above.get(name, []), self._below.get(name, [])
            waiting += [*((each, False) for each in reversed(above)), (name, True), *((each, False) for each in reversed(below))]
        return found

    def _hang(self, name: str) -> None:
        after, before = self._after[name], self._before[name]
        if gone := [anchor for anchor in (*after, *before) if anchor in self.problems]:
            for given in (after, before):
                for anchor in [a for a in gone if a in given]:
                    if not given.pop(anchor):
                        self.problems[name] = f"functionality {name} is placed by {anchor}, which has no place"
                        return
        if len(after) + len(before) == 1:
            self._put(name, next(iter(after or before)), self._above if after else self._below)
            return
        at = {each: i for i, each in enumerate(self._names(self._roots))}.__getitem__
        if after and before and max(map(at, after)) >= min(map(at, before)):
            for given in (after, before):
                self._drop(name, given, [anchor for anchor, may in given.items() if may], "it contradicts the other anchors")
        if not after and not before:
            self.problems[name] = f"functionality {name} has no anchor that counts"
            return
        highest, lowest = max(after, key=at, default=""), min(before, key=at, default="")
        if highest and lowest and at(highest) >= at(lowest):
            why = f"cannot stand after {highest} and before {lowest}: {lowest} is the lower one"
            self.problems[name] = f"functionality {name} {why}"
        elif highest and not (lowest and lowest in self._names(self._above.get(highest, []))):
            self._put(name, highest, self._above)
        else:  # also where what stands directly above `highest` must be above this one
            self._put(name, lowest, self._below)

    def _put(self, name: str, anchor: str, side: dict[str, list[str]]) -> None:
        insort(side.setdefault(anchor, []), name)
        self.places[name] = f"directly {'above' if side is self._above else 'below'} {anchor}"

    def _tell_ties(self) -> None:
        for names in (*self._above.values(), *self._below.values()):
            shown = " and ".join(names) if len(names) < 9 else f"{len(names)} functionalities"
            for name in names if len(names) > 1 else ():
                self.places[name] += f", where {shown} are ordered by name"
