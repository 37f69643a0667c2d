"""The operators that the cases of this folder name are those of turnout-aten."""

from __future__ import annotations

from turnout import plugins

plugins.activate("aten")
