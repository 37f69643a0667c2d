"""A small GPT: `model` has the modules, `text` the data, `program` the command `turnout-gpt`."""
