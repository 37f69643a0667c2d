"""Operators with faults, and correct ones, on which a checker of operators is proved.

| module | holds |
|---|---|
| `model` | `Spec`, an operator as data, and how it is installed |
| `correct` | correct operators of every kind: no check may raise an alarm on them |
| `planted` | operators with one fault each, and what a checker has to say of it |
| `mutators` | rules that put a fault into a correct operator |
"""
