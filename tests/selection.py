"""Which tests a run takes: all, the fast selection of `make test`, what is left of all of them, or what the call path may change.

A test belongs to the fast selection if the seconds of CPU time that were recorded for it are within the limit of its folder and
no row of `LEFT_OUT` names it. `KEPT` has the slow tests without which a mechanism would not be tried. The recorded seconds
stand in `seconds.tsv`, which `make seconds` writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
RECORD = TESTS / "seconds.tsv"
BUDGET = 380.0  # seconds of CPU time that the fast selection may take, added up over all workers
LISTED = 0.1  # seconds from which a function or a test has a row of its own in the record

# Folder or file -> the most seconds that one of its tests takes in the fast selection. The longest name counts.
LIMITS = {
    "tests/core/": 0.6, "tests/aten/": 0.6, "tests/conformance/": 0.25, "tests/plugins/": 0.1, "tests/integration/": 0.1,
    "tests/conformance/test_dask.py": 0.04, "tests/conformance/test_sample_sets.py": 0.04,
    "tests/conformance/test_other_devices.py": 0.2,
}  # fmt: skip

# What the fast selection leaves out however quick it is: files, the tests of them (a pattern of their names), and the reason.
LEFT_OUT: tuple[tuple[str, str, str], ...] = (
    ("tests/conformance/test_gradcheck.py", ".*", "mutants"),
    ("tests/conformance/test_tangent_mutants.py", ".*", "mutants"),
    ("tests/conformance/test_checked_operators.py", ".*", "planted faults"),
    (
        "tests/conformance/test_functionalities_from_outside.py",
        "test_counters_count_each_call_of_an_operator_once.*",
        "one operator is counted all the same",
    ),
    ("tests/conformance/test_gradients.py", r"test_gradients_are_what_differences_say\[gradgradcheck-.*", "second gradients"),
    ("tests/conformance/test_vmap.py", "test_two_levels_.*|test_under_autocast_.*", "one level of vmap, alone, is enough"),
    ("tests/conformance/test_replays.py", "test_a_replay_gives_the_gradients_.*", "the values of a replay are enough"),
    (
        "tests/conformance/test_sample_sets.py",
        r"test_results_are_near_exact_ones\[(large|reductions|lines|products|convolutions|sorting|strided|halves)-.*",
        "each compiles programs of its own",
    ),
    ("tests/integration/test_docs_names.py", ".*", "every source is read"),
    ("tests/integration/test_types_for_users.py", ".*", "type checkers take seconds to start"),
    ("tests/integration/test_conformance_kit.py", "test_a_(backend|functionality)_with_a_mistake_.*", "mutants"),
    ("tests/plugins/test_cuda_calls.py", "test_a_(plan|write_in_place)_gives_the_bits_.*", "on cuda the launches are enough"),
    ("tests/plugins/test_cuda_streams.py", "test_everything_happens_on_the_device_.*", "on cuda one device is enough"),
    ("tests/plugins/test_host_fallback.py", "test_a_backend_without_kernels_.*", "a grid of its own"),
    (
        "tests/conformance/test_other_devices.py",
        r"test_(vmap|a_replay|special_values|out_form|in_place|gradients|autocast|operator_gives_what_cpu_gives\[.*column-major).*",
        "on opencl the values of the functional form, in two layouts, are enough",
    ),
)

# What runs with `--selection whole` alone.
LAYOUTS = r"test_operator_gives_what_cpu_gives\[.*-(column-major|spread)\]"
OTHER_FORMS = (
    r"test_(in_place_form|out_form|gradients_are|vmap_gives|a_replay_gives|autocast_computes|operators_refuse"
    r"|special_values|the_k).*"
)
ON_DEMAND = (("tests/conformance/test_dask.py", f"{LAYOUTS}|{OTHER_FORMS}", "a call on dask builds a graph"),)

# Slow tests that the fast selection takes, each the quickest that tries its mechanism: file, pattern of names, mechanism.
KEPT: tuple[tuple[str, str, str], ...] = (
    ("tests/plugins/test_autograd_generation.py", "test_all_problems_.*", "what the generator says of its entries"),
    ("tests/integration/test_cli_screen.py", "test_what_the_encoding_of_the_output_lacks_is_escaped", "encodings"),
    (
        "tests/plugins/test_cuda_kernels.py",
        r"test_results_are_near_.*\[(cummax|max_pool2d_with_indices)\]",
        "running extremes, windows",
    ),
    ("tests/plugins/test_decisions.py", ".*", "operators about which a plugin has not decided"),
    (
        "tests/plugins/test_compile.py",
        r"test_random_programs_.*|test_operator_cases_.*\[11\]",
        "graphs without writes, bit for bit",
    ),
)

# Files that the compiled call path may change: core, aten, the operator cases, and the suites of plugins that are about calls, as
# kernels, bindings, errors, gradients and programs drawn at random. They run once more without it; all others run once.
CALLS = (
    "tests/core/*", "tests/aten/*",
    *(
        f"tests/conformance/test_{name}.py"
        for name in ("forward", "gradients", "promises", "replays", "transforms_operators", "vmap")
    ),
    *(
        f"tests/plugins/test_{name}.py"
        for name in (
            "autograd_engine", "autograd_keys", "autograd_modes", "autograd_order", "autograd_programs", "autograd_writes",
            "autocast_casts", "bad_arguments", "bad_input", "batched_vmap", "devices", "fake_programs", "forward_mode",
            "functional_backends", "functionalize_programs", "guards_of_tensors", "indexing_programs",
            "kernel_errors", "numbers*", "pointwise", "prepared_plans", "random_files", "repeated_calls",
            "row_contract", "speed*", "steps_at_once", "structured_variants", "tensor_views", "tracer_sizes",
            "transform*",
        )
    ),
    "tests/integration/test_small_calls.py", "tests/integration/test_registrations_and_calls_at_the_edges.py",
)  # fmt: skip


@dataclass
class Record:
    """The seconds of an earlier run: those of files, of functions and of single tests, each with the number of tests."""

    rows: dict[str, tuple[int, float]] = field(default_factory=dict)
    fast: tuple[int, float] = (0, 0.0)

    def rows_of(self, file: str) -> list[str]:
        """The names of a file's rows."""
        return [name for name in self.rows if name.partition("::")[0] == file]

    def seconds(self, name: str) -> float | None:
        """What a test took, or on average those of its function or file that have no row; None if its file has none."""
        function, file = name.partition("[")[0], name.partition("::")[0]
        for key in (name, function, file):
            if key in self.rows:
                count, total = self.rows[key]
                return total / count if count else 0.0
        return None


