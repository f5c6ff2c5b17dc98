"""Fit and generate: start reading at pipeline."""
