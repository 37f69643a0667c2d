"""The Meta backend: tensors that have a shape and a dtype and no data."""
