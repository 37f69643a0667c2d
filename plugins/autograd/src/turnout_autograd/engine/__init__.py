"""The tape and the sweep over it.

`nodes` is what a call records, `saved_tensors` what a node keeps, `sweep` the backward pass, `targets` a sweep that ends early,
`accumulation` and `delivery` the end at a leaf. Start at `nodes` and `sweep`.
"""
