"""What PyTorch raises for common mistakes: the table names its classes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from common_mistakes import MISTAKES  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mistake", "theirs"), [pytest.param(make, theirs, id=name) for name, make, theirs, _ in MISTAKES])
def test_pytorch_raises_the_class_that_the_table_names(mistake, theirs):
    with pytest.raises(Exception) as caught:
        mistake(torch)
    assert theirs in [each.__name__ for each in type(caught.value).__mro__][:2], caught.value
