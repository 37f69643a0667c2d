"""How far element-wise results may be from exact ones, in units in the last place, by operator. Others keep to `DEFAULT`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The largest distance from the exact number.

    most   of float32
    wide   of float64; as many as of float32 where it is None
    short  of floats of two bytes, which are computed in float32 and rounded once
    floor  a number nearer to 0 has units of this one: near a zero, the spacing of the argument decides
    signs  whether zeros must have the same sign
    """

    most: float = 2.0
    wide: float | None = None
    short: float = 0.51
    floor: float = 0.0
    signs: bool = True

    def of(self, dtype: str) -> float:
        """The limit for a dtype."""
        if dtype in ("float16", "bfloat16"):
            return self.short
        return self.most if dtype == "float32" or self.wide is None else self.wide


DEFAULT = Limit()

# fmt: off
LIMITS: dict[str, Limit] = {
    # 1 + tanh, or 1 + erf, near -1: units of an argument near 1
    "gelu": Limit(4, floor=1.0), "gelu_backward": Limit(8, floor=1.0), "silu_backward": Limit(4, floor=1.0),
    "sigmoid_backward": Limit(4), "tanh_backward": Limit(4, floor=1.0),
    "cosh": Limit(4), "sinh": Limit(4), "tan": Limit(4), "mish": Limit(4),
    "sinc": Limit(floor=1.0, signs=False),
    # The sign of a zero is not said.
    "special_entr": Limit(signs=False), "erfinv": Limit(wide=4, signs=False),
    **dict.fromkeys(("fmax", "fmin", "max", "min", "amax", "amin"), Limit(signs=False)),
    # Series and rational functions in float64
    "i0": Limit(wide=16), "special_i0e": Limit(wide=16), "special_i1": Limit(wide=16), "special_i1e": Limit(wide=16),
    "special_modified_bessel_i0": Limit(wide=16), "special_modified_bessel_i1": Limit(wide=16),
    "special_erfcx": Limit(wide=32), "special_log_ndtr": Limit(wide=64), "special_ndtri": Limit(wide=4),
    "lgamma": Limit(wide=16, floor=1.0), "digamma": Limit(wide=16, floor=1.0),
    "special_zeta": Limit(wide=4), "polygamma": Limit(wide=8, floor=1.0),
    "logit": Limit(8),
}
# fmt: on
