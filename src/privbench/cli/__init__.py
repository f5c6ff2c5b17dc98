"""The commands, a few lines each around the Python API."""
