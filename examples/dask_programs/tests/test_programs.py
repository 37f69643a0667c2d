"""Both programs, small, on clusters of their own."""

from __future__ import annotations

import json

import pytest

from turnout_dask_programs import larger_than_memory, sweep

pytestmark = pytest.mark.filterwarnings("ignore:Creating scratch directories")  # as Dask says on a busy machine


def test_the_regression_and_the_components_are_found_chunk_by_chunk(capsys: pytest.CaptureFixture[str]) -> None:
    larger_than_memory.main(["--gigabytes", "0.04", "--chunk", "4", "--workers", "1", "--steps", "3", "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["chunks"], found["rows"]) == (10, 10 * 19607)
    assert found["mean"] == pytest.approx(1, abs=0.02)  # what the files are made with
    assert found["shares"] == sorted(found["shares"], reverse=True)
    assert 0.85 < sum(found["shares"]) < 0.99
    assert found["losses"][0] == pytest.approx(0.6931, abs=1e-3)  # log 2: weights of zero decide nothing
    assert found["losses"][-1] < 0.3
    assert found["accuracy"] > 0.85
    assert "Dask's dashboard: http://127.0.0.1:" in err
    assert "passes over the data" in err


def test_a_sweep_finds_the_same_losses_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    sweep.main(["--rates", "3", "--steps", "8", "--workers", "1", "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["rates"] == pytest.approx([0.4 / 3, 0.8 / 3, 0.4])
    assert found["vmap"] == pytest.approx(found["futures"], rel=1e-4)
    assert found["vmap"] == sorted(found["vmap"], reverse=True)
    assert "Dask's dashboard: http://127.0.0.1:" in err
