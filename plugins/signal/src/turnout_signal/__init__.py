"""`turnout.signal`, written with the functions of turnout-aten: `namespace/windows` has the window functions."""
