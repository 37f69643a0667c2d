"""`gradcheck` and `gradgradcheck`."""
