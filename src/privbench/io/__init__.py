"""Bytes to Arrow and back: one door per system."""
