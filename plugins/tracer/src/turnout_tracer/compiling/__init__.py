"""`turnout.compile`: a graph for each signature of a function, given to an engine.

| module | holds |
|---|---|
| `errors` | error classes and texts |
| `reach` | what a function's code names: globals, attributes, modules |
| `signatures` | one walk over arguments and what a function can reach: a key, and the tensors |
| `guards` | a walk as one function that reads the same again |
| `capture` | the first call, which runs eagerly and is recorded |
| `outcomes` | what a call leaves behind: results, `.grad`, places that hold another tensor |
| `memory_order` | graphs in which `as_strided` means the same whatever strides an engine's values have |
| `lowering` | the record as a graph without writes, and what its results stand for |
| `optimiser` | dead code, common subexpressions, constants |
| `engines` | which engine compiles a graph |
| `eager` | the engine that runs the operators one by one |
| `programs` | a compiled graph, called: inputs, what is written back, results |
| `functions` | the compiled function with its cache |
| `dynamic` | one trace for many sizes |
| `gradients` | a call that records, as one node whose backward is compiled |
"""
