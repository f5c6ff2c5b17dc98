"""Draft, fit, generate, verify: the walk of the data. Start reading at `fit`."""
