"""PyTorch's own operator database, run through both libraries.

`bridge` carries values across and finds Turnout's function for each of PyTorch's; `judging` runs the samples of one OpInfo and
says what differs; `known` reads `exceptions.toml`, the committed list of what does not pass. Run by hand:

    python tests/oracle/op_db float32 int64            counts, and what fails but is not listed
    python tests/oracle/op_db float32 --only linalg.   one family, each failure in full
"""
