"""`turnout.masked`, written with the operators of turnout-aten: all of it is in `namespace`."""
