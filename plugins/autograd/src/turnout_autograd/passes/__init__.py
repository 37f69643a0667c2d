"""`backward` and `grad`, on top of `engine`."""
