"""`turnout.autograd.graph.draw`: the graph as a drawing."""
