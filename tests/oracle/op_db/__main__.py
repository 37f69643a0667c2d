"""Counts, and each failure that is not listed; `--only TEXT` limits the OpInfos, `--all` shows listed failures too."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from op_db import judging, known
from op_db.checks import CHECKS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dtypes", nargs="*", default=["float32"])
    parser.add_argument("--only", default="", help="a part of the name")
    parser.add_argument("--check", default="forward", choices=sorted(CHECKS))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--slow", type=float, default=5.0, help="name the OpInfos that take longer, in seconds")
    options = parser.parse_args()
    unexpected = 0
    for name in options.dtypes:
        infos = [i for i in CHECKS[options.check].infos(name) if options.only in judging.label(i)]
        passed = 0
        for info in infos:
            start = time.perf_counter()
            verdict = CHECKS[options.check].verdict(info, getattr(torch, name))
            spent = time.perf_counter() - start
            listed = known.reason(options.check, judging.label(info), name)
            passed += not verdict
            if verdict and (options.all or not listed):
                print(f"{judging.label(info)} {name}: {verdict}")
                unexpected += not listed
            if not verdict and listed:
                print(f"{judging.label(info)} {name}: passes, though listed: {listed}")
            if spent > options.slow:
                print(f"{judging.label(info)} {name}: took {spent:.1f} s")
        print(f"{options.check} {name}: {passed} of {len(infos)} pass", flush=True)
    return min(unexpected, 1)


if __name__ == "__main__":
    raise SystemExit(main())
