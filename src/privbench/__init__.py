"""Publish a private relational database as a DBMS benchmark, under database-level differential privacy."""

__version__ = "0.1.0"
