"""Constants under PyTorch's names: numbers, and the names of layouts and memory formats."""

from __future__ import annotations

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

newaxis = None
contiguous_format = "contiguous_format"
preserve_format = "preserve_format"
channels_last = "channels_last"
channels_last_3d = "channels_last_3d"
strided = "strided"
