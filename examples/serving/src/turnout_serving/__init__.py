"""A model in a service: `service` answers requests, `program` is the command `turnout-serving`."""
