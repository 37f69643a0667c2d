"""Keys of TOML texts are found at their lines, whatever stands between them."""

from __future__ import annotations

import tomllib

from turnout.config.lines import Lines

TEXT = '''\
# comment = 0
plain = 1
"quoted key" = [  # a list over lines
    "]", """
not.a.key = 2
""",
    'x = 3',
]
a.b = {inline = 4}

[table]
key = "#"    # not a comment inside
text = """
[no.table]
key = 5 \\""" still
"""

[[rows]]
n = 1
  [rows.sub]
  m = 1
[[rows]]
n = 2
[rows.sub]
m = 2
'''


def test_every_key_has_its_line():
    tomllib.loads(TEXT)
    lines = Lines(TEXT)
    expected = {
        ("plain",): 2,
        ("quoted key",): 3,
        ("a",): 9,
        ("a", "b"): 9,
        ("a", "b", "inline"): 9,
        ("table",): 11,
        ("table", "key"): 12,
        ("table", "text"): 13,
        ("rows", "0", "n"): 19,
        ("rows", "0", "sub", "m"): 21,
        ("rows", "1"): 22,
        ("rows", "1", "n"): 23,
        ("rows", "1", "sub", "m"): 25,
        ("nowhere",): 1,
    }
    assert {path: lines.of(path) for path in expected} == expected
