"""The functionality Batched: `mapping` (vmap), `values` (what a batched tensor is), `levels` (active vmaps, lowering), `kernels`
(what stands at the key for each operator), `rules` (the table of batching rules), `randomness` (BatchedMode).

The one idea: a wrapper hides one dim of its value. The kernel at Batched peels the innermost level, and a rule does the call on
the values, by calling operators; so everything below, gradients included, only ever sees the values.
"""
