"""The public module of each python_module, in which users find its functions."""

# python_module -> the public module.
HOMES = {
    "": "turnout", "nn": "turnout_aten.generated.nn_functional", "linalg": "turnout.linalg", "fft": "turnout.fft",
    "special": "turnout.special",
}  # fmt: skip
# The same, where the functions of a generated module are public in another one.
PUBLIC = {**HOMES, "nn": "turnout.nn.functional"}
