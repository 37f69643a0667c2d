"""What the windows of turnout.signal say about a call that they refuse."""

from __future__ import annotations

from rows import refused

test_a_window_is_refused = refused("""
turnout.signal.windows.hann(4, layout="sparse_coo")
    ArgumentError: hann: layout must be turnout.strided, got 'sparse_coo'
turnout.signal.windows.hann(-1)
    ArgumentError: hann: M must not be negative, got -1
turnout.signal.windows.exponential(4, tau=0)
    ArgumentError: exponential: tau must be positive, got 0
turnout.signal.windows.kaiser(4, beta=-1)
    ArgumentError: kaiser: beta must not be negative, got -1
turnout.signal.windows.general_cosine(4, a=[])
    ArgumentError: general_cosine: a must not be empty
""")
