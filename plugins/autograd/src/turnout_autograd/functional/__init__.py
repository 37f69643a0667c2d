"""`turnout.autograd.functional`, on top of `transforms`."""
