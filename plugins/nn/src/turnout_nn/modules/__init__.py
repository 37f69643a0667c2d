"""The modules of `turnout.nn`, each family in a file. A family of similar modules is a table with one row for each."""
