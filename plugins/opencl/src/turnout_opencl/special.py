"""Element-wise kernels of special functions; most are of the program `special`."""

from __future__ import annotations

from turnout_opencl.arrays import ClArray
from turnout_opencl.pointwise import binary, row, run_map, unary


def polygamma(n: int, self: ClArray, out: ClArray) -> None:
    """The n-th derivative of digamma."""
    if n == 0:
        run_map("digamma", out, self)
    else:
        run_map("polygamma", out, self, w=n)


# fmt: off
KERNELS = {
    **{f"{name}.out": row(unary(name)) for name in ("erfc", "lgamma", "digamma", "erfinv", "i0")},
    **{f"special_{name}.out": row(unary(name)) for name in ("i0e", "i1", "i1e", "erfcx", "log_ndtr", "ndtri")},
    **{f"special_modified_bessel_{name}.out": row(unary(name)) for name in ("i0", "i1")},
    **{f"special_{name}.out": row(binary(name)) for name in ("zeta", "xlog1py")},
    "special_entr.out": row(unary("entropy")),
    "polygamma.out":    row(polygamma),
}
# fmt: on
