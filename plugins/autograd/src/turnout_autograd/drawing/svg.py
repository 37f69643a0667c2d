"""A drawing in Graphviz's language, laid out and written as SVG by pygraphviz.

It runs in a process of its own, because Graphviz is not thread-safe, cannot be interrupted, and writes to standard error. This
module is also the program of that process: DOT in, SVG out.
"""

from __future__ import annotations

import sys


def svg(dot: str) -> str:
    """The SVG file. Raises DrawingError without pygraphviz, and where Graphviz fails."""
    import subprocess
    from importlib.util import find_spec

    from turnout_autograd import errors

    if find_spec("pygraphviz") is None:
        raise errors.DrawingError(errors.drawing.svg_missing())
    # -P: a file of the working directory must not stand in for a module.
    done = subprocess.run([sys.executable, "-P", "-m", __name__], input=dot.encode(), capture_output=True, check=False)
    if done.returncode:
        raise errors.DrawingError(errors.drawing.svg_failed(done.stderr.decode(errors="replace")))
    return done.stdout.decode()


def _main() -> None:
    import pygraphviz

    drawing = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode())
    sys.stdout.buffer.write(drawing.draw(format="svg", prog="dot"))


if __name__ == "__main__":
    _main()
