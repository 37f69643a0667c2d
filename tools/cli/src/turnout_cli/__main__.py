"""`python -m turnout_cli`: the same as the command `turnout`."""

from turnout_cli.main import main

main()
