"""`autograd.Function`, and gradient rules of custom operators, which are made of it."""
