"""The command turnout."""
