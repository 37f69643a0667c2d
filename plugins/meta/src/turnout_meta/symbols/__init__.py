"""Sizes that depend on values: `expressions` (polynomials in symbols), `scope` (symbols and what is known of them), `sizes` (`SymInt`)."""