@cache
def record(path: Path = RECORD) -> Record:
    """The record as it was written. The rows of a function and a file count only what has no row of its own."""
    made = Record()
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        count, total, name = line.split("\t")
        if name == "fast selection":
            made.fast = int(count), float(total)
        else:
            made.rows[name] = int(count), float(total)
    return made


def write(measured: dict[str, float], path: Path = RECORD) -> None:
    """Write the record of a run: test -> seconds."""
    rows: dict[str, list[float]] = {}
    functions: dict[str, dict[str, float]] = {}
    for name, seconds in measured.items():
        functions.setdefault(name.partition("[")[0], {})[name] = seconds
    for function, tests in functions.items():
        slow = {name: s for name, s in tests.items() if s >= LISTED and name != function}
        rows.update({name: [1, s] for name, s in slow.items()})
        rest = [s for name, s in tests.items() if name not in slow]
        key = function if sum(rest) >= LISTED else function.partition("::")[0]
        row = rows.setdefault(key, [0, 0.0])
        row[0] += len(rest)
        row[1] += sum(rest)
        rows.setdefault(function.partition("::")[0], [0, 0.0])
    made = Record({name: (int(count), total) for name, (count, total) in rows.items()})
    fast = [s for name, s in measured.items() if is_fast(name, made)]
    lines = [f"{len(fast)}\t{sum(fast):.2f}\tfast selection\n"]
    lines += [f"{count}\t{total:.2f}\t{name}\n" for name, (count, total) in sorted(made.rows.items())]
    path.write_text("".join(lines), encoding="utf-8")
    record.cache_clear()


def matches(rows: Iterable[tuple[str, str, str]], name: str) -> bool:
    """Whether a row names a test. Its file may be a pattern of the shell."""
    file, _, test = name.partition("::")
    return any(fnmatchcase(file, of) and re.fullmatch(tests, test) for of, tests, _ in rows)


def is_fast(name: str, seconds: Record) -> bool:
    """Whether a test belongs to the fast selection. One that was never measured does."""
    limit = max((len(start), most) for start, most in LIMITS.items() if name.startswith(start))[1]
    return matches(KEPT, name) or ((seconds.seconds(name) or 0.0) <= limit and not matches(LEFT_OUT, name))


def is_of_calls(name: str) -> bool:
    """Whether the call path may change what a test says."""
    return any(fnmatchcase(name.partition("::")[0], pattern) for pattern in CALLS)


def may_have(file: str, chosen: str) -> bool:
    """Whether a file may have tests of a selection. What is not collected costs neither time nor memory."""
    if chosen in ("calls", "sweeps"):
        return is_of_calls(file) if chosen == "calls" else is_of_sweeps(file)
    if chosen == "fast":
        return not any(fnmatchcase(file, of) and tests == ".*" for of, tests, _ in LEFT_OUT) or any(of == file for of, *_ in KEPT)
    if chosen == "rest":
        rows = record().rows_of(file)
        return any(fnmatchcase(file, of) for of, *_ in LEFT_OUT) or any(not is_fast(name, record()) for name in rows)
    return True


def has_none_of(function: str, chosen: str) -> bool:
    """Whether rows of the tables leave out all tests of a function, whatever its parameters are: then none of them is made."""
    if chosen in ("whole", "sweeps") or any(fnmatchcase(function.partition("::")[0], of) for of, *_ in KEPT):
        return False
    rows = [row for row in (*ON_DEMAND, *(LEFT_OUT if chosen == "fast" else ())) if row[1].endswith(".*")]
    return matches(rows, function) and matches(rows, f"{function}[")  # a pattern that takes the bracket takes what follows


@cache
def is_of_sweeps(file: str) -> bool:
    """Whether a file has random programs that `make sweeps` runs in large numbers."""
    return "many=" in (TESTS.parent / file).read_text(encoding="utf-8")


def is_on_demand(name: str) -> bool:
    """Whether a test runs only where the whole of everything is asked for."""
    return matches(ON_DEMAND, name)


SELECTIONS: dict[str, Callable[[str], bool]] = {
    "whole": lambda name: True,
    "all": lambda name: not is_on_demand(name),
    "fast": lambda name: not is_on_demand(name) and is_fast(name, record()),
    "rest": lambda name: not is_on_demand(name) and not is_fast(name, record()),
    "sweeps": lambda name: is_of_sweeps(name.partition("::")[0]),
    "calls": lambda name: not is_on_demand(name) and is_of_calls(name),
}
