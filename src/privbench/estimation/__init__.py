"""Cardinalities from the model, without generating rows."""
