"""The device `jax`: tensors are arrays of jax.numpy, on all devices that JAX has.

| module | holds |
|---|---|
| `plugin` | activation |
| `backend` | what a tensor's values are, and when JAX may use 64 bits |
| `kernels` | the table: the rows of every array module without writes, and convolutions by XLA's own operation |
| `engine` | the engine `xla` of `turnout.compile`: a graph as one program of XLA |
| `cache` | compiled programs, in a folder of the user's |
"""
