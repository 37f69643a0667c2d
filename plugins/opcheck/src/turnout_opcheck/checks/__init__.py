"""The checks of `opcheck`, a module for each concern. Each yields the problems of a subject, or raises NotTriedError."""
