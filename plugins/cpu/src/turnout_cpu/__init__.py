"""The CPU backend, on NumPy: `plugin` (activation), `backend` (memory), `kernels` (the table), `pool` (threads).

The rows are those of `turnout_arrays` on NumPy, such as `mm.out` in its `matrix_products`, but for those that are quicker here:
`blocks` and `rows` share work among threads, `halves` has two-byte floats, `decompositions` and `special` call SciPy, and
`sorting`, `scattering` and `normalisation` have what their names say.
"""
