"""What noise costs, and the only place that draws it or opens coded private data."""
