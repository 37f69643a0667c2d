"""Objects that hold tensors: what they hold, and calls with other tensors in their place.

There is no module class. Anything callable with tensors in its attributes is a module, so a dataclass, or a class that somebody
wrote without this library in mind, is one. The tensors are swapped for the time of the call and not copied with the object: a
copy would lose what the call assigns to other attributes, and methods that an attribute holds would still see the old object.
"""
