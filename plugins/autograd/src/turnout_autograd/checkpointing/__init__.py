"""Functions whose saved tensors are computed again in the backward pass, instead of being kept."""
