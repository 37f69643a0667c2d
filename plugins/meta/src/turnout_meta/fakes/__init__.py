"""Fake tensors: tensors of any device without data.

| module | holds |
|---|---|
| `devices` | the devices of a mode, their backends and generators |
| `mode` | `FakeMode`, which makes fake tensors of real ones |
| `conversion` | a real tensor as a fake one, with its views and aliases |
| `calls` | what a call with fake tensors runs: the fallback of the key Fake, and how its arguments are admitted |
| `values` | kernels of operators whose results depend on values: their sizes are symbols |
| `service` | what core's library asks of the plugin: calls of fake kernels, sizes that depend on data |
| `errors` | the texts of errors |
"""
