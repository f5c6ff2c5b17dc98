"""From a model to a bundle, at any scale."""
