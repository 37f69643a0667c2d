"""Programs for the device `dask`: `larger_than_memory` and `sweep`. `clusters` starts what computes them."""
