"""`turnout.random`: the default generators of random numbers."""

from turnout_aten.tensor.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
__dir__ = __all__.copy
