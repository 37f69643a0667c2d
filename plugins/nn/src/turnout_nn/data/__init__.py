"""`turnout.utils.data`: data sets, the order in which they are read, and loaders that make batches of them.

Start with `loader`. It asks a sampler for indices, reads the data set at them, here or in worker processes (`workers`), and
makes one batch of what it read (`batches`).
"""

from turnout_nn.data.batches import default_collate, default_convert
from turnout_nn.data.datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)  # fmt: skip
from turnout_nn.data.loader import DataLoader
from turnout_nn.data.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)  # fmt: skip
from turnout_nn.data.workers import get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
    "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
