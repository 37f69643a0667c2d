"""Numbers that formulas are written with."""

import math
from math import pi, sqrt

INF = math.inf
NAN = math.nan
LOG_2 = math.log(2)
LOG_10 = math.log(10)
DEGREE = pi / 180
HALF_SQRT_PI = sqrt(pi) / 2
SQRT_2_PI = sqrt(2 * pi)
scalar_log = math.log
