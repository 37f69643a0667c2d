"""`opcheck` on operators with planted faults, on mutants of correct ones, and on correct ones."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import turnout
from faults.correct import CORRECT
from faults.model import Spec, installed
from faults.mutators import mutants
from faults.planted import PLANTED, Fault
from random_programs.faulty_operators import drawn, found_by
from turnout import library

# What no check finds, and why.
NOT_FOUND = {
    "near: reads memory in row-major order": "the tolerance is so wide that the values in another order give the same result",
    "counted: passes a value through a global": "the value is that of one integer, for which no other is known to be accepted",
}


@pytest.fixture(autouse=True)
def _modes_are_put_back():
    before = turnout.is_grad_enabled(), turnout.get_default_dtype()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, in the kernels of the corpus
        warnings.simplefilter("ignore", UserWarning)
        yield
    turnout.set_grad_enabled(before[0])
    turnout.set_default_dtype(before[1])


def test_the_corpus_is_large_enough():
    assert len(PLANTED) >= 60
    assert len(CORRECT) >= 30


@pytest.mark.parametrize("fault", PLANTED.values(), ids=str)
def test_a_planted_fault_is_found_by_a_check_that_names_it(fault: Fault):
    with installed(fault.spec) as op:
        args, kwargs = fault.spec.inputs()
        report = library.opcheck(op, args, kwargs, raise_exception=False, test_utils=fault.check)
    assert [each.check for each in report.found] == [fault.check]
    assert fault.says in report.found[0].problem.text
    assert report.found[0].problem.fix


@pytest.mark.parametrize("spec", CORRECT.values(), ids=str)
def test_a_correct_operator_raises_no_alarm(spec: Spec):
    with installed(spec) as op:
        args, kwargs = spec.inputs()
        report = library.opcheck(op, args, kwargs)
    assert report.found == []


def test_mutants_of_correct_operators_are_found(seeds):
    missed = []
    for seed, mutant in drawn(seeds(60)):
        if not found_by(mutant) and str(mutant) not in NOT_FOUND:
            missed.append(f"{mutant} (--seed {seed} --programs 1)")
    assert missed == []


def test_what_is_listed_as_not_found_is_not_found():
    listed = [mutant for _, mutant in drawn(range(len(mutants()))) if str(mutant) in NOT_FOUND]
    assert {str(mutant) for mutant in listed} == set(NOT_FOUND)
    assert [found_by(mutant) for mutant in listed] == [""] * len(NOT_FOUND)


def test_there_are_at_least_2000_mutants():
    assert len({str(mutant) for mutant in mutants()}) >= 2000


def test_the_note_has_the_figures_of_the_corpus():
    note = Path(__file__).parents[2] / "docs" / "notes" / "0021-how-operators-are-checked.md"
    total = len(mutants())
    words = " ".join(note.read_text().split())
    assert f"all {len(PLANTED)} planted faults are found, with no alarm on {len(CORRECT)} correct operators" in words
    assert f"{total - len(NOT_FOUND):,} of {total:,} mutants. The other {len(NOT_FOUND)} are listed" in words
