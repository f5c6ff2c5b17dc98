"""Learners: from a vault to sum-product networks and links."""
