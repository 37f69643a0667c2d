"""A profiler for Turnout. Start at `measuring`: the one kernel that every operator goes through.

`measuring`  the fallback at the key Profiler, and what it knows of the call inside which a call is made
`profiles`   the public module `turnout.profiler`: where times are kept, and how a block is profiled
`tables`     a profile as text
`charts`     a profile as an SVG picture
`plugin`     activation, and the report at the end of the program
"""
