"""Turnout: an operator dispatcher for Python."""
