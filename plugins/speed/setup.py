"""Builds the extension module where a C compiler is at hand. Without one the package installs all the same, and says so."""

import numpy
from setuptools import Extension, setup

EXTENSION = Extension(
    "turnout_speed._calls",
    sources=["src/turnout_speed/_calls.c"],
    include_dirs=[numpy.get_include()],
    # Every operation is rounded on its own, as in NumPy: no fused multiply-add.
    extra_compile_args=["-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-missing-field-initializers"],
    optional=True,
)

setup(ext_modules=[EXTENSION])
