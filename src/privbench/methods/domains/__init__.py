"""Domains found with budget, for columns of which neither the spec nor the schema says what values they have."""
