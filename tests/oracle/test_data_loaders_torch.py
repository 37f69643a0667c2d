"""Loaders of data made from any data set with any options give PyTorch's batches, or refuse what PyTorch refuses."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

DATASETS = (
    "Samples(5)", "Samples(0)", "Stream(5)", "Stream(0)", "D.TensorDataset(t.arange(6), t.ones(6, 2))",
    "D.Subset(Samples(5), [0, 3])",
    "D.ConcatDataset([Samples(2), Samples(3)])", "Samples(2) + Samples(1)", "D.ChainDataset([Stream(2), Stream(3)])", "range(4)",
    "D.StackDataset(a=Samples(3), b=Samples(3))",
)  # fmt: skip
OPTIONS = (
    "batch_size=2", "batch_size=None", "batch_size=0", "batch_size=-1", "batch_size=2.5", "batch_size='a'", "batch_size=True",
    "batch_size=3, drop_last=True", "batch_size=None, drop_last=True", "batch_sampler=[[0, 1], [2]]", "sampler=[1, 0]",
    "sampler=[0], shuffle=True", "batch_sampler=[[0]], batch_size=2", "collate_fn=len, batch_size=2", "num_workers=-1",
    "timeout=-1", "timeout=3", "prefetch_factor=2", "persistent_workers=True", "multiprocessing_context='fork'", "drop_last=True",
    "batch_sampler=D.BatchSampler(D.SequentialSampler(range(5)), 2, True)",
)  # fmt: skip
USES = (
    "list(L)", "len(L)", "[list(L), list(L)]", "(L.batch_size, L.drop_last)", "setattr(L, 'batch_size', 3)",
    "setattr(L, 'dataset', [1])",
    "(setattr(L, 'collate_fn', lambda samples: [samples]), list(L))",
)  # fmt: skip


def ended(library: Any, dataset: str, options: str, use: str) -> Any:
    data = library.utils.data

    class Samples(data.Dataset):
        def __init__(self, count: int) -> None:
            self.count = count

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, i: int) -> Any:
            if not 0 <= i < self.count:
                raise IndexError(i)
            return {"x": library.tensor([i, i + 1]), "y": (float(i), str(i))}

    class Stream(data.IterableDataset):
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Any:
            return iter([library.tensor(i) for i in range(self.count)])

    names = {"t": library, "D": data, "Samples": Samples, "Stream": Stream}
    try:
        loader = eval(f"D.DataLoader({dataset}, {options})", names)
        return plain(eval(use, {**names, "L": loader}), library)
    except Exception as error:  # noqa: BLE001 - the class is compared
        return error


def plain(value: Any, library: Any) -> Any:
    if isinstance(value, library.Tensor):
        return str(value.dtype).split(".")[-1], value.tolist()
    if isinstance(value, dict):
        return {name: plain(each, library) for name, each in value.items()}
    return type(value)(plain(each, library) for each in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dataset", DATASETS)
def test_loaders_are_those_of_torch(dataset: str) -> None:
    found = []
    for options in OPTIONS:
        for use in USES:
            theirs, mine = ended(torch, dataset, options, use), ended(turnout, dataset, options, use)
            alike = isinstance(mine, Exception) if isinstance(theirs, Exception) else mine == theirs
            found += [] if alike else [f"{options}: {use}: {mine!r}, PyTorch: {theirs!r}"]
    assert not found, "\n".join([dataset, *found])
