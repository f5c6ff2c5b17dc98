"""From a source to a model: draft, read, code, find domains, learn. Start reading at `fit`."""
