"""A kit that proves a backend or a functionality: a pytest plugin, the operator cases, and the tests that run them.

`cases` is the one table of operator cases. `plugin` has the options, and says which devices and functionalities are proved.
`choosing` takes a part of the tests, `expected` reads and writes the file of expected failures, `observing` notes which kernels
ran, `report` writes the page and `badge` the file for plugin directories. The tests are in `test_backend_operators`,
`test_backend_device`, `test_backend_plugin` and `test_functionality`. They share `making` (tensors in several layouts),
`comparing` (the results of two calls), `accuracy` (how near results are to exact ones), `batches` (calls under vmap),
`pairwise` (some of all combinations), `replays` (traced calls), `functionality` (how one is switched on) and `lifecycle`
(activation in a process of its own).

Start in the README: `pytest --pyargs turnout_conformance --turnout-backend=acme`.
"""
